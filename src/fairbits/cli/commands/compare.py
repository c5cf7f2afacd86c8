"""`fairbits compare`: all strategies on one subject."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.grants import granting
from fairbits.cli.options import (
    Epsilon,
    Json,
    PartitionName,
    Protected,
    Ray,
    Subject,
    Threads,
    Workers,
    audit_of,
    threads_of,
)
from fairbits.cli.output import print_json

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions


@granting
def compare(
    subject: Subject,
    strategies: Annotated[str, typer.Option(help="Strategies, separated by commas, or 'all'.")] = "all",
    budget: Annotated[str, typer.Option(help="How long each run may take, e.g. 15s.")] = "15s",
    repeats: Annotated[int, typer.Option(help="Runs of each strategy, each with another seed.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the first run.", min=0)] = 0,
    protected: Protected = None,
    epsilon: Epsilon = None,
    partition: PartitionName = "constrained",
    threads: Threads = 0,
    workers: Workers = None,
    ray: Ray = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Folder of page, figures and finished runs, to go on from.", show_default="runs/…"),
    ] = None,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """Which strategy finds more, how fast, how different: equal seconds, one oracle, all counted."""
    from fairbits.cli.progress import steps
    from fairbits.cli.terminal import show_page
    from fairbits.report import contest_of, contest_page
    from fairbits.search import seconds_of

    seconds = seconds_of(budget)
    wanted = None if strategies.strip() == "all" else [s.strip() for s in strategies.split(",") if s.strip()]
    door = audit_of(subject, protected=protected, as_is=True, grants=grants)
    with steps(seconds, shown=not as_json) as progress:
        found = door.compare(
            wanted,
            budget=budget,
            repeats=repeats,
            seed=seed,
            epsilon=epsilon,
            partition=partition,
            threads=threads_of(threads),
            workers=workers,
            ray=ray,
            out=out,
            progress=progress,
        )
    if as_json:
        print_json(found.as_dict())
        return
    page = contest_page(contest_of(found.as_dict(), command=found.command), drawn=False)
    show_page(page, f"page  {found.page}; all figures beside it, in compare.csv and compare.json")
