"""A tree ensemble: how far apart each tree puts twins, and which splits do it."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import MaxNLocator

from fairbits.domain import shortened
from fairbits.report.debugged import Debugged
from fairbits.report.figures.palette import BLUE, GREY, INK, MUTED, ORANGE
from fairbits.report.figures.style import SMALL, Picture, frame, name_axes, picture, say, ticks
from fairbits.report.foremost import foremost, split_name

_WIDTH, _UPPER, _ROW = 640, 190, 24


def trees(found: Debugged) -> Picture:
    """Above, a bar per tree in the order of the ensemble, the suspect in orange; below, what holding lowers most."""
    ranked = foremost(found)
    lower = 60 + _ROW * len(ranked) if ranked else 0
    made = picture(_WIDTH, _UPPER + lower)
    ax = frame(made, (64, lower + 46, _WIDTH - 12, lower + _UPPER - 16))
    numbers = np.array([tree.layer for tree in found.layers])
    colours = [ORANGE if tree.suspect else BLUE if tree.votes else GREY for tree in found.layers]
    ax.bar(numbers, [tree.delta for tree in found.layers], 0.8 if len(numbers) < 120 else 1.0, color=colours)
    ax.set_xlim(0.3, len(numbers) + 0.7)
    ax.xaxis.set_major_locator(MaxNLocator(9, integer=True, min_n_ticks=1))
    ax.yaxis.set_major_locator(MaxNLocator(4))
    name_axes(ax, "tree", "δ: largest difference it makes between two twins")
    if ranked:
        below = frame(made, (270, 44, _WIDTH - 70, lower - 20), grid="x")
        places = np.arange(len(ranked))
        values = [one.acd or 0.0 for one in ranked]
        below.barh(places, values, 0.62, color=[ORANGE if value > 0 else BLUE for value in values])
        reach = max(map(abs, values)) or 1.0
        for place, value in zip(places, values, strict=True):
            side, at = "left" if value >= 0 else "right", value + np.copysign(0.02 * reach, value)
            say(below, at, float(place), f"{value:+.3f}", va="center", ha=side, color=INK)
        below.set_xlim(min(0.0, 1.3 * min(values)), 1.25 * reach)
        below.set_ylim(len(ranked) - 0.4, -0.6)
        ticks(below, "y", places, [shortened(split_name(one), 40) for one in ranked])
        below.tick_params(labelsize=SMALL, labelcolor=MUTED)
        name_axes(below, "ACD: fall of mean k, as a share, with all twins on one side")
    return made
