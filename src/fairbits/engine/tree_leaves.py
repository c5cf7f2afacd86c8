"""The leaf of every row in every tree, and the leaf that a row would reach if one split were decided otherwise.

The kernels of `trees` give sums only. Debugging has to know who goes where: here rows of features, as the model takes
them, are walked one by one. Isolation forests, whose depths are asked for, are walked by blocks of people.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from fairbits.engine.kernels.compiler import compiled, linked
from fairbits.engine.threads import spread, writeable
from fairbits.models import NAN, ZERO, ZERO_WIDTH, Ensemble

Doubles = NDArray[np.float64]

#: How a split can be decided: always to the left, always to the right, or just the other way.
LEFT, RIGHT, OTHER_WAY = 1, 2, 3

#: About as long as so many multiply-adds of the engine.
_WORK = 1_000


class Walks(NamedTuple):
    """The nodes of an ensemble, as the kernel takes them; sets of categories lie one after the other."""

    feature: NDArray[np.int32]
    threshold: Doubles
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing: NDArray[np.int8]
    missing_left: NDArray[np.bool_]
    sets: NDArray[np.int32]
    starts: NDArray[np.int64]  # where the categories of a set begin; the next one's beginning is its end
    members: NDArray[np.bool_]
    known_starts: NDArray[np.int64]
    known: NDArray[np.bool_]
    counts_strange: NDArray[np.bool_]  # by set: a category that it does not know counts as missing


def walks_of(ensemble: Ensemble) -> Walks:
    """An ensemble, ready to be walked."""
    nothing = np.empty(0, np.bool_)
    known = [nothing if one is None else one for one in ensemble.known]
    return Walks(
        np.array(ensemble.feature, np.int32),
        np.array(ensemble.threshold, np.float64),
        np.array(ensemble.left, np.int32),
        np.array(ensemble.right, np.int32),
        np.array(ensemble.missing, np.int8),
        np.array(ensemble.missing_left, np.bool_),
        np.array(ensemble.sets, np.int32),
        np.cumsum([0, *(len(one) for one in ensemble.members)]),
        np.concatenate([nothing, *ensemble.members]),
        np.cumsum([0, *(len(one) for one in known)]),
        np.concatenate([nothing, *known]),
        np.array([one is not None for one in ensemble.known], np.bool_),
    )


def leaves_of(ensemble: Ensemble, walks: Walks, rows: Doubles, *, threads: int | None = None) -> NDArray[np.int32]:
    """The leaf that every row reaches in every tree."""
    found = np.empty((len(rows), ensemble.trees), np.int32)
    roots = np.array(ensemble.roots, np.int64)
    spread(
        lambda start, stop: _walk_all(walks, roots, rows[start:stop], found[start:stop]),
        len(rows),
        _WORK * max(1, ensemble.trees),
        threads,
    )
    return found


def held_sums(
    ensemble: Ensemble,
    walks: Walks,
    rows: Doubles,
    leaves: NDArray[np.int32],
    sums: Doubles,
    *,
    trees: Sequence[int],
    held: NDArray[np.bool_],
    way: int,
    threads: int | None = None,
) -> Doubles:
    """What all trees add up to, with some splits decided otherwise."""
    changed = np.array(sums, np.float64, order="C")
    chosen = np.array(trees, np.int64)
    roots, outputs = np.array(ensemble.roots, np.int64), np.array(ensemble.output, np.int64)
    values = np.require(ensemble.values, np.float64, ["C", "W"])  # one array type: one compilation
    under = np.zeros(len(held), np.bool_)
    for tree in trees:
        nodes = ensemble.nodes(tree)
        _mark(walks, nodes.start, nodes.stop, held, under)

    def run(start: int, stop: int) -> None:
        mine = slice(start, stop)
        _add_held(walks, chosen, roots, outputs, held, under, way, rows[mine], leaves[mine], values, changed[mine])

    spread(run, len(rows), _WORK * max(1, len(trees)), threads)
    return changed


@linked
def _goes_left(walks: Any, node: int, value: float) -> bool:
    """The way of one value at one split: `Ensemble.goes_left`, compiled."""
    chosen, rule = walks.sets[node], walks.missing[node]
    gone = np.isnan(value)
    if chosen >= 0:
        if gone:
            return bool(walks.missing_left[node])
        code = np.int64(value) if abs(value) < 2147483648.0 else np.int64(-1)
        first, last = walks.starts[chosen], walks.starts[chosen + 1]
        inside = 0 <= code < last - first and walks.members[first + code]
        if inside or not walks.counts_strange[chosen]:
            return bool(inside)
        begin, end = walks.known_starts[chosen], walks.known_starts[chosen + 1]
        seen = 0 <= code < end - begin and walks.known[begin + code]
        return False if seen else bool(walks.missing_left[node])
    if gone and rule == NAN:
        return bool(walks.missing_left[node])
    read = 0.0 if gone else value
    if rule == ZERO and abs(read) <= ZERO_WIDTH:
        return bool(walks.missing_left[node])
    return bool(read <= walks.threshold[node])


@compiled
def _walk_all(walks: Any, roots: Any, rows: Any, found: Any) -> None:
    for t in range(len(roots)):  # the top of a tree stays in the cache
        for i in range(len(rows)):
            at = roots[t]
            while walks.feature[at] >= 0:
                left = _goes_left(walks, at, rows[i, walks.feature[at]])
                at = np.int64(walks.left[at] if left else walks.right[at])
            found[i, t] = at


@compiled
def _mark(walks: Any, first: int, last: int, held: Any, under: Any) -> None:
    """Mark the nodes of a tree that lie below a held one; children stand after their parents."""
    for node in range(first, last):
        if walks.feature[node] >= 0 and (held[node] or under[node]):
            under[walks.left[node]] = True
            under[walks.right[node]] = True


@compiled
def _add_held(
    walks: Any, trees: Any, roots: Any, outputs: Any, held: Any, under: Any, way: int, rows: Any, leaves: Any,
    values: Any, sums: Any,
) -> None:  # fmt: skip
    width = values.shape[1]
    for i in range(len(rows)):
        for place in range(len(trees)):
            tree = trees[place]
            before = leaves[i, tree]
            if not under[before]:  # this row never comes to a split that is held
                continue
            at = roots[tree]
            while walks.feature[at] >= 0:
                left = _goes_left(walks, at, rows[i, walks.feature[at]])
                if held[at]:
                    left = way == LEFT or (way == OTHER_WAY and not left)
                at = np.int64(walks.left[at] if left else walks.right[at])
            if at != before:
                for w in range(width):
                    sums[i, outputs[tree] + w] += values[at, w] - values[before, w]


#: People who go through a tree together: their features stay in the first cache.
_BLOCK = 128
#: About how many of the engine's multiply-adds a step down a tree is worth.
_STEP = 200


class IsolationTrees(NamedTuple):
    """All trees in one set of arrays. A leaf's children are the leaf itself, so that every walk has the same length."""

    feature: npt.NDArray[np.uint32]
    threshold: npt.NDArray[np.float64]
    children: npt.NDArray[np.uint32]
    depth: npt.NDArray[np.float32]
    roots: npt.NDArray[np.uint32]
    steps: int


