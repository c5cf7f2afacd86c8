"""Which protected attribute the bits come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import Block, Columns, Drawing, Paragraph, TableBlock, figure, label, share
from fairbits.numerals import number
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData

#: Sets of attributes in the table; debug.json has all of them.
MAX_SETS = 12


def _blocks(data: ReportData) -> Iterator[Block]:
    debugged = data.debugged
    assert debugged is not None  # noqa: S101 - asked by `shown`
    yield Paragraph(
        f"Over {number(debugged.samples)} cases ({number(debugged.samples_worst)} of them the worst, the others "
        f"drawn at random), decisions use {number(debugged.q_inf, 2)} bits on average. Shapley shares split them "
        "among the protected attributes.",
        tone="lead",
    )
    rows = [(one.attribute, one.alone, one.shapley, one.share) for one in debugged.shares]
    columns = [label("attribute"), figure("bits alone", 2), figure("Shapley bits", 2), share("share", 0)]
    parts: list[list[Block]] = [
        [Drawing("shapley", "Bar: the Shapley share. Mark: the bits when this attribute alone varies.")],
        [TableBlock(columns, rows)],
    ]
    if debugged.together:
        rows2 = [(" + ".join(one.attributes), one.q_inf, one.q_1) for one in debugged.together[:MAX_SETS]]
        parts[1].append(
            TableBlock([label("attributes"), figure("Q∞", 2), figure("Q1", 2)], rows2, "Bits when just these vary")
        )
    yield Columns(parts)


SECTION = Section(
    "drivers",
    "Which attribute drives it",
    _blocks,
    shown=lambda data: data.debugged is not None and bool(data.debugged.shares),
    kind=lambda _: "exact",
    remark="for these cases",
)
