"""`fairbits paper`: the paper's tables, made anew with the built-in networks; and strategies compared on a subject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairbits.cli.arguments import JSON, audit_of
from fairbits.cli.flags import argument
from fairbits.cli.output import print_json
from fairbits.errors import OptionError, choose_from
from fairbits.options import (
    CompareOptions,
    ExecutorOptions,
    LoadingOptions,
    ProtectedOptions,
    arguments_of,
    names_of,
    option,
    protected_option,
    seconds_of,
)

if TYPE_CHECKING:
    from rich.table import Table

    from fairbits.paper import Results

PLACE = Path("runs", "paper")
QUESTIONS = ("datasets", "rq1", "rq2", "rq3", "field", "ablation", "mitigation", "repairs", "compare")


def paper(
    *,
    question: str = argument(
        help="datasets, rq1, rq2, rq3, field (rq2 with every strategy), ablation, mitigation, repairs (rivals' "
        "beside ours); or compare SUBJECT: all strategies on one model and table at equal seconds."
    ),
    subject: str | None = argument(None, "Of compare: a built-in name or an audit file (subject.toml)."),
    subjects: str | None = option(None, "Subjects, separated by commas.", metavar="NAMES", shown="the paper's ten"),
    strategies: str | None = option(None, "Strategies, separated by commas, or all.", metavar="NAMES"),
    budget: str | None = option(
        None, "How long each search or repair may take.", metavar="DURATION", shown="5s, of compare 15s"
    ),
    repeats: int | None = option(None, "Runs of each cell (all but rq3).", shown="1, of compare 10"),
    full: bool = option(False, "As the paper: an hour (rq1, rq3), 15 min (rq2, field); 10 runs."),
    queries: int = option(5_000_000, "Model queries of each run of the ablation.", rare=True),
    networks: Path | None = option(
        None,
        "rq3: a folder of audit files (subject.toml) in place of the built-in ones.",
        metavar="FOLDER",
        rare=True,
    ),
    trials: int = option(20, "Settings that mitigation tries of each model's own training.", rare=True),
    quick: bool = option(False, "Mitigation in its smallest form, as a smoke test.", rare=True),
    partition: str = option("constrained", "constrained, or grid as in the paper's artifact.", rare=True),
    seed: int = option(0, "Of compare: seed of the first run.", low=0),
    epsilon: float | None = option(None, "Of compare: scores closer than this count as the same.", shown="0.025"),
    protected: tuple[str, ...] | None = protected_option(),
    options: ExecutorOptions,
    out: Path | None = option(
        None,
        "Folder of what is made; finished cells are not run again.",
        metavar="FOLDER",
        shown="runs/paper, or runs/…",
    ),
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """The paper's tables, ours beside theirs; an experiment that was ended goes on where it was.

    `fairbits paper compare SUBJECT`: which strategy finds more, how fast, how different: equal seconds, one oracle, all
    counted.
    """
    if question not in QUESTIONS:
        raise OptionError(f"question {question!r} is not known; {choose_from(question, QUESTIONS)}")
    if (question == "compare") != (subject is not None):
        raise OptionError("a name is for `fairbits paper compare SUBJECT`; other questions have --subjects.")
    if subject is not None:
        asked = CompareOptions(
            budget="15s" if budget is None else budget,
            repeats=10 if repeats is None else repeats,
            seed=seed,
            epsilon=epsilon,
            partition=partition,
            **arguments_of(options),
        )
        _compare(subject, strategies, asked, protected, out, loading, as_json=as_json)
        return
    budget, repeats, out = budget or "5s", 1 if repeats is None else repeats, out or PLACE
    threads = options.threads
    of_others = {"--epsilon": epsilon, "--protected": protected, "--seed": seed or None}
    of_mitigation = {"--quick": quick or None, "--trials": None if trials == 20 else trials}
    _refuse(question, of_others, "compare")
    _refuse(question, of_mitigation if question != "mitigation" else {}, "mitigation")
    _check(question, strategies, repeats, full)
    from fairbits.cli.progress import steps
    from fairbits.paper import (
        FULL_SECONDS,
        ExperimentPlan,
        ablation,
        datasets,
        mitigation_table,
        repairs_table,
        roster,
        rq3,
    )

    if networks is not None:
        from fairbits.paper import networks as networks_in

        if question != "rq3" or subjects is not None:
            raise OptionError("--networks is for rq3, and takes the place of --subjects; leave one of them out.")
        found = networks_in(networks)
    else:
        found = roster(None if subjects is None else names_of(subjects, "--subjects"))
    wanted = None if strategies is None else names_of(strategies, "--strategies")
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
                    threads=threads,
                    executor_options=options,
                    progress=progress,
                ),
            )
        elif question in ("mitigation", "repairs"):
            make = (
                partial(mitigation_table, trials=trials, quick=quick)
                if question == "mitigation"
                else partial(repairs_table, seconds=seconds)
            )
            tables = (make(found, out, threads=threads, progress=progress),)
        elif question == "rq3":
            tables = rq3(
                found,
                out,
                seconds=seconds,
                strategies=wanted,
                partition=partition,
                threads=threads,
                executor_options=options,
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
                threads=threads,
            )
            tables = (plan.run(progress, executor_options=options),)
    if as_json:
        made = [asdict(table) for table in tables]
        print_json(made if len(made) > 1 else made[0])
        return
    _show(tables)
    print(f"Kept in {out}")


def _compare(
    subject: str,
    strategies: str | None,
    options: CompareOptions,
    protected: tuple[str, ...] | None,
    out: Path | None,
    loading: LoadingOptions,
    *,
    as_json: bool,
) -> None:
    """All strategies, or some, on one subject."""
    from fairbits.cli.progress import steps
    from fairbits.cli.terminal import show_page
    from fairbits.report import contest_of, contest_page

    seconds = seconds_of(options.budget)
    wanted = None if strategies in (None, "all") else list(names_of(strategies or "", "--strategies"))
    door = audit_of(subject, ProtectedOptions(protected=protected, as_is=True), loading)
    with steps(seconds, shown=not as_json) as progress:
        found = door.compare(wanted, out=out, progress=progress, **arguments_of(options))
    if as_json:
        print_json(found.as_dict())
        return
    page = contest_page(contest_of(found.as_dict(), command=found.command), drawn=False)
    show_page(page, f"page  {found.page}")


def _refuse(question: str, given: Mapping[str, object], only: str) -> None:
    strange = next((flag for flag, value in given.items() if value is not None), None)
    if strange is not None:
        raise OptionError(f"{strange} does not apply to {question!r}; it is for {only}.")


def _check(question: str, strategies: str | None, repeats: int, full: bool) -> None:
    """Refuse options that the question cannot answer to, rather than pass over them."""
    if question == "rq3" and repeats != 1:
        raise OptionError(
            f"--repeats is {repeats}, but rq3 names layers and neurons, which have no mean; leave it out."
        )
    if question in ("mitigation", "repairs") and repeats != 1:
        raise OptionError(f"--repeats is {repeats}, but {question} judges every candidate once; leave it out.")
    if question in ("datasets", "ablation", "mitigation", "repairs") and (strategies is not None or full):
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
