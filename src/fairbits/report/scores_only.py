"""The report of a table of scores: groups and indirect bits, in the same three faces as any other report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from fairbits._version import __version__
from fairbits.blocks import Commands, Facts, Page, PagePart, paragraphs
from fairbits.options import AuditOptions, flag_words
from fairbits.report.files import write_faces
from fairbits.report.html import render_page
from fairbits.report.manifest import FACES, files_of
from fairbits.report.markdown import render_markdown_page
from fairbits.report.record import ReportData
from fairbits.report.sections import decided, hashes, ll144, pointers, sign_off
from fairbits.report.sections.decided import Opening, sources_of
from fairbits.report.sections.proxies import SECTION as INDIRECT
from fairbits.report.sections.proxies import lead, pictures, plainly, summary
from fairbits.report.summary import FORMAT
from fairbits.store import plain
from fairbits.subject import Subject

LIMITS = (
    "The model is not at hand: nobody but the people of the table can be scored, so there are no twins, no search, no "
    "repair and no certificate. Whether the model takes a protected attribute itself cannot be known from scores."
)


#: The sections of the page, in order: those of any report that need no model; what was found leads.
SECTIONS = (INDIRECT, decided.SECTION, hashes.SECTION, sign_off.SECTION, ll144.SECTION)


def write_scores_report(
    document: Mapping[str, Any], subject: Subject, folder: Path, *, record: Mapping[str, Any]
) -> Path:
    """Write report.html, report.md, summary.json and manifest.json of a table of scores."""
    sentence = lead(document, blind=True).strip() or _unknown(document)
    data = _data(document, subject, folder, record)
    notes = (f"Note: {note}" for note in subject.notes if not note.startswith("the model is not at hand"))  # see LIMITS
    there = [one for one in SECTIONS if one.shown(data)]
    laws = tuple(pointers.pointer_blocks({one.name: one.title for one in there}))
    again = (Commands(_commands(record)), Facts(list((record.get("versions") or {}).items())))
    page = Page(
        subject=subject.name,
        command=f"audit of scores · {data.remaking.created[:10]}",
        title=f"{subject.name}: what its scores tell",
        heading=f"{subject.name}: fairbits audit",
        sentence=sentence,
        opening=(
            *paragraphs(plainly(document, blind=True), "second"),
            *paragraphs((f"{document['rows']:,} people, their scores only.", LIMITS), "lead"),
            *paragraphs(notes, "note"),
        ),
        parts=[
            *(one.part(data) for one in there),
            PagePart("again", "Reproduce", again),
            PagePart(pointers.SECTION.name, pointers.SECTION.title, laws),
        ],
        pictures=pictures(document),
        made_from="the table's own scores",
    )
    figures = {} if subject.quality is None else subject.quality.figures()
    about = {"subject": subject.name, "rows": document["rows"], "scores_only": True, "fairbits": __version__}
    about["identity"] = data.remaking.identity
    whole = plain({**about, "format": FORMAT, **figures, "sentence": sentence, "proxies": summary(document)})
    return write_faces(folder, data, page=render_page(page), markdown=render_markdown_page(page), summary=whole)


def _data(document: Mapping[str, Any], subject: Subject, folder: Path, record: Mapping[str, Any]) -> ReportData:
    """What the sections look at: those parts of a report's record that a table of scores has."""
    quality = subject.checked(as_is=True).quality
    found = SimpleNamespace(
        proxies=document,
        about=SimpleNamespace(subject=subject.name, protected=(), blind=True, quality=quality),
        measured=SimpleNamespace(flip_rate=None, split_rate=None, rows=document["rows"]),
        remaking=SimpleNamespace(created=str(record["created"]), identity=str(record["identity"]["id"])),
        opening=Opening(sources=sources_of(subject), made_by=str(record.get("made_by") or "unknown")),
        files=files_of(folder, leave_out=FACES) if folder.is_dir() else (),
    )
    return cast(ReportData, found)


def _commands(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The commands that make the audit again."""
    asked = AuditOptions(**{name: record.get(name) for name in ("seed", "by", "data_source", "distributed")})
    name = Path(str(record.get("source") or "SUBJECT")).name
    return (shlex.join(["fairbits", "audit", name, *flag_words(asked), "--out", "again"]),)


def _unknown(document: Mapping[str, Any]) -> str:
    """Where nothing can be known about any attribute, the reason is the finding."""
    reasons = [one["reason"] for one in document["attributes"] if one["reason"]]
    return f"What the score tells cannot be known: {reasons[0]}" if reasons else "Nothing was found."
