"""All pictures of a report, each with a title and a description in words (`pictures_of`), and those of comparisons.

Pictures of a whole run: severities, the search over time, who gains and who loses, what a repair costs.

Pictures of debugging: the share of data and training, how k goes over a neuron's values, sets of neurons.

Indirect bits and group rates over time, one picture.

Pictures of a comparison: the pace of each strategy, its single runs, and how it stands against the yardstick.

The network as layers: how much each widens the distance between twins, and the neurons of the suspect layer. A tree
ensemble: how far apart each tree puts twins, and which splits do it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes as Frame
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, FancyBboxPatch, Polygon
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fairbits.certify import Statement
from fairbits.debug import Attribution, DebugResult, LayerEffect, NeuronEffect
from fairbits.measure import symbol_of
from fairbits.repair import RepairResult
from fairbits.report.figures import portraits
from fairbits.report.figures.palette import BAND, BLUE, GREY, GROUND, INK, MUTED, ORANGE, RULE
from fairbits.report.figures.svg import SMALL, Picture, frame, inline_svg, name_axes, picture, say, ticks
from fairbits.report.record import Moment, ReportData
from fairbits.report.sections.details import foremost, has_inside, mean_reported, split_name, suspects_of
from fairbits.report.sections.repairs import shown_repairs
from fairbits.report.sections.treatment import known_attributes
from fairbits.text import joined, number, percent, shortened, signed

#: Bars of a histogram; neighbouring severities share one where there are more.
MAX_BARS = 45
_COUNTS = FuncFormatter(lambda value, _: f"{value / 1e6:g} M" if value >= 1e6 else f"{value:,.0f}")


def severity(counts: Sequence[tuple[int, int, int | None]], what: str) -> Picture:
    """Number of people at each k; those whose decision flips in orange, where that is known."""
    lowest, highest = counts[0][0], counts[-1][0]
    width = -(-(highest - lowest + 1) // MAX_BARS)
    bins = np.zeros((2, (highest - lowest) // width + 1))
    for k, people, flips in counts:
        bins[:, (k - lowest) // width] += people - (flips or 0), flips or 0
    made = picture(420, 250)
    ax = frame(made, (58, 46, 412, 214))
    places = lowest + width * np.arange(bins.shape[1]) + (width - 1) / 2
    ax.bar(places, bins[1], width * 0.82, color=ORANGE)
    ax.bar(places, bins[0], width * 0.82, bottom=bins[1], color=BLUE if not bins[1].any() else GREY)
    ax.yaxis.set(major_locator=MaxNLocator(5, integer=True), major_formatter=_COUNTS)
    ax.xaxis.set_major_locator(MaxNLocator(9, integer=True))
    left = max(1, min(lowest, highest - 3))  # one or two values of k get bars of the usual width, not a wall
    ax.set_xlim(left - 0.8 * width, max(highest, left + 3) + 0.8 * width)
    name_axes(ax, "k: classes that the twins' scores fall into", what)
    return made


def progress(moments: Sequence[Moment]) -> Picture:
    """The largest k so far and, below it, the cases so far, over the seconds of the search."""
    made = picture(420, 250)
    seconds, k, cases = zip(*((one.seconds, one.k_max, one.cases) for one in moments), strict=True)
    upper, lower = frame(made, (58, 138, 412, 214)), frame(made, (58, 46, 412, 106))
    upper.step(seconds, k, where="post", color=ORANGE, linewidth=2)
    upper.tick_params(labelbottom=False)
    lower.fill_between(seconds, cases, color=BLUE, alpha=0.22, linewidth=0)
    lower.plot(seconds, cases, color=BLUE, linewidth=2)
    for ax, values, what in ((upper, k, "largest k so far"), (lower, cases, "distinct cases so far")):
        ax.set(xlim=(0, seconds[-1] or 1), ylim=(0, max(values) * 1.12 + 1))
        ax.yaxis.set(major_locator=MaxNLocator(3, integer=True), major_formatter=_COUNTS)
        name_axes(ax, "seconds of search" if ax is lower else "", what)
    return made


def shapley(found: Attribution) -> Picture:
    """Bits of each protected attribute: its Shapley share as a bar, alone as a mark."""
    alone = {subset.attributes[0]: subset.q_inf for subset in found.subsets if len(subset.attributes) == 1}
    total = sum(found.q_inf.values()) or 1.0
    ranked = sorted(found.attributes, key=lambda name: -found.q_inf[name])
    values = [found.q_inf[name] for name in ranked]
    places = np.arange(len(ranked))
    made, ax = _rows(ranked, (420, 64 + 38 * len(ranked)), (118, 44, 404, 24))
    ax.barh(places, values, 0.56, color=BLUE)
    ax.plot([alone[name] for name in ranked], places, "|", color=INK, markersize=19, markeredgewidth=2)
    ax.axvline(0, color=RULE, linewidth=1)
    reach = max(*alone.values(), *values) or 1.0
    for place, (name, value) in enumerate(zip(ranked, values, strict=True)):
        inside = value > 0.3 * reach
        where = value - 0.02 * reach if inside else max(value, alone[name], 0) + 0.03 * reach
        colour = {"color": GROUND, "ha": "right", "weight": "bold"} if inside else {"color": INK, "ha": "left"}
        say(ax, where, place, f"{value:.2f} ({percent(value / total, 0)})", va="center", **colour)
    ax.set_xlim(min(0, *values), reach * 1.12 if values[-1] > 0.3 * reach else reach * 1.3)
    name_axes(ax, "bits (Q∞), mean over the cases looked at")
    return made


def statements(found: Sequence[Statement]) -> Picture:
    """A bar for each statement: certified, open, falsified."""
    made, ax = _rows([""] * len(found), (640, 70 + 34 * len(found)), (250, 44, 616, 26))
    left = np.zeros(len(found))
    for name, colour in (("certified", BLUE), ("open", GREY), ("falsified", ORANGE)):
        shares = np.array([getattr(one, name) / max(one.people, 1) for one in found])
        ax.barh(np.arange(len(found)), shares, 0.6, left=left, color=colour)
        left += shares
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: percent(share, 0)))
    for place, one in enumerate(found):
        words = "no flip" if one.property == "flips" else f"k ≤ {one.bound:g}"
        named = f"{shortened(one.population, 26)}: {words}"
        say(ax, -0.02, place, named, transform=ax.get_yaxis_transform(), ha="right", va="center")
    name_axes(ax, "certified (blue), open (grey), falsified (orange)")
    return made


def pareto(found: RepairResult) -> Picture:
    """Mean k against accuracy on held-out evidence, a named dot for each repair."""
    made = picture(640, 360)
    ax = frame(made, (62, 50, 626, 326), grid="both")
    before = found.before_held_out
    allowed = before.accuracy - found.max_accuracy_loss
    ax.axhline(allowed, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    words = f"{percent(found.max_accuracy_loss, 0)} less {found.quality if found.regression else 'accurate'}"
    say(ax, 0.995, allowed, words, transform=ax.get_yaxis_transform(), ha="right", va="bottom", color=MUTED)
    points = [(before.k_mean, before.accuracy, "as it is")]
    ax.plot(before.k_mean, before.accuracy, "D", ms=9, color=INK, zorder=4)
    for one in sorted(shown_repairs(found), key=lambda one: (one is not found.chosen, one.dominated)):
        chosen, after = one is found.chosen, one.held_out
        fill = ORANGE if chosen else GREY if one.dominated else BLUE
        how: Any = {"ms": 12, "zorder": 4} if chosen else {"ms": 7, "zorder": 3}
        ax.plot(after.k_mean, after.accuracy, "o", color=GROUND if one.yardstick else fill, mec=fill, mew=1.6, **how)
        points.append((after.k_mean, after.accuracy, one.name))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: percent(share)))
    ax.margins(0.12, 0.14)
    name_axes(ax, "mean k of held-out cases (1 = all twins in one class)", f"{found.quality} on held-out rows")
    _name_points(ax, points)
    return made


def _name_points(ax: Frame, points: Sequence[tuple[float, float, str]]) -> None:
    """A name beside each dot, the first ones first, wherever there is room for it; the table has all names."""
    ax.autoscale_view()
    dots = ax.transData.transform([(x, y) for x, y, _ in points])
    taken = [(across - 5, up - 5, across + 5, up + 5) for across, up in dots]
    for (x, y, name), (across, up) in zip(points, dots, strict=True):
        words = shortened(name, 40)
        wide = 0.6 * SMALL * len(words)
        sides = ((9, -4), (-9 - wide, -4), (-wide / 2, 9), (-wide / 2, -18))
        corners = ((10, 8), (10, -18), (-10 - wide, 8), (-10 - wide, -18))
        for aside, above in (*sides, *corners, (14, 22), (14, -32)):
            box = (across + aside, up + above, across + aside + wide, up + above + SMALL)
            free = all(box[2] < a or box[0] > c or box[3] < b or box[1] > d for a, b, c, d in taken)
            if free and ax.bbox.x0 <= box[0] and box[2] <= ax.bbox.x1:
                taken.append(box)
                look: Any = {"fontsize": SMALL, "parse_math": False, "color": INK}
                ax.annotate(words, (x, y), xytext=(aside, above), textcoords="offset pixels", **look)
                break


#: Neurons whose curves are drawn.
MAX_CURVES = 6


def drawn_neurons(found: DebugResult) -> list[NeuronEffect]:
    """The neurons whose curves are drawn: the largest effects of both signs, by the half that ranks."""
    known = [one for one in suspects_of(found) if one.acd and len({held.value for held in one.curve}) > 1]
    return sorted(known, key=lambda one: -abs(one.acd_choosing or 0.0))[:MAX_CURVES]


def curves(found: DebugResult) -> Picture | None:
    """Mean k (or Q1) over the value that a neuron is held at, one small frame each.

    The dashed line is the same mean with nothing held; hollow points do not keep the accuracy.
    """
    shown = drawn_neurons(found)
    if not shown:
        return None
    columns = min(3, len(shown))
    wide = 586 / columns
    height = 34 + 148 * -(-len(shown) // columns)
    made, before = picture(640, height), mean_reported(found)
    every = [before, *(held.reported for one in shown for held in one.curve)]
    low, high = min(every), max(every)
    room = 0.08 * (high - low or 1.0)
    for i, one in enumerate(shown):
        left, bottom = 54 + i % columns * wide, height - 148 * (i // columns + 1) + 24
        ax = frame(made, (left, bottom, left + wide - 26, bottom + 88))
        values, means = [held.value for held in one.curve], [held.reported for held in one.curve]
        colour, goes = (BLUE, "lowers") if (one.acd or 0.0) < 0 else (ORANGE, "raises")
        ax.axhline(before, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
        ax.plot(values, means, color=colour, linewidth=1.6)
        for held in one.curve:
            ax.plot(held.value, held.reported, "o", ms=5, color=colour if held.kept else GROUND, mec=colour, mew=1.2)
        ax.set_ylim(low - room, high + room)
        ax.xaxis.set_major_locator(MaxNLocator(3))
        ax.yaxis.set_major_locator(MaxNLocator(4))
        _title(ax, f"neuron {one.neuron}: {goes} {'Q1' if found.measure == 'q_1' else 'k'}")
    return made


#: Lines that can still be told apart, each with its colour; letters of a period's name, and of all below the axis.
COLOURS = (BLUE, ORANGE, GREY, INK)
NAME_LETTERS, AXIS_LETTERS = 10, 66


def over_periods(periods: Sequence[Mapping[str, Any]], attribute: str) -> Picture:
    """What the score tells about each attribute above, the rates of one attribute's groups below."""
    made = picture(640, 360)
    places = np.arange(len(periods))
    upper, lower = frame(made, (62, 214, 520, 330)), frame(made, (62, 54, 520, 176))
    for name, colour in zip([one["attribute"] for one in periods[0]["bits"]], COLOURS, strict=False):
        found = [_named(period["bits"], "attribute", name) for period in periods]
        _line(upper, [(one.get("bits"), one.get("low"), one.get("bits")) for one in found], name, colour)
    name_axes(upper, y="bits that the score tells (shade: at least)")
    key = "selection_rate" if any(one["selection_rate"] is not None for one in periods) else "scoring_rate"
    tables = [_named(period["groups"], "attribute", attribute).get("groups", ()) for period in periods]
    people = Counter[str]()
    for one in (one for table in tables for one in table if not one["small"]):
        people[one["group"]] += one["people"]
    for (group, _), colour in zip(people.most_common(), COLOURS, strict=False):
        rows = [_named(table, "group", group) for table in tables]
        _line(lower, [(one.get(key), one.get(f"{key}_low"), one.get(f"{key}_high")) for one in rows], group, colour)
    below = [shortened(one["period"], NAME_LETTERS) for one in periods]
    step = -(-len(places) * (2 + max(len(name) for name in below)) // AXIS_LETTERS)
    for ax in (upper, lower):
        ax.set(xlim=(-0.3, len(places) - 0.7), ylim=(0, None))
        look: Any = {"frameon": False, "fontsize": SMALL, "labelcolor": "linecolor", "handlelength": 0.5}
        for text in ax.legend(handles=ax.lines, loc="upper left", bbox_to_anchor=(1, 1), **look).get_texts():
            text.set_parse_math(False)
    upper.tick_params(labelbottom=False)
    upper.set_xticks(places[::step])
    ticks(lower, "x", list(places[::step]), below[::step])
    words = "share decided favourably" if key == "selection_rate" else "share above the median score"
    name_axes(lower, y=f"{words}, by {shortened(attribute, 24)} (shade: 95 %)")
    return made


def _named(found: Sequence[Mapping[str, Any]], key: str, name: str) -> Mapping[str, Any]:
    return next((one for one in found if one[key] == name), {})


def _line(ax: Frame, ends: Sequence[tuple[float | None, ...]], name: str, colour: str) -> None:
    """A line with its shade; periods without a figure are gaps."""
    values = np.array([[np.nan if end is None else end for end in row] for row in ends], dtype=float)
    places = np.arange(len(values))
    if not np.isfinite(values).all(axis=1).any():
        return
    ax.fill_between(places, values[:, 1], values[:, 2], color=colour, alpha=0.18, linewidth=0)
    ax.plot(places, values[:, 0], color=colour, linewidth=2, marker="o", markersize=4, label=f" {shortened(name, 16)}")


#: Panels side by side, and the height of each.
ACROSS, PANEL = 4, 118
_SHORT = FuncFormatter(
    lambda value, _: f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e4 else f"{value:,.0f}"
)


def over_time(paces: Sequence[tuple[str, Sequence[float]]], seconds: float, reference: str) -> Picture:
    """A panel per strategy: its ID cases so far in blue, the reference's in orange, all others in grey."""
    across = min(ACROSS, len(paces))
    step = 594 / across
    height = 34 + PANEL * -(-len(paces) // across)
    made = picture(640, height)
    highest = max(pace[-1] for _, pace in paces) * 1.08
    for i, (name, pace) in enumerate(paces):
        row, column = divmod(i, across)
        left, top = 46 + column * step, height - 24 - row * PANEL
        ax = frame(made, (left, top - PANEL + 40, left + step - 16, top))
        time = np.linspace(0, seconds, len(pace))
        for other, theirs in paces:
            if other != name:
                grey: dict[str, Any] = {"color": GREY, "linewidth": 0.7, "alpha": 0.5}
                ax.plot(time, theirs, **({"color": ORANGE, "linewidth": 1.2} if other == reference else grey))
        ax.plot(time, pace, color=ORANGE if name == reference else BLUE, linewidth=2.4)
        ax.set(xlim=(0, seconds), ylim=(0, highest))
        ax.yaxis.set(major_locator=MaxNLocator(2, integer=True), major_formatter=_SHORT)
        # The first label begins at its tick and the last one ends there: neighbouring panels never collide.
        ax.set_xticks([0, seconds], ["0 s", f"{seconds:g} s"])
        first, last = ax.get_xticklabels()
        first.set_horizontalalignment("left")
        last.set_horizontalalignment("right")
        ax.tick_params(labelleft=column == 0, labelbottom=i + across >= len(paces))
        _title(ax, name, f"{pace[-1]:,.0f}")
    return made


def dots(names: Sequence[str], values: Sequence[Sequence[float]], what: str) -> Picture:
    """A row per strategy with a dot for each run, and a bar at their mean."""
    made, ax = _rows(names, (420, 60 + 25 * len(names)), (92, 48, 408, 8))
    for place, some in enumerate(values):
        ax.plot(some, [place] * len(some), "o", color=BLUE, markersize=7, alpha=0.45, markeredgewidth=0)
        ax.plot(np.mean(some), place, "|", color=INK, markersize=15, markeredgewidth=2)
    ax.set_xlim(left=0, right=max(max(some) for some in values) * 1.06 or 1)
    ax.xaxis.set(major_locator=MaxNLocator(5, integer=True), major_formatter=_SHORT)
    name_axes(ax, f"{what}; bar: the mean")
    return made


def _rows(
    names: Sequence[str], size: tuple[float, float], box: tuple[float, float, float, float]
) -> tuple[Picture, Frame]:
    """A row for each name; the box is left, bottom, right and, from the picture's own, top."""
    made = picture(*size)
    ax = frame(made, (*box[:3], size[1] - box[3]), grid="x")
    ax.set_ylim(len(names) - 0.4, -0.6)
    ticks(ax, "y", range(len(names)), list(names), max_labels=40)
    return made, ax


def _title(ax: Frame, name: str, figure: str = "") -> None:
    how: Any = {"transform": ax.transAxes, "va": "bottom"}
    say(ax, 0.0, 1.04, name, ha="left", weight="bold", **how)
    say(ax, 1.0, 1.04, figure, ha="right", color=MUTED, **how)


#: Neurons drawn in one column; the others are in the table.
MAX_NEURONS = 64
_HEIGHT, _FOOT, _HEAD = 420, 92, 16


def network(found: DebugResult) -> tuple[Picture, dict[str, str]]:
    """The network as layers, with the neurons of the suspect layer."""
    layers = found.layers
    width = max(420, min(860, 130 * len(layers)))
    made = picture(width, _HEIGHT)
    ax = frame(made, (0, 0, width, _HEIGHT), grid=None)
    ax.set_axis_off()
    ax.set(xlim=(0, width), ylim=(0, _HEIGHT))
    places = np.linspace(width / len(layers) / 2, width - width / len(layers) / 2, len(layers))
    total, middle = sum(layer.votes for layer in layers) or 1, _FOOT + (_HEIGHT - _FOOT) / 2
    words: dict[str, str] = {}
    before: list[tuple[float, float]] = []  # the right side of the column before
    for place, layer in zip(places, layers, strict=True):
        heights, radius, reach = _column(layer)
        suspect = layer.layer == found.suspect
        sides = [[(place + aside, middle + reach), (place + aside, middle - reach)] for aside in (-12, 12)]
        if before:
            ax.add_patch(
                Polygon([before[0], *sides[0], before[1]], closed=True, facecolor=BAND, edgecolor="none", zorder=0)
            )
        before = sides[1]
        if suspect:
            corner, look = (place - 13, middle - reach - 11), "round,pad=2,rounding_size=12"
            ax.add_patch(FancyBboxPatch(corner, 26, 2 * reach + 22, boxstyle=look, fc="none", ec=ORANGE, lw=1.6))
            words |= _suspects(ax, place, layer, found)
        else:
            for height in heights:
                ax.add_patch(Circle((place, height), radius, facecolor=GREY, edgecolor="none"))
        _foot(ax, place, layer, total, last=layer is layers[-1], suspect=suspect)
    return made, words


def _column(layer: LayerEffect) -> tuple[np.ndarray, float, float]:
    """The heights of the neurons of a layer, their radius, and half the height of all."""
    shown = min(layer.width, MAX_NEURONS)
    reach = min((_HEIGHT - _FOOT - 2 * _HEAD) / 2, 11.0 * (shown - 1) / 2 + 1)
    radius = float(np.clip(reach / max(shown - 1, 1) * 0.86, 1.6, 7.0)) if shown > 1 else 6.0
    return _FOOT + (_HEIGHT - _FOOT) / 2 + np.linspace(reach, -reach, shown) * (shown > 1), radius, reach


def _suspects(ax: Frame, place: float, layer: LayerEffect, found: DebugResult) -> dict[str, str]:
    """Blue is positive (activating it lowers k), orange negative, pale does neither; without an ACD a ring is left."""
    known = {neuron.neuron: neuron for neuron in suspects_of(found)}
    largest = max((abs(neuron.acd) for neuron in known.values() if neuron.acd is not None), default=0.0) or 1.0
    before, k, words = mean_reported(found), symbol_of(found.measure), {}
    heights, radius, _ = _column(layer)
    for index, height in enumerate(heights):
        neuron = known.get(index)
        dot = Circle((place, height), max(radius, 3.0), facecolor="none", edgecolor=MUTED, linewidth=1)
        if neuron is not None and neuron.acd is not None:
            colour = to_rgba(ORANGE if neuron.acd > 0 else BLUE, 0.1 + 0.9 * (abs(neuron.acd) / largest))
            dot.set(facecolor=colour, linewidth=0.8)
        dot.set_gid(f"neuron-{index}")
        words[f"neuron-{index}"] = neuron_words(layer.layer, index, neuron, before, k)
        ax.add_patch(dot)
    return words


def neuron_words(layer: int, index: int, neuron: NeuronEffect | None, k_mean: float, k: str = "k") -> str:
    start = f"Layer {layer}, neuron {index}"
    if neuron is None:
        return f"{start}: not studied."
    acd, best = "no ACD within the loss allowed", neuron.best
    if neuron.acd is not None:
        what = f"positive: activating it lowers {k}" if neuron.acd < 0 else f"negative: activating it raises {k}"
        acd = f"ACD {signed(neuron.acd, 3)}" + (f" ({what})" if neuron.acd != 0 else "")
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


Drawn = tuple[str, Picture | None, str, str]


def pictures_of(data: ReportData) -> dict[str, str]:
    """All pictures of a report as inline SVG; what cannot be drawn is not there."""
    drawn = (one for one in (*_spread(data), *_people(data)) if one[1] is not None)
    found = {name: inline_svg(made, f"pic-{name}", title, words) for name, made, title, words in drawn if made}
    if data.debugged is not None and data.debugged.layers and has_inside(data.debugged):
        found["network"] = _network(data.debugged)
    return found | period_pictures(data.proxies)


def _spread(data: ReportData) -> Iterator[Drawn]:
    searched, found, repaired = data.searched, data.debugged, data.repaired
    rows: list[tuple[int, int, int | None]] = [(k, people, None) for k, people in data.measured.histogram]
    for counts, what, title in (
        (rows, "rows", "Rows of the table"),
        (searched.histogram, "cases", "Cases of the search"),
    ):
        if counts:
            made = severity(counts, what)
            words = _histogram_words(counts, what)
            yield f"severity-{what}", made, f"{title} by number of classes k", words
    if found is not None:
        words = joined([f"neuron {one.neuron} (ACD {signed(one.acd, 3)})" for one in drawn_neurons(found)])
        yield "curves", curves(found), "Mean k over the value that a neuron is held at", words
    if repaired is not None and repaired.repairs:
        title = f"{repaired.quality.capitalize()} and mean k of all repairs"
        yield "pareto", pareto(repaired), title, _pareto_words(repaired)
    if len(searched.progress) > 2:
        last = searched.progress[-1]
        first = next(moment for moment in searched.progress if moment.k_max == last.k_max)
        words = (
            f"The largest k, {last.k_max}, was reached after {first.seconds:.1f} seconds; after {last.seconds:.1f} "
            f"seconds {last.cases:,} distinct cases were kept."
        )
        yield "progress", progress(searched.progress), "The search over time", words


def _people(data: ReportData) -> Iterator[Drawn]:
    for person in data.people:
        what = "row" if person.real else "case"
        line = portraits.line(person, data.axes)
        name, title = f"{what}-{person.rank}", f"Scores of the twins of {what} number {person.rank}"
        worst = f"{person.low:.3f} ({shortened(person.worst, 100)})"
        best = shortened(person.best, 100)
        words = f"{person.twins:,} scores in {person.k} classes, from {worst} to {person.high:.3f} ({best})."
        yield f"{name}-map", portraits.heat_map(person, data.axes), title, words
        yield f"{name}-line", line, title, words
        if line is None:
            yield f"{name}-steps", portraits.staircase(person, data.axes), f"{title}, in order", words


def _network(debugged: DebugResult) -> str:
    if debugged.units == "trees":
        names = [f"{split_name(one)}, ACD {signed(one.acd, 3)}" for one in foremost(debugged)]
        suspect = f" The suspect is tree {debugged.suspect}." if debugged.suspect else ""
        words = f"{len(debugged.layers)} trees.{suspect} " + (f"{joined(names)}." if names else "No split lowers k.")
        return inline_svg(trees(debugged), "pic-network", "The trees of the ensemble", words)
    made, parts = network(debugged)
    layers = [
        f"layer {layer.layer} with {layer.width} neurons and ρ {signed(layer.rho)}"
        for layer in debugged.layers
        if layer.rho is not None
    ]
    words = f"{joined(layers)}." + (f" The suspect is layer {debugged.suspect}." if debugged.suspect else "")
    return inline_svg(made, "pic-network", "The network as layers", words, parts=parts if suspects_of(debugged) else {})


def _histogram_words(counts: Sequence[tuple[int, int, int | None]], what: str) -> str:
    total = sum(count for _, count, _ in counts)
    mean = sum(k * count for k, count, _ in counts) / total
    k, people, _ = max(counts, key=lambda one: one[1])
    span = f"k from {counts[0][0]} to {counts[-1][0]}, mean {mean:.1f}"
    return f"{total:,} {what} with {span}; most often k = {k} ({people:,})."


def _pareto_words(found: RepairResult) -> str:
    named = [("As it is", found.before_held_out)]
    named += [] if found.chosen is None else [(f"Chosen ({shortened(found.chosen.name, 60)})", found.chosen.held_out)]
    said = [f"{name}: {found.quality} {percent(one.accuracy)}, mean k {number(one.k_mean, 2)}." for name, one in named]
    return " ".join(said if found.chosen is not None else [*said, "None was chosen."])


def period_pictures(document: Mapping[str, Any] | None) -> dict[str, str]:
    """The picture over time as inline SVG, where there are periods."""
    if document is None or len(document["periods"]) < 2:
        return {}
    about = max(known_attributes(document), key=lambda one: one["bits"], default=None) or document["groups"][0]
    parts = []
    for period in document["periods"]:
        bits = [f"{one['attribute']} {one['bits']:.2f} bits" for one in period["bits"] if "bits" in one]
        parts.append(f"{period['period']}: {', '.join(bits) or 'too few people'}")
    made = over_periods(document["periods"], about["attribute"])
    return {"periods": inline_svg(made, "pic-periods", f"Over {document['by']}", "; ".join(parts))}
