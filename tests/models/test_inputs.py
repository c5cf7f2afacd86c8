"""Modules of PyTorch and Keras with embeddings and several inputs, against the modules themselves on real rows."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairbits
from fairbits.measure import evaluator_of

os.environ.setdefault("KERAS_BACKEND", "torch")
torch = pytest.importorskip("torch", reason="the torch extra is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
nn = torch.nn


#: What is tried here, for the page of everything that was tried.
INPUTS = (
    "PyTorch: one tensor of numbers and codes, with embeddings, batch norm, dropout and a skip connection",
    "PyTorch: a tensor for each attribute, by the names of forward's arguments",
    "PyTorch: a tensor of numbers and one of codes",
    "Keras, functional: several inputs by name, numbers, embeddings and one-hot, as a list and as a dictionary",
)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    n = 60
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "sex": rng.choice(["f", "m"], n),
            "job": rng.choice(list("abcd"), n),
            "income": rng.normal(3, 1, n).round(2),
        }
    )
    frame["hired"] = np.where((frame.sex == "m") ^ (frame.income > 3), "yes", "no")
    return frame


def _codes(people: pd.DataFrame, sex: int) -> tuple[np.ndarray[Any, Any], ...]:
    job = np.searchsorted(list("abcd"), people.job)
    return people.age.to_numpy(), np.full(len(people), sex), job, people.income.to_numpy()


def _audit(model: Any, people: pd.DataFrame, **options: Any) -> fairbits.Audit:
    return fairbits.Audit.from_table(
        model, people, target="hired", protected=["sex"], favourable="yes", score_of="yes", as_is=True, **options
    )


def _holds(model: Any, people: pd.DataFrame, asked: Any, note: str, **options: Any) -> None:
    audit = _audit(model, people, **options)
    found = evaluator_of(audit.subject).scores(audit.subject.table.codes)
    theirs = np.column_stack([asked(*_codes(people, sex)) for sex in (0, 1)])
    assert np.abs(theirs[:, 0] - theirs[:, 1]).max() > 2e-5
    np.testing.assert_allclose(found, theirs, atol=2e-6)
    assert any(note in text for text in audit.subject.notes), audit.subject.notes


class OneTensor(nn.Module):
    """Codes of categories in the same tensor as numbers, taken apart inside; batch norm, dropout, a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.sex, self.job = nn.Embedding(2, 2), nn.Embedding(4, 3)
        self.norm, self.first, self.second = nn.BatchNorm1d(2), nn.Linear(7, 7), nn.Linear(7, 1)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        whole = x[:, 1:3].long()
        numbers = self.norm(x[:, [0, 3]])
        seen = torch.cat([numbers, self.sex(whole[:, 0]), self.job(whole[:, 1])], dim=1)
        return torch.sigmoid(self.second(self.drop(seen + torch.relu(self.first(seen)))))


class ByName(OneTensor):
    def forward(self, income: Any, sex: Any, age: Any, job: Any) -> Any:  # type: ignore[override]
        return super().forward(torch.stack([age.float(), sex.float(), job.float(), income.float()], dim=1))


class ByKind(OneTensor):
    def forward(self, x_num: Any, x_cat: Any) -> Any:  # type: ignore[override]
        numbers = self.norm(x_num)
        seen = torch.cat([numbers, self.sex(x_cat[:, 0]), self.job(x_cat[:, 1])], dim=1)
        return torch.sigmoid(self.second(self.drop(seen + torch.relu(self.first(seen)))))


def _answer(module: Any, *tensors: Any) -> np.ndarray[Any, Any]:
    with torch.no_grad():
        return np.asarray(module(*tensors).numpy().ravel())


def test_an_embedding_is_tried_on_codes(people: pd.DataFrame) -> None:
    torch.manual_seed(0)
    module = OneTensor().eval()
    _holds(
        module,
        people,
        lambda *codes: _answer(module, torch.tensor(np.column_stack(codes), dtype=torch.float32)),
        "runs in PyTorch and is not read as a network",
    )


def test_inputs_are_found_by_their_names(people: pd.DataFrame) -> None:
    torch.manual_seed(1)
    module = ByName().eval()

    def asked(age: Any, sex: Any, job: Any, income: Any) -> np.ndarray[Any, Any]:
        return _answer(module, *(torch.tensor(v, dtype=torch.float32) for v in (income, sex, age, job)))

    _holds(module, people, asked, "more than one input")


