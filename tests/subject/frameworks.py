"""One planted truth in many frameworks: the same probabilities of "favourable", put out in every way there is.

Men get the favourable decision more readily than women with the same income. Each maker builds a model file, object,
function or address, trained so that its class 1 is ``positive``.
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import special

#: The weights of the planted logit of a favourable decision: men, and income from 0 to 9.
MAN, INCOME, SHIFT = 2.0, 0.6, -3.7
ROWS = 400


@dataclass(frozen=True)
class Truth:
    """What the table says: ``favourable`` and ``other`` are the words of the target."""

    favourable: str
    other: str

    def logit(self, sex: Any, income: Any) -> np.ndarray:
        """The planted logit of a favourable decision."""
        return MAN * np.asarray(sex, float) + INCOME * np.asarray(income, float) + SHIFT

    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sex (1: man), income, and whether a row is labelled favourably."""
        rng = np.random.default_rng(7)
        sex, income = rng.integers(0, 2, ROWS), rng.integers(0, 10, ROWS)
        return sex, income, rng.random(ROWS) < special.expit(self.logit(sex, income))

    def table(self) -> pa.Table:
        """As people have it."""
        sex, income, good = self.columns()
        labels = np.where(good, self.favourable, self.other)
        return pa.table({"sex": np.where(sex == 1, "M", "F"), "income": income, "decided": labels})

    def signs(self, positive: str) -> float:
        """+1 where the model's class 1 is the favourable one."""
        return 1.0 if positive == self.favourable else -1.0


def dense(truth: Truth, positive: str) -> tuple[np.ndarray, np.ndarray]:
    """Weights (2, 1) and bias (1,) of the logit of ``positive``; inputs are the codes of sex and income."""
    sign = truth.signs(positive)
    return sign * np.array([[MAN], [INCOME]]), sign * np.array([SHIFT])


def two(truth: Truth, positive: str) -> tuple[np.ndarray, np.ndarray]:
    """The same as two logits, that of ``positive`` second."""
    weights, bias = dense(truth, positive)
    return np.hstack([-weights / 2, weights / 2]), np.concatenate([-bias / 2, bias / 2])


def torch_model(kind: str) -> Callable[[Truth, str, Path], Any]:
    def make(truth: Truth, positive: str, _: Path) -> Any:
        torch = pytest.importorskip("torch", reason="the torch extra is not installed")
        weights, bias = two(truth, positive) if kind == "two logits" else dense(truth, positive)
        layer = torch.nn.Linear(2, weights.shape[1])
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(weights.T))
            layer.bias.copy_(torch.tensor(bias))
        if kind == "branching":  # no chain of dense layers: it runs in PyTorch

            class Branching(torch.nn.Module):
                def __init__(self) -> None:
                    super().__init__()
                    self.layer = layer

                def forward(self, rows: Any) -> Any:
                    found = self.layer(rows)
                    return torch.sigmoid(0.5 * found + 0.5 * self.layer(rows))

            return Branching()
        return torch.nn.Sequential(layer, *([torch.nn.Sigmoid()] if kind == "sigmoid" else []))

    return make


def keras_model(kind: str) -> Callable[[Truth, str, Path], Any]:
    def make(truth: Truth, positive: str, folder: Path) -> Any:
        if find_spec("keras") is None:
            pytest.skip("the keras extra is not installed")
        from fairbits.models.keras import import_keras

        keras = import_keras("a test")  # chooses a backend that is there
        weights, bias = dense(truth, positive) if kind == "sigmoid" else two(truth, positive)
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(weights.shape[1], activation=kind)])
        model.layers[-1].set_weights([weights.astype(np.float32), bias.astype(np.float32)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Keras and NumPy have yet to agree on __array__
            model.save(folder / "model.keras")
        return folder / "model.keras"

    return make


def sklearn_model(kind: str) -> Callable[[Truth, str, Path], Any]:
    """Trained on the target's own words, or on 0 and 1 where 1 is ``positive``."""

    def make(truth: Truth, positive: str, _: Path) -> Any:
        from sklearn.linear_model import LogisticRegression

        sex, income, good = truth.columns()
        words = np.where(good, truth.favourable, truth.other)
        target = words if kind == "words" else (words == positive).astype(int)
        return LogisticRegression(C=100.0).fit(np.column_stack([sex, income]), target)

    return make


def onnx_model(zipmap: bool) -> Callable[[Truth, str, Path], Any]:
    def make(truth: Truth, positive: str, folder: Path) -> Any:
        convert = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
        from skl2onnx.common.data_types import FloatTensorType

        fitted = sklearn_model("numbers")(truth, positive, folder)
        kinds = [("rows", FloatTensorType([None, 2]))]
        proto = convert.to_onnx(fitted, initial_types=kinds, options={"zipmap": zipmap}, target_opset=17)
        (folder / "model.onnx").write_bytes(proto.SerializeToString())
        return folder / "model.onnx"

    return make


def function(kind: str) -> Callable[[Truth, str, Path], Any]:
    """Scores of ``positive``, one per row; or both classes, that of ``positive`` second."""

    def make(truth: Truth, positive: str, _: Path) -> Any:
        def scores(frame: Any) -> np.ndarray:
            p = special.expit(truth.signs(positive) * truth.logit(frame["sex"] == "M", frame["income"]))
            return np.column_stack([1 - p, p]) if kind == "two columns" else p

        return scores

    return make


def endpoint(truth: Truth, positive: str, _: Path) -> Any:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["rows"]
            logit = truth.logit([row["sex"] == "M" for row in rows], [row["income"] for row in rows])
            answer = json.dumps({"scores": special.expit(truth.signs(positive) * logit).tolist()}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    pytest.importorskip("httpx", reason="the http extra is not installed")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/score"


MAKERS: dict[str, Callable[[Truth, str, Path], Any]] = {
    "scikit-learn, words": sklearn_model("words"),
    "scikit-learn, 0 and 1": sklearn_model("numbers"),
    "PyTorch, one logit": torch_model("one logit"),
    "PyTorch, two logits": torch_model("two logits"),
    "PyTorch, sigmoid": torch_model("sigmoid"),
    "PyTorch, no chain": torch_model("branching"),
    "Keras, sigmoid": keras_model("sigmoid"),
    "Keras, softmax": keras_model("softmax"),
    "ONNX, zipmap": onnx_model(True),
    "ONNX, no zipmap": onnx_model(False),
    "function": function("one"),
    "function, two columns": function("two columns"),
    "HTTP": endpoint,
}
