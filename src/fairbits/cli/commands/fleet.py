"""`fairbits fleet`: every subject in a folder, and one page that says where to look first."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.grants import granting
from fairbits.cli.options import (
    AsIs,
    Epsilon,
    Json,
    PartitionOrRun,
    Ray,
    Skip,
    Threads,
    Workers,
    stages_of,
    threads_of,
)
from fairbits.cli.output import print_json
from fairbits.cli.signals import FAILED, gentle_stop

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions
    from fairbits.report import FleetMember

#: Typer reads annotations at run time, and not in the newer spelling.
_Text = Optional[str]  # noqa: UP045
_Number = Optional[int]  # noqa: UP045
_Place = Optional[Path]  # noqa: UP045


@granting
def fleet(
    folder: Annotated[Path, typer.Argument(help="A folder with subject.toml files, in it or below.")],
    workers: Workers = None,
    ray: Ray = None,
    budget: Annotated[_Text, typer.Option(help="About how long for each subject.", show_default="60s")] = None,
    out: Annotated[_Place, typer.Option(help="Folder of the page and all runs.", show_default="runs/…")] = None,
    rank: Annotated[
        str, typer.Option(help="Order by people affected, found or proved k, or bits: people, found, proved, bits.")
    ] = "people",
    skip: Skip = None,
    seed: Annotated[
        _Number,
        typer.Option(help="Same seed, same draws; seconds end them elsewhere each time.", min=0, show_default="0"),
    ] = None,
    epsilon: Epsilon = None,
    partition: PartitionOrRun = None,
    threads: Threads = 0,
    as_is: AsIs = False,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """Audit many models in one go and rank them by severity; one that fails never stops the others."""
    from fairbits.audit import AuditOptions, audit_fleet
    from fairbits.search import seconds_of

    options = AuditOptions(
        seconds=None if budget is None else seconds_of(budget),
        seed=seed,
        epsilon=epsilon,
        partition=partition,
        threads=threads_of(threads),
        skip=stages_of(skip),
        workers=workers,
        ray=ray,
    )
    with gentle_stop() as stop:
        found, page = audit_fleet(
            folder,
            options,
            out,
            as_is=as_is,
            rank=rank,
            **grants,
            progress=None if as_json else _say,
            stop=stop,
        )
        stopped = stop()
    if as_json:
        print_json({"page": str(page), **found.document()})
    else:
        from fairbits.cli.terminal import show_page
        from fairbits.report import fleet_page

        show_page(fleet_page(found), f"page  {page}", everything=True)
    if stopped:
        raise typer.Exit(130)
    if found.failed:
        raise typer.Exit(FAILED)


def _say(done: int, total: int, entry: FleetMember | None) -> None:
    """A line on stderr for every subject that has ended."""
    from fairbits.text import harmless

    if entry is None:
        print(f"{total} subjects", file=sys.stderr)
    else:
        bits = "scores only" if entry.bits is None else f"{entry.bits:.2f} of {entry.bits_limit:.2f} bits"
        how = "failed" if entry.error is not None else bits
        print(f"{done:>4} of {total}  {harmless(entry.name)[:50]}: {how}", file=sys.stderr)
