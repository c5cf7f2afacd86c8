"""The report of a run: its page as blocks, in the order in which a reviewer decides, and its files.

A part of the page is a function of ``sections/`` and a line here; HTML and Markdown draw the same blocks.

The report of a table of scores: groups and indirect bits, in the same three formats as any other report.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from fairbits._version import __version__
from fairbits.blocks import Block, Cards, Commands, Facts, Fold, Page, PagePart, Paragraph, Strong, Text, paragraphs
from fairbits.errors import FairbitsError, OptionError, choose_from
from fairbits.options import AuditOptions, flag_words
from fairbits.report.forms import FORMS, FormMaker
from fairbits.report.html import render_page
from fairbits.report.manifest import FILING, FORMATS, files_of, write_manifest
from fairbits.report.markdown import render_markdown_page
from fairbits.report.record import Opening, ReportData
from fairbits.report.sections.affected import affected_blocks, who_blocks
from fairbits.report.sections.certainty import certainty_blocks, limitation_blocks
from fairbits.report.sections.details import detail_blocks
from fairbits.report.sections.paperwork import file_blocks, filing_page, regulation_blocks, sign_off_blocks
from fairbits.report.sections.people import people_blocks
from fairbits.report.sections.repairs import repair_blocks
from fairbits.report.sections.summary import facts, quality_cards, sources_of, summary_blocks
from fairbits.report.sections.texts import wording_blocks
from fairbits.report.sections.treatment import (
    impact_blocks,
    lead,
    pictures,
    plainly,
    proxy_blocks,
    summary,
    treatment_blocks,
)
from fairbits.report.summary import FORMAT, summary_of
from fairbits.store import plain, write_json, write_whole
from fairbits.subject import Subject
from fairbits.text import shortened

HTML, MARKDOWN, SUMMARY = FORMATS


def _repairs(data: ReportData) -> Iterable[Block]:
    return () if data.repaired is None else repair_blocks(data.repaired)


#: Name, title and blocks of each part; one without blocks is left out. The last ones are folded.
PARTS: tuple[tuple[str, str, Callable[[ReportData], Iterable[Block]]], ...] = (
    ("summary", "Summary", summary_blocks),
    ("words", "Words and their nulls", lambda data: () if data.words is None else wording_blocks(data.words)),
    ("affected", "Who is affected", lambda data: () if data.about.blind else affected_blocks(data)),
    ("who", "Who, in words", lambda data: who_blocks(None if data.debugged is None else data.debugged.who)),
    ("treatment", "Treatment, proxies, impact", treatment_blocks),
    (
        "people",
        "People treated most differently",
        lambda data: people_blocks(data) if data.people and not data.about.blind else (),
    ),
    ("repairs", "What to do", _repairs),
    ("certainty", "How certain", certainty_blocks),
    ("limitations", "Limitations", limitation_blocks),
    ("sign-off", "Sign-off", sign_off_blocks),
)


def write_report(data: ReportData, folder: Path, *, forms: Iterable[str] = (), run: Path | None = None) -> Path:
    """Write report.html, report.md, summary.json, forms that are asked for, and the manifest of the folder; an older
    signature is removed."""
    makers = _makers(forms)
    return _write(data, _drawn_page(data), summary_of(data), folder, makers, run or folder)


def _makers(forms: Iterable[str]) -> list[tuple[str, FormMaker]]:
    """Files and what makes them, of forms that there are: asked before anything is drawn."""
    names = list(forms)
    strange = next((name for name in names if name not in FORMS), None)
    if strange is not None:
        raise OptionError(f"{strange!r} is no form; {choose_from(strange, FORMS)}")
    return [FORMS[name] for name in names]


def _write(
    data: ReportData,
    page: Page,
    summary: Mapping[str, Any],
    folder: Path,
    makers: Iterable[tuple[str, FormMaker]],
    run: Path,
) -> Path:
    """Write a report in its formats, each there whole or not at all, and the manifest of its folder last."""
    content = {name: make(data, page, run) for name, make in makers}
    content |= {HTML: render_page(page).encode(), MARKDOWN: render_markdown_page(page).encode()}
    made = data.reproduction
    if data.proxies is not None and (data.proxies.get("filing") or {}).get("distributed"):
        content[FILING] = render_page(filing_page(data.proxies, made.created)).encode()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, written in content.items():
            write_whole(folder / name, written)
        write_json(folder / SUMMARY, summary)
        about = {"subject": data.about.subject, "identity": made.identity, "run": made.created}
        write_manifest(folder, about=about, hashed=data.files if data.folder == folder else ())
    except OSError as error:
        raise OptionError(
            f"cannot write to {str(folder)!r}: {error.strerror or error}; choose another --out."
        ) from None
    return folder / HTML


def render_html(data: ReportData) -> str:
    """The record as one HTML file."""
    return render_page(_drawn_page(data))


def _drawn_page(data: ReportData) -> Page:
    from fairbits.report.figures.catalogue import pictures_of

    return page_of(data, pictures_of(data) | pictures(data.proxies))


def render_markdown(data: ReportData) -> str:
    """The record as Markdown."""
    return render_markdown_page(page_of(data))


def page_of(data: ReportData, drawn: dict[str, str] | None = None) -> Page:
    """Everything that the page says, with its pictures as SVG where there are any."""
    about = data.about
    bits = f"{data.bits:.2f} of {about.bits_limit:.2f} bits"
    first, second = _sentences(data, bits)
    told = "what its score tells" if about.blind and data.proxies else bits
    return Page(
        subject=about.subject,
        command=f"audit · {data.reproduction.created[:10]}",
        title=f"{about.subject}: {told}",
        heading=f"{about.subject}: fairbits audit",
        sentence=first,
        opening=tuple(_opening(data, second)),
        parts=parts_of(data),
        pictures=drawn or {},
        made_from="the run's own files",
        glossary=True,
    )


def parts_of(data: ReportData) -> list[PagePart]:
    """The parts that this report has, in order; where one cannot be written, its title is in the message."""
    parts = []
    title = ""
    try:
        for name, title, blocks in PARTS:
            found = tuple(blocks(data))
            parts += [PagePart(name, title, found)] if found else []
        title = "Details"
        there = {part.name: part.title for part in parts}
        return [*parts, PagePart("details", title, tuple(detail_blocks(data, there)))]
    except FairbitsError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise FairbitsError(
            f"the part {title!r} cannot be written ({shortened(str(error), 120)}): a file that it rests on is damaged, "
            "or fairbits has a fault; make that stage of the run again, and tell us if that does not help."
        ) from error


def _opening(data: ReportData, second: Text) -> Iterator[Block]:
    yield from paragraphs((f"Error: {one.said()}" for one in data.contradictions), "warning")
    said = plainly(data.proxies, data.about.blind)
    yield from paragraphs(said, "second")
    if second:
        yield Paragraph(second, tone="lead" if said else "second")
    yield from paragraphs(data.warnings, "warning")
    yield from paragraphs((f"Note: {note}" for note in data.about.notes), "note")


def _sentences(data: ReportData, figure: str) -> tuple[Text, Text]:
    """What the page opens with: people, then bits, their figures marked; of a blind model, what its score tells."""
    before, found, after = data.direct.partition(figure)
    bits: Text = (before, Strong(found), after) if found else data.direct
    leads = data.sentence.removesuffix(data.direct).strip()
    if leads:
        return leads, bits
    if not data.opening.people or data.about.blind:
        return bits, ""
    many, of, rest = data.opening.people.partition(" of ")
    return (Strong(many), of + rest), bits


LIMITS = (
    "Nobody but the people of the table can be scored, so there are no twins, no search, no "
    "repair and no certificate. Whether the model takes a protected attribute itself cannot be known from scores."
)


def write_scores_report(
    document: Mapping[str, Any],
    subject: Subject,
    folder: Path,
    *,
    record: Mapping[str, Any],
    forms: Iterable[str] = (),
    run: Path | None = None,
) -> Path:
    """Write report.html, report.md, summary.json, forms that are asked for and manifest.json of a table of scores."""
    makers = _makers(forms)
    sentence = lead(document, blind=True).strip() or _unknown(document)
    data = _data(document, subject, folder, record, sentence)
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
        [Commands(_commands(record, subject)), Facts(list((record.get("versions") or {}).items()))],
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
    return _write(data, page, whole, folder, makers, run or folder)


def _data(
    document: Mapping[str, Any], subject: Subject, folder: Path, record: Mapping[str, Any], sentence: str
) -> ReportData:
    """What the sections look at: those parts of a report's record that a table of scores has."""
    schema, quality = subject.schema, subject.checked(as_is=True).quality
    found = SimpleNamespace(
        sentence=sentence,
        proxies=document,
        about=SimpleNamespace(
            subject=subject.name,
            protected=(),
            m=1,
            blind=True,
            quality=quality,
            model="not at hand: the table holds its scores",
            regression=schema.regression,
            target=schema.target,
            notes=subject.notes,
        ),
        measured=SimpleNamespace(figures={}, limits=(), rows=document["rows"], flip_rate=None),
        reproduction=SimpleNamespace(created=str(record["created"]), identity=str(record["identity"]["id"])),
        opening=Opening(
            people=sentence,
            sources=sources_of(subject),
            made_by=str(record.get("made_by") or "unknown"),
            about=subject.about,
        ),
        examined=(),
        not_examined=(LIMITS,),
        repaired=None,
        gate=None,
        gate_of_another="",
        files=files_of(folder, leave_out=(*FORMATS, FILING)) if folder.is_dir() else (),
        folder=folder,
    )
    return cast(ReportData, found)


def _commands(record: Mapping[str, Any], subject: Subject) -> tuple[str, ...]:
    """The commands that make the audit again."""
    stated: dict[str, Any] = {name: record.get(name) for name in ("seed", "by", "data_source", "distributed")}
    asked = AuditOptions(**stated)
    name = Path(str(record.get("source") or "SUBJECT")).name
    return (
        shlex.join(["fairbits", "audit", name, *flag_words(asked), "--out", "again", *subject.options.typed_grants()]),
    )


def _unknown(document: Mapping[str, Any]) -> str:
    """Where nothing can be known about any attribute, the reason is the finding."""
    reasons = [one["reason"] for one in document["attributes"] if one["reason"]]
    return f"What the score tells cannot be known: {reasons[0]}" if reasons else "Nothing was found."
