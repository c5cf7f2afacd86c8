"""The report of a run as a page: what it opens with, and its sections."""

from __future__ import annotations

from collections.abc import Iterator

from fairbits.blocks import Block, Link, Page, Paragraph, Strong, Text, paragraphs
from fairbits.report.figures.catalogue import pictures_of
from fairbits.report.html import render_page
from fairbits.report.markdown import render_markdown_page
from fairbits.report.record import ReportData
from fairbits.report.sections.proxies import pictures as period_pictures
from fairbits.report.sections.proxies import plainly
from fairbits.report.sections.registry import sections_of


def render_html(data: ReportData) -> str:
    """The record as one HTML file."""
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
        command=f"audit · {data.remaking.created[:10]}",
        title=f"{about.subject}: {told}",
        heading=f"{about.subject}: fairbits audit",
        sentence=first,
        opening=tuple(_opening(data, second)),
        parts=[section.part(data) for section in sections_of(data)],
        pictures=pictures or {},
        made_from="the run's own files",
    )


def sections(data: ReportData) -> list[str]:
    """Names of the sections that this report has, in order."""
    return [section.name for section in sections_of(data)]


def _opening(data: ReportData, second: Text) -> Iterator[Block]:
    yield from paragraphs((f"Error: {one.said()}" for one in data.contradictions), "warning")
    said = plainly(data.proxies, data.about.blind)
    yield from paragraphs(said, "second")
    if second:
        yield Paragraph(second, tone="lead" if said else "second")
    if data.gate:
        judged = data.gate["verdict"] if data.gate["checks"] else "nothing judged yet"
        tone = f"gate {judged}" if data.gate["checks"] else "gate"
        yield Paragraph(Link(f"Gate: {judged}", "#gate"), tone=tone)
    yield from paragraphs((*data.about.quality.lines(), *data.examined, *data.not_examined), "lead")
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