@pytest.mark.parametrize("first", [0, 1])
def test_a_table_of_numbers_has_codes_for_embeddings_and_numbers_for_layers(first: int, people: pd.DataFrame) -> None:
    """Sex and job are numbers in the table, as age is; only two of the three can go into an embedding."""

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.sex, self.job, self.last = nn.Embedding(3, 2), nn.Embedding(5, 2), nn.Linear(5, 1)

        def forward(self, age: Any, sex: Any, job: Any) -> Any:
            parts = [(age.reshape(-1, 1) - 40) / 10, self.sex(sex).reshape(-1, 2), self.job(job).reshape(-1, 2)]
            return self.last(torch.cat(parts, dim=1))

    torch.manual_seed(0)
    module = Mixed().eval()
    age, _, job, _ = _codes(people, 0)
    table = pd.DataFrame({"age": age, "sex": (people.sex == "m") + first, "job": job + first, "hired": people.hired})
    audit = _audit(module, table)
    found = evaluator_of(audit.subject).scores(audit.subject.table.codes)
    for sex in (0, 1):
        sexes = np.full(len(table), sex + first)
        theirs = _answer(module, torch.tensor(age).float(), torch.tensor(sexes), torch.tensor(job + first))
        np.testing.assert_allclose(found[:, sex], 1 / (1 + np.exp(-theirs)), atol=1e-5)


def test_inputs_of_several_attributes_are_stated(people: pd.DataFrame) -> None:
    torch.manual_seed(2)
    module = ByKind().eval()

    def asked(age: Any, sex: Any, job: Any, income: Any) -> np.ndarray[Any, Any]:
        numbers = torch.tensor(np.column_stack([age, income]), dtype=torch.float32)
        return _answer(module, numbers, torch.tensor(np.column_stack([sex, job])))

    stated = {"x_num": ["age", "income"], "x_cat": ["sex", "job"]}
    _holds(module, people, asked, "runs in PyTorch", inputs=stated)
    with pytest.raises(fairbits.FairbitsError, match=r"into 'x_num'; list them in its order under \[model.inputs\]"):
        _audit(module, people)
    with pytest.raises(fairbits.FairbitsError, match=r"puts 'agee' into 'x_num'; .* Did you mean 'age'"):
        _audit(module, people, inputs=stated | {"x_num": ["agee"]})
    with pytest.raises(fairbits.FairbitsError, match="'age' goes into two inputs"):
        _audit(module, people, inputs=stated | {"x_cat": ["age", "job"]})


def test_an_input_that_nothing_maps_to_is_named(people: pd.DataFrame) -> None:
    class Misnamed(ByKind):
        def forward(self, agee: Any, other: Any, third: Any) -> Any:  # type: ignore[override]
            return agee + other + third

    with pytest.raises(fairbits.FairbitsError, match=r"which attributes go into 'agee'.*Did you mean 'age'"):
        _audit(Misnamed(), people)


@pytest.mark.parametrize("made", ["list", "dict"])
def test_keras_inputs_are_found_by_their_names(made: str, people: pd.DataFrame) -> None:
    keras = pytest.importorskip("keras", reason="the keras extra is not installed")
    keras.utils.set_random_seed(0)
    layers = keras.layers
    numbers, sex, job = (keras.Input((w,), name=n) for w, n in ((2, "numbers"), (1, "sex"), (4, "job")))
    known = layers.Concatenate()(
        [layers.BatchNormalization()(numbers), layers.Flatten()(layers.Embedding(2, 3)(sex)), job]
    )
    hidden = layers.Dropout(0.3)(layers.Dense(9, activation="relu")(known))
    end = layers.Dense(1, activation="sigmoid")(layers.Add()([hidden, known]))
    inputs = [numbers, sex, job] if made == "list" else {"numbers": numbers, "sex": sex, "job": job}
    model = keras.Model(inputs, end)

    def asked(age: Any, sex: Any, job: Any, income: Any) -> np.ndarray[Any, Any]:
        given = [
            np.column_stack([age, income]).astype("float32"),
            sex[:, None].astype("float32"),
            np.eye(4, dtype="float32")[job],
        ]
        rows = given if made == "list" else dict(zip(("numbers", "sex", "job"), given, strict=True))
        return np.asarray(model.predict(rows, verbose=0)).ravel()

    _holds(model, people, asked, "runs in Keras", inputs={"numbers": ["age", "income"]})


def test_a_keras_input_of_no_attribute_is_named(people: pd.DataFrame) -> None:
    keras = pytest.importorskip("keras", reason="the keras extra is not installed")
    inputs = [keras.Input((1,), name=name) for name in ("age", "gendre", "jobs")]
    model = keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(keras.layers.Concatenate()(inputs)))
    with pytest.raises(fairbits.FairbitsError, match="which attributes go into 'gendre'"):
        _audit(model, people)
