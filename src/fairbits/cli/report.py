"""`fairbits report`: one page that a reviewer can open, read and check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.options import Json, RunPlace, Threads, granting, threads_of
from fairbits.cli.output import print_json

if TYPE_CHECKING:
    from fairbits.domain.limits import GrantOptions


@granting
def report(
    run: RunPlace,
    out: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation at run time
        typer.Option(help="Folder for the three files.", show_default="the run's own"),
    ] = None,
    threads: Threads = 0,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """Write report.html, report.md and summary.json from whatever the run has: search, debug, repair."""
    from fairbits.cli.progress import progress_bar
    from fairbits.report import compute_report, summary_of, write_report
    from fairbits.store import Run

    opened = Run.open(run)
    with progress_bar("measuring") as progress:
        data = compute_report(opened, **grants, threads=threads_of(threads), progress=progress)
    page = write_report(data, out or opened.folder)
    if as_json:
        print_json({"report": str(page), "summary": summary_of(data)})
    else:
        print(page)
