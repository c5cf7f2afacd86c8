"""`fairbits fleet`: every subject in a folder, and one page that says where to look first."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairbits import audit, report
from fairbits.cli.arguments import JSON
from fairbits.cli.flags import argument
from fairbits.cli.output import answer
from fairbits.cli.signals import FAILED, INTERRUPTED, gentle_stop
from fairbits.options import AcceptOptions, AuditOptions, LoadingOptions, option

if TYPE_CHECKING:
    from fairbits.report import FleetMember


def fleet(
    *,
    folder: Path = argument(help="A folder with audit files (subject.toml), in it or below."),
    options: AuditOptions,
    out: Path | None = option(None, "Folder of the page and all runs.", metavar="FOLDER", shown="runs/…"),
    rank: str = option(
        "people", "Order by people affected, found or proved k, or bits: people, found, proved, bits.", metavar="WORD"
    ),
    about: AcceptOptions,
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """Audit many models in one go and rank them by severity; one that fails never stops the others.

    A budget is that of each model.
    """
    with gentle_stop() as stop:
        found, page = audit.audit_fleet(
            folder,
            options,
            out,
            as_is=about.as_is,
            rank=rank,
            **loading.given(),
            progress=None if as_json else _say,
            stop=stop,
        )
        stopped = stop()
    document = {"page": str(page), **found.document()}
    answer(as_json, lambda: document, lambda: report.fleet_page(found), f"page  {page}", everything=True)
    if stopped:
        raise click.exceptions.Exit(INTERRUPTED)
    if found.failed:
        raise click.exceptions.Exit(FAILED)


def _say(done: int, total: int, entry: FleetMember | None) -> None:
    """A line on stderr for every subject that has ended."""
    if entry is None:
        print(f"{total} audit files", file=sys.stderr)
    else:
        bits = "scores only" if entry.bits is None else f"{entry.bits:.2f} of {entry.bits_limit:.2f} bits"
        how = "failed" if entry.error is not None else bits
        print(f"{done:>4} of {total}  {entry.name[:50]}: {how}", file=sys.stderr)
