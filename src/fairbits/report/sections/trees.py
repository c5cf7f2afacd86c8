"""Inside the trees: which trees and which splits tell twins apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import (
    Block,
    Drawing,
    Fold,
    Paragraph,
    TableBlock,
    TableColumn,
    change,
    figure,
    label,
    share,
    shown,
)
from fairbits.numerals import number, percent
from fairbits.report.foremost import foremost
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData

#: Trees in the table; layers.parquet has all of them.
MAX_TREES = 10


def _blocks(data: ReportData) -> Iterator[Block]:
    debugged, decides = data.debugged, not data.about.regression
    assert debugged is not None  # noqa: S101 - asked by `shown`
    yield Paragraph(
        "δ is the most that a tree adds to one twin and not to another; the suspect, in orange, widens the span of "
        "scores most in the largest share of cases, trees in blue in some. Below: what mean k loses, as a share "
        "(ACD), when everybody takes the way that most rows take at one split, or wherever the same question is "
        "asked (all trees), or when a tree is left out.",
        tone="lead",
    )
    yield Drawing("network", size="sideways")
    total = sum(tree.votes for tree in debugged.layers) or 1
    ranked = sorted(debugged.layers, key=lambda tree: (-tree.votes, -tree.delta, tree.layer))[:MAX_TREES]
    rows = [
        (
            str(tree.layer) + (" (suspect)" if tree.suspect else ""),
            tree.width,
            f"{tree.delta:.3g}",
            tree.rho,
            tree.votes / total,
        )
        for tree in ranked
    ]
    columns = [label("tree"), figure("leaves"), shown("δ"), change("ρ"), share("cases where it is largest", 0)]
    yield Fold(f"{len(ranked)} trees as a table", [TableBlock(columns, rows)])
    known = foremost(debugged)
    if not debugged.neurons or not known:
        return
    yield Paragraph(
        "Ways to decide a split were chosen on one half of the cases; ACD and mean k are those of the other half.",
        tone="small hint",
    )
    now = "" if debugged.accuracy is None else f" (now {percent(debugged.accuracy)})"
    heads: list[TableColumn] = [label("tree"), label("goes left"), change("ACD", 3), label("best held")]
    heads += [figure(f"mean k (now {number(debugged.k_mean, 2)})", 2), share(f"accuracy{now}")]
    kept = len(heads) if decides else len(heads) - 1
    lines = [
        (str(one.layer or "all"), one.label, one.acd, one.statistic, one.k_mean, one.accuracy)[:kept] for one in known
    ]
    yield Fold(f"{len(known)} splits and trees as a table", [TableBlock(heads[:kept], lines)])


SECTION = Section(
    "trees",
    "Inside the trees",
    _blocks,
    shown=lambda data: data.debugged is not None and bool(data.debugged.layers) and data.debugged.units == "trees",
    kind=lambda _: "exact",
    remark="for the cases looked at",
)
