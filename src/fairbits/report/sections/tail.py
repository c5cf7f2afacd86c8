"""The tail: how far apart the twins of the worst few are, and of people rarer than any who were asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import Block, Paragraph, TableBlock, Tag, between, figure, label
from fairbits.text import number

if TYPE_CHECKING:
    from fairbits.measure import Tail

DIGITS = 3


def tail_blocks(found: Tail | None, kind: str = "exact") -> Iterator[Block]:
    """Upper quantiles of the gap between twins' scores with their intervals, the largest, and what lies beyond."""
    if found is None or found.largest <= 0:
        return
    rows: list[tuple[object, ...]] = [
        (f"{100 * one.level:g} % of people", one.value, (one.low, one.high), "statistical") for one in found.quantiles
    ]
    rows.append((f"all {number(found.people)}", found.largest, None, kind))
    if found.extreme is not None:
        gap = found.extreme.gap
        beyond = f"all but one in {number(found.extreme.one_in)}, extrapolated"
        rows.append((beyond, gap.value, (gap.low, gap.high), "statistical"))
    columns = [label("below it"), figure("gap", DIGITS), between("95 % interval", _three), label("kind of figure")]
    caption = "The tail: a person's highest score minus the lowest, among twins"
    yield TableBlock(columns, [(*row[:3], Tag(str(row[3]))) for row in rows], caption)
    said = found.why
    if found.extreme is not None:
        one = found.extreme
        ends = "has no end" if one.end is None else f"ends at {number(one.end, 2)}"
        said = (
            f"Extrapolated by a generalised Pareto distribution fitted to the {number(one.people)} people above "
            f"{number(one.threshold, DIGITS)} (shape {number(one.shape, 2)}, it {ends}; test of fit p = {number(one.p, 2)})."
        )
    yield Paragraph(f"Quantiles: intervals by order statistics, whatever the gaps are like. {said}", tone="small")


def _three(value: float | None) -> str:
    return number(value, DIGITS)
