"""What is certain: exact, proved and statistical statements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import Block, Paragraph, Small, TableBlock, Tag, label
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.certify import Statement
    from fairbits.report.record import ReportData


def _shown(data: ReportData) -> list[Statement]:
    """What is certain of somebody: what is withdrawn, or open for everybody, is not."""
    return [one for one in data.certified if one.is_certain()]


def _blocks(data: ReportData) -> Iterator[Block]:
    yield Paragraph(
        "Exact: everybody was asked. Proved: bounds over sets of people, whatever order the model's library adds up in. "
        "Statistical: people drawn at random from the population named.",
        tone="lead",
    )
    rows = [(one.model, Tag(one.kind), one.population, (one.sentence(), Small(one.reason))) for one in _shown(data)]
    columns = [label("model"), label("kind"), label("population"), label("statement")]
    yield TableBlock(columns, rows, stacked=True)


SECTION = Section("certified", "How certain", _blocks, shown=lambda data: bool(_shown(data)))
