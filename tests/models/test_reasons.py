"""What cannot be native says why, where people read it; what does not fit says it in one sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import fairbits
from fairbits.measure import evaluator_of
from tests.cli.calling import fairbits as shell

os.environ.setdefault("KERAS_BACKEND", "torch")
pytestmark = pytest.mark.filterwarnings("ignore")
SEEN = ["age", "sex", "income"]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    n = 120
    frame = pd.DataFrame({"age": rng.integers(20, 70, n), "sex": rng.integers(0, 2, n), "income": rng.normal(3, 1, n)})
    frame["paid"] = (frame.income + 0.8 * frame.sex + rng.normal(0, 0.4, n) > 3.4).astype(int)
    return frame


def _audit(model: Any, people: pd.DataFrame, **options: Any) -> fairbits.Audit:
    return fairbits.Audit.from_table(model, people, target="paid", protected="sex", favourable=1, as_is=True, **options)


def _torch(made: Callable[[Any], Any]) -> Callable[[pd.DataFrame], Any]:
    def make(_people: pd.DataFrame) -> Any:
        torch = pytest.importorskip("torch", reason="the torch extra is not installed")
        torch.manual_seed(0)
        return made(torch.nn)

    return make


def _silu(nn: Any) -> Any:
    return nn.Sequential(nn.Linear(3, 4), nn.SiLU(), nn.Linear(4, 1), nn.Sigmoid())


def _convolution(nn: Any) -> Any:
    return nn.Sequential(nn.Unflatten(1, (1, 3)), nn.Conv1d(1, 2, 2), nn.Flatten(), nn.Linear(4, 1), nn.Sigmoid())


def _keras(layer: str, **settings: Any) -> Callable[[pd.DataFrame], Any]:
    def make(_people: pd.DataFrame) -> Any:
        keras = pytest.importorskip("keras", reason="the keras extra is not installed")
        layers = keras.layers
        start = keras.Input((3,))
        middle = getattr(layers, layer)(name="odd", **settings)(start)
        return keras.Model(start, layers.Dense(1, activation="sigmoid")(middle))

    return make


def _xgboost(**settings: Any) -> Callable[[pd.DataFrame], Any]:
    def make(people: pd.DataFrame) -> Any:
        library = pytest.importorskip("xgboost", reason="xgboost is not installed")
        model = library.XGBClassifier(n_estimators=5, n_jobs=1, random_state=0, **settings)
        return model.fit(people[SEEN], people.paid)

    return make


REASONS: dict[str, tuple[Callable[[pd.DataFrame], Any], str]] = {
    "torch silu": (_torch(_silu), "the activation silu has no kernel here"),
    "torch convolution": (_torch(_convolution), "not read as a network: the operation unflatten"),
    "keras layer": (_keras("LayerNormalization"), "the layer 'odd' is a LayerNormalization"),
    "keras activation": (_keras("Dense", units=3, activation="softplus"), "the activation softplus has no kernel here"),
    "xgboost gblinear": (_xgboost(booster="gblinear"), "its booster is gblinear, which has weights and no trees"),
    "xgboost dart": (_xgboost(booster="dart", rate_drop=0.5), "its booster is dart, which weighs its trees"),
    "svm": (lambda people: SVC(probability=True).fit(people[SEEN], people.paid), "SVC is neither linear nor"),
    "calibrated": (
        lambda people: CalibratedClassifierCV(LogisticRegression(), cv=2).fit(people[SEEN], people.paid),
        "CalibratedClassifierCV is neither linear nor",
    ),
}


def _theirs(model: Any, rows: pd.DataFrame) -> np.ndarray[Any, Any]:
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(rows))[:, 1]
    torch = pytest.importorskip("torch")
    with torch.no_grad():
        return np.asarray(model(torch.tensor(rows.to_numpy(dtype="float32"))).detach().cpu()).ravel()


@pytest.mark.parametrize("name", REASONS)
def test_a_model_that_is_not_native_says_why(name: str, people: pd.DataFrame) -> None:
    make, why = REASONS[name]
    model = make(people)
    subject = _audit(model, people, score_of="1").subject
    assert any(why in note for note in subject.notes), subject.notes
    found = evaluator_of(subject).scores(subject.table.codes)
    theirs = np.column_stack([_theirs(model, people[SEEN].assign(sex=sex)) for sex in (0, 1)])
    np.testing.assert_allclose(found, theirs, atol=2e-6)


def _file(model: Any, people: pd.DataFrame, folder: Path, change: Callable[[Any], None]) -> Path:
    model.save_model(folder / "model.json")
    document = json.loads((folder / "model.json").read_text())
    change(document)
    (folder / "model.json").write_text(json.dumps(document))
    people.to_csv(folder / "people.csv", index=False)
    return folder / "model.json"


def test_a_linear_file_and_why_in_the_json(people: pd.DataFrame, tmp_path: Path) -> None:
    model = _xgboost(booster="gblinear")(people)
    _file(model, people, tmp_path, lambda document: None)
    asked = ("--target", "paid", "--protected", "sex", "--favourable", "1", "--yes")
    done = shell("init", "people.csv", "--model", "model.json", *asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "gblinear" in " ".join(done.stdout.split())
    done = shell("measure", "subject.toml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert any("its booster is gblinear" in note for note in json.loads(done.stdout)["notes"])
    subject = fairbits.load_subject(tmp_path / "subject.toml")
    found = subject.model.scores(subject.encoding.encode(subject.table.codes))
    np.testing.assert_allclose(found, model.predict_proba(people[SEEN])[:, 1], atol=2e-6)


def test_an_objective_that_nobody_knows_is_one_sentence(people: pd.DataFrame, tmp_path: Path) -> None:
    model = _xgboost()(people)

    def change(document: Any) -> None:
        document["learner"]["objective"]["name"] = "binary:mine"

    file = _file(model, people, tmp_path, change)
    with pytest.raises(fairbits.FairbitsError, match=r"cannot be opened by xgboost: .*binary:mine") as caught:
        _audit(file, people)
    assert "\n" not in str(caught.value)


def test_a_missing_category_of_catboost_is_its_owners_affair(tmp_path: Path) -> None:
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame({"job": rng.choice(["a", "b", None], n), "sex": rng.choice(["f", "m"], n)})
    frame["age"] = rng.integers(20, 60, n)
    frame["paid"] = (frame.job.isna() | (frame.sex == "m") & (frame.age > 40)).astype(int)
    settings = {"iterations": 10, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    rows = frame.assign(job=frame.job.fillna("NA"))
    model = catboost.CatBoostClassifier(cat_features=["job", "sex"], one_hot_max_size=10, **settings)
    model.fit(rows.drop(columns="paid"), frame.paid)
    with pytest.raises(fairbits.FairbitsError, match=r"does not take a missing 'job'.*fill it in the table"):
        _audit(model, frame, score_of="1")
    subject = _audit(model, rows, score_of="1").subject
    assert any("it has categorical features" in note for note in subject.notes)
    found = subject.model.scores(subject.encoding.encode(subject.table.codes))
    np.testing.assert_allclose(found, model.predict_proba(rows.drop(columns="paid"))[:, 1], atol=1e-6)


def _sum_of(folder: Path, second: str, shape: list[Any]) -> Path:
    """A graph that adds its two inputs."""
    helper = pytest.importorskip("onnx", reason="the onnx extra is not installed").helper
    inputs = [helper.make_tensor_value_info(name, 1, shape) for name in ("age", second)]
    nodes = [helper.make_node("Add", ["age", second], ["z"]), helper.make_node("Sigmoid", ["z"], ["scores"])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("scores", 1, shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return folder / "m.onnx"


def test_an_onnx_input_that_is_no_column_is_named(people: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(fairbits.FairbitsError, match=r"'sexx'.*Did you mean 'sex'") as caught:
        _audit(_sum_of(tmp_path, "sexx", ["n", 1]), people)
    assert str(caught.value).count("the ONNX file") == 1
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", [["n"], ["n", 1]])
def test_onnx_inputs_that_are_called_like_columns(shape: list[Any], people: pd.DataFrame, tmp_path: Path) -> None:
    small = people.assign(age=people.age / 50 - 1)
    subject = _audit(_sum_of(tmp_path, "sex", shape), small, score_of="1").subject
    found = evaluator_of(subject).scores(subject.table.codes)
    theirs = [1 / (1 + np.exp(-(small.age + sex))) for sex in (0, 1)]
    np.testing.assert_allclose(found, np.column_stack(theirs), atol=1e-6)
