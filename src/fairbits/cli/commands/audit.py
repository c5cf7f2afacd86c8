"""`fairbits audit`: from a model and a table to one page, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairbits.cli.arguments import JSON, audit_of, force_option, out_option, resume_option, subject_argument
from fairbits.cli.output import print_json
from fairbits.cli.signals import INTERRUPTED, gentle_stop
from fairbits.errors import ContradictionError
from fairbits.options import AuditOptions, LoadingOptions, SubjectOptions, arguments_of, option

if TYPE_CHECKING:
    from fairbits.audit import AuditResult, ScoresAudit
    from fairbits.subject import Subject


def audit(
    *,
    subject: str | None = subject_argument(None),
    options: AuditOptions,
    about: SubjectOptions,
    out: Path | None = out_option(),
    resume: Path | None = resume_option(),
    force: bool = force_option(),
    opened: bool = option(False, "Open the page in a browser.", flag="--open"),
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """Measure, search, debug, repair and report: one command, one page that a reviewer can check."""
    door = audit_of(subject, about, loading, resume)
    from fairbits.audit import AuditResult as Whole
    from fairbits.cli.progress import stages
    from fairbits.report import summary_of

    with stages(shown=not as_json, scores_only=door.subject.scores_only) as progress, gentle_stop() as stop:
        found = door.audit(
            out=resume or out,
            resume=resume is not None,
            force=force,
            progress=progress,
            stop=stop,
            **arguments_of(options),
        )
    if not isinstance(found, Whole):
        _show_scores(door.subject, found, as_json=as_json)
    elif as_json:
        whole = {"run": str(found.run.folder), "report": str(found.page), "seconds": found.seconds}
        print_json({**whole, "summary": summary_of(found.data)})
    else:
        _show(found, door.subject.asked_lines(), loading.typed)
    if opened:
        click.launch(str(found.page.resolve()))
    if isinstance(found, Whole) and found.data.contradictions:
        raise ContradictionError(found.data.contradictions[0].said())
    if isinstance(found, Whole) and found.stopped:
        raise click.exceptions.Exit(INTERRUPTED)


def _show(found: AuditResult, asked: tuple[str, ...], granted: str) -> None:
    """The findings in one look, where the page is, and what to do next."""
    from fairbits.cli import waited
    from fairbits.cli.terminal import show
    from fairbits.report import audit_look

    folder = found.run.folder
    nearby = f"next  fairbits explore {folder}{granted} · fairbits gate {folder}{granted}"
    if found.stopped:
        nearby = f"next  fairbits audit --resume {folder}{granted} (it ended early)"
    look = audit_look(found.data, asked=asked, faults=found.faults, seconds=found.seconds, waited=waited())
    show(look, f"page  {found.page}", nearby)


def _show_scores(subject: Subject, found: ScoresAudit, *, as_json: bool) -> None:
    """A table of scores: groups and indirect bits only."""
    from fairbits.cli.terminal import show
    from fairbits.report import study_look
    from fairbits.store import read_json

    if as_json:
        summary = read_json(found.folder / "summary.json")
        seconds = {"proxies": found.seconds}
        print_json({"run": str(found.folder), "report": str(found.page), "seconds": seconds, "summary": summary})
        return
    show(study_look(subject, found.document), f"page  {found.page}")
