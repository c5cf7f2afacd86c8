"""How much of what tells twins apart comes with the data, and how much with this single training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import Block, Drawing, Paragraph, TableBlock, between, label, paragraphs, share
from fairbits.numerals import percent
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData


def _blocks(data: ReportData) -> Iterator[Block]:
    debugged = data.debugged
    assert debugged is not None  # noqa: S101 - asked by `shown`
    yield Paragraph(debugged.origin.replace("`", ""), tone="verdict")
    if debugged.splits:
        yield Drawing(
            "origin",
            "Whisker: 95 % interval over people and trainings. Triangle: how far this model agrees with the others.",
            "narrow",
        )
        rows = [
            (" and ".join(one.attributes), one.shared, (one.low, one.high), 1 - one.shared, one.own)
            for one in debugged.splits
        ]
        columns = [label("attributes"), share("comes with the data"), between("95 %", percent)]
        columns += [share("with the single training"), share("this model agrees")]
        yield TableBlock(columns, rows)
    if debugged.labels:
        yield Paragraph(debugged.labels)
    yield from paragraphs(debugged.notes, "note")


SECTION = Section(
    "origin",
    "Data or training",
    _blocks,
    shown=lambda data: data.debugged is not None,
    kind=lambda _: "statistical",
)
