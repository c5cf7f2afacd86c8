"""Foreign code can neither write into our arrays nor pass for one of our own types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairbits import Audit, Network, Schema, Table
from fairbits.debug.neurons import accuracy_of
from fairbits.errors import CapabilityError, FairbitsError, ModelError
from fairbits.models import HasClassScores, HasGradients, require
from fairbits.models.black_box import ForeignModel
from tests.repair.conftest import SCHEMA, people, wired

THREE = replace(SCHEMA, classes=("no", "maybe", "yes"), favourable="maybe")


def chances(rows: np.ndarray) -> np.ndarray:
    """Probabilities of three classes in which the most likely one is rarely above a half, and depends on the sex."""
    logits = np.column_stack([0.2 * rows[:, 0] - 0.97, 0.5 * rows[:, 1] - 0.205, 0.02 * rows[:, 2]])
    found = np.exp(logits)
    return found / found.sum(axis=1, keepdims=True)


class Scribbler:
    """Decides as the wired network does, and then writes into whatever it was given."""

    def __init__(self) -> None:
        self.answer = np.empty((0, 2))

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        scores = wired().scores(np.asarray(rows, dtype=np.float32))
        rows[:] = 0
        if len(self.answer) != len(rows):
            self.answer = np.empty((len(rows), 2))
        self.answer[:] = np.column_stack([1 - scores, scores])  # one buffer for all answers
        return self.answer


class Speaking:
    """Our protocol, spoken by somebody else: scores and inputs, and scribbling."""

    inputs = 3

    def scores(self, inputs: np.ndarray) -> np.ndarray:
        found = wired().scores(inputs)
        inputs[:] = 0
        return found


def scribble_codes(rows: np.ndarray) -> np.ndarray:
    found = wired().scores(np.array(rows, dtype=np.float32))
    rows[:] = 0
    return found


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (Scribbler(), {"input_format": "codes"}),
        (Scribbler(), {"input_format": "codes", "batch": 7}),
        (Speaking(), {}),
        (scribble_codes, {"input_format": "codes"}),
    ],
    ids=["predictor", "small batches", "our protocol", "function"],
)
def test_a_model_that_writes_into_its_input_changes_nobody(model: Any, options: dict[str, Any]) -> None:
    truth = Audit(wired(), people(), SCHEMA).measure(threads=1)
    table = people()
    found = Audit(model, table, SCHEMA, **options).measure(threads=1)
    assert found.evaluation.k.tolist() == truth.evaluation.k.tolist()
    assert found.split_rate == truth.split_rate
    np.testing.assert_array_equal(table.codes, people().codes)


def test_a_network_owns_its_arrays() -> None:
    weights, biases = [np.eye(3, dtype=np.float32), np.ones((3, 2), np.float32)], [np.zeros(3), np.zeros(2)]
    network = Network.build(weights, biases)
    direct = replace(network, weights=tuple(weights))
    before = network.scores(np.ones((1, 3)))
    weights[0][:] = 7
    biases[0][:] = 7
    assert network.scores(np.ones((1, 3))) == direct.scores(np.ones((1, 3))) == before
    assert network.with_favourable(0).weights[0] is network.weights[0]  # what nobody can change need not be copied
    for array in (*network.weights, *network.biases, *network.with_favourable(0).weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_an_audit_owns_its_table() -> None:
    mine = people()
    audit = Audit(wired(), mine, SCHEMA)
    before = audit.measure(threads=1).evaluation.k.tolist()
    mine.codes[:] = 0
    assert audit.measure(threads=1).evaluation.k.tolist() == before


class Predictor:
    classes_ = np.array(["no", "maybe", "yes"])

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        return chances(np.asarray(rows, dtype=np.float64))


class Protocol:
    inputs = 3

    def scores(self, inputs: np.ndarray) -> np.ndarray:
        return chances(inputs)[:, 1]

    def class_scores(self, inputs: np.ndarray) -> np.ndarray:
        return chances(inputs)


def test_three_classes_are_decided_by_one_rule_whatever_tells_their_probabilities() -> None:
    labels = chances(people().codes).argmax(axis=1).astype(np.float64)
    table = Table(people().codes, labels)
    models = {
        "function": Audit(chances, table, THREE, input_format="codes"),
        "predictor": Audit(Predictor(), table, THREE, input_format="codes"),
        "protocol": Audit(Protocol(), table, THREE),
        "network": Audit(_softmax(), table, THREE),
    }
    found = {name: audit.measure(threads=1) for name, audit in models.items()}
    twins = found["network"].evaluator.twins.expand(table.codes)
    truth = (chances(twins.reshape(-1, 3)).argmax(axis=1) == 1).reshape(len(table), -1).sum(axis=1)
    assert 0 < truth.mean() < 3
    for name, measured in found.items():
        assert measured.evaluation.favourable.tolist() == truth.tolist(), name
        assert accuracy_of(models[name].subject.model, models[name].subject) == 1.0, name


def _softmax() -> Network:
    weights = np.array([[0.2, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.02]])
    return Network.build([weights], [np.array([-0.97, -0.205, 0.0])], activation=(), head="softmax")


def test_one_score_of_three_classes_says_that_the_threshold_decides() -> None:
    audit = Audit(lambda rows: chances(np.asarray(rows))[:, 1], people(), THREE, input_format="codes", as_is=True)
    assert not isinstance(audit.subject.model, HasClassScores)
    assert any("'maybe' alone, so a decision is favourable from the threshold" in n for n in audit.subject.notes)


def lookalike(**attributes: Any) -> Any:
    return type("Lookalike", (Predictor,), {"classes_": np.array(["no", "yes"]), **attributes})()


def two(self: Any, rows: Any) -> np.ndarray:
    scores = wired().scores(np.asarray(rows, dtype=np.float32))
    return np.column_stack([1 - scores, scores])


def _raises(self: Any) -> Any:
    raise RuntimeError("not yet")


def _wants(self: Any, more: Any) -> Any:
    return more


LOOKALIKES: dict[str, dict[str, Any]] = {
    "classes": {"classes": ["no", "yes"]},
    "with_favourable": {"with_favourable": True},
    "favourable": {"favourable": "yes", "classes": 5},
    "inputs and scores": {"inputs": ["a", "b", "c"], "scores": [0.3, 0.4]},
    "a width and no method": {"inputs": 3, "scores": {"auc": 0.7}},
    "a property that fails": {"inputs": property(_raises), "classes": property(_raises)},
    "gradients": {"gradients": None, "activations": "relu", "save": 1},
    "steps": {"steps": 5},
    "steps of text": {"steps": ["fit", "predict"]},
    "best_estimator_": {"best_estimator_": None},
    "a perceptron's settings": {"activation": "relu", "hidden_layer_sizes": (3,), "solver": "adam"},
    "names by a method": {"feature_names_in_": _wants, "feature_name": _wants},
    "names that are a number": {"feature_names_": 3},
    "a width in words": {"n_features_in_": "three"},
    "categories": {"enable_categorical": np.array([True, False]), "pandas_categorical": 3},
    "original": {"original": 1, "repeats": "x", "fresh_scores": 3},
}


@pytest.mark.parametrize("name", LOOKALIKES)
@pytest.mark.parametrize(
    "schema", [SCHEMA, replace(SCHEMA, target=None, classes=(), favourable=None)], ids=["", "bare"]
)
def test_attributes_that_look_like_ours_mean_nothing(name: str, schema: Schema) -> None:
    model = lookalike(predict_proba=two, **LOOKALIKES[name])
    truth = Audit(wired(), people(), SCHEMA).measure(threads=1)
    found = Audit(model, people(), schema, input_format="codes").measure(threads=1)
    assert found.evaluation.k.tolist() == truth.evaluation.k.tolist()


def speaking(**attributes: Any) -> Any:
    return type("Other", (Speaking,), attributes)()


@pytest.mark.parametrize(
    "attributes",
    [
        {"classes": 7, "with_favourable": None, "favourable": "x"},
        {"classes": lambda self: 3, "with_favourable": _wants},
        {"gradients": [1, 2], "class_scores": None, "activations": 0, "with_interventions": "no"},
        {"inputs": np.int64(3)},
    ],
)
def test_a_foreign_speaker_of_our_protocol_has_only_methods_as_capabilities(attributes: dict[str, Any]) -> None:
    audit = Audit(speaking(**attributes), people(), SCHEMA)
    truth = Audit(wired(), people(), SCHEMA).measure(threads=1)
    assert audit.measure(threads=1).evaluation.k.tolist() == truth.evaluation.k.tolist()
    assert isinstance(audit.subject.model, ForeignModel)
    assert not isinstance(audit.subject.model, HasGradients)
    with pytest.raises(CapabilityError, match="which 'Other' does not offer"):
        require(audit.subject.model, HasGradients, "this search")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (object, "is no model"),
        (lambda: speaking(inputs="three"), "is no model"),
        (lambda: speaking(scores=lambda self, inputs, labels: 1), r"failed in scores\(\): TypeError"),
        (lambda: lookalike(predict_proba=lambda self, rows: 1 / 0), "ZeroDivisionError"),
        (lambda: lookalike(predict_proba=3, predict=None), "is no model"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Audit(make(), people(), SCHEMA).measure(threads=1)


def test_a_tensor_is_no_module() -> None:
    torch = pytest.importorskip("torch", reason="the torch extra is not installed")
    with pytest.raises(FairbitsError, match="is no module"):
        Audit(torch.zeros(3), people(), SCHEMA)


def test_a_module_that_works_in_place_and_answers_with_one_buffer() -> None:
    torch = pytest.importorskip("torch", reason="the torch extra is not installed")

    class InPlace(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.held = torch.empty(0, 1)

        def forward(self, rows: Any) -> Any:
            found = torch.sigmoid(rows[:, :1] - 4.8 + 0.3 * rows[:, 1:2])
            with torch.no_grad():
                rows.zero_()
                if len(self.held) < len(found):
                    self.held = torch.empty(len(found), 1)
                self.held[: len(found)] = found
            return self.held[: len(found)]

    truth = Audit(wired(), people(), SCHEMA).measure(threads=1)
    found = Audit(InPlace(), people(), SCHEMA, batch=100).measure(threads=1)
    assert found.evaluation.k.tolist() == truth.evaluation.k.tolist()


COMPANY: dict[str, Callable[[Any], Any]] = {
    "ranks": lambda rows: rows["a"].rank(pct=True),
    "means": lambda rows: (rows["a"] - rows["a"].mean() + 9) / 20,
    "codes of a category": lambda rows: 0.2 + 0.5 * rows["sex"].astype("category").cat.codes,
    "dummies": lambda rows: pd.get_dummies(rows[["sex"]]).iloc[:, -1] * 0.5 + 0.2,
}


@pytest.mark.parametrize("kind", [*COMPANY, "normalised by batch"])
def test_a_model_that_answers_by_the_company_in_a_question_is_refused(kind: str) -> None:
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 90) if kind.startswith("normalised") else rng.choice(["f", "m"], 90)
    people = pd.DataFrame({"sex": sex, "a": rng.integers(0, 9, 90)})
    people["y"] = (people["a"] > 4).astype(int)
    if kind not in COMPANY:
        nn = pytest.importorskip("torch").nn
        layers = (nn.BatchNorm1d(2, track_running_stats=False), nn.Linear(2, 1), nn.Sigmoid())
    model = COMPANY[kind] if kind in COMPANY else nn.Sequential(*layers)
    audit = Audit.from_table(model, people, target="y", protected=["sex"], favourable=1, as_is=True)
    with pytest.raises(FairbitsError, match="depends on who else is asked about at the same time"):
        audit.measure()
