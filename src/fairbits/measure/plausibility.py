"""How ordinary a person is among the people of a table: a percentile, learned without labels.

An isolation forest (Liu, Ting and Zhou 2008; scikit-learn's) cuts the table at random until people stand alone: whoever
is cut off early is unusual. It was chosen over the distance to the nearest row, which the store keeps anyway
(``changed``, ``l1``), for three reasons: it needs no exchange rate between years of age and categories of work, its
cost does not grow with the table, and it learns which values are common instead of treating all of them alike.
Categories have no order to cut along, so they are ranked by how common they are.

What it says: a score of 5 means that 5 % of the real rows are as unusual as this person or more. What it does not say:
that a person can exist. It sees rare values best and rare combinations of common values less well; rules are for those.
Protected attributes are left out: a case is a person whatever the twin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Schema
from fairbits.engine import IsolationTrees, isolation_depths

#: Percentiles hardly move beyond this many, and each costs every case about 1 %.
TREES = 60
#: Rows that each tree is grown from, as in the paper: more would hide the unusual behind each other.
ROWS_PER_TREE = 256


class Plausibility:
    """Learns from the rows of a table what people are like. The same table always gives the same percentiles."""

    def __init__(self, schema: Schema, rows: Codes):
        self._columns = np.array(schema.free_columns, dtype=np.int64)
        attributes = [schema.attributes[i] for i in schema.free_columns]
        self._ranks = {
            place: _by_frequency(rows[:, column], int(attribute.upper) + 1)
            for place, (column, attribute) in enumerate(zip(self._columns, attributes, strict=True))
            if attribute.kind == "category"
        }
        self._forest = _grown(self._features(rows))
        self._known = np.sort(self._depths(rows, threads=None))

    def percentiles(self, codes: Codes, *, threads: int | None = None) -> npt.NDArray[np.float32]:
        """Percentile of each person among the rows of the table, by how ordinary they are."""
        if len(codes) == 0:
            return np.empty(0, np.float32)
        position = np.searchsorted(self._known, self._depths(codes, threads=threads), side="right")
        return (100.0 * position / len(self._known)).astype(np.float32)

    def _features(self, codes: Codes) -> Codes:
        features = np.ascontiguousarray(codes[:, self._columns])
        for place, ranks in self._ranks.items():
            features[:, place] = ranks[np.rint(features[:, place]).astype(np.int64)]
        return features

    def _depths(self, codes: Codes, *, threads: int | None) -> npt.NDArray[np.float32]:
        return isolation_depths(self._forest, self._features(codes), threads=threads)


def _by_frequency(codes: Codes, values: int) -> Codes:
    """The rank of every code, 0 for the most common."""
    counts = np.bincount(np.rint(codes).astype(np.int64), minlength=values)
    ranks = np.empty(len(counts))
    ranks[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return ranks


def _grown(features: Codes) -> IsolationTrees:
    from sklearn.ensemble import IsolationForest

    sample = min(ROWS_PER_TREE, len(features))
    fitted = IsolationForest(n_estimators=TREES, max_samples=sample, random_state=0, n_jobs=1).fit(features)
    parts = [_tree(tree.tree_) for tree in fitted.estimators_]
    starts = np.cumsum([0, *(len(part[0]) for part in parts[:-1])])
    return IsolationTrees(
        np.concatenate([part[0] for part in parts]).astype(np.uint32),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] + start for part, start in zip(parts, starts, strict=True)]).astype(np.uint32),
        np.concatenate([part[3] for part in parts]).astype(np.float32),
        starts.astype(np.uint32),
        max(int(tree.tree_.max_depth) for tree in fitted.estimators_),
    )


def _tree(tree: Any) -> tuple[npt.NDArray[Any], Codes, npt.NDArray[Any], Codes]:
    """Feature, threshold, children and depth of every node of a scikit-learn tree."""
    nodes = np.arange(tree.node_count)
    leaf = tree.children_left < 0
    children = np.stack([np.where(leaf, nodes, tree.children_left), np.where(leaf, nodes, tree.children_right)], axis=1)
    depth = np.zeros(tree.node_count)
    for node in nodes[~leaf]:  # parents come before their children
        depth[children[node]] = depth[node] + 1
    rest = np.where(leaf, _expected_depth(tree.n_node_samples), 0.0)
    return np.where(leaf, 0, tree.feature), tree.threshold, children, depth + rest


def _expected_depth(rows: npt.NDArray[Any]) -> Codes:
    """The mean depth of a random tree over so many rows (Liu, Ting and Zhou 2008, equation 1)."""
    n = np.maximum(rows.astype(np.float64), 2.0)
    average = 2.0 * (np.log(n - 1.0) + np.euler_gamma) - 2.0 * (n - 1.0) / n
    return np.where(rows > 2, average, np.where(rows == 2, 1.0, 0.0))
