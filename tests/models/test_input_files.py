"""Files of models with two inputs, all of whole numbers and truth values: each scores as the module that it holds."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairbits
from fairbits.measure import evaluator_of
from fairbits.models import TorchModel, load_model

os.environ.setdefault("KERAS_BACKEND", "torch")
torch = pytest.importorskip("torch", reason="the torch extra is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
nn = torch.nn

NUMBERS, CATEGORIES = ["age", "hours", "remote"], ["sex", "union", "job"]
#: What is tried here, for the page of everything that was tried.
FILES = {
    "scripted .pt": "TorchScript",
    "exported .pt2": "torch.export",
    "graph .onnx": "torch.onnx, which puts out logits",
}


class Wages(nn.Module):
    """Embeddings, batch norm, dropout and a skip connection; a truth value stands among the numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.sex, self.union, self.job = nn.Embedding(2, 2), nn.Embedding(2, 2), nn.Embedding(4, 3)
        self.norm, self.first, self.drop, self.last = (
            nn.BatchNorm1d(3),
            nn.Linear(10, 10),
            nn.Dropout(0.5),
            nn.Linear(10, 1),
        )

    def forward(self, x_num: torch.Tensor, x_cat: torch.Tensor) -> torch.Tensor:
        codes = [self.sex(x_cat[:, 0]), self.union(x_cat[:, 1]), self.job(x_cat[:, 2])]
        seen = torch.cat([self.norm(x_num), codes[0], codes[1], codes[2]], dim=1)
        return self.last(self.drop(seen + torch.relu(self.first(seen))))


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    n = 50
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "sex": rng.choice(["female", "male"], n),
            "union": rng.choice(["no", "yes"], n),
            "remote": rng.random(n) < 0.4,
            "job": rng.choice(["clerk", "farm", "sales", "tech"], n),
            "hours": rng.integers(10, 60, n),
        }
    )
    frame["high"] = (frame.age + frame.hours > 75).astype(int)
    return frame


@pytest.fixture(scope="module")
def module() -> Any:
    torch.manual_seed(4)
    made = Wages()
    made.norm.running_mean += torch.tensor([40.0, 0.5, 35.0])
    made.norm.running_var *= torch.tensor([130.0, 0.25, 200.0])
    return made.eval()


def tensors(people: pd.DataFrame, sex: int | None = None) -> tuple[Any, Any]:
    """As it was trained: numbers in the order of the table, codes in the order of their labels."""
    numbers = people[["age", "remote", "hours"]].to_numpy(dtype="float32")
    codes = np.column_stack([people[name].astype("category").cat.codes for name in CATEGORIES]).astype("int64")
    if sex is not None:
        codes[:, 0] = sex
    return torch.tensor(numbers), torch.tensor(codes)


def scripted(module: Any, _given: Any, folder: Path) -> Path:
    torch.jit.script(module).save(str(folder / "model.pt"))
    return folder / "model.pt"


def traced(module: Any, given: Any, folder: Path) -> Path:
    torch.jit.trace(module, given).save(str(folder / "model.pt"))
    return folder / "model.pt"


def exported(module: Any, given: Any, folder: Path) -> Path:
    rows = torch.export.Dim("rows", min=2)
    program = torch.export.export(module, given, dynamic_shapes=({0: rows}, {0: rows}))
    torch.export.save(program, str(folder / "model.pt2"))
    return folder / "model.pt2"


def graph(module: Any, given: Any, folder: Path) -> Path:
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    rows = {0: "rows"}
    names = ["x_num", "x_cat"]
    axes = dict.fromkeys(names, rows)
    torch.onnx.export(module, given, folder / "model.onnx", input_names=names, dynamic_axes=axes, dynamo=False)
    return folder / "model.onnx"


SAVED: dict[str, Callable[[Any, Any, Path], Path]] = dict(zip(FILES, (scripted, exported, graph), strict=True))


def asked(module: Any, people: pd.DataFrame) -> np.ndarray[Any, Any]:
    """What the module itself says of everybody as each sex."""
    with torch.no_grad():
        return np.column_stack([torch.sigmoid(module(*tensors(people, sex)))[:, 0] for sex in (0, 1)])


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_two_inputs(kind: str, module: Any, people: pd.DataFrame, tmp_path: Path) -> None:
    file = SAVED[kind](module, tensors(people), tmp_path)
    audit = fairbits.Audit.from_table(
        file,
        people,
        target="high",
        protected="sex",
        favourable=1,
        score_of="1",
        as_is=True,
        trust_pickle=True,
        inputs={"x_num": ["age", "remote", "hours"], "x_cat": CATEGORIES},
    )
    expected = asked(module, people)
    assert np.abs(expected[:, 0] - expected[:, 1]).max() > 1e-3
    found = evaluator_of(audit.subject).scores(audit.subject.table.codes)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    one = audit.subject.model.scores(audit.subject.encoding.encode(audit.subject.table.codes[:1]))
    assert one == pytest.approx(found[0, int(people.sex[0] == "male")], abs=1e-6)
    told = " ".join(audit.subject.notes)
    assert "not read as a network: " in told
    assert "read as logits" in told


