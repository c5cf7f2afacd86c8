"""Synthetic people in the place of data that may not ship: small decision trees in a chain, and a sampler.

How a model is made (``fit``): the attributes are taken in a fixed order. For each one a decision tree
predicts it from those before it. A tree has at most 48 leaves, and a leaf stands for 100 people or more. What is kept
of a leaf is how many of its people have each value, rounded up or down at random to a multiple of ten (four people
become ten with a chance of 0.4, else none: right on average, as statistical offices do it). The label is a logistic
regression on the values, with one coefficient, of two decimals, for each value that 100 people or more have. No row of
the original is kept, no count finer than ten people, no leaf or coefficient of fewer than a hundred.

How people are made (``sample``): one attribute after the other is drawn from the leaf that the values so far lead to,
then the label. So the pairs and triples that a tree looked at are like the original's; finer patterns are lost, and a
value that a handful of people have may be missing. A common profile (a healthy child, say) comes out as it is in the
original too, because many people share it. These are not real people, and no finding about them is a finding about
the survey's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.domain import Attribute, Integers, Schema, Table
from fairbits.errors import FairbitsError

SMALLEST_LEAF = 100
CELL = 10
LEAVES = 48
#: Drawn first, because most of the rest follows from them; then the schema's own order.
FIRST = ("age", "sex", "race", "region", "income", "insurance", "marital_status", "perceived_health")


@dataclass(frozen=True, slots=True, eq=False)
class StandInTree:
    """A decision tree as arrays, one entry per node; leaf ``i`` draws value ``v`` with weight ``weights[i, v]``."""

    column: int
    low: int
    feature: Integers
    threshold: npt.NDArray[np.float64]
    left: Integers
    right: Integers
    weights: Integers

    def leaves(self, rows: Integers) -> Integers:
        """The leaf that each row ends in; all rows go down the tree together."""
        node = np.zeros(len(rows), dtype=np.int64)
        people = np.arange(len(rows))
        while (self.left[node] >= 0).any():
            go_left = rows[people, self.feature[node]] <= self.threshold[node]
            below = np.where(go_left, self.left[node], self.right[node])
            node = np.where(self.left[node] >= 0, below, node)
        # The entry "right" of a leaf is its row in the weights.
        return self.right[node]

    def draw(self, rows: Integers, generator: np.random.Generator) -> Integers:
        """Draw a value of the tree's attribute for each row."""
        steps = np.cumsum(self.weights, axis=1)[self.leaves(rows)]
        drawn = generator.random(len(rows)) * steps[:, -1]
        return self.low + (steps <= drawn[:, None]).sum(axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class LabelRule:
    """The log-odds of class 1: ``base`` plus one term for the value of each attribute."""

    base: float
    terms: tuple[npt.NDArray[np.float64], ...]

    def draw(self, rows: Integers, lows: Integers, generator: np.random.Generator) -> Integers:
        """Draw a class for each row."""
        odds = self.base + sum(term[rows[:, i] - lows[i]] for i, term in enumerate(self.terms))
        return np.asarray(generator.random(len(rows)) < 1 / (1 + np.exp(-odds)), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class StandIn:
    """A tree for each attribute, in the order in which they are drawn, and the rule for the label."""

    trees: tuple[StandInTree, ...]
    label: LabelRule


def sample(model: StandIn, schema: Schema, rows: int, *, seed: int) -> Table:
    """Draw synthetic people; the same seed gives the same people."""
    generator = np.random.default_rng(seed)
    codes = np.zeros((rows, len(schema)), dtype=np.int64)
    for tree in model.trees:
        codes[:, tree.column] = tree.draw(codes, generator)
    lows = np.array([attribute.low for attribute in schema.attributes], dtype=np.int64)
    labels = model.label.draw(codes, lows, generator)
    return Table(codes.astype(np.float64), labels.astype(np.float64))


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
    rows: Integers, column: int, before: list[int], attribute: Attribute, generator: np.random.Generator
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


def _leaf_only() -> tuple[Integers, npt.NDArray[np.float64], Integers, Integers]:
    return np.zeros(1, np.int64), np.zeros(1), np.full(1, -1, np.int64), np.zeros(1, np.int64)


def _weights(counts: Integers, generator: np.random.Generator) -> Integers:
    """How many tens of people have each value, rounded at random so that the mean stays right."""
    if (counts.sum(axis=1) < SMALLEST_LEAF).any():
        raise FairbitsError(f"a leaf stands for {counts.sum(axis=1).min()} people; {SMALLEST_LEAF} is the least.")
    tens, rest = np.divmod(counts, CELL)
    return np.asarray(tens + (generator.random(counts.shape) * CELL < rest), dtype=np.int64)
