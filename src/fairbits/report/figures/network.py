"""The network as layers: how much each widens the distance between twins, and the neurons of the suspect layer.

A tree ensemble: how far apart each tree puts twins, and which splits do it.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes as Frame
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, FancyBboxPatch, Polygon
from matplotlib.ticker import MaxNLocator

from fairbits.debug import DebugResult, LayerEffect, NeuronEffect
from fairbits.measure import symbol_of
from fairbits.report.figures.palette import BAND, BLUE, GREY, INK, MUTED, ORANGE, RULE
from fairbits.report.figures.svg import SMALL, Picture, frame, name_axes, picture, say
from fairbits.report.sections.inside import mean_reported, suspects_of
from fairbits.text import number, percent, signed

#: Neurons drawn in one column; the others are in the table.
MAX_NEURONS = 64
_HEIGHT, _FOOT, _HEAD = 420, 92, 16


def network(found: DebugResult) -> tuple[Picture, dict[str, str]]:
    """The network as layers, with the neurons of the suspect layer."""
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
        suspect = layer.layer == found.suspect
        if suspect:
            _halo(ax, place, _reach(layer))
            words |= _suspects(ax, place, layer, found)
        else:
            _dots(ax, place, layer)
        _foot(ax, place, layer, total, last=layer is layers[-1], suspect=suspect)
    return made, words


def _reach(layer: LayerEffect) -> float:
    """Half the height of a column of neurons."""
    shown = min(layer.width, MAX_NEURONS)
    return min((_HEIGHT - _FOOT - 2 * _HEAD) / 2, 11.0 * (shown - 1) / 2 + 1)


def _heights(layer: LayerEffect) -> np.ndarray:
    shown = min(layer.width, MAX_NEURONS)
    middle = _FOOT + (_HEIGHT - _FOOT) / 2
    return middle + np.linspace(_reach(layer), -_reach(layer), shown) if shown > 1 else np.array([middle])


def _radius(layer: LayerEffect) -> float:
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


def _dots(ax: Frame, place: float, layer: LayerEffect) -> None:
    radius = _radius(layer)
    for height in _heights(layer):
        ax.add_patch(Circle((place, height), radius, facecolor=GREY, edgecolor="none"))


def _halo(ax: Frame, place: float, reach: float) -> None:
    middle = _FOOT + (_HEIGHT - _FOOT) / 2
    box = FancyBboxPatch((place - 13, middle - reach - 11), 26, 2 * reach + 22, boxstyle="round,pad=2,rounding_size=12")
    box.set(facecolor="none", edgecolor=ORANGE, linewidth=1.6)
    ax.add_patch(box)


def _suspects(ax: Frame, place: float, layer: LayerEffect, found: DebugResult) -> dict[str, str]:
    """Blue is positive (activating it lowers k), orange negative, pale does neither; without an ACD a ring is left."""
    neurons, k, before = suspects_of(found), symbol_of(found.measure), mean_reported(found)
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
        words[f"neuron-{index}"] = neuron_words(layer.layer, index, neuron, before, k)
        ax.add_patch(dot)
    return words


def neuron_words(layer: int, index: int, neuron: NeuronEffect | None, k_mean: float, k: str = "k") -> str:
    """One neuron in one sentence."""
    start = f"Layer {layer}, neuron {index}"
    if neuron is None:
        return f"{start}: not studied."
    acd = "no ACD within the loss allowed"
    if neuron.acd is not None:
        what = f"positive: activating it lowers {k}" if neuron.acd < 0 else f"negative: activating it raises {k}"
        acd = f"ACD {signed(neuron.acd, 3)}" + (f" ({what})" if neuron.acd != 0 else "")
    best = neuron.best
    if best is None:
        return f"{start}: {acd}."
    accuracy = "" if best.accuracy is None else f" at {percent(best.accuracy)} accuracy"
    goes = f"mean {k} goes from {number(k_mean, 2)} to {number(best.reported, 2)}"
    return f"{start}: {acd}; held at {best.value:.3g}, {goes}{accuracy}."


def _foot(ax: Frame, place: float, layer: LayerEffect, total: int, *, last: bool, suspect: bool) -> None:
    name = "protected input" if layer.layer == 0 else f"layer {layer.layer}" + (" (output)" if last else "")
    how = {"ha": "center", "va": "center"}
    say(ax, place, 62, name, weight="bold", color=ORANGE if suspect else INK, **how)
    say(ax, place, 45, f"{layer.width} wide", color=MUTED, **how)
    if layer.rho is not None:
        say(ax, place, 28, f"ρ {signed(layer.rho)}", color=INK, **how)
        say(ax, place, 11, f"{percent(layer.votes / total, 0)} of cases", color=MUTED, fontsize=SMALL, **how)
    if layer.width > MAX_NEURONS:
        say(ax, place, _HEIGHT - 8, f"first {MAX_NEURONS}", color=MUTED, **how)
    ax.plot([place - 30, place + 30], [74, 74], color=RULE, linewidth=1)


_WIDTH, _UPPER = 640, 190


def trees(found: DebugResult) -> Picture:
    """A bar per tree in the order of the ensemble, the suspect in orange."""
    made = picture(_WIDTH, _UPPER)
    ax = frame(made, (64, 46, _WIDTH - 12, _UPPER - 16))
    numbers = np.array([tree.layer for tree in found.layers])
    colours = [ORANGE if tree.layer == found.suspect else BLUE if tree.votes else GREY for tree in found.layers]
    ax.bar(numbers, [tree.delta for tree in found.layers], 0.8 if len(numbers) < 120 else 1.0, color=colours)
    ax.set_xlim(0.3, len(numbers) + 0.7)
    ax.xaxis.set_major_locator(MaxNLocator(9, integer=True, min_n_ticks=1))
    ax.yaxis.set_major_locator(MaxNLocator(4))
    name_axes(ax, "tree", "δ: largest difference it makes between two twins")
    return made
