"""One seam: raw outputs become the favourable score in one place, and rounding never changes a decision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairbits.models import NAN, Ensemble, ForeignModel, TreeModel, load_with_encoding
from fairbits.models.trees.ensemble import Tree

from ..conftest import random_people
from .zoo import SCHEMA

#: Float64 numbers around one half and 0.6, a float32 step apart at most.
NEAR = np.array([0.5 - 1e-9, 0.5, 0.5 + 1e-9, 0.6 - 1e-9, 0.6, 0.6 + 1e-9])


class Probabilities:
    classes_ = np.array(SCHEMA.classes)

    def predict_proba(self, rows) -> np.ndarray:
        return np.column_stack([1 - NEAR, NEAR])


class Protocol:
    inputs = len(SCHEMA)

    def scores(self, inputs) -> np.ndarray:
        return NEAR


def function(rows) -> np.ndarray:
    return NEAR


@pytest.mark.parametrize("cut", [0.5, 0.6])
@pytest.mark.parametrize("model", [Probabilities(), Protocol(), function], ids=["predictor", "protocol", "function"])
def test_a_score_stays_on_its_side_of_the_threshold(model, cut: float) -> None:
    """A score of exactly the threshold is favourable; one a billionth below is not, though float32 cannot tell."""
    schema = replace(SCHEMA, threshold=cut)
    asked, encoding = load_with_encoding(model, schema)
    scores = asked.scores(encoding.encode(random_people(np.random.default_rng(0), schema, len(NEAR))))
    assert schema.rule.favours(scores).tolist() == (cut <= NEAR).tolist()
    np.testing.assert_allclose(scores, NEAR, atol=1e-7)


def test_the_other_class_is_turned_round_in_float64() -> None:
    other = next(name for name in SCHEMA.classes if name != SCHEMA.favourable)
    for model in (Protocol(), function):
        asked, encoding = load_with_encoding(model, SCHEMA, score_of=other)
        scores = asked.scores(encoding.encode(random_people(np.random.default_rng(0), SCHEMA, len(NEAR))))
        assert SCHEMA.rule.favours(scores).tolist() == (1 - NEAR >= 0.5).tolist()
        assert not isinstance(asked, ForeignModel)  # whose gradients would be those of the other class


def test_trees_decide_as_their_library_does() -> None:
    """A mean over trees may lie a hair below one half, where float32 has no number between."""
    forest = Ensemble.build(
        [stump(0.5), stump(0.5 - 2.0**-40)], features=len(SCHEMA), base=[0.0], divisor=2.0, link="identity"
    )
    model, encoding = load_with_encoding(TreeModel(forest, classes=2), SCHEMA)
    scores = model.scores(encoding.encode(random_people(np.random.default_rng(0), SCHEMA, 3)))
    assert not SCHEMA.rule.favours(scores).any()
    assert SCHEMA.rule.favours(np.float32(0.5 - 2.0**-41))


def stump(value: float) -> Tree:
    leaf = np.array([-1])
    return Tree(leaf, np.zeros(1), leaf * 0, leaf * 0, np.array([NAN], np.int8), np.zeros(1, bool), np.array([[value]]))
