"""Whether the data or the training is where the bits come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairbits.report.markup import text
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import Debugged, ReportData


_VERDICTS = {
    "data": "More of the evidence points to the data.",
    "training": "More of the evidence points to the training.",
    "mixed": "Mixed: the evidence points both ways.",
    "unknown": "Unknown: no evidence points either way.",
    "none": "Nothing to explain: the twins of every case looked at are treated alike.",
}


def _origin(debugged: Debugged) -> Iterator[str]:
    yield "## Data or training"
    yield ""
    yield f"Verdict: {text(debugged.verdict)}."
    yield ""
    for one in debugged.evidence:
        yield f"- {text(one.text, 400)}" + (f" (points to the {text(one.points_to)})" if one.points_to else "")
    for note in debugged.notes:
        yield f"- {text(note, 400)}"


def _markdown(data: ReportData) -> Iterator[str]:
    assert data.debugged is not None  # noqa: S101 - asked by `shown`
    return _origin(data.debugged)


def _values(data: ReportData) -> dict[str, Any]:
    verdict = data.debugged.verdict if data.debugged else ""
    return {"verdict": _VERDICTS.get(verdict, verdict)}


SECTION = Section(
    "origin",
    "Data or training",
    '{% include "origin.html" %}',
    _markdown,
    shown=lambda data: data.debugged is not None,
    values=_values,
)
