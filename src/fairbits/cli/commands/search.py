"""`fairbits search`: the worst people, found and kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from fairbits import report
from fairbits.cli import since
from fairbits.cli.arguments import FORCE, JSON, OUT, RESUME, audit_of, subject_argument
from fairbits.cli.output import answer
from fairbits.cli.progress import live
from fairbits.cli.signals import INTERRUPTED, gentle_stop
from fairbits.errors import OptionError
from fairbits.options import LoadingOptions, SearchOptions, SubjectOptions, arguments_of, option


def search(
    *,
    subject: str | None = subject_argument(None),
    options: SearchOptions,
    on_data: bool = option(False, "Only the real rows, all of them: exact."),
    exhaustive: int | None = option(
        None, "1: every change of one attribute of every real row: exact.", metavar="N", rare=True
    ),
    about: SubjectOptions,
    out: Path | None = OUT,
    resume: Path | None = RESUME,
    force: bool = FORCE,
    top: int = option(10, "How many of the worst people to list.", low=0),
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """Search for the people whose twins are treated most differently, and keep every case on disk."""
    began = since()
    if on_data or exhaustive is not None:
        if options.strategy is not None or (on_data and exhaustive is not None):
            raise OptionError("--strategy, --on-data and --exhaustive exclude each other; choose one.")
        options = replace(options, strategy="exhaustive", options={"distance": 0 if on_data else exhaustive})
    door = audit_of(subject, about, loading, resume)
    with live(shown=not as_json) as progress, gentle_stop() as stop:
        run = door.search(
            out=resume or out,
            resume=resume is not None,
            force=force,
            progress=progress,
            stop=stop,
            began=began,
            **arguments_of(options),
        )
        stopped = stop() and run.status == "interrupted"
    summary = run.summary or {}
    notes = (*door.subject.notes, *summary.get("notes", ()))
    answer(
        as_json,
        lambda: {"run": str(run.folder), "status": run.status, **summary},
        lambda: report.search_look(run, top=top, lines=door.subject.asked_lines(), notes=notes),
        f"next  fairbits cases {run.folder}, then fairbits debug, repair and report",
    )
    if stopped:
        raise click.exceptions.Exit(INTERRUPTED)
