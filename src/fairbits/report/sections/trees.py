"""Inside the trees: which trees and which splits tell twins apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fairbits.numerals import number, percent, signed
from fairbits.report.foremost import foremost
from fairbits.report.markup import table, text
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.debugged import Debugged
    from fairbits.report.record import ReportData

#: Trees in the table; layers.parquet has all of them.
MAX_TREES = 10


def _trees(debugged: Debugged, *, decides: bool) -> Iterator[str]:
    yield "## Inside the trees"
    yield ""
    total = sum(tree.votes for tree in debugged.layers) or 1
    ranked = sorted(debugged.layers, key=lambda tree: (-tree.votes, -tree.delta, tree.layer))[:MAX_TREES]
    rows = (
        [
            str(tree.layer) + (" (suspect)" if tree.suspect else ""),
            str(tree.width),
            f"{tree.delta:.3g}",
            signed(tree.rho),
            f"{tree.votes / total:.0%}",
        ]
        for tree in ranked
    )
    yield from table(["tree", "leaves", "δ", "ρ", "cases where it is largest"], rows, right=1)
    known = foremost(debugged)
    if known:
        yield ""
        rows = (
            [
                str(one.layer or "all"),
                text(one.label),
                signed(one.acd, 3),
                text(one.statistic or "–"),
                number(one.k_mean, 2),
                *([percent(one.accuracy)] if decides else []),
            ]
            for one in known
        )
        heads = ["tree", "goes left", "ACD", "best held", "mean k", *(["accuracy"] if decides else [])]
        yield from table(heads, rows, right=2)


def _shown(data: ReportData) -> bool:
    return data.debugged is not None and bool(data.debugged.layers) and data.debugged.units == "trees"


def _markdown(data: ReportData) -> Iterator[str]:
    assert data.debugged is not None  # noqa: S101 - asked by `shown`
    return _trees(data.debugged, decides=not data.about.regression)


def _values(data: ReportData) -> Mapping[str, Any]:
    assert data.debugged is not None  # noqa: S101 - asked by `shown`
    return {"foremost": foremost(data.debugged)}


SECTION = Section("trees", "Inside the trees", '{% include "trees.html" %}', _markdown, shown=_shown, values=_values)
