"""Pictures of a whole run: severities, the search over time, who gains and who loses, what a repair costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes as Frame
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fairbits.domain import shortened
from fairbits.measure import Stake
from fairbits.report.debugged import Share
from fairbits.report.figures.palette import BLUE, GREY, GROUND, INK, MUTED, ORANGE, RULE
from fairbits.report.figures.style import SMALL, Picture, frame, name_axes, picture, say, ticks
from fairbits.report.record import Moment
from fairbits.report.repaired import Repaired

#: Bars of a histogram; neighbouring severities share one where there are more.
MAX_BARS = 45
#: Rows of bars that can still be read.
MAX_VALUES = 40
_COUNTS = FuncFormatter(lambda value, _: f"{value / 1e6:g} M" if value >= 1e6 else f"{value:,.0f}")


def severity(counts: Sequence[tuple[int, int, int | None]], what: str) -> Picture:
    """Number of people at each k; those whose decision flips in orange, where that is known.

    Parameters
    ----------
    counts
        K, people, and people whose decision flips.
    what
        What is counted, for the axis.

    Returns
    -------
    Picture
        The picture.
    """
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
    ax.yaxis.set_major_formatter(_COUNTS)
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.xaxis.set_major_locator(MaxNLocator(9, integer=True))
    left = max(1, min(lowest, highest - 3))  # one or two values of k get bars of the usual width, not a wall
    ax.set_xlim(left - 0.8 * width, max(highest, left + 3) + 0.8 * width)
    name_axes(ax, "k: classes that the twins' scores fall into", what)
    return made


def progress(moments: Sequence[Moment]) -> Picture:
    """The largest k so far and, below it, the cases so far, over the seconds of the search."""
    made = picture(420, 250)
    seconds = [moment.seconds for moment in moments]
    upper = frame(made, (58, 138, 412, 214))
    upper.step(seconds, [moment.k_max for moment in moments], where="post", color=ORANGE, linewidth=2)
    upper.set_ylim(0, max(moment.k_max for moment in moments) * 1.12 + 1)
    upper.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    upper.tick_params(labelbottom=False)
    name_axes(upper, y="largest k so far")
    lower = frame(made, (58, 46, 412, 106))
    cases = [moment.cases for moment in moments]
    lower.fill_between(seconds, cases, color=BLUE, alpha=0.22, linewidth=0)
    lower.plot(seconds, cases, color=BLUE, linewidth=2)
    lower.set_ylim(0, max(cases) * 1.12 + 1)
    lower.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    lower.yaxis.set_major_formatter(_COUNTS)
    name_axes(lower, "seconds of search", "distinct cases so far")
    for ax in (upper, lower):
        ax.set_xlim(0, seconds[-1] or 1)
    return made


def shapley(shares: Sequence[Share]) -> Picture:
    """Bits of each protected attribute: its Shapley share as a bar, alone as a mark.

    Parameters
    ----------
    shares
        Bits of each protected attribute.

    Returns
    -------
    Picture
        The picture.
    """
    ranked = sorted(shares, key=lambda share: -share.shapley)
    height = 64 + 38 * len(ranked)
    made = picture(420, height)
    ax = frame(made, (118, 44, 404, height - 24), grid="x")
    places = np.arange(len(ranked))
    values = [share.shapley for share in ranked]
    ax.barh(places, values, 0.56, color=BLUE)
    ax.plot([share.alone for share in ranked], places, "|", color=INK, markersize=19, markeredgewidth=2)
    ax.axvline(0, color=RULE, linewidth=1)
    reach = max(max(share.alone, share.shapley) for share in ranked) or 1.0
    for place, share in enumerate(ranked):
        inside = share.shapley > 0.3 * reach
        where = share.shapley - 0.02 * reach if inside else max(share.shapley, share.alone, 0) + 0.03 * reach
        colour = {"color": GROUND, "ha": "right", "weight": "bold"} if inside else {"color": INK, "ha": "left"}
        say(ax, where, place, f"{share.shapley:.2f} ({share.share:.0%})", va="center", **colour)
    ax.set_xlim(min(0, *values), reach * 1.12 if ranked[-1].shapley > 0.3 * reach else reach * 1.3)
    ax.set_ylim(len(ranked) - 0.4, -0.6)
    ticks(ax, "y", places, [share.attribute for share in ranked])
    name_axes(ax, "bits (Q∞), mean over the cases looked at")
    return made


def stakes(values: Sequence[Stake]) -> Picture | None:
    """Per protected value: how often it gets the lowest score (left) and the highest (right).

    Parameters
    ----------
    values
        Shares of each protected value.

    Returns
    -------
    Picture | None
        The picture; None where there is nothing to show, or too much.
    """
    if not values or len(values) > MAX_VALUES or not any(v.lowest or v.highest for v in values):
        return None
    places, place, last = [], 0.0, values[0].attribute
    heads = {0: 0.0}
    for i, value in enumerate(values):
        if value.attribute != last:
            place += 1.1
            heads[i] = place
            last = value.attribute
        place += 1
        places.append(place)
    height = 76 + 22 * place
    made = picture(640, height)
    ax = frame(made, (170, 40, 632, height - 30), grid="x")
    ax.barh(places, [-v.lowest for v in values], 0.72, color=ORANGE)
    ax.barh(places, [v.highest for v in values], 0.72, color=BLUE)
    ax.axvline(0, color=INK, linewidth=1)
    reach = max(max(v.lowest, v.highest) for v in values) * 1.34  # room for the words of a full bar
    for where, value in zip(places, values, strict=True):
        for share, side in ((value.lowest, -1), (value.highest, 1)):
            if share >= 0.0005:
                words = {"ha": "left" if side > 0 else "right", "va": "center", "color": MUTED}
                say(ax, side * (share + 0.012 * reach), where, f"{share:.1%}", **words)
    for i, where in heads.items():
        name = shortened(values[i].attribute, 22)
        say(ax, -0.02, where, name, transform=ax.get_yaxis_transform(), ha="right", va="center", weight="bold")
    ax.set_xlim(-reach, reach)
    ax.set_ylim(place + 0.6, -0.6)
    ticks(ax, "y", places, [value.value for value in values], max_labels=MAX_VALUES)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{abs(share):.0%}"))
    middle = {"transform": ax.get_xaxis_transform(), "va": "bottom"}
    say(ax, -0.02 * reach, 1.0, "← lowest score of its twins", ha="right", color=ORANGE, weight="bold", **middle)
    say(ax, 0.02 * reach, 1.0, "highest score of its twins →", ha="left", color=BLUE, weight="bold", **middle)
    return made


def pareto(found: Repaired) -> Picture:
    """Mean k against accuracy on held-out evidence; a line joins the repairs that none beats.

    Parameters
    ----------
    found
        All repairs.

    Returns
    -------
    Picture
        The picture.
    """
    made = picture(640, 360)
    ax = frame(made, (62, 50, 626, 326), grid="both")
    allowed = found.accuracy_before - found.max_accuracy_loss
    ax.axhline(allowed, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    words = f"{found.max_accuracy_loss:.0%} less {found.quality if found.regression else 'accurate'}"
    say(ax, 0.995, allowed, words, transform=ax.get_yaxis_transform(), ha="right", va="bottom", color=MUTED)
    front = sorted((mend for mend in found.repairs if mend.on_front), key=lambda mend: mend.k_mean)
    ax.plot([m.k_mean for m in front], [m.accuracy for m in front], color=BLUE, linewidth=1.6, zorder=2)
    for mend in found.repairs:
        size = 12 if mend.chosen else 7
        fill = ORANGE if mend.chosen else BLUE if mend.on_front else GREY
        inner = GROUND if mend.yardstick else fill
        ax.plot(
            mend.k_mean, mend.accuracy, "o", ms=size, color=inner, mec=fill, mew=1.6, zorder=4 if mend.chosen else 3
        )
    ax.plot(found.k_mean_before, found.accuracy_before, "D", ms=9, color=INK, zorder=4)
    _label_points(ax, found)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.1%}"))
    ax.margins(0.09, 0.14)
    name_axes(ax, "mean k of held-out cases (1 = all twins in one class)", f"{found.quality} on held-out rows")
    return made


def _label_points(ax: Frame, found: Repaired) -> None:
    chosen = [(mend.k_mean, mend.accuracy, mend.name) for mend in found.repairs if mend.chosen]
    middle = (found.k_mean_before + min(m.k_mean for m in found.repairs)) / 2
    points = [(found.k_mean_before, found.accuracy_before, "as it is"), *chosen]
    for x, y, words in points:
        right = x > middle
        how: Any = {"textcoords": "offset points", "fontsize": SMALL, "weight": "bold", "parse_math": False}
        offset, side = ((-10, 10), "right") if right else ((10, 10), "left")
        ax.annotate(shortened(words, 40), (x, y), xytext=offset, ha=side, color=INK, **how)
