"""Layers that float32 cannot fold: a normalisation that takes a large bias away again is asked of its own library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairbits

BIAS, SHIFT = 1e5, 1e5 - 0.25


def weights() -> tuple[np.ndarray, ...]:
    draw = np.random.default_rng(2)
    return draw.normal(size=(3, 8)), draw.normal(size=8), draw.uniform(0.5, 2, 8), draw.normal(size=(8, 1))


def keras_file(folder: Path) -> Path:
    from fairbits.models.keras import import_keras

    keras = import_keras("tests")
    layers = keras.layers
    net = keras.Sequential(
        [
            keras.Input((3,)),
            layers.Dense(8),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    first, bias, spread, last = weights()
    net.layers[0].set_weights([first, bias + BIAS])
    net.layers[1].set_weights([np.ones(8), np.zeros(8), np.full(8, SHIFT), spread])
    net.layers[3].set_weights([last, np.zeros(1)])
    net.save(folder / "net.keras")
    return folder / "net.keras"


def onnx_file(folder: Path) -> Path:
    onnx = pytest.importorskip("onnx")
    make, array = onnx.helper, onnx.numpy_helper.from_array
    first, bias, spread, last = weights()
    held = {
        "first": first,
        "bias": bias + BIAS,
        "gain": np.ones(8),
        "offset": np.zeros(8),
        "mean": np.full(8, SHIFT),
        "spread": spread,
        "last": last,
    }
    nodes = [
        make.make_node("Gemm", ["x", "first", "bias"], ["1"]),
        make.make_node("BatchNormalization", ["1", "gain", "offset", "mean", "spread"], ["2"]),
        make.make_node("Relu", ["2"], ["3"]),
        make.make_node("MatMul", ["3", "last"], ["4"]),
        make.make_node("Sigmoid", ["4"], ["y"]),
    ]
    ends = [
        make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", size]) for name, size in (("x", 3), ("y", 1))
    ]
    inside = [array(value.astype(np.float32), name) for name, value in held.items()]
    graph = make.make_graph(nodes, "net", ends[:1], ends[1:], inside)
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "net.onnx")
    return folder / "net.onnx"


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("file", [keras_file, onnx_file])
def test_a_bias_that_is_cancelled(file, tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    table = pd.DataFrame(
        {"sex": draw.integers(0, 2, 200), "age": draw.integers(0, 9, 200), "debt": draw.normal(size=200)}
    )
    table["hired"] = draw.integers(0, 2, 200)

    audit = fairbits.Audit.from_table(
        file(tmp_path), table, target="hired", protected=["sex"], favourable=1, as_is=True
    )

    assert audit.subject.round_trip.equal == audit.subject.round_trip.rows or not audit.subject.round_trip.rows
    assert "as it is read here, it scores" in " ".join(audit.subject.notes)
    assert audit.measure().summary()["rows"] == 200
