"""The record as Markdown: tables and sentences, no HTML, every label escaped."""

from __future__ import annotations

from collections.abc import Iterator

from fairbits.report.markup import text, value_text
from fairbits.report.record import ReportData
from fairbits.report.section import writing
from fairbits.report.sections.proxies import indirect_text, plainly
from fairbits.report.sections.registry import sections_of


def render_markdown(data: ReportData) -> str:
    """The whole document."""
    parts = [list(_head(data))]
    for section in sections_of(data):
        with writing(section):
            parts.append(list(section.markdown(data)))
    return "\n".join(line for part in parts for line in (*part, "")).rstrip() + "\n"


def _head(data: ReportData) -> Iterator[str]:
    yield f"# {text(data.about.subject, 80)}: fairbits audit"
    for one in data.contradictions:
        yield ""
        yield f"**Error: {text(one.said(), 1000)}**"
    if data.opening.people:
        yield ""
        yield f"**{text(data.opening.people, 400)}** ({data.opening.kind})"
    yield ""
    yield f"**{text(data.sentence, 400)}**"
    lines = (
        *plainly(data.proxies, data.about.blind),
        *data.about.quality.lines(),
        *data.examined,
        *data.not_examined,
        *data.warnings,
        *(f"Note: {note}" for note in data.about.notes),
    )
    for line in lines:
        yield ""
        yield text(line, 1000)


__all__ = ["indirect_text", "render_markdown", "text", "value_text"]
