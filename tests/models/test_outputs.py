"""One seam: raw outputs become the favourable score in one place, and rounding never changes a decision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairbits import Audit
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


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("labels", [(0, 1), ("a", "b")])
@pytest.mark.parametrize("kind", ["neighbours", "stack"])
def test_classes_of_an_onnx_graph_are_those_of_the_whole(kind, labels, named, tmp_path):
    """Neighbours keep the labels of all training rows, and parts of a stack number classes: neither means the whole."""
    convert = pytest.importorskip("skl2onnx")
    sklearn = {one: pytest.importorskip(f"sklearn.{one}") for one in ("neighbors", "ensemble", "linear_model")}
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.integers(0, 2, 200), "pay": rng.normal(0, 1, 200)})
    frame["ok"] = np.array(labels)[(frame["pay"] + frame["sex"] < 0.3).astype(int)]
    frame = frame.sort_values("ok", ascending=False)  # the first neighbour's label is the last class
    linear = sklearn["linear_model"].LogisticRegression()
    stack = sklearn["ensemble"].StackingClassifier([("one", linear)], linear, cv=2)
    model = sklearn["neighbors"].KNeighborsClassifier() if kind == "neighbours" else stack
    model.fit(frame[["sex", "pay"]].to_numpy(np.float32), frame["ok"])
    file = tmp_path / "model.onnx"
    options = {id(model): {"zipmap": named}}
    graph = convert.to_onnx(model, np.zeros((1, 2), np.float32), options=options, target_opset=17)
    file.write_bytes(graph.SerializeToString())
    audit = Audit.from_table(str(file), frame, target="ok", protected=["sex"], favourable=labels[0])
    theirs = [model.predict_proba(frame[["sex", "pay"]].assign(sex=s).to_numpy(np.float32))[:, 0] for s in (0, 1)]
    np.testing.assert_allclose(audit.measure().evaluation.high, np.max(theirs, axis=0), atol=1e-5)
