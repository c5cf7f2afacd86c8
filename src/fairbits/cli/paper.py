"""`fairbits paper`: the paper's tables, made anew with the built-in networks."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.options import Json, PartitionName, Threads, threads_of
from fairbits.errors import OptionError

if TYPE_CHECKING:
    from fairbits.paper.tables import Results

_Text = Optional[str]  # noqa: UP045 - typer reads annotations at run time
PLACE = Path("runs", "paper")
QUESTIONS = ("datasets", "rq1", "rq2", "ablation")


def paper(
    question: Annotated[str, typer.Argument(help="datasets, rq1, rq2 or ablation.")],
    subjects: Annotated[_Text, typer.Option(help="Subjects, separated by commas.  [default: the paper's ten]")] = None,
    strategies: Annotated[_Text, typer.Option(help="Strategies, separated by commas.")] = None,
    budget: Annotated[str, typer.Option(help="How long each cell's run may take.")] = "5s",
    repeats: Annotated[int, typer.Option(help="Runs of each cell.")] = 1,
    full: Annotated[bool, typer.Option("--full", help="As the paper: an hour (rq1), 15 min (rq2), 10 runs.")] = False,
    queries: Annotated[int, typer.Option(help="Model queries of each run of the ablation.")] = 5_000_000,
    partition: PartitionName = "constrained",
    threads: Threads = 0,
    out: Annotated[Path, typer.Option(help="Folder of the tables; finished cells are not run again.")] = PLACE,
    as_json: Json = False,
) -> None:
    """The paper's tables, ours beside theirs; an experiment that was ended goes on where it was."""
    from fairbits.cli.compare_text import steps
    from fairbits.errors import choose_from

    if question not in QUESTIONS:
        raise OptionError(f"question {question!r} is not known; {choose_from(question, QUESTIONS)}")
    from fairbits.paper.ablation import ablation
    from fairbits.paper.research import FULL_SECONDS, Plan
    from fairbits.paper.subjects import datasets, roster
    from fairbits.search import seconds_of

    found = roster(_names(subjects))
    if question == "datasets":
        table = datasets(found)
        table.write(out, question)
    elif question == "ablation":
        with steps(2.0, shown=not as_json) as progress:
            table = ablation(
                found, out, queries=queries, repeats=repeats, threads=threads_of(threads), progress=progress
            )
    else:
        seconds = FULL_SECONDS[question] if full else seconds_of(budget)
        plan = Plan.of(
            question,
            found,
            out,
            seconds=seconds,
            repeats=repeats,
            full=full,
            strategies=_names(strategies),
            partition=partition,
            threads=threads_of(threads),
        )
        with steps(seconds, shown=not as_json) as progress:
            table = plan.run(progress)
    if as_json:
        print(json.dumps(asdict(table), indent=2, ensure_ascii=False))
        return
    _show(table)
    print(f"Kept in {out}")


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _show(table: Results) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fairbits.paper.tables import shown

    console = Console(highlight=False)
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    for place, heading in enumerate(table.columns):
        words = any(isinstance(row[place], str) for row in table.rows)
        drawn.add_column(heading, justify="left" if words else "right", no_wrap=True)
    for row in table.rows:
        drawn.add_row(*(shown(cell) for cell in row))
    console.print(Text(table.title, style="bold"))
    console.print(drawn)
    for note in table.notes:
        console.print(Text(note, style="dim"))
