"""The report of a run: its page as blocks, in the order in which a reviewer decides, and its files.

A part of the page is a function of ``sections/`` and a line here; HTML and Markdown draw the same blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fairbits.blocks import Block, Page, PagePart, Paragraph, Strong, Text, paragraphs
from fairbits.errors import FairbitsError, OptionError
from fairbits.report.forms import FORMS
from fairbits.report.html import render_page
from fairbits.report.manifest import FILING, FORMATS, write_manifest
from fairbits.report.markdown import render_markdown_page
from fairbits.report.record import ReportData
from fairbits.report.sections.affected import affected_blocks
from fairbits.report.sections.certainty import certainty_blocks, limitation_blocks
from fairbits.report.sections.details import detail_blocks
from fairbits.report.sections.paperwork import filing_page, sign_off_blocks
from fairbits.report.sections.people import people_blocks
from fairbits.report.sections.repairs import repair_blocks
from fairbits.report.sections.summary import summary_blocks
from fairbits.report.sections.texts import wording_blocks
from fairbits.report.sections.treatment import pictures as period_pictures
from fairbits.report.sections.treatment import plainly, treatment_blocks
from fairbits.report.sections.who import who_blocks
from fairbits.report.summary import summary_of
from fairbits.store import write_json, write_whole
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
    asked = [(name, *FORMS[name]) for name in checked_forms(forms)]
    made = {file: form(data, run or folder) for _, file, form in asked}  # before anything is written
    write_all(folder, made)
    pages = {"page": render_html(data), "markdown": render_markdown(data)}
    return write_formats(folder, data, **pages, summary=summary_of(data))


def checked_forms(forms: Iterable[str]) -> list[str]:
    """Names of forms, each one that there is."""
    names = list(forms)
    for name in names:
        if name not in FORMS:
            raise OptionError(f"{name!r} is no form; choose from: {', '.join(FORMS)}.")
    return names


def write_all(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files, each there whole or not at all."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_whole(folder / name, content)
    except OSError as error:
        raise OptionError(
            f"cannot write to {str(folder)!r}: {error.strerror or error}; choose another --out."
        ) from None


def write_formats(folder: Path, data: ReportData, *, page: str, markdown: str, summary: Mapping[str, Any]) -> Path:
    """Write a report in its three formats, each there whole or not at all, and the manifest of its folder last."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / HTML, page.encode())
        write_whole(folder / MARKDOWN, markdown.encode())
        write_json(folder / SUMMARY, summary)
        made = data.reproduction
        if data.proxies is not None and (data.proxies.get("filing") or {}).get("distributed"):
            write_whole(folder / FILING, render_page(filing_page(data.proxies, made.created)).encode())
        write_manifest(folder, about={"subject": data.about.subject, "identity": made.identity, "run": made.created})
    except OSError as error:
        raise OptionError(
            f"cannot write to {str(folder)!r}: {error.strerror or error}; choose another --out."
        ) from None
    return folder / HTML


def render_html(data: ReportData) -> str:
    """The record as one HTML file."""
    from fairbits.report.figures.catalogue import pictures_of

    return render_page(page_of(data, pictures_of(data) | period_pictures(data.proxies)))


def render_markdown(data: ReportData) -> str:
    """The record as Markdown."""
    return render_markdown_page(page_of(data))


def page_of(data: ReportData, pictures: dict[str, str] | None = None) -> Page:
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
        pictures=pictures or {},
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