def isolation_depths(
    trees: IsolationTrees, features: npt.NDArray[np.float64], *, threads: int | None = None
) -> npt.NDArray[np.float32]:
    """Mean depth that each person reaches."""
    depths = np.empty(len(features), np.float32)
    steps = max(trees.steps, 1)  # one row, or equal ones, make trees of a single leaf
    spread(
        lambda start, stop: walk_chunk(trees, writeable(features[start:stop]), depths[start:stop]),
        len(features),
        _STEP * steps * len(trees.roots),
        threads,
    )
    return depths


@compiled
def walk_chunk(forest, features, depths):
    """Mean depth that each person reaches, a block of people through one tree after the other.

    Positions are unsigned, so that Numba does not test each of them for being negative.
    """
    width = np.uint32(features.shape[1])
    flat, children = features.ravel(), forest.children.ravel()
    at = np.empty(_BLOCK, np.uint32)
    for first in range(0, len(features), _BLOCK):
        people = min(_BLOCK, len(features) - first)
        depths[first : first + people] = 0
        for root in forest.roots:
            at[:] = root
            for _ in range(forest.steps):
                for person in range(people):
                    node = at[np.uint32(person)]
                    place = np.uint32(first + person) * width + forest.feature[node]
                    above = flat[place] > forest.threshold[node]
                    at[np.uint32(person)] = children[np.uint32(2) * node + np.uint32(above)]
            for person in range(people):
                depths[first + person] += forest.depth[at[np.uint32(person)]]
        for person in range(people):
            depths[first + person] /= np.float32(len(forest.roots))
