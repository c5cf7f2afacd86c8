"""Inside the network: layers and neurons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.report.markup import table
from fairbits.report.section import Section
from fairbits.report.words import number, percent, signed

if TYPE_CHECKING:
    from fairbits.report.record import Debugged, ReportData


def _network(debugged: Debugged, *, decides: bool) -> Iterator[str]:
    if not debugged.layers:
        return
    yield "## Inside the network"
    yield ""
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
    known = sorted((n for n in debugged.neurons if n.acd is not None), key=lambda n: -abs(n.acd_choosing or 0.0))[:10]
    if known:
        yield ""
        rows = (
            [
                str(n.neuron),
                signed(n.acd, 3),
                "–" if n.hold is None else f"{n.hold:.4g}",
                number(n.k_mean, 2),
                *([percent(n.accuracy)] if decides else []),
            ]
            for n in known
        )
        heads = [f"neuron of layer {debugged.suspect}", "ACD", "held at", "mean k", *(["accuracy"] if decides else [])]
        yield from table(heads, rows, right=1)


def _markdown(data: ReportData) -> Iterator[str]:
    assert data.debugged is not None  # noqa: S101 - asked by `shown`
    return _network(data.debugged, decides=not data.about.regression)


SECTION = Section(
    "network",
    "Inside the network",
    '{% include "inside.html" %}',
    _markdown,
    shown=lambda data: data.debugged is not None and bool(data.debugged.layers) and data.debugged.units == "layers",
)
