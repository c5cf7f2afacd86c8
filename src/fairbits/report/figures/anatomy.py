"""The network as layers: how much each widens the distance between twins, and the neurons of the suspect layer."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes as Frame
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, FancyBboxPatch, Polygon

from fairbits.measure import symbol_of
from fairbits.numerals import number, percent, signed
from fairbits.report.debugged import Debugged, Neuron, ReportLayer
from fairbits.report.figures.palette import BAND, BLUE, GREY, INK, MUTED, ORANGE, RULE
from fairbits.report.figures.style import SMALL, Picture, frame, picture, say

#: Neurons drawn in one column; the others are in the table.
MAX_NEURONS = 64
_HEIGHT, _FOOT, _HEAD = 420, 92, 16


def network(found: Debugged) -> tuple[Picture, dict[str, str]]:
    """The network as layers, with the neurons of the suspect layer.

    Parameters
    ----------
    found
        What debugging found.

    Returns
    -------
    tuple[Picture, dict[str, str]]
        The picture, and a sentence for every neuron that can be pointed at.
    """
    layers = found.layers
    width = max(420, min(860, 130 * len(layers)))
    made = picture(width, _HEIGHT)
    ax = frame(made, (0, 0, width, _HEIGHT), grid=None)
    ax.set_xlim(0, width)
    ax.set_ylim(0, _HEIGHT)
    ax.axis("off")
    places = np.linspace(width / len(layers) / 2, width - width / len(layers) / 2, len(layers))
    reach = [_reach(layer) for layer in layers]
    for i in range(len(layers) - 1):
        _between(ax, places[i], reach[i], places[i + 1], reach[i + 1])
    total = sum(layer.votes for layer in layers) or 1
    words: dict[str, str] = {}
    for place, layer in zip(places, layers, strict=True):
        if layer.suspect:
            _halo(ax, place, _reach(layer))
            words |= _suspects(ax, place, layer, found)
        else:
            _dots(ax, place, layer)
        _foot(ax, place, layer, total, last=layer is layers[-1])
    return made, words


def _reach(layer: ReportLayer) -> float:
    """Half the height of a column of neurons."""
    shown = min(layer.width, MAX_NEURONS)
    return min((_HEIGHT - _FOOT - 2 * _HEAD) / 2, 11.0 * (shown - 1) / 2 + 1)


def _heights(layer: ReportLayer) -> np.ndarray:
    shown = min(layer.width, MAX_NEURONS)
    middle = _FOOT + (_HEIGHT - _FOOT) / 2
    return middle + np.linspace(_reach(layer), -_reach(layer), shown) if shown > 1 else np.array([middle])


def _radius(layer: ReportLayer) -> float:
    shown = min(layer.width, MAX_NEURONS)
    return float(np.clip(_reach(layer) / max(shown - 1, 1) * 0.86, 1.6, 7.0)) if shown > 1 else 6.0


def _between(ax: Frame, left: float, left_reach: float, right: float, right_reach: float) -> None:
    middle = _FOOT + (_HEIGHT - _FOOT) / 2
    corners = [
        (left + 12, middle + left_reach),
        (right - 12, middle + right_reach),
        (right - 12, middle - right_reach),
        (left + 12, middle - left_reach),
    ]
    ax.add_patch(Polygon(corners, closed=True, facecolor=BAND, edgecolor="none", zorder=0))


def _dots(ax: Frame, place: float, layer: ReportLayer) -> None:
    radius = _radius(layer)
    for height in _heights(layer):
        ax.add_patch(Circle((place, height), radius, facecolor=GREY, edgecolor="none"))


def _halo(ax: Frame, place: float, reach: float) -> None:
    middle = _FOOT + (_HEIGHT - _FOOT) / 2
    box = FancyBboxPatch((place - 13, middle - reach - 11), 26, 2 * reach + 22, boxstyle="round,pad=2,rounding_size=12")
    box.set(facecolor="none", edgecolor=ORANGE, linewidth=1.6)
    ax.add_patch(box)


def _suspects(ax: Frame, place: float, layer: ReportLayer, found: Debugged) -> dict[str, str]:
    """Blue is positive (activating it lowers k), orange negative, pale does neither; without an ACD a ring is left."""
    neurons, k = found.neurons, symbol_of(found.measure)
    known = {neuron.neuron: neuron for neuron in neurons}
    largest = max((abs(neuron.acd) for neuron in neurons if neuron.acd is not None), default=0.0) or 1.0
    words = {}
    for index, height in enumerate(_heights(layer)):
        neuron = known.get(index)
        dot = Circle((place, height), max(_radius(layer), 3.0))
        if neuron is None or neuron.acd is None:
            dot.set(facecolor="none", edgecolor=MUTED, linewidth=1)
        else:
            strength = abs(neuron.acd) / largest
            colour = ORANGE if neuron.acd > 0 else BLUE
            dot.set(facecolor=to_rgba(colour, 0.1 + 0.9 * strength), edgecolor=MUTED, linewidth=0.8)
        dot.set_gid(f"neuron-{index}")
        words[f"neuron-{index}"] = neuron_words(layer.layer, index, neuron, found.k_mean, k)
        ax.add_patch(dot)
    return words


def neuron_words(layer: int, index: int, neuron: Neuron | None, k_mean: float, k: str = "k") -> str:
    """One neuron in one sentence."""
    start = f"Layer {layer}, neuron {index}"
    if neuron is None:
        return f"{start}: not studied."
    acd = "no ACD within the loss allowed"
    if neuron.acd is not None:
        what = f"positive: activating it lowers {k}" if neuron.acd < 0 else f"negative: activating it raises {k}"
        acd = f"ACD {signed(neuron.acd, 3)}" + (f" ({what})" if neuron.acd != 0 else "")
    if neuron.k_mean is None:
        return f"{start}: {acd}."
    held = f"held at {neuron.hold:.3g}" if neuron.hold is not None else "held"
    accuracy = "" if neuron.accuracy is None else f" at {percent(neuron.accuracy)} accuracy"
    return f"{start}: {acd}; {held}, mean {k} goes from {number(k_mean, 2)} to {number(neuron.k_mean, 2)}{accuracy}."


def _foot(ax: Frame, place: float, layer: ReportLayer, total: int, *, last: bool) -> None:
    name = "protected input" if layer.layer == 0 else f"layer {layer.layer}" + (" (output)" if last else "")
    how = {"ha": "center", "va": "center"}
    say(ax, place, 62, name, weight="bold", color=ORANGE if layer.suspect else INK, **how)
    say(ax, place, 45, f"{layer.width} wide", color=MUTED, **how)
    if layer.rho is not None:
        say(ax, place, 28, f"ρ {signed(layer.rho)}", color=INK, **how)
        say(ax, place, 11, f"{layer.votes / total:.0%} of cases", color=MUTED, fontsize=SMALL, **how)
    if layer.width > MAX_NEURONS:
        say(ax, place, _HEIGHT - 8, f"first {MAX_NEURONS}", color=MUTED, **how)
    ax.plot([place - 30, place + 30], [74, 74], color=RULE, linewidth=1)
