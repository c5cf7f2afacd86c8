"""The report of a table of scores: groups and indirect bits, in the same three formats as any other report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from fairbits._version import __version__
from fairbits.blocks import Block, Cards, Commands, Facts, Fold, Page, PagePart, paragraphs
from fairbits.options import AuditOptions, flag_words
from fairbits.report.html import render_page
from fairbits.report.manifest import FILING, FORMATS, files_of
from fairbits.report.markdown import render_markdown_page
from fairbits.report.page import write_formats
from fairbits.report.record import Opening, ReportData
from fairbits.report.sections.paperwork import file_blocks, regulation_blocks, sign_off_blocks
from fairbits.report.sections.summary import facts, quality_cards, sources_of
from fairbits.report.sections.treatment import impact_blocks, lead, pictures, plainly, proxy_blocks, summary
from fairbits.report.summary import FORMAT
from fairbits.store import plain
from fairbits.subject import Subject

LIMITS = (
    "Nobody but the people of the table can be scored, so there are no twins, no search, no "
    "repair and no certificate. Whether the model takes a protected attribute itself cannot be known from scores."
)


def write_scores_report(
    document: Mapping[str, Any], subject: Subject, folder: Path, *, record: Mapping[str, Any]
) -> Path:
    """Write report.html, report.md, summary.json and manifest.json of a table of scores."""
    sentence = lead(document, blind=True).strip() or _unknown(document)
    data = _data(document, subject, folder, record)
    summary_part: list[Block] = [
        Cards(tuple(quality_cards(data.about.quality))),
        Facts([*data.opening.about.items(), *facts(data)]),
    ]
    parts = [
        PagePart("summary", "Summary", summary_part),
        PagePart("treatment", "Proxies", tuple(proxy_blocks(document)), "statistical"),
        PagePart("impact", "Impact", tuple(impact_blocks(document)), "statistical"),
        PagePart("sign-off", "Sign-off", tuple(sign_off_blocks(data))),
    ]
    made = Fold(
        "Reproduce",
        [Commands(_commands(record)), Facts(list((record.get("versions") or {}).items()))],
        name="reproduce",
    )
    folds = [made, Fold("Files", tuple(file_blocks(data)), name="files")]
    titles = {part.name: part.title for part in parts} | {str(fold.name): str(fold.title) for fold in folds}
    folds.append(Fold("Regulations", tuple(regulation_blocks(titles)), name="regulations"))
    page = Page(
        subject=subject.name,
        command=f"audit of scores · {data.reproduction.created[:10]}",
        title=f"{subject.name}: what its scores tell",
        heading=f"{subject.name}: fairbits audit",
        sentence=sentence,
        opening=(
            *paragraphs(plainly(document, blind=True), "second"),
            *paragraphs((f"{document['rows']:,} people, their scores only.", LIMITS), "lead"),
            *paragraphs((f"Note: {note}" for note in subject.notes), "note"),
        ),
        parts=[*parts, PagePart("details", "Details", folds)],
        pictures=pictures(document),
        made_from="the table's own scores",
        glossary=True,
    )
    figures = {} if subject.quality is None else subject.quality.figures()
    about = {"subject": subject.name, "rows": document["rows"], "scores_only": True, "fairbits": __version__}
    about["identity"] = data.reproduction.identity
    whole = plain({**about, "format": FORMAT, **figures, "sentence": sentence, "proxies": summary(document)})
    return write_formats(folder, data, page=render_page(page), markdown=render_markdown_page(page), summary=whole)


def _data(document: Mapping[str, Any], subject: Subject, folder: Path, record: Mapping[str, Any]) -> ReportData:
    """What the sections look at: those parts of a report's record that a table of scores has."""
    quality = subject.checked(as_is=True).quality
    found = SimpleNamespace(
        proxies=document,
        about=SimpleNamespace(subject=subject.name, protected=(), blind=True, quality=quality),
        reproduction=SimpleNamespace(created=str(record["created"]), identity=str(record["identity"]["id"])),
        opening=Opening(
            sources=sources_of(subject), made_by=str(record.get("made_by") or "unknown"), about=subject.about
        ),
        files=files_of(folder, leave_out=(*FORMATS, FILING)) if folder.is_dir() else (),
        folder=folder,
    )
    return cast(ReportData, found)


def _commands(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The commands that make the audit again."""
    stated: dict[str, Any] = {name: record.get(name) for name in ("seed", "by", "data_source", "distributed")}
    asked = AuditOptions(**stated)
    name = Path(str(record.get("source") or "SUBJECT")).name
    return (shlex.join(["fairbits", "audit", name, *flag_words(asked), "--out", "again"]),)


def _unknown(document: Mapping[str, Any]) -> str:
    """Where nothing can be known about any attribute, the reason is the finding."""
    reasons = [one["reason"] for one in document["attributes"] if one["reason"]]
    return f"What the score tells cannot be known: {reasons[0]}" if reasons else "Nothing was found."