def test_a_keras_file_of_embeddings(people: pd.DataFrame, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras", reason="the keras extra is not installed")
    keras.utils.set_random_seed(2)
    layers = keras.layers
    inputs = {name: keras.Input((1,), name=name, dtype="int32") for name in CATEGORIES}
    inputs["numbers"] = keras.Input((3,), name="numbers")
    known = [layers.Flatten()(layers.Embedding(4, 2)(inputs[name])) for name in CATEGORIES]
    joined = layers.Concatenate()([layers.BatchNormalization()(inputs["numbers"]), *known])
    hidden = layers.Dropout(0.5)(layers.Dense(9, activation="relu")(joined))
    model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(layers.Add()([joined, hidden])))
    model.save(tmp_path / "model.keras")
    audit = fairbits.Audit.from_table(
        tmp_path / "model.keras",
        people,
        target="high",
        protected="sex",
        favourable=1,
        score_of="1",
        as_is=True,
        inputs={"numbers": ["age", "remote", "hours"]},
    )
    columns = []
    for sex in (0, 1):
        numbers, codes = (one.numpy() for one in tensors(people, sex))
        given = {name: codes[:, [i]] for i, name in enumerate(CATEGORIES)} | {"numbers": numbers}
        columns.append(np.asarray(model.predict(given, verbose=0)).ravel())
    found = evaluator_of(audit.subject).scores(audit.subject.table.codes)
    np.testing.assert_allclose(found, np.column_stack(columns), atol=2e-6)
    assert any("runs in Keras and is not read as a network: it has 4 inputs." in note for note in audit.subject.notes)


def test_a_keras_file_may_not_declare_any_embedding(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras", reason="the keras extra is not installed")
    start = keras.Input((1,), dtype="int32")
    end = keras.layers.Dense(1)(keras.layers.Flatten()(keras.layers.Embedding(4, 2)(start)))
    keras.Model(start, end).save(tmp_path / "whole.keras")
    with zipfile.ZipFile(tmp_path / "whole.keras") as whole, zipfile.ZipFile(tmp_path / "huge.keras", "w") as huge:
        for entry in whole.namelist():
            content = whole.read(entry)
            if entry == "config.json":
                document = json.loads(content)
                for layer in document["config"]["layers"]:
                    if layer["class_name"] == "Embedding":
                        layer["config"] |= {"input_dim": 100_000, "output_dim": 100_000}
                content = json.dumps(document).encode()
            huge.writestr(entry, content)
    with pytest.raises(fairbits.FairbitsError, match="takes more than 1,024 MB of memory when it is loaded"):
        load_model(tmp_path / "huge.keras")


def test_a_compiled_chain_runs_where_it_is_trusted(tmp_path: Path) -> None:
    torch.manual_seed(0)
    chain = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.2), nn.Linear(4, 1), nn.Sigmoid())
    file, schema = scripted(chain.eval(), None, tmp_path), fairbits.Schema(_three(), target="y", classes=("0", "1"))
    with pytest.raises(fairbits.FairbitsError, match="holds more than weights, and opening it runs code"):
        load_model(file)
    found = load_model(file, trust_pickle=True, schema=schema)
    rows = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
    np.testing.assert_allclose(found.scores(rows), chain(torch.tensor(rows)).detach().numpy()[:, 0], atol=1e-6)


def test_a_compiled_forward_method_runs(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(self.first(x) + x[:, :1])

    file = traced(Odd().eval(), torch.zeros(4, 3), tmp_path)
    found = load_model(file, trust_pickle=True, schema=fairbits.Schema(_three(), target="y", classes=("0", "1")))
    assert isinstance(found, TorchModel)
    rows = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
    theirs = torch.jit.load(str(file))(torch.tensor(rows)).detach().numpy()[:, 0]
    np.testing.assert_allclose(found.scores(rows), theirs, atol=1e-6)


def _three() -> tuple[fairbits.Attribute, ...]:
    return tuple(fairbits.Attribute(name=name, kind="real", low=-1, high=1, protected=name == "a") for name in "abc")


def test_a_program_for_one_number_of_rows_says_so(module: Any, people: pd.DataFrame, tmp_path: Path) -> None:
    numbers, codes = tensors(people[:4])
    torch.export.save(torch.export.export(module, (numbers, codes)), str(tmp_path / "fixed.pt2"))
    with pytest.raises(fairbits.FairbitsError) as caught:
        fairbits.Audit.from_table(
            tmp_path / "fixed.pt2", people, target="high", protected="sex", favourable=1, trust_pickle=True
        )
    assert "\n" not in str(caught.value)
    assert "exported for 4 rows" in str(caught.value)
