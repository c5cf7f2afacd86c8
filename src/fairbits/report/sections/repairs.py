"""What repairs cost and buy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.numerals import number, percent
from fairbits.report.markup import table, text
from fairbits.report.section import Section
from fairbits.report.words import by_kind

if TYPE_CHECKING:
    from fairbits.report.record import ReportData
    from fairbits.report.repaired import Repaired


def _repairs(repaired: Repaired) -> Iterator[str]:
    yield "## Repairs"
    yield ""
    if repaired.chosen:
        yield f"Chosen: {text(repaired.chosen)} ({text(repaired.words, 300)})."
    else:
        yield f"None was chosen: {text(repaired.words, 400)}"
    if repaired.proof:
        yield ""
        yield text(repaired.proof, 400)
    yield ""
    rows = ([one.name, by_kind(one.before, one.kind), by_kind(one.after, one.kind)] for one in repaired.changes)
    yield from table(["held-out evidence", "before", "after"], rows, right=1)
    yield ""
    rows = (
        [
            text(m.name) + (" (chosen)" if m.chosen else ""),
            percent(m.accuracy),
            ""
            if m.change_low is None or m.change_high is None
            else f"{100 * m.change_low:+.1f} to {100 * m.change_high:+.1f}",
            number(m.k_mean, 2),
            "" if m.k_max_proved is None else f"k ≤ {m.k_max_proved}",
            *([] if repaired.regression else [percent(m.id_rate)]),
            text(m.words, 200),
        ]
        for m in repaired.repairs
    )
    rate = [] if repaired.regression else ["ID rate"]
    heads = ["repair", repaired.quality, "change, 95 %", "mean k", "proved", *rate, "what was done"]
    yield from table(heads, rows)
    for line in repaired.warnings:
        yield ""
        yield text(line, 600)


def _markdown(data: ReportData) -> Iterator[str]:
    assert data.repaired is not None  # noqa: S101 - asked by `shown`
    return _repairs(data.repaired)


SECTION = Section(
    "repairs",
    "Repairs",
    '{% include "repairs.html" %}',
    _markdown,
    shown=lambda data: data.repaired is not None,
)
