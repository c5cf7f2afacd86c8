"""Inside the network: layers and neurons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import (
    Block,
    Drawing,
    Fold,
    Heading,
    Paragraph,
    TableBlock,
    TableColumn,
    between,
    change,
    figure,
    label,
    share,
    shown,
)
from fairbits.measure import symbol_of
from fairbits.numerals import number, percent, signed
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.debugged import Debugged
    from fairbits.report.record import ReportData

#: What is said of a model that has nothing inside, such as a logistic regression.
ONE_LAYER = "One layer leads from the inputs straight to the score: there is no layer in between to look into."
_RULES = {
    "paper": "By the paper's rule: ρ says how much a hidden layer widens the distance between twins over the widest "
    "hidden layer before it.",
    "spread": "δ says how far apart twins are in a layer, in units of how far apart people are there; ρ how much a layer "
    "widens that over the widest layer before it.",
}


def _blocks(data: ReportData) -> Iterator[Block]:
    debugged, decides = data.debugged, not data.about.regression
    assert debugged is not None  # noqa: S101 - asked by `shown`
    if not debugged.hidden:
        yield Paragraph(ONE_LAYER, tone="lead")
        return
    k = symbol_of(debugged.measure)
    allowed = " within the loss of accuracy allowed" if decides else ""
    yield Paragraph(
        f"{_RULES[debugged.rule]} The suspect layer, framed, does so most in the largest share of cases. "
        f"{debugged.vote} Its neurons are coloured by their average causal difference (ACD), {k} with the neuron on "
        f"minus {k} with it off: blue is positive (activating it lowers {k}), orange negative (activating it raises "
        f"{k}), a ring has no pair of values{allowed}.",
        tone="lead",
    )
    yield Drawing("network", size="sideways")
    yield _layers(debugged)
    if not debugged.neurons:
        return
    both = "" if debugged.rule == "paper" else ", and so is ACD"
    yield Paragraph(
        "Point at a neuron of the framed layer, tap it or reach it with the keyboard to read its figures. Values were "
        f"chosen on one half of the cases; mean {k} is that of the other half{both}.",
        tone="small hint",
    )
    yield Drawing(
        "curves",
        "Every value that a neuron was held at; it need not go one way. Filled: the accuracy is kept. Dashed: nothing "
        "held.",
        "wide sideways",
    )
    yield from _sets(debugged)
    yield _neurons(debugged, k, decides=decides)


def _layers(debugged: Debugged) -> Block:
    total = sum(layer.votes for layer in debugged.layers) or 1
    rows = [
        (
            ("protected input" if layer.layer == 0 else str(layer.layer)) + (" (suspect)" if layer.suspect else ""),
            layer.width,
            f"{layer.delta:.3g}",
            layer.rho,
            None if layer.rho is None else layer.votes / total,
        )
        for layer in debugged.layers
    ]
    columns = [label("layer"), figure("width"), shown("δ"), change("ρ"), share("cases where it is largest", 0)]
    return Fold("The layers as a table", [TableBlock(columns, rows)])


def _sets(debugged: Debugged) -> Iterator[Block]:
    if not debugged.sets:
        return
    yield Heading("Sets of neurons")
    if debugged.minimal is None:
        yield Paragraph("No set that keeps the accuracy explains most of the bits.")
    else:
        best = debugged.minimal
        yield Paragraph(
            f"Smallest set found that explains most of the bits: {best.words}. Held together they explain "
            f"{percent(best.explained)} ({percent(best.low)} to {percent(best.high)})."
        )
    yield Drawing(
        "sizes", "Chosen on one half of the cases, drawn for the other; the band is a 95 % interval.", "narrow"
    )
    columns = [figure("neurons held together"), share("bits explained"), between("95 %", percent)]
    yield Fold("As a table", [TableBlock(columns, [(s.size, s.explained, (s.low, s.high)) for s in debugged.sets])])


def _neurons(debugged: Debugged, k: str, *, decides: bool) -> Block:
    rows = [
        (
            str(one.neuron),
            one.acd,
            (one.acd_low, one.acd_high),
            "–" if one.hold is None else f"{one.hold:.4g} ({one.statistic})",
            one.k_mean,
            one.accuracy,
        )
        for one in debugged.neurons
    ]
    now = "" if debugged.accuracy is None else f" (now {percent(debugged.accuracy)})"
    columns: list[TableColumn] = [
        label("neuron"),
        change("ACD", 3),
        between("95 %", lambda end: signed(end, 3)),
        shown("held at"),
        figure(f"mean {k} (now {number(debugged.k_mean, 2)})", 2),
        share(f"accuracy{now}"),
    ]
    kept = len(columns) if decides else len(columns) - 1
    title = f"All {len(debugged.neurons)} neurons of layer {debugged.suspect} as a table"
    return Fold(title, [TableBlock(columns[:kept], [row[:kept] for row in rows])])


SECTION = Section(
    "network",
    "Inside the network",
    _blocks,
    shown=lambda data: data.debugged is not None and bool(data.debugged.layers) and data.debugged.units == "layers",
    kind=lambda _: "exact",
    remark="for the cases looked at",
)
