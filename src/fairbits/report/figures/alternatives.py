"""Pictures of alternatives: what each candidate is worth against what it uses, directly, indirectly and by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes as Frame
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fairbits.report.figures.palette import BLUE, GREY, INK, MUTED, ORANGE, RULE
from fairbits.report.figures.style import Picture, frame, name_axes, picture, say

#: Names that a picture can hold.
MAX_NAMES = 6
_COLOURS = {"guard": BLUE, "mitigator": ORANGE, "tuned": GREY, "repair": MUTED}
_PERCENT = FuncFormatter(lambda value, _: f"{100 * value:g} %")

Estimated = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """One candidate as it is drawn; figures have value, low and high."""

    name: str
    family: str
    on_front: bool
    accuracy: Estimated
    bits: Estimated
    indirect: Estimated | None
    ratio: Estimated | None


def fronts(points: Sequence[FrontPoint], quality: str) -> dict[str, tuple[Picture, str]]:
    """Accuracy against direct bits, indirect bits and the impact ratio, as far as they are known; each with a title."""
    found = {"bits": (_drawn(points, "bits", "direct bits: mean Q∞ of rows", quality), f"{quality} and direct bits")}
    for name, axis in (("indirect", "indirect bits, of the attribute with the most"), ("ratio", "impact ratio")):
        if all(getattr(one, name) is not None for one in points):
            title = f"{quality} and {'indirect bits' if name == 'indirect' else 'impact ratio'}"
            found[name] = _drawn(points, name, axis, quality), title
    return found


def _drawn(points: Sequence[FrontPoint], key: str, axis: str, quality: str) -> Picture:
    made = picture(420, 300)
    ax = frame(made, (54, 46, 408, 266))
    for one in sorted(points, key=lambda one: one.on_front):
        _point(ax, one, getattr(one, key))
    values = [getattr(one, key)["value"] for one in points]
    reach = (max(values) - min(values)) or 0.1
    ax.set_xlim(min(values) - 0.1 * reach, max(values) + 0.28 * reach)
    heights = [one.accuracy["value"] for one in points]
    spread = (max(heights) - min(heights)) or 0.05
    ax.set_ylim(min(heights) - 0.25 * spread, max(heights) + 0.25 * spread)
    _names(ax, points, key, reach, spread)
    ax.yaxis.set_major_formatter(_PERCENT)
    ax.yaxis.set_major_locator(MaxNLocator(5))
    ax.xaxis.set_major_locator(MaxNLocator(6))
    name_axes(ax, axis, f"{quality}, held-out rows")
    return made


def _point(ax: Frame, one: FrontPoint, figure: Estimated) -> None:
    x, y = figure["value"], one.accuracy["value"]
    if one.on_front:
        ax.plot([figure["low"], figure["high"]], [y, y], color=RULE, linewidth=1.6, zorder=1)
        ax.plot([x, x], [one.accuracy["low"], one.accuracy["high"]], color=RULE, linewidth=1.6, zorder=1)
    if one.family == "as it is":
        ax.plot(x, y, "D", color=INK, markersize=8, zorder=4)
        return
    colour = _COLOURS[one.family]
    how: dict[str, Any] = {"alpha": 1.0} if one.on_front else {"alpha": 0.4}
    ax.plot(x, y, "o", color=colour, markersize=8 if one.on_front else 5, markeredgewidth=0, zorder=3, **how)


def _names(ax: Frame, points: Sequence[FrontPoint], key: str, reach: float, spread: float) -> None:
    """Names beside the points of the front, where there is room for them."""
    taken: list[tuple[float, float]] = []
    shown = [one for one in points if one.family == "as it is"]
    shown += sorted(
        (one for one in points if one.on_front and one not in shown), key=lambda one: -one.accuracy["value"]
    )
    for one in shown:
        x, y = getattr(one, key)["value"], one.accuracy["value"]
        near = any(abs(x - a) < 0.45 * reach and abs(y - b) < 0.1 * spread for a, b in taken)
        if near or len(taken) >= MAX_NAMES:
            continue
        taken.append((x, y))
        say(ax, x + 0.03 * reach, y, one.name, va="center", ha="left", zorder=5)
