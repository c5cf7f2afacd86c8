"""Pictures of one person: the m scores over the protected values, the ε-classes and the decision threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes as Frame
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from fairbits.domain import Doubles, Integers, Truth
from fairbits.report.figures.palette import BAND, BLUE, INK, MUTED, ON_DEEP, ON_PALE, ORANGE
from fairbits.report.figures.svg import SCORE_COLOURS, Picture, frame, name_axes, picture, say, ticks
from fairbits.report.record import Axes, Portrait

#: Beyond this many twins, cells carry no class numbers and are drawn as one image.
MAX_CELLS = 240
#: Beyond these, a heat map could not be read: the staircase alone is shown.
MAX_FACETS, MAX_SIDE = 8, 60
#: Dots on the staircase.
MAX_DOTS = 400
_ROW, _WIDTH, _LEFT = 27, 420, 118


@dataclass(frozen=True, slots=True)
class Grid:
    """Scores, classes and who the person is as (facet, row, column), with the words for each."""

    scores: Doubles
    classes: Integers
    own: Truth
    facet: tuple[str, tuple[str, ...]] | None
    row: tuple[str, tuple[str, ...]] | None
    column: tuple[str, tuple[str, ...]]


def grid_of(person: Portrait, axes: Axes) -> Grid | None:
    """Scores as a grid: the longest attribute across, the next one down, the shortest as facets."""
    sizes = [len(values) for values in axes.values]
    count = len(person.scores)
    order = sorted(range(len(sizes)), key=lambda i: (sizes[i], i))
    padded = [1] * (3 - len(order)) + [sizes[i] for i in order]
    if not 1 <= len(sizes) <= 3 or padded[0] > MAX_FACETS or max(padded[1:]) > MAX_SIDE:
        return None
    given = (person.scores, person.classes or [-1] * count, np.arange(count) == person.own_twin)
    scores, classes, own = (np.asarray(values).reshape(sizes).transpose(order).reshape(padded) for values in given)
    words: list[Any] = [None] * (3 - len(order)) + [(axes.names[i], axes.values[i]) for i in order]
    for axis, word in enumerate(words):  # whoever has a value that twins take has no further one of their own
        last = np.take(scores, [-1], axis=axis)
        if word is not None and word[1][-1] == f"own {word[0]}" and np.isnan(last).all():
            kept = range(scores.shape[axis] - 1)
            scores, classes, own = (np.take(values, kept, axis=axis) for values in (scores, classes, own))
            words[axis] = (word[0], word[1][:-1])
    return Grid(scores, classes, own, *words)


def heat_map(person: Portrait, axes: Axes) -> Picture | None:
    """Two or three protected attributes: a cell per twin with its class, a line where the decision changes."""
    grid = grid_of(person, axes)
    if grid is None or grid.row is None:
        return None
    facets, rows, columns = grid.scores.shape
    tall = rows * (_ROW if rows <= 12 else max(6, 324 // rows))
    made = picture(_WIDTH, facets * (tall + 26) + 62)
    for i in range(facets):
        top = (facets - i) * (tall + 26) + 36.0
        ax = frame(made, (_LEFT, top - tall, _WIDTH - 4, top), grid=None)
        _cells(ax, grid.scores[i], grid.classes[i], axes.threshold, person)
        for row, column in np.argwhere(grid.own[i]):
            for colour, width in ((ON_DEEP, 4.5), (ON_PALE, 2.0)):
                ax.add_patch(Rectangle((column - 0.42, row - 0.42), 0.84, 0.84, fill=False, ec=colour, lw=width))
        if grid.facet is not None:
            say(ax, 0, 1.03, f"{grid.facet[0]}: {grid.facet[1][i]}", transform=ax.transAxes, va="bottom", weight="bold")
        ticks(ax, "y", range(rows), grid.row[1])
        below = grid.column[1] if i == facets - 1 else ()
        ticks(ax, "x", range(len(below)), below, turned=columns > 5 or max(map(len, grid.column[1])) > 9)
    return made


def _cells(ax: Frame, scores: Doubles, classes: Integers, threshold: float | None, person: Portrait) -> None:
    above = person.high if person.high > person.low else person.low + 1
    norm = Normalize(person.low, above) if threshold is None else TwoSlopeNorm(threshold, 0.0, 1.0)
    rows, columns = scores.shape
    ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    if scores.size > MAX_CELLS:
        ax.imshow(scores, cmap=SCORE_COLOURS, norm=norm, aspect="auto", interpolation="nearest")
    else:
        edges = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
        ax.pcolormesh(*edges, scores, cmap=SCORE_COLOURS, norm=norm, edgecolors="#ffffff", linewidth=1)
        deep = np.abs(np.ma.filled(norm(scores), np.nan) - 0.5) > 0.27
        for (row, column), number in np.ndenumerate(classes):
            if number >= 0:
                colour = ON_DEEP if deep[row, column] else ON_PALE
                say(ax, column, row, str(number + 1), ha="center", va="center_baseline", fontsize=10, color=colour)
    if threshold is not None:
        side = np.where(np.isnan(scores), np.nan, np.where(_below(scores, threshold), -1.0, 1.0))
        # Pieces of line between neighbouring cells with different decisions, where both exist.
        upright, flat = np.argwhere(side[:, 1:] * side[:, :-1] < 0), np.argwhere(side[1:] * side[:-1] < 0)
        pieces = [[(column + 0.5, row - 0.5), (column + 0.5, row + 0.5)] for row, column in upright]
        pieces += [[(column - 0.5, row + 0.5), (column + 0.5, row + 0.5)] for row, column in flat]
        ax.add_collection(LineCollection(pieces, colors=ON_PALE, linewidths=2.6))


def line(person: Portrait, axes: Axes) -> Picture | None:
    """One protected attribute: its values across, the score upwards."""
    if len(axes.names) != 1:
        return None
    made = picture(_WIDTH, 300)
    ax = frame(made, (46, 62, _WIDTH - 10, 268))
    places = np.arange(len(person.scores))
    ax.plot(places, person.scores, color=BLUE, linewidth=1.6, marker="o" if len(places) <= 80 else "", markersize=5)
    _backdrop(ax, person, axes)
    ticks(ax, "x", places, list(axes.values[0]), max_labels=14, turned=len(places) > 5)
    name_axes(ax, y="score")
    return made


def staircase(person: Portrait, axes: Axes) -> Picture:
    """All scores from the lowest to the highest, the classes as bands."""
    made = picture(_WIDTH, 340)
    ax = frame(made, (46, 46, _WIDTH - 10, 308))
    given = np.asarray(person.scores)
    scores = np.sort(given[np.isfinite(given)])  # twins that cannot exist have none
    places = np.unique(np.linspace(0, len(scores) - 1, min(len(scores), MAX_DOTS)).round().astype(int))
    low = _below(scores[places], axes.threshold)
    for which, colour in ((low, ORANGE if axes.threshold is not None else BLUE), (~low, BLUE)):
        ax.plot(places[which] + 1, scores[places][which], "o", color=colour, markersize=4.2, markeredgewidth=0)
    _backdrop(ax, person, axes)
    ax.set_xlim(0, len(scores) + 1)
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    words = f"score, in {person.k} classes" + (" (bands)" if person.classes else "")
    name_axes(ax, f"the {len(scores):,} twins, by score", words)
    return made


def _backdrop(ax: Frame, person: Portrait, axes: Axes) -> None:
    """Every other class is shaded, from its lowest score to that of the next one; a line where decisions change."""
    scores = np.asarray(person.scores)
    classes = np.array(person.classes, dtype=int)
    where = ax.get_yaxis_transform()
    lows = [float(scores[classes == number].min()) for number in range(classes.max(initial=-1) + 1)]
    spans = list(zip(lows, [*lows[1:], float(np.nanmax(scores))], strict=False))[::2]
    ax.add_collection(
        PolyCollection(
            [[(0, low), (1, low), (1, end), (0, end)] for low, end in spans],
            facecolors=BAND,
            linewidths=0,
            zorder=0,
            transform=where,
        )
    )
    room = 0.05 * (person.high - person.low or 1.0)
    ax.set_ylim(person.low - room, person.high + room)
    if axes.threshold is not None:
        ax.axhline(axes.threshold, color=INK, linewidth=1.1, linestyle=(0, (5, 3)))
        say(ax, 0.01, axes.threshold, "decision", transform=where, va="bottom", color=MUTED)
        ax.set_ylim(-0.02, 1.02)


def _below(scores: Doubles, threshold: float | None) -> Truth:
    """Which scores are no favourable decision, as the rule has it: both sides as float32. All, without a threshold."""
    cut = np.float32(np.inf if threshold is None else threshold)
    return np.asarray(scores, dtype=np.float32) < cut
