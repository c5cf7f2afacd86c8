"""Synthetic people in the place of data that may not ship: small decision trees in a chain, and a sampler.

How a model is made (``tools/standin.py``): the attributes are taken in a fixed order. For each one a decision tree
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

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.data.coding.raw import Ints
from fairbits.domain import Schema, Table


@dataclass(frozen=True, slots=True, eq=False)
class StandInTree:
    """A decision tree as arrays, one entry per node; leaf ``i`` draws value ``v`` with weight ``weights[i, v]``."""

    column: int
    low: int
    feature: Ints
    threshold: npt.NDArray[np.float64]
    left: Ints
    right: Ints
    weights: Ints

    def leaves(self, rows: Ints) -> Ints:
        """The leaf that each row ends in; all rows go down the tree together."""
        node = np.zeros(len(rows), dtype=np.int64)
        people = np.arange(len(rows))
        while (self.left[node] >= 0).any():
            go_left = rows[people, self.feature[node]] <= self.threshold[node]
            below = np.where(go_left, self.left[node], self.right[node])
            node = np.where(self.left[node] >= 0, below, node)
        # The entry "right" of a leaf is its row in the weights.
        return self.right[node]

    def draw(self, rows: Ints, generator: np.random.Generator) -> Ints:
        """Draw a value of the tree's attribute for each row."""
        steps = np.cumsum(self.weights, axis=1)[self.leaves(rows)]
        drawn = generator.random(len(rows)) * steps[:, -1]
        return self.low + (steps <= drawn[:, None]).sum(axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class LabelRule:
    """The log-odds of class 1: ``base`` plus one term for the value of each attribute."""

    base: float
    terms: tuple[npt.NDArray[np.float64], ...]

    def draw(self, rows: Ints, lows: Ints, generator: np.random.Generator) -> Ints:
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


def from_json(text: str) -> StandIn:
    """A stand-in from the text that ``tools/standin.py`` writes."""
    stored = json.loads(text)
    terms = tuple(np.array(term) for term in stored["label"]["terms"])
    return StandIn(tuple(_tree(tree) for tree in stored["trees"]), LabelRule(stored["label"]["base"], terms))


def _tree(stored: dict[str, Any]) -> StandInTree:
    size = stored["weights"]["size"]
    weights = np.zeros((len(stored["weights"]["leaves"]), size), dtype=np.int64)
    for leaf, pairs in enumerate(stored["weights"]["leaves"]):
        weights[leaf, pairs[0::2]] = pairs[1::2]
    return StandInTree(
        stored["column"],
        stored["low"],
        np.array(stored["feature"], dtype=np.int64),
        np.array(stored["twice_threshold"]) / 2,
        np.array(stored["left"], dtype=np.int64),
        np.array(stored["right"], dtype=np.int64),
        weights,
    )
