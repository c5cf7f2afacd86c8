"""The report of a table of scores: groups and indirect bits, in the same three faces as any other report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from markupsafe import Markup

from fairbits._version import __version__
from fairbits.report.files import write_faces
from fairbits.report.manifest import FACES, files_of
from fairbits.report.markdown import indirect_text, text
from fairbits.report.page import part, rendered
from fairbits.report.record import ReportData
from fairbits.report.section import Section
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
SECTIONS = (INDIRECT, decided.SECTION, hashes.SECTION, sign_off.SECTION, ll144.SECTION, pointers.SECTION)


def write_scores_report(
    document: Mapping[str, Any], subject: Subject, folder: Path, *, record: Mapping[str, Any]
) -> Path:
    """Write report.html, report.md, summary.json and manifest.json of a table of scores."""
    sentence = lead(document, blind=True).strip() or _unknown(document)
    data = _data(document, subject, folder, record)
    there = [one for one in SECTIONS if one.shown(data)]
    titles = {one.name: one.title for one in there}
    page = rendered(
        "scores.html",
        subject=subject.name,
        sentence=sentence,
        plainly=plainly(document, blind=True),
        created=data.remaking.created[:10],
        lines=(f"{document['rows']:,} people, their scores only.", LIMITS),
        notes=[note for note in subject.notes if not note.startswith("the model is not at hand")],  # see LIMITS
        contents=list(titles.items()),
        parts=[_part(one, data, titles) for one in there],
        commands=_commands(record),
        versions=record.get("versions") or {},
    )
    words = _markdown(document, subject, sentence, data, record)
    figures = {} if subject.quality is None else subject.quality.figures()
    about = {"subject": subject.name, "rows": document["rows"], "scores_only": True, "fairbits": __version__}
    about["identity"] = data.remaking.identity
    whole = plain({**about, "format": FORMAT, **figures, "sentence": sentence, "proxies": summary(document)})
    return write_faces(folder, data, page=page, markdown=words, summary=whole)


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


def _part(section: Section, data: ReportData, titles: Mapping[str, str]) -> Markup:
    document = data.proxies or {}
    drawn = {name: Markup(svg) for name, svg in pictures(document).items()}  # noqa: S704 - made by us
    values: Mapping[str, Any]
    if section is pointers.SECTION:  # it asks which sections the page has
        values = {"pointers": pointers.POINTERS, "pointers_note": pointers.NOTE, "titles": titles}
    else:
        values = section.values(data)
    return part(section.template, data=data, about=data.about, pictures=drawn, **values)


def _markdown(
    document: Mapping[str, Any], subject: Subject, sentence: str, data: ReportData, record: Mapping[str, Any]
) -> str:
    lines = [f"# {text(subject.name, 80)}: fairbits audit", "", f"**{text(sentence, 400)}**", ""]
    for line in (*plainly(document, blind=True), LIMITS):
        lines += [text(line, 600), ""]
    for made in (indirect_text(document), decided.SECTION.markdown(data)):
        lines += [*made, ""]
    lines += ["## How to get every figure again", "", *(f"    {command}" for command in _commands(record)), ""]
    for section in (hashes.SECTION, sign_off.SECTION):
        lines += [*section.markdown(data), ""]
    lines += ll144.filing_text(document, data.remaking.created)
    return "\n".join(lines).rstrip() + "\n"


def _commands(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The commands that make the audit again."""
    words = ["fairbits", "audit", Path(str(record.get("source") or "SUBJECT")).name, "--seed", str(record["seed"])]
    for name in ("by", "data_source", "distributed"):
        if record.get(name) is not None:
            words += [f"--{name.replace('_', '-')}", str(record[name])]
    return (shlex.join([*words, "--out", "again"]),)


def _unknown(document: Mapping[str, Any]) -> str:
    """Where nothing can be known about any attribute, the reason is the finding."""
    reasons = [one["reason"] for one in document["attributes"] if one["reason"]]
    return f"What the score tells cannot be known: {reasons[0]}" if reasons else "Nothing was found."
