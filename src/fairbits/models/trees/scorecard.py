"""Scorecards: logistic models over binned columns, as one tree for each column.

Behind encoders that look at one column at a time, the sum of a linear model is a sum of functions of one column each.
Where all of these are steps (bins of numbers, labels of categories), a tree per column says the same, whatever the
column is made of, and with gaps. Where a step lies is found by asking, down to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from fairbits.domain import Attribute, Codes, Encoding, Numeric, Part, Schema, Unseen
from fairbits.models.probe import PEOPLE, NotColumnwise, random_people
from fairbits.models.trees.ensemble import NAN, Ensemble, Link
from fairbits.models.trees.tree import Tree

Floats = npt.NDArray[np.float64]
#: People to the sums that a model makes of them.
Sums = Callable[[Codes], Floats]
#: Points at which a real column is asked first, and steps that it may have.
_POINTS, _MAX_STEPS = 2049, 1000
#: A whole number with more values is taken for a real one.
_MAX_VALUES = 10_000


def scorecard_of(
    sums: Sums, schema: Schema, columns: Iterable[str], edges: Floats, *, link: Link
) -> tuple[Ensemble, Encoding]:
    """The trees that a sum of step functions amounts to."""
    seen = set(columns)
    someone = np.array([[a.first for a in schema.attributes]], dtype=np.float64)
    base = float(sums(someone)[0])
    trees: list[Tree] = []
    parts: list[Part] = []
    for place, attribute in enumerate(schema.attributes):

        def asked(points: Floats, place: int = place) -> Floats:
            rows = np.repeat(someone, len(points), axis=0)
            rows[:, place] = points
            return np.asarray(sums(rows) - base)

        tree = _tree(attribute, asked, len(trees), edges) if attribute.name in seen else None
        parts.append(Unseen() if tree is None else Numeric(len(trees)))
        trees += [] if tree is None else [tree]
    ensemble = Ensemble.build(trees, features=len(trees), base=[base], link=link)
    encoding = Encoding(parts, dtype=np.float64).with_gaps(schema)
    people = random_people(schema, PEOPLE, lacking=True)
    theirs = sums(people)
    if not np.allclose(ensemble.sums(encoding.encode(people))[:, 0], theirs, rtol=1e-9, atol=1e-9):
        raise NotColumnwise
    return ensemble, encoding


def _tree(attribute: Attribute, asked: Sums, feature: int, edges: Floats) -> Tree | None:
    """The steps of one attribute; None where it makes no difference."""
    if attribute.discrete and attribute.upper - attribute.low < _MAX_VALUES:
        points = attribute.values() if attribute.allowed else np.arange(attribute.low, attribute.upper + 1.0)
        found = asked(points)
    else:
        points, found = _steps(attribute, asked, edges)
    last = np.append(np.flatnonzero(found[1:] != found[:-1]), len(points) - 1)
    gap = attribute.gap if attribute.kind != "category" else None
    missing = None if gap is None else float(asked(np.array([gap]))[0])
    if len(last) == 1 and found[0] == 0 and missing in (None, 0.0):
        return None
    return _balanced(points[last[:-1]], found[last], feature, missing=missing, below=attribute.low - 1.0)


def _steps(attribute: Attribute, asked: Sums, edges: Floats) -> tuple[Floats, Floats]:
    """Points on both sides of every step of a real column, and what is added there."""
    low, high = float(attribute.low), float(attribute.upper)
    inside = edges[(edges >= low) & (edges <= high)]
    near = np.concatenate([inside, np.nextafter(inside, -np.inf), np.nextafter(inside, np.inf)])
    points = np.unique(np.clip(np.concatenate([np.linspace(low, high, _POINTS), near]), low, high))
    while True:
        found = asked(points)
        step = np.flatnonzero(found[1:] != found[:-1])
        if len(step) > _MAX_STEPS:
            raise NotColumnwise(attribute.name)
        wide = step[np.nextafter(points[step], np.inf) < points[step + 1]]
        if not len(wide):
            return points, found
        left, right, at_left = points[wide], points[wide + 1], found[wide]
        for _ in range(70):  # halves the distance each time, down to neighbours
            middle = left + (right - left) / 2
            same = asked(middle) == at_left
            left, right = np.where(same, middle, left), np.where(same, right, middle)
            if (np.nextafter(left, np.inf) >= right).all():
                break
        points = np.unique(np.concatenate([points, left, right]))


def _balanced(cuts: Floats, added: Floats, feature: int, *, missing: float | None, below: float) -> Tree:
    """A tree that sends every value to its step by halves; a missing one has a leaf of its own."""
    nodes: list[list[float]] = []  # feature, threshold, left, right, value

    def grow(first: int, last: int) -> int:
        place = len(nodes)
        if first == last:
            nodes.append([-1, 0.0, 0, 0, float(added[first])])
            return place
        middle = (first + last) // 2
        nodes.append([feature, float(cuts[middle]), 0, 0, 0.0])
        nodes[place][2] = grow(first, middle)
        nodes[place][3] = grow(middle + 1, last)
        return place

    if missing is not None:
        nodes += [[feature, below, 1, 2, 0.0], [-1, 0.0, 0, 0, missing]]
    grow(0, len(added) - 1)
    table = np.array(nodes)
    return Tree(
        feature=table[:, 0].astype(np.int64),
        threshold=table[:, 1],
        left=table[:, 2].astype(np.int64),
        right=table[:, 3].astype(np.int64),
        missing=np.full(len(table), NAN, np.int8),
        missing_left=np.arange(len(table)) == 0,
        values=table[:, 4:5],
    )
