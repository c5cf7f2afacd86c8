"""The order in which people go through large trees together: which nodes somebody's twin comes to, and which twins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.tree_program import Ints
from fairbits.models import Ensemble


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """Nodes of some trees as they are walked: a node, then all of its left side, then all of its right side.

    Splits that only the twin decides, and where all twins go the same way, are left out. ``right`` are places among
    ``nodes`` (0 for a leaf; what is left of a split comes next); ``sets`` numbers the twins that come to a node, and
    ``members`` (sets, m) says who they are.
    """

    nodes: Ints
    roots: Ints
    right: Ints
    sets: Ints
    members: NDArray[np.bool_]
    depth: int

    @classmethod
    def of(cls, ensemble: Ensemble, trees: Sequence[int], choice_of: Ints, choices: NDArray[np.bool_]) -> Walk:
        """The walk through some trees."""
        sets = _TwinSets(choices)
        node = ensemble.roots[list(trees)].astype(np.int64)
        mine = np.zeros(len(node), np.int64)
        levels: list[tuple[Ints, Ints, Ints]] = []  # nodes, their sets, and which of them are splits
        while len(node):
            node, mine, ways = _resolved(ensemble, node, mine, choice_of, sets)
            split = np.flatnonzero(ensemble.feature[node] >= 0)
            levels.append((node, mine, split))
            below = node[split]
            sides = np.repeat(mine[split, None], 2, axis=1)
            forked = ways[split] >= 0
            sides[forked] = sets.children[ways[split][forked]]
            node = np.stack([ensemble.left[below], ensemble.right[below]], axis=1).ravel().astype(np.int64)
            mine = sides.ravel()
        place = _places([len(level[0]) for level in levels], [level[2] for level in levels])
        count = sum(len(level[0]) for level in levels)
        whole = np.zeros((3, count), np.int64)
        for depth, (nodes, twins, split) in enumerate(levels):
            at = place[depth]
            whole[0, at], whole[1, at] = nodes, twins
            if len(split):
                whole[2, at[split]] = place[depth + 1][1::2]
        roots = place[0] if levels else np.empty(0, np.int64)
        return cls(whole[0], roots, whole[2], whole[1], np.array(sets.members), len(levels))

    def twin_steps(self, axes: Ints, kind: str) -> dict[str, Any]:
        """The sets of twins, as the kernel takes them; without axes as they are."""
        steps = self.members.astype(np.float64).reshape(len(self.members), *(axes.tolist() or [-1]))
        for axis in range(1, steps.ndim if len(axes) else 1):
            steps = np.diff(steps, axis=axis, prepend=0.0)
        steps = steps.reshape(len(self.members), -1)
        sets, places = np.nonzero(steps)
        return {
            "axes": axes,
            "set_starts": np.searchsorted(sets, np.arange(len(steps) + 1)).astype(np.int64),
            "set_places": places.astype(np.int64),
            "set_steps": steps[sets, places].astype(kind),
        }


class _TwinSets:
    """Sets of twins by number, and the two parts that a choice makes of each."""

    def __init__(self, choices: NDArray[np.bool_]):
        self.choices = choices
        everybody = np.ones(choices.shape[1], np.bool_)
        self.members = [everybody]
        self._numbers = {everybody.tobytes(): 0}
        self._pairs: dict[int, int] = {}
        self._children: list[tuple[int, int]] = []

    @property
    def children(self) -> Ints:
        """By pair: the numbers of its two parts, -1 for an empty one."""
        return np.array(self._children, np.int64).reshape(-1, 2)

    def pairs(self, sets: Ints, choices: Ints) -> Ints:
        """The number of every pair of a set and a choice."""
        keys, inverse = np.unique(sets * len(self.choices) + choices, return_inverse=True)
        for key in keys.tolist():
            if key not in self._pairs:
                there, left = self.members[key // len(self.choices)], self.choices[key % len(self.choices)]
                self._pairs[key] = len(self._children)
                self._children.append((self._number(there & left), self._number(there & ~left)))
        return np.array([self._pairs[key] for key in keys.tolist()], np.int64)[inverse.ravel()]

    def _number(self, twins: NDArray[np.bool_]) -> int:
        if not twins.any():
            return -1
        key = twins.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self.members)
            self.members.append(twins)
        return self._numbers[key]


def _resolved(ensemble: Ensemble, node: Ints, mine: Ints, choice_of: Ints, sets: _TwinSets) -> tuple[Ints, Ints, Ints]:
    """Nodes further down wherever all twins of a node go the same way; and, by node where they part, the pair."""
    node, ways = node.copy(), np.full(len(node), -1, np.int64)
    open_ = np.flatnonzero(choice_of[node] >= 0)
    while len(open_):
        pairs = sets.pairs(mine[open_], choice_of[node[open_]])
        left, right = sets.children[pairs].T
        parted = (left >= 0) & (right >= 0)
        ways[open_[parted]] = pairs[parted]
        going, here = open_[~parted], node[open_[~parted]]
        node[going] = np.where(left[~parted] >= 0, ensemble.left[here], ensemble.right[here])
        open_ = going[choice_of[node[going]] >= 0]
    return node, mine, ways


def _places(sizes: Sequence[int], splits: Sequence[Ints]) -> list[Ints]:
    """By level, where each node stands in the walk: after its parent and all that is left of it."""
    below = [np.ones(size, np.int64) for size in sizes]
    for depth in range(len(sizes) - 2, -1, -1):
        below[depth][splits[depth]] += below[depth + 1][0::2] + below[depth + 1][1::2]
    found = [np.cumsum(below[0]) - below[0]] if sizes else []
    for depth in range(len(sizes) - 1):
        parents = found[depth][splits[depth]]
        children = np.empty(sizes[depth + 1], np.int64)
        children[0::2] = parents + 1
        children[1::2] = parents + 1 + below[depth + 1][0::2]
        found.append(children)
    return found
