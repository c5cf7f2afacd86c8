"""`fairbits paper`: the paper's tables, made anew with the built-in networks."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.options import Json, PartitionName, Ray, Threads, Workers, executor_options_of, names_of, threads_of
from fairbits.cli.output import print_json
from fairbits.errors import OptionError

if TYPE_CHECKING:
    from rich.table import Table

    from fairbits.paper import Results

_Text = Optional[str]  # noqa: UP045 - typer reads annotations at run time
PLACE = Path("runs", "paper")
QUESTIONS = ("datasets", "rq1", "rq2", "rq3", "field", "ablation", "mitigation")


def paper(
    question: Annotated[
        str,
        typer.Argument(help="datasets, rq1, rq2, rq3, field (rq2 with every strategy), ablation or mitigation."),
    ],
    subjects: Annotated[
        _Text, typer.Option(help="Subjects, separated by commas.", show_default="the paper's ten")
    ] = None,
    strategies: Annotated[_Text, typer.Option(help="Strategies, separated by commas.")] = None,
    budget: Annotated[str, typer.Option(help="How long each cell's search may take.")] = "5s",
    repeats: Annotated[int, typer.Option(help="Runs of each cell (all but rq3).")] = 1,
    full: Annotated[
        bool, typer.Option("--full", help="As the paper: an hour (rq1, rq3), 15 min (rq2, field); 10 runs.")
    ] = False,
    queries: Annotated[int, typer.Option(help="Model queries of each run of the ablation.")] = 5_000_000,
    networks: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            help="rq3: a folder of subjects (subject.toml files) in place of the built-in ones.", metavar="FOLDER"
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="Settings that mitigation tries of each model's own training.")] = 20,
    quick: Annotated[bool, typer.Option("--quick", help="Mitigation in its smallest form, as a smoke test.")] = False,
    partition: PartitionName = "constrained",
    threads: Threads = 0,
    workers: Workers = None,
    ray: Ray = None,
    out: Annotated[Path, typer.Option(help="Folder of the tables; finished cells are not run again.")] = PLACE,
    as_json: Json = False,
) -> None:
    """The paper's tables, ours beside theirs; an experiment that was ended goes on where it was."""
    from fairbits.cli.progress import steps
    from fairbits.errors import choose_from

    if question not in QUESTIONS:
        raise OptionError(f"question {question!r} is not known; {choose_from(question, QUESTIONS)}")
    _check(question, strategies, repeats, full)
    if question != "mitigation" and (quick or trials != 20):
        raise OptionError(f"--{'quick' if quick else 'trials'} does not apply to {question!r}; it is for mitigation.")
    from fairbits.paper import FULL_SECONDS, ExperimentPlan, ablation, datasets, mitigation_table, roster, rq3
    from fairbits.search import seconds_of

    if networks is not None:
        from fairbits.paper import networks as networks_in

        if question != "rq3" or subjects is not None:
            raise OptionError("--networks is for rq3, and takes the place of --subjects; leave one of them out.")
        found = networks_in(networks)
    else:
        found = roster(None if subjects is None else names_of(subjects, "--subjects"))
    wanted = None if strategies is None else names_of(strategies, "--strategies")
    executor_options = executor_options_of(workers, ray, threads)
    seconds = FULL_SECONDS[question] if full else 2.0 if question == "ablation" else seconds_of(budget)
    tables: tuple[Results, ...]
    with steps(seconds, shown=not as_json) as progress:
        if question == "datasets":
            tables = (datasets(found),)
            tables[0].write(out, question)
        elif question == "ablation":
            tables = (
                ablation(
                    found,
                    out,
                    queries=queries,
                    repeats=repeats,
                    threads=threads_of(threads),
                    executor_options=executor_options,
                    progress=progress,
                ),
            )
        elif question == "mitigation":
            tables = (
                mitigation_table(
                    found, out, trials=trials, quick=quick, threads=threads_of(threads), progress=progress
                ),
            )
        elif question == "rq3":
            tables = rq3(
                found,
                out,
                seconds=seconds,
                strategies=wanted,
                partition=partition,
                threads=threads_of(threads),
                executor_options=executor_options,
                progress=progress,
            )
        else:
            plan = ExperimentPlan.of(
                question,
                found,
                out,
                seconds=seconds,
                repeats=repeats,
                full=full,
                strategies=wanted,
                partition=partition,
                threads=threads_of(threads),
            )
            tables = (plan.run(progress, executor_options=executor_options),)
    if as_json:
        made = [asdict(table) for table in tables]
        print_json(made if len(made) > 1 else made[0])
        return
    _show(tables)
    print(f"Kept in {out}")


def _check(question: str, strategies: str | None, repeats: int, full: bool) -> None:
    """Refuse options that the question cannot answer to, rather than pass over them."""
    if question == "rq3" and repeats != 1:
        raise OptionError(
            f"--repeats is {repeats}, but rq3 names layers and neurons, which have no mean; leave it out."
        )
    if question == "mitigation" and repeats != 1:
        raise OptionError(f"--repeats is {repeats}, but mitigation judges every candidate once; leave it out.")
    if question in ("datasets", "ablation", "mitigation") and (strategies is not None or full):
        option = "--full" if full else "--strategies"
        raise OptionError(f"{option} does not apply to {question!r}; it is for rq1, rq2, rq3 and field.")


def _show(tables: tuple[Results, ...]) -> None:
    """The tables, each with its notes; what has been said is not said again."""
    from rich.text import Text

    from fairbits.cli.console import Console

    console, said = Console(highlight=False), set[str]()
    for table in tables:
        console.print(Text(table.title, style="bold"))
        console.print(_drawn(table))
        for finding in table.findings:
            console.print(Text(f"· {finding}"))
        for note in table.notes:
            if note not in said:
                console.print(Text(note, style="dim"))
        said.update(table.notes)


def _drawn(table: Results) -> Table:
    from rich import box
    from rich.table import Table

    from fairbits.paper import shown

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    for place, heading in enumerate(table.columns):
        words = any(isinstance(row[place], str) for row in table.rows)
        # The first column gives way where the terminal is narrow; figures never do.
        drawn.add_column(heading, justify="left" if words else "right", no_wrap=place > 0)
    for name, *cells in table.rows:
        drawn.add_row(shown(name).replace("-synthetic", " synthetic"), *map(shown, cells))
    return drawn
