"""Pictures of debugging: the share of data and training, how k goes over a neuron's values, sets of neurons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fairbits.domain import shortened
from fairbits.report.debugged import Debugged, Neuron, Sized, Split
from fairbits.report.figures.palette import BLUE, GREY, GROUND, INK, MUTED, ORANGE, RULE
from fairbits.report.figures.style import SMALL, Picture, frame, name_axes, picture, say, ticks

#: Neurons whose curves are drawn.
MAX_CURVES = 6
_SHARE = FuncFormatter(lambda share, _: f"{share:.0%}")


def origin(splits: Sequence[Split]) -> Picture:
    """Bars of length one: what comes with the data in blue, with the single training in grey.

    The whisker is the interval of the share; the triangle is how far the model under test agrees with the other
    trainings.

    Parameters
    ----------
    splits
        Shares of data and training, one bar each.

    Returns
    -------
    Picture
        The picture.
    """
    height = 84 + 42 * len(splits)
    made = picture(420, height)
    ax = frame(made, (118, 46, 404, height - 32), grid="x")
    places = np.arange(len(splits))
    shared = np.array([one.shared for one in splits])
    ax.barh(places, shared, 0.56, color=BLUE)
    ax.barh(places, 1 - shared, 0.56, left=shared, color=GREY)
    for place, one in zip(places, splits, strict=True):
        ax.plot([one.low, one.high], [place, place], color=INK, linewidth=2, solid_capstyle="butt")
        ax.plot([one.low, one.high], [place, place], "|", color=INK, markersize=9, markeredgewidth=2)
        if one.own is not None:
            ax.plot(np.clip(one.own, 0, 1), place + 0.36, "^", color=ORANGE, markersize=7, clip_on=False)
    ax.set_xlim(0, 1)
    ax.set_ylim(len(splits) - 0.4, -0.6)
    ax.xaxis.set_major_formatter(_SHARE)
    ticks(ax, "y", places, [_named(one) for one in splits])
    above = {"transform": ax.get_xaxis_transform(), "va": "bottom", "weight": "bold", "fontsize": SMALL}
    say(ax, 0.0, 1.02, "with the data", ha="left", color=BLUE, **above)
    say(ax, 1.0, 1.02, "with the single training", ha="right", color=MUTED, **above)
    name_axes(ax, "share of the differences between twins' scores")
    return made


def _named(one: Split) -> str:
    return "all together" if len(one.attributes) > 1 else shortened(one.attributes[0], 18)


def drawn_neurons(found: Debugged) -> list[Neuron]:
    """The neurons whose curves are drawn: the largest effects of both signs, by the half that ranks."""
    known = [one for one in found.neurons if one.acd is not None and len({value for value, _, _ in one.curve}) > 1]
    ranked = sorted(known, key=lambda one: -abs(one.acd_choosing or 0.0))
    return [one for one in ranked if (one.acd or 0.0) != 0.0][:MAX_CURVES]


def curves(found: Debugged) -> Picture | None:
    """Mean k (or Q1) over the value that a neuron is held at, one small frame each.

    The dashed line is the same mean with nothing held; hollow points do not keep the accuracy.

    Parameters
    ----------
    found
        What the debugging of a run found.

    Returns
    -------
    Picture | None
        The picture; None where no neuron has an effect.
    """
    shown = drawn_neurons(found)
    if not shown:
        return None
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    width, height = 640, 34 + 148 * rows
    made = picture(width, height)
    every = [k for one in shown for _, k, _ in one.curve] + [found.k_mean]
    low, high = min(every), max(every)
    room = 0.08 * (high - low or 1.0)
    for number, one in enumerate(shown):
        column, row = number % columns, number // columns
        left = 54 + column * (width - 54) / columns
        bottom = height - 148 * (row + 1) + 24
        ax = frame(made, (left, bottom, left + (width - 54) / columns - 26, bottom + 88))
        values = [value for value, _, _ in one.curve]
        colour = BLUE if (one.acd or 0.0) < 0 else ORANGE
        ax.axhline(found.k_mean, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
        ax.plot(values, [k for _, k, _ in one.curve], color=colour, linewidth=1.6)
        for value, k, kept in one.curve:
            ax.plot(value, k, "o", ms=5, color=colour if kept else GROUND, mec=colour, mew=1.2)
        ax.set_ylim(low - room, high + room)
        ax.xaxis.set_major_locator(MaxNLocator(3))
        ax.yaxis.set_major_locator(MaxNLocator(4))
        lowers = "lowers" if (one.acd or 0.0) < 0 else "raises"
        what = "Q1" if found.measure == "q_1" else "k"
        words = f"neuron {one.neuron}: {lowers} {what}"
        say(
            ax,
            0.0,
            1.04,
            words,
            transform=ax.transAxes,
            ha="left",
            va="bottom",
            color=INK,
            weight="bold",
            fontsize=SMALL,
        )
    return made


def sizes(sets: Sequence[Sized], minimal: Sized | None) -> Picture:
    """The share of the bits explained over the number of neurons held, with its interval."""
    made = picture(420, 240)
    ax = frame(made, (58, 46, 412, 214))
    counts = [one.size for one in sets]
    ax.fill_between(counts, [one.low for one in sets], [one.high for one in sets], color=BLUE, alpha=0.2, linewidth=0)
    ax.plot(counts, [one.explained for one in sets], "o-", color=BLUE, linewidth=2, ms=5)
    ax.axhline(0.5, color=RULE, linewidth=1, linestyle=(0, (4, 3)))
    if minimal is not None:
        ax.plot(minimal.size, minimal.explained, "o", ms=11, color="none", mec=ORANGE, mew=2)
    ax.set_xlim(0.5, max(counts) + 0.5)
    ax.set_ylim(0, 1)
    ax.yaxis.set_major_formatter(_SHARE)
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    name_axes(ax, "neurons held together", "bits explained")
    return made
