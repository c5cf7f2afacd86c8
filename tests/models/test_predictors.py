"""What boosters and other predictors say, read as what they mean; and the backend that Keras gets."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from fairbits.domain import Attribute, Schema
from fairbits.errors import ModelError
from fairbits.models import ModelOptions, load_with_encoding, read_model
from fairbits.models.keras import _choose_backend

from ..conftest import random_people
from .zoo import SCHEMA, THREE

pytest.importorskip("pandas", reason="pandas is not installed")


class Says:
    """A predictor that answers everybody alike, by `predict` alone."""

    def __init__(self, *answer: object):
        self.answer = answer

    def predict(self, rows) -> np.ndarray:
        return np.array([self.answer[0] if len(self.answer) == 1 else self.answer] * len(rows))


def scores(answer: tuple[object, ...], schema=SCHEMA) -> list[float]:
    model, encoding = load_with_encoding(Says(*answer), schema)
    people = random_people(np.random.default_rng(0), SCHEMA, 2)
    return [round(float(score), 3) for score in model.scores(encoding.encode(people))]


def test_predict_without_probabilities() -> None:
    assert scores(("yes",)) == [1, 1]
    assert scores(("no",)) == [0, 0]
    assert scores((0.7,)) == [0.7, 0.7]  # what LightGBM's Booster says: the probability of the second class
    assert scores((0.2, 0.3, 0.5), THREE) == [0.5, 0.5]
    assert scores(("mid",), THREE) == [0, 0]
    with pytest.raises(ModelError, match="predicts 'maybe', which is not a class of the target"):
        scores(("maybe",))
    with pytest.raises(ModelError, match=r"predicts '0\.4', which is not a class"):
        scores((0.4,), THREE)


def test_a_predictor_that_asks_for_columns_by_name_gets_a_table() -> None:
    class ByName:
        def predict_proba(self, rows) -> np.ndarray:
            share = np.asarray(rows[SCHEMA.attributes[0].name]).astype(str) == "never"
            return np.column_stack([np.full(len(rows), 0.25), np.full(len(rows), 0.75)]) + share[:, None]

    model, encoding = load_with_encoding(ByName(), SCHEMA)
    people = random_people(np.random.default_rng(0), SCHEMA, 2)
    assert sorted({*model.scores(encoding.encode(people)).tolist()}) in ([0.25], [0.75])

    class Neither:
        def predict_proba(self, rows) -> np.ndarray:
            raise ValueError("not these")

    with pytest.raises(
        ModelError, match="takes neither labels nor codes, as an array or as a frame: ValueError: not these"
    ):
        load_with_encoding(Neither(), SCHEMA)


def test_a_frame_of_codes_must_be_declared() -> None:
    """Only whoever numbered the labels knows whether the schema numbers them alike."""

    class OnCodes(Says):
        feature_names_in_ = np.array(SCHEMA.names)

        def predict(self, rows) -> np.ndarray:
            assert list(rows.columns) == list(SCHEMA.names)  # it was fitted on a frame
            return np.asarray(rows, dtype=float)[:, 3]

    with pytest.raises(ModelError, match=r'does not take the table.s values .*say input_format = "codes" under'):
        load_with_encoding(OnCodes(), SCHEMA)
    model, encoding = load_with_encoding(OnCodes(), SCHEMA, input_format="codes")
    people = random_people(np.random.default_rng(0), SCHEMA, 9)
    np.testing.assert_array_equal(model.scores(encoding.encode(people)), people[:, 3])


@pytest.mark.skipif(
    find_spec("torch") is None or find_spec("tensorflow") is not None, reason="needs PyTorch without TensorFlow"
)
@pytest.mark.parametrize("told", [None, "jax"])
def test_keras_gets_a_backend_that_is_there(told, tmp_path, monkeypatch) -> None:
    """Keras takes TensorFlow, and writes so into its file, where nobody tells it otherwise."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.setenv("KERAS_BACKEND", "restored afterwards")
    monkeypatch.delenv("KERAS_BACKEND")
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    if told is not None:
        monkeypatch.setenv("KERAS_BACKEND", told)
    _choose_backend()
    assert os.environ.get("KERAS_BACKEND") == (told or "torch")


def test_a_class_around_a_pipeline_gets_the_frame_that_it_wants() -> None:
    """It has no names of its own, so arrays are tried first; a frame is what its pipeline knows."""

    class Shipped:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, rows) -> np.ndarray:
            chance = rows["sex"].map({"Female": 0.25, "Male": 0.75}).to_numpy(float)  # an array has no such column
            return np.column_stack([1 - chance, chance])

    people = random_people(np.random.default_rng(0), SCHEMA, 20)
    model, encoding = load_with_encoding(Shipped(), SCHEMA)
    sex = people[:, SCHEMA.names.index("sex")]
    labels = SCHEMA.attributes[SCHEMA.names.index("sex")].labels
    expected = [0.75 if labels[int(code)] == "Male" else 0.25 for code in sex]
    np.testing.assert_allclose(model.scores(encoding.encode(people)), expected)


def test_decisions_without_probabilities_say_so() -> None:
    from sklearn.svm import LinearSVC

    from fairbits.models import ModelOptions, read_model

    people = random_people(np.random.default_rng(0), SCHEMA, 60)
    model = LinearSVC().fit(people, np.where(people[:, 2] > 1, "yes", "no"))
    loaded = read_model(model, SCHEMA, ModelOptions())
    assert any("gives decisions and no probabilities" in note for note in loaded.notes)


@pytest.mark.parametrize("named", [False, True])
def test_a_missing_number_is_missing_for_models_of_codes_too(named) -> None:
    """The code of a gap is fairbits' own affair: a model that was trained on codes never saw it."""
    seen = []

    class Trained:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, rows):
            table = np.asarray(rows)
            if table.dtype == object:
                raise ValueError("text")
            seen.append(table)
            return np.full((len(table), 2), 0.5)

    predictor = Trained()
    if named:
        predictor.feature_names_in_ = np.array(["pay", "job"])
    attributes = (
        Attribute(name="pay", kind="integer", low=0, high=3, missing="model"),
        Attribute(name="job", kind="category", labels=("Sales", "Tech"), protected=True),
    )
    schema = Schema(attributes, target="ok", classes=("no", "yes"))
    options = ModelOptions(input_format="codes") if named else ModelOptions()
    loaded = read_model(predictor, schema, options)
    loaded.model.scores(loaded.encoding.encode(np.array([[attributes[0].gap, 1.0], [2.0, 0.0]])))
    assert np.array_equal(np.asarray(seen[-1], np.float64), [[np.nan, 1.0], [2.0, 0.0]], equal_nan=True)


def test_spellings_of_earlier_releases_are_understood():
    options = ModelOptions.of({"eats": "codes", "output": "logits"})
    assert (options.input_format, options.output) == ("codes", "logit")
