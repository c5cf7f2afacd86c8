"""Indirect bits and group rates over time, one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes as Frame

from fairbits.domain import shortened
from fairbits.report.figures.palette import BLUE, GREY, INK, ORANGE
from fairbits.report.figures.style import Picture, frame, name_axes, picture, say, ticks

#: Lines that can still be told apart, each with its colour; letters of a period's name, and of all below the axis.
COLOURS = (BLUE, ORANGE, GREY, INK)
NAME_LETTERS, AXIS_LETTERS = 10, 66


def over_time(periods: Sequence[Mapping[str, Any]], attribute: str) -> Picture | None:
    """What the score tells about each attribute above, the rates of one attribute's groups below."""
    if len(periods) < 2:
        return None
    made = picture(640, 360)
    places = np.arange(len(periods))
    upper, lower = frame(made, (62, 214, 520, 330)), frame(made, (62, 54, 520, 176))
    names = [one["attribute"] for one in periods[0]["bits"]][: len(COLOURS)]
    for name, colour in zip(names, COLOURS, strict=False):
        found: list[Mapping[str, Any]] = [
            next((one for one in period["bits"] if one["attribute"] == name), {}) for period in periods
        ]
        _line(upper, [(one.get("bits"), one.get("low"), one.get("bits")) for one in found], name, colour)
    name_axes(upper, y="bits that the score tells (shade: at least)")
    key = "selection_rate" if any(one["selection_rate"] is not None for one in periods) else "scoring_rate"
    tables = [next((one for one in period["groups"] if one["attribute"] == attribute), None) for period in periods]
    people: dict[str, int] = {}
    for one in (one for table in tables if table for one in table["groups"]):
        people[one["group"]] = people.get(one["group"], 0) + (0 if one["small"] else one["people"])
    groups = [group for group in sorted(people, key=lambda group: -people[group]) if people[group]][: len(COLOURS)]
    for group, colour in zip(groups, COLOURS, strict=False):
        rows = [_row(table, group) for table in tables]
        ends = [(one.get(key), one.get(f"{key}_low"), one.get(f"{key}_high")) for one in rows]
        _line(lower, ends, group, colour)
    below = [shortened(one["period"], NAME_LETTERS) for one in periods]
    step = -(-len(places) * (2 + max(len(name) for name in below)) // AXIS_LETTERS)
    for ax in (upper, lower):
        ax.set_xlim(-0.3, len(places) - 0.7)
        ax.set_ylim(bottom=0)
        _spread_names(ax)
    upper.tick_params(labelbottom=False)
    upper.set_xticks(places[::step])
    ticks(lower, "x", list(places[::step]), below[::step])
    words = "share decided favourably" if key == "selection_rate" else "share above the median score"
    name_axes(lower, y=f"{words}, by {shortened(attribute, 24)} (shade: 95 %)")
    return made


def _row(table: Mapping[str, Any] | None, group: str) -> Mapping[str, Any]:
    return {} if table is None else next((one for one in table["groups"] if one["group"] == group), {})


def _line(ax: Frame, ends: Sequence[tuple[float | None, ...]], name: str, colour: str) -> None:
    """A line with its shade; periods without a figure are gaps, and the name stands at the last one."""
    values = np.array([[np.nan if end is None else end for end in row] for row in ends], dtype=float)
    places = np.arange(len(values))
    known = np.isfinite(values).all(axis=1)
    if not known.any():
        return
    ax.fill_between(places, values[:, 1], values[:, 2], color=colour, alpha=0.18, linewidth=0)
    ax.plot(places, values[:, 0], color=colour, linewidth=2, marker="o", markersize=4)
    last = int(np.flatnonzero(known)[-1])
    say(ax, last + 0.02 * len(values), values[last, 0], shortened(name, 16), color=colour, ha="left", va="center")


def _spread_names(ax: Frame) -> None:
    """Move names that would lie over each other apart, in their order."""
    named = sorted(
        (text for text in ax.texts if text.get_transform() == ax.transData), key=lambda one: one.get_position()[1]
    )
    gap = 0.11 * (ax.get_ylim()[1] - ax.get_ylim()[0])
    top = -np.inf
    for text in named:
        x, y = text.get_position()
        top = max(y, top + gap)
        text.set_position((x, top))
    over = top - ax.get_ylim()[1] if named else 0.0
    if over > 0:
        for text in named:
            x, y = text.get_position()
            text.set_position((x, y - over))
