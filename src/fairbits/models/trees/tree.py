"""One decision tree as plain arrays, and whether those arrays are a tree at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.errors import ModelError

Floats = npt.NDArray[np.float64]
#: Nodes of one ensemble, and of one tree: beyond these a file is refused before it fills the memory.
MAX_NODES, MAX_TREE_NODES = 50_000_000, 5_000_000
#: Levels of one tree.
MAX_DEPTH = 10_000


class Damaged(ModelError):
    """An ensemble whose nodes do not make trees."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """One tree while it is read: arrays by node, the root first."""

    feature: npt.NDArray[np.int64]
    threshold: Floats
    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    missing: npt.NDArray[np.int8]
    missing_left: npt.NDArray[np.bool_]
    values: Floats
    output: int = 0
    categories: dict[int, npt.NDArray[np.int64]] | None = None
    known: dict[int, npt.NDArray[np.int64]] | None = None


def check_tree(tree: Tree, number: int, features: int, outputs: int) -> None:
    """Refuse arrays that are no tree: children outside, shared or in a circle, features that do not exist."""
    n = len(tree.feature)
    name = f"tree {number + 1}"
    if n == 0:
        raise Damaged(f"{name} has no nodes.")
    if n > MAX_TREE_NODES:
        raise Damaged(f"{name} has {n:,} nodes, more than the {MAX_TREE_NODES:,} that are read.")
    if any(len(array) != n for array in (tree.threshold, tree.left, tree.right, tree.missing, tree.values)):
        raise Damaged(f"{name} has arrays of different lengths.")
    inner = tree.feature >= 0
    if (tree.feature >= features).any():
        raise Damaged(f"{name} splits on feature {int(tree.feature.max())}, but there are {features}.")
    if not 0 <= tree.output <= outputs - tree.values.shape[1]:
        raise Damaged(f"{name} adds to output {tree.output}, but there are {outputs}.")
    children = np.concatenate([tree.left[inner], tree.right[inner]])
    if len(children) and not (children.min() > 0 and children.max() < n):
        raise Damaged(f"{name} has a child outside of its {n:,} nodes.")
    if len(np.unique(children)) != len(children):
        raise Damaged(f"{name} has a node with two parents, so that it is no tree.")
    if not np.isfinite(tree.values[~inner]).all():
        raise Damaged(f"{name} has a leaf whose value is not finite.")
    if np.isnan(tree.threshold[inner]).any():
        raise Damaged(f"{name} has a split whose threshold is no number.")


def from_root(tree: Tree, number: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The nodes that can be reached, level by level, the two children of a split side by side; and where each one's
    children stand in that order. What a library has pruned but kept in its arrays is left out.
    """
    order, children = [np.zeros(1, dtype=np.int64)], []
    total = 1
    while len(order[-1]):
        if len(order) > MAX_DEPTH:
            raise Damaged(f"tree {number + 1} is deeper than the {MAX_DEPTH:,} levels that are read.")
        level = order[-1]
        split = tree.feature[level] >= 0
        begin = np.zeros(len(level), dtype=np.int64)
        begin[split] = total + 2 * np.arange(int(split.sum()))
        children.append(begin)
        below = np.stack([tree.left[level[split]], tree.right[level[split]]], axis=1).ravel()
        order.append(below)
        total += len(below)
    return np.concatenate(order), np.concatenate(children)


def whole_number(facts: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """A count that a file of trees states, as a number or as text."""
    stated = str(facts.get(key, "" if default is None else default))
    try:
        found = int(stated)
    except ValueError:
        raise Damaged(f"its {key} is {stated[:40]!r}, which is no whole number.") from None
    if not 0 <= found <= 10_000_000:
        raise Damaged(f"its {key} is {found:,}, which is out of bounds.")
    return found
