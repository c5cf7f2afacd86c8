"""A model that does not name its columns gets the table's in their order, and a note says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairbits
from fairbits.domain import Attribute, Schema, Table
from tests.conftest import random_network

SCHEMA = Schema(
    (
        Attribute(name="age", kind="integer", low=18, high=60),
        Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
        Attribute(name="job", kind="category", labels=("care", "farm", "tech")),
    ),
    target="hired",
    classes=("0", "1"),
    favourable="1",
)
RNG = np.random.default_rng(4)
CODES = np.column_stack([RNG.integers(18, 61, 60), RNG.integers(0, 2, 60), RNG.integers(0, 3, 60)]).astype(float)
LABELS = (CODES[:, 0] + 9 * CODES[:, 1] + RNG.normal(0, 4, 60) > 42).astype(int)
ORDER = "so the table's go in by their order (age, sex, job)"


def _named(model: Any) -> Any:
    import pandas as pd

    frame = pd.DataFrame(CODES, columns=list(SCHEMA.names))
    return model.fit(frame, LABELS)


def _torch(embedded: bool) -> Any:
    torch = pytest.importorskip("torch", reason="the torch extra is not installed")

    class Embedded(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.places = torch.nn.Embedding(64, 2)

        def forward(self, rows: Any) -> Any:
            return self.places(rows.long()).sum(dim=(1, 2)).sigmoid()

    return Embedded() if embedded else torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Sigmoid())


def _onnx(folder: Path) -> Path:
    pytest.importorskip("onnx", reason="the onnx extra is not installed")
    random_network(np.random.default_rng(0), [6, 3, 1], head="sigmoid").save(folder / "model.onnx")
    return folder / "model.onnx"


def _lightgbm() -> Any:
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    return lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(CODES, LABELS)


UNNAMED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "network": (lambda _: random_network(np.random.default_rng(0), [3, 2], head="softmax"), "categories as codes"),
    "one-hot network": (lambda _: random_network(np.random.default_rng(0), [6, 2], head="softmax"), "one-hot"),
    "onnx": (_onnx, "categories one-hot"),
    "torch": (lambda _: _torch(embedded=False), "categories as codes"),
    "torch embedding": (lambda _: _torch(embedded=True), "categories as codes"),
    "logistic regression": (lambda _: LogisticRegression().fit(CODES, LABELS), "categories as codes"),
    "forest": (lambda _: RandomForestClassifier(2).fit(CODES, LABELS), "are numbered as in the schema"),
    "neighbours": (lambda _: KNeighborsClassifier(3).fit(CODES, LABELS), "categories as codes"),
    "booster": (lambda _: _lightgbm(), ""),
}


def _audit(model: Any, **options: Any) -> fairbits.Audit:
    return fairbits.Audit(model, Table(CODES, LABELS.astype(float)), SCHEMA, as_is=True, **options)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", UNNAMED)
def test_an_order_that_is_a_guess_is_said(kind: str, tmp_path: Path) -> None:
    make, how = UNNAMED[kind]
    notes = _audit(make(tmp_path)).subject.notes
    assert sum(ORDER in note for note in notes) == 1, notes
    assert how in " ".join(notes)
    stated = _audit(make(tmp_path), columns=("age", "sex", "job")).subject.notes
    assert not [note for note in stated if "by their order" in note]


def test_an_array_of_a_pipeline_and_of_a_function() -> None:
    numbers = Schema(
        (SCHEMA["age"], Attribute(name="sex", kind="integer", low=0, high=1, protected=True)), "hired", ("0", "1")
    )
    table = Table(CODES[:, :2], LABELS.astype(float))
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(CODES[:, :2], LABELS)
    for model in (pipeline, make_pipeline(StandardScaler(), RandomForestClassifier(2)).fit(CODES[:, :2], LABELS)):
        assert "by their order (age, sex);" in " ".join(fairbits.Audit(model, table, numbers).subject.notes)

    def score(rows: np.ndarray) -> Any:
        return pipeline.predict_proba(rows)[:, 1]

    assert "by their order (age, sex);" in " ".join(
        fairbits.Audit(score, table, numbers, input_format="array").subject.notes
    )


def test_names_and_stated_encodings_are_no_guess() -> None:
    for model in (LogisticRegression(), RandomForestClassifier(2), KNeighborsClassifier(3)):
        notes = _audit(_named(model), input_format="codes").subject.notes
        assert not [note for note in notes if "by their order" in note]
    (repeats,) = fairbits.Audit.of("census").subject.notes
    assert "rows repeat in all unprotected columns" in repeats  # 29 % of them: no guess about the model


def test_many_columns_are_cut_short() -> None:
    attributes = tuple(Attribute(name=f"x{i}", kind="integer", low=0, high=9, protected=i == 0) for i in range(12))
    network = random_network(np.random.default_rng(0), [12, 1], head="linear")
    notes = fairbits.Audit(network, Table(np.zeros((3, 12))), Schema(attributes)).subject.notes
    assert "by their order (x0, x1, x2, x3, x4, x5, x6, …, x11);" in " ".join(notes)


@pytest.mark.parametrize(
    "names", [("0", "1", "2"), ("f0", "f1", "f2"), ("Column_0", "Column_1", "Column_2")], ids=" ".join
)
@pytest.mark.parametrize(
    "kind", ["logistic", "forest", "neighbours", "lightgbm", "lightgbm file", "xgboost", "catboost"]
)
def test_names_of_the_table_are_its_own_whatever_they_look_like(
    kind: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({name: rng.integers(0, top, 400) for name, top in zip(names, (2, 6, 9), strict=True)})
    target = (frame[names[0]] + 0.4 * frame[names[1]] - 0.3 * frame[names[2]] + rng.normal(0, 0.3, 400) > 0.3) * 1
    if kind.startswith("lightgbm"):
        model = pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=8, verbose=-1)
    elif kind in ("xgboost", "catboost"):
        library, how = pytest.importorskip(kind), {"verbose": 0} if kind == "catboost" else {}
        model = getattr(library, {"xgboost": "XGBClassifier", "catboost": "CatBoostClassifier"}[kind])(
            n_estimators=8, **how
        )
    else:
        model = {
            "logistic": LogisticRegression(),
            "forest": RandomForestClassifier(8, max_depth=5, random_state=0),
            "neighbours": KNeighborsClassifier(9),
        }[kind]
    model.fit(frame, target)
    given: Any = model
    if kind == "lightgbm file":
        given = tmp_path / "model.txt"
        model.booster_.save_model(str(given))
    table = frame[[names[2], names[0], names[1]]].assign(wanted=target)  # in another order than the model's
    found = fairbits.Audit.from_table(given, table, target="wanted", protected=[names[0]], favourable=1).measure()
    twins = np.stack([model.predict_proba(frame.assign(**{names[0]: value}))[:, 1] for value in (0, 1)], axis=1)
    assert found.to_frame()["k"].tolist() == [int(k) for k in 1 + (np.ptp(twins, axis=1) > 0.025 + 2.0**-21)]
