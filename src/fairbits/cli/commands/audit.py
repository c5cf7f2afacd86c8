"""`fairbits audit`: from a model and a table to one page, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairbits import audit as audits
from fairbits import report, store
from fairbits.cli import waited
from fairbits.cli.arguments import FORCE, JSON, OUT, RESUME, audit_of, subject_argument
from fairbits.cli.output import answer
from fairbits.cli.progress import stages
from fairbits.cli.signals import INTERRUPTED, gentle_stop
from fairbits.errors import ContradictionError
from fairbits.options import AuditOptions, LoadingOptions, SubjectOptions, arguments_of, option


def audit(
    *,
    subject: str | None = subject_argument(None),
    options: AuditOptions,
    about: SubjectOptions,
    out: Path | None = OUT,
    resume: Path | None = RESUME,
    force: bool = FORCE,
    opened: bool = option(False, "Open the page in a browser.", flag="--open"),
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """Measure, search, debug, repair and report: one command, one page that a reviewer can check."""
    door = audit_of(subject, about, loading, resume)
    with stages(shown=not as_json, scores_only=door.subject.scores_only) as progress, gentle_stop() as stop:
        found = door.audit(
            out=resume or out,
            resume=resume is not None,
            force=force,
            progress=progress,
            stop=stop,
            **arguments_of(options),
        )
    if isinstance(found, audits.AuditResult):
        folder, seconds = found.run.folder, found.seconds
        nearby = f"next  fairbits explore {folder}{loading.typed} · fairbits gate {folder}{loading.typed}"
        if found.stopped:
            nearby = f"next  fairbits audit --resume {folder}{loading.typed} (it ended early)"
    else:
        folder, seconds = found.folder, {"proxies": found.seconds}
        nearby = f"next  fairbits report {folder}{loading.typed} --form profile"

    def look() -> Any:
        if not isinstance(found, audits.AuditResult):
            return report.study_look(door.subject, found.document)
        asked = door.subject.asked_lines()
        return report.audit_look(found.data, asked=asked, faults=found.faults, seconds=found.seconds, waited=waited())

    about_run = {"run": str(folder), "report": str(found.page), "seconds": seconds}
    summary = folder / "summary.json"
    answer(as_json, lambda: {**about_run, "summary": store.read_json(summary)}, look, f"page  {found.page}", nearby)
    if opened:
        click.launch(str(found.page.resolve()))
    if isinstance(found, audits.AuditResult) and found.data.contradictions:
        raise ContradictionError(found.data.contradictions[0].said())
    if isinstance(found, audits.AuditResult) and found.stopped:
        raise click.exceptions.Exit(INTERRUPTED)
