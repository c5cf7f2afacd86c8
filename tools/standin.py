"""Fits the models of synthetic people that ship: see `fairbits.data.standin` for what is kept of the original."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.data.coding.raw import Ints
from fairbits.data.standin import LabelRule, StandIn, StandInTree
from fairbits.domain import Attribute, Schema, Table
from fairbits.errors import FairbitsError

SMALLEST_LEAF = 100
CELL = 10
LEAVES = 48
#: Drawn first, because most of the rest follows from them; then the schema's own order.
FIRST = ("age", "sex", "race", "region", "income", "insurance", "marital_status", "perceived_health")


def fit(coded: Table, schema: Schema) -> StandIn:
    """Fit trees and the rule for the label to a coded table; the same table gives the same model."""
    first = [schema.column(name) for name in FIRST if name in schema.names]
    order = [*first, *(i for i in range(len(schema)) if i not in first)]
    generator = np.random.default_rng(0)
    trees = tuple(
        _fit_tree(coded.codes.astype(np.int64), column, order[:place], schema.attributes[column], generator)
        for place, column in enumerate(order)
    )
    return StandIn(trees, _fit_label(coded, schema))


def _fit_label(coded: Table, schema: Schema) -> LabelRule:
    from sklearn.linear_model import LogisticRegression

    shown = []
    for i, attribute in enumerate(schema.attributes):
        seen = coded.codes[:, i][:, None] == attribute.values()
        shown.append(np.where(seen.sum(axis=0) >= SMALLEST_LEAF, seen, False))
    learner = LogisticRegression(C=1.0, max_iter=2000).fit(np.hstack(shown), np.asarray(coded.labels, dtype=np.int64))
    ends = np.cumsum([columns.shape[1] for columns in shown])[:-1]
    terms = np.split(np.round(learner.coef_[0], 2), ends)
    return LabelRule(round(float(learner.intercept_[0]), 2), tuple(terms))


def _fit_tree(
    rows: Ints, column: int, before: list[int], attribute: Attribute, generator: np.random.Generator
) -> StandInTree:
    low = int(attribute.low)
    size = int(attribute.upper) - low + 1
    values = rows[:, column] - low
    if not before:
        counts = np.bincount(values, minlength=size)[None]
        return StandInTree(column, low, *_leaf_only(), _weights(counts, generator))
    from sklearn.tree import DecisionTreeClassifier

    # Seeded because scikit-learn breaks ties between equally good splits at random.
    learner = DecisionTreeClassifier(max_leaf_nodes=LEAVES, min_samples_leaf=SMALLEST_LEAF, random_state=0)
    tree = learner.fit(rows[:, before], values).tree_
    leaf = tree.children_left < 0
    row_of = np.where(leaf, np.cumsum(leaf) - 1, -1)
    counts = np.zeros((int(leaf.sum()), size), dtype=np.int64)
    np.add.at(counts, (row_of[learner.apply(rows[:, before])], values), 1)
    return StandInTree(
        column,
        low,
        np.where(leaf, 0, np.array(before)[np.maximum(tree.feature, 0)]).astype(np.int64),
        np.where(leaf, 0.0, tree.threshold),
        tree.children_left.astype(np.int64),
        np.where(leaf, row_of, tree.children_right).astype(np.int64),
        _weights(counts, generator),
    )


def _leaf_only() -> tuple[Ints, npt.NDArray[np.float64], Ints, Ints]:
    return np.zeros(1, np.int64), np.zeros(1), np.full(1, -1, np.int64), np.zeros(1, np.int64)


def _weights(counts: Ints, generator: np.random.Generator) -> Ints:
    """How many tens of people have each value, rounded at random so that the mean stays right."""
    if (counts.sum(axis=1) < SMALLEST_LEAF).any():
        raise FairbitsError(f"a leaf stands for {counts.sum(axis=1).min()} people; {SMALLEST_LEAF} is the least.")
    tens, rest = np.divmod(counts, CELL)
    return np.asarray(tens + (generator.random(counts.shape) * CELL < rest), dtype=np.int64)


def to_json(model: StandIn) -> str:
    """A stand-in as JSON, one line per tree; thresholds are halves between codes, so they are stored doubled."""
    trees = [
        {
            "column": tree.column,
            "low": tree.low,
            "feature": tree.feature.tolist(),
            "twice_threshold": np.rint(2 * tree.threshold).astype(int).tolist(),
            "left": tree.left.tolist(),
            "right": tree.right.tolist(),
            "weights": _sparse(tree.weights),
        }
        for tree in model.trees
    ]
    lines = ",\n".join(json.dumps(tree, separators=(",", ":")) for tree in trees)
    label = json.dumps({"base": model.label.base, "terms": [term.tolist() for term in model.label.terms]})
    what = "synthetic: tens of people in the leaves of a fitted model, no rows of data"
    return f'{{"what":"{what}",\n"label":{label},\n"trees":[\n{lines}\n]}}\n'


def _sparse(weights: Ints) -> dict[str, Any]:
    """Per leaf: value, weight, value, weight, … of the values that occur."""
    leaves = [np.column_stack([row.nonzero()[0], row[row > 0]]).ravel().tolist() for row in weights]
    return {"size": weights.shape[1], "leaves": leaves}
