"""How deep people get in an isolation forest: the kernel, and the trees as it takes them."""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fairbits.engine.kernels.compiler import compiled
from fairbits.engine.threads import spread, writeable

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

    def run(start: int, stop: int) -> None:
        walk_chunk(trees, writeable(features[start:stop]), depths[start:stop])

    steps = max(trees.steps, 1)  # one row, or equal ones, make trees of a single leaf
    spread(run, len(features), _STEP * steps * len(trees.roots), threads)
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
