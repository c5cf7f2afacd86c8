"""Inside the network: layers and neurons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.measure import symbol_of
from fairbits.numerals import number, percent, signed
from fairbits.report.markup import table, text
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.debugged import Debugged
    from fairbits.report.record import ReportData

#: What is said of a model that has nothing inside, such as a logistic regression.
ONE_LAYER = "One layer leads from the inputs straight to the score: there is no layer in between to look into."


def _network(debugged: Debugged, *, decides: bool) -> Iterator[str]:
    if not debugged.layers:
        return
    yield "## Inside the network"
    yield ""
    if not debugged.hidden:
        yield ONE_LAYER
        return
    total = sum(layer.votes for layer in debugged.layers) or 1
    rows = (
        [
            ("protected input" if layer.layer == 0 else str(layer.layer)) + (" (suspect)" if layer.suspect else ""),
            str(layer.width),
            f"{layer.delta:.3g}",
            signed(layer.rho),
            "–" if layer.rho is None else f"{layer.votes / total:.0%}",
        ]
        for layer in debugged.layers
    )
    yield from table(["layer", "width", "δ", "ρ", "cases where it is largest"], rows, right=1)
    if debugged.vote:
        yield ""
        yield text(debugged.vote, 400)
    known = sorted((n for n in debugged.neurons if n.acd is not None), key=lambda n: -abs(n.acd_choosing or 0.0))[:10]
    if known:
        yield ""
        rows = (
            [
                str(n.neuron),
                signed(n.acd, 3),
                "–" if n.acd_low is None else f"{signed(n.acd_low, 3)} to {signed(n.acd_high, 3)}",
                "–" if n.hold is None else f"{n.hold:.4g}",
                number(n.k_mean, 2),
                *([percent(n.accuracy)] if decides else []),
            ]
            for n in known
        )
        k = symbol_of(debugged.measure)
        heads = [f"neuron of layer {debugged.suspect}", "ACD", "95 %", "held at", f"mean {k}"]
        yield from table([*heads, *(["accuracy"] if decides else [])], rows, right=1)
        yield ""
        words = f"ACD: {k} with the neuron on less {k} with it off, as a share of {k}."
        yield f"{words} Below 0: positive, activating lowers {k}."
    if debugged.sets:
        yield ""
        rows = ([str(one.size), percent(one.explained), percent(one.low), percent(one.high)] for one in debugged.sets)
        yield from table(["neurons held together", "bits explained", "from", "to"], rows, right=0)
        if debugged.minimal is not None:
            yield ""
            yield f"Smallest set that explains most of the bits: {text(debugged.minimal.words, 400)}."


def _markdown(data: ReportData) -> Iterator[str]:
    assert data.debugged is not None  # noqa: S101 - asked by `shown`
    return _network(data.debugged, decides=not data.about.regression)


SECTION = Section(
    "network",
    "Inside the network",
    '{% include "inside.html" %}',
    _markdown,
    values=lambda _: {"one_layer": ONE_LAYER},
    shown=lambda data: data.debugged is not None and bool(data.debugged.layers) and data.debugged.units == "layers",
)
