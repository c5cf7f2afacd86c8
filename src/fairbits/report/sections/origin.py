"""How much of what tells twins apart comes with the data, and how much with this single training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.numerals import percent
from fairbits.report.markup import table, text
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData


def _markdown(data: ReportData) -> Iterator[str]:
    debugged = data.debugged
    assert debugged is not None  # noqa: S101 - asked by `shown`
    yield "## Data or training"
    yield ""
    yield text(debugged.origin, 600)
    yield ""
    if debugged.splits:
        rows = (
            [
                text(" and ".join(one.attributes)),
                percent(one.shared),
                f"{percent(one.low)} to {percent(one.high)}",
                percent(1 - one.shared),
                percent(one.own),
            ]
            for one in debugged.splits
        )
        heads = ["attributes", "comes with the data", "95 %", "with the single training", "this model agrees"]
        yield from table(heads, rows, right=1)
        yield ""
    if debugged.labels:
        yield f"- {text(debugged.labels, 400)}"
    for note in debugged.notes:
        yield f"- {text(note, 400)}"


SECTION = Section(
    "origin",
    "Data or training",
    '{% include "origin.html" %}',
    _markdown,
    shown=lambda data: data.debugged is not None,
)
