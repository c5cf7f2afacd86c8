"""`fairbits report`: one page that a reviewer can open, read and check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.options import Json, RunPlace, Threads, Workers, executor_options_of, granting, threads_of
from fairbits.cli.output import print_json

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions


@granting
def report(
    run: RunPlace,
    out: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation at run time
        typer.Option(help="Folder for the three files.", show_default="the run's own"),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Make the run again and compare: exit 0 where both are the same, else 1.")
    ] = False,
    threads: Threads = 0,
    workers: Workers = None,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """Write report.html, report.md and summary.json from whatever the run has: search, debug, repair."""
    if check:
        _check(run, threads, workers, as_json=as_json, grants=grants)
        return
    from fairbits.cli.render.progress import progress_bar
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


def _check(run: Path, threads: int, workers: int | None, *, as_json: bool, grants: GrantOptions) -> None:
    """Make the run again, say whether it came out the same, and with what it was made."""
    from dataclasses import asdict

    from fairbits.audit import check, settings_again
    from fairbits.cli.render.search import live
    from fairbits.cli.signals import gentle_stop
    from fairbits.store import Run

    opened = Run.open(run)
    executor_options = executor_options_of(workers, None, threads)
    with live(settings_again(opened)[0], shown=not as_json) as watch, gentle_stop() as stop:
        found = check(opened, **grants, executor_options=executor_options, watch=watch, stop=stop)
        stopped = stop()
    if stopped:
        raise typer.Exit(130)
    if as_json:
        print_json({"run": str(opened.folder), **asdict(found)})
    elif found.equal:
        print(f"The same again: {len(opened):,} cases, content {found.before}.")
    else:
        print(f"Not the same again: {'; '.join(found.differences)}.")
    if not found.equal:
        raise typer.Exit(1)
