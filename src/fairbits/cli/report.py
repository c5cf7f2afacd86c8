"""`fairbits report`: one page that a reviewer can open, read and check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Optional

import typer

from fairbits.cli.options import Json, RunPlace, Threads, TrustPickle, Workers, hands_of, threads_of


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
    trust_pickle: TrustPickle = False,
    as_json: Json = False,
) -> None:
    """Write report.html, report.md and summary.json from whatever the run has: search, debug, repair."""
    if check:
        _check(run, threads, workers, trust_pickle=trust_pickle, as_json=as_json)
        return
    from fairbits.cli.progress import progress_bar
    from fairbits.report import compute_report, summary_of, write_report
    from fairbits.store import Run

    opened = Run.open(run)
    with progress_bar("measuring") as progress:
        data = compute_report(opened, trust_pickle=trust_pickle, threads=threads_of(threads), progress=progress)
    page = write_report(data, out or opened.folder)
    if as_json:
        print(json.dumps({"report": str(page), "summary": summary_of(data)}, indent=2, ensure_ascii=False))
    else:
        print(page)


def _check(run: Path, threads: int, workers: int | None, *, trust_pickle: bool, as_json: bool) -> None:
    """Make the run again, say whether it came out the same, and with what it was made."""
    from dataclasses import asdict

    from fairbits.audit.remake import check, settings_again
    from fairbits.cli.search import gentle_stop
    from fairbits.cli.search_text import live
    from fairbits.store import Run

    opened = Run.open(run)
    hands = hands_of(workers, None, threads)
    with live(settings_again(opened)[0], shown=not as_json) as watch, gentle_stop() as stop:
        found = check(opened, trust_pickle=trust_pickle, hands=hands, watch=watch, stop=stop)
        stopped = stop()
    if stopped:
        raise typer.Exit(130)
    if as_json:
        print(json.dumps({"run": str(opened.folder), **asdict(found)}, indent=2, ensure_ascii=False))
    elif found.equal:
        print(f"The same again: {len(opened):,} cases, content {found.before}.")
    else:
        print(f"Not the same again: {'; '.join(found.differences)}.")
    if not found.equal:
        raise typer.Exit(1)
