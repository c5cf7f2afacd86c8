"""Pictures of a comparison: the pace of each strategy, its single runs, and how it stands against the yardstick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes as Frame
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fairbits.report.figures.palette import BLUE, GREY, GROUND, INK, MUTED, ORANGE
from fairbits.report.figures.style import Picture, frame, name_axes, picture, say, ticks

#: Panels side by side, and the height of each.
ACROSS, PANEL = 4, 118
#: Below this a difference is called significant.
LEVEL = 0.05
_SHORT = FuncFormatter(
    lambda value, _: f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e4 else f"{value:,.0f}"
)


@dataclass(frozen=True, slots=True)
class Effect:
    """How a strategy compares with the yardstick."""

    strategy: str
    a12: float
    p: float


def over_time(paces: Sequence[tuple[str, Sequence[float]]], seconds: float, yardstick: str) -> Picture:
    """A panel per strategy: its ID cases so far in blue, the yardstick's in orange, all others in grey."""
    across = min(ACROSS, len(paces))
    down = -(-len(paces) // across)
    width, height = 640, 34 + PANEL * down
    made = picture(width, height)
    step = (width - 46) / across
    highest = max(pace[-1] for _, pace in paces) * 1.08
    for number, (name, pace) in enumerate(paces):
        row, column = divmod(number, across)
        left, top = 46 + column * step, height - 24 - row * PANEL
        ax = frame(made, (left, top - PANEL + 40, left + step - 16, top))
        time = np.linspace(0, seconds, len(pace))
        for other, theirs in paces:
            if other not in (name, yardstick):
                ax.plot(time, theirs, color=GREY, linewidth=0.7, alpha=0.5)
            elif other != name:
                ax.plot(time, theirs, color=ORANGE, linewidth=1.2)
        ax.plot(time, pace, color=ORANGE if name == yardstick else BLUE, linewidth=2.4)
        ax.set_xlim(0, seconds)
        ax.set_ylim(0, highest)
        ax.yaxis.set_major_locator(MaxNLocator(2, integer=True))
        ax.yaxis.set_major_formatter(_SHORT)
        # The first label begins at its tick and the last one ends there: neighbouring panels never collide.
        ax.set_xticks([0, seconds], ["0 s", f"{seconds:g} s"])
        first, last = ax.get_xticklabels()
        first.set_horizontalalignment("left")
        last.set_horizontalalignment("right")
        ax.tick_params(labelleft=column == 0, labelbottom=number + across >= len(paces))
        _title(ax, name, f"{pace[-1]:,.0f}")
    return made


def dots(names: Sequence[str], values: Sequence[Sequence[float]], what: str) -> Picture:
    """A row per strategy with a dot for each run, and a bar at their mean."""
    made, ax = _rows(names)
    for place, some in enumerate(values):
        ax.plot(some, [place] * len(some), "o", color=BLUE, markersize=7, alpha=0.45, markeredgewidth=0)
        ax.plot(np.mean(some), place, "|", color=INK, markersize=15, markeredgewidth=2)
    ax.set_xlim(left=0, right=max(max(some) for some in values) * 1.06 or 1)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.xaxis.set_major_formatter(_SHORT)
    name_axes(ax, f"{what}; bar: the mean")
    return made


def effects(found: Sequence[Effect], yardstick: str) -> Picture:
    """A row per strategy: A12 from 0 (never finds more) to 1 (always does), filled where it is significant."""
    made, ax = _rows([one.strategy for one in found])
    ax.axvline(0.5, color=MUTED, linewidth=1)
    for place, one in enumerate(found):
        colour = BLUE if one.a12 >= 0.5 else ORANGE
        ax.plot([0.5, one.a12], [place, place], color=colour, linewidth=1.4)
        inner = colour if one.p < LEVEL else GROUND
        ax.plot(one.a12, place, "o", markersize=8, color=inner, markeredgecolor=colour, markeredgewidth=1.6)
    ax.set_xlim(-0.04, 1.04)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1.0])
    name_axes(ax, f"A12: chance that a run finds more than one of {yardstick}")
    return made


def _rows(names: Sequence[str]) -> tuple[Picture, Frame]:
    height = 60 + 25 * len(names)
    made = picture(420, height)
    ax = frame(made, (92, 48, 408, height - 8), grid="x")
    ax.set_ylim(len(names) - 0.4, -0.6)
    ticks(ax, "y", range(len(names)), list(names), max_labels=40)
    return made, ax


def _title(ax: Frame, name: str, figure: str) -> None:
    how: Any = {"transform": ax.transAxes, "va": "bottom"}
    say(ax, 0.0, 1.04, name, ha="left", weight="bold", **how)
    say(ax, 1.0, 1.04, figure, ha="right", color=MUTED, **how)
