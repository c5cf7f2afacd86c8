"""`fairbits certify`: what can be proved about a model, and for how many people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairbits import report
from fairbits.cli.arguments import EITHER, JSON, audit_of, open_run
from fairbits.cli.output import answer
from fairbits.cli.progress import working
from fairbits.cli.signals import INTERRUPTED, gentle_stop
from fairbits.errors import ContradictionError, OptionError
from fairbits.options import CertifyOptions, LoadingOptions, RegionOptions, arguments_of

if TYPE_CHECKING:
    from fairbits.certify import Certificate
    from fairbits.subject import Subject


def certify(
    *,
    subject: str = EITHER,
    options: CertifyOptions,
    about: RegionOptions,
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """What can be said about everybody: exact, proved over sets of people, or statistical.

    Ends with the budget or Ctrl-C; what is certain by then is said. In a run's folder it goes to certify.json.
    """
    of_run = (Path(subject) / "run.json").is_file()
    if of_run and (about.protected is not None or about.where is not None):
        raise OptionError("--protected and --where are for an audit file; a run has its own, so leave them out.")
    door = open_run(subject, "certify", loading) if of_run else audit_of(subject, about, loading)
    loaded = door.subject
    with working(shown=not as_json) as progress, gentle_stop() as stop:
        found = door.certify(progress=progress, stop=stop, **arguments_of(options))
    title = f"{loaded.name}: what can be said about everybody"
    nearby = f"next  fairbits {'report' if of_run else 'audit'} {subject}{loading.typed}"
    answer(
        as_json,
        lambda: document(loaded, found),
        lambda: report.titled(title, loaded.lines(), report.certificate_blocks(found)),
        *([] if loaded.table.drawn else [nearby]),  # all else needs a table
    )
    if found.contradictions:
        raise ContradictionError(found.contradictions[0].said())
    if found.stopped:
        raise click.exceptions.Exit(INTERRUPTED)


def document(subject: Subject, found: Certificate) -> dict[str, Any]:
    """Everything that the terminal shows, as JSON."""
    return {
        "subject": subject.name,
        "identity": subject.identity.id,
        "quality": None if subject.quality is None else subject.quality.figures(),
        "statements": [one.document() for one in found.statements],
        "rates": [one.document() for one in found.rates],
        "notes": list(found.notes),
        "contradictions": [one.document() for one in found.contradictions],
        "stopped": found.stopped,
    }
