from __future__ import annotations

import warnings

import numpy as np
import pytest

from fairbits import Network, load_model
from fairbits.errors import ModelError
from fairbits.models.native.network import NAMES
from fairbits.models.sklearn import network_of_sklearn

from ..conftest import random_network

HEADS = [("softmax", 2), ("softmax", 3), ("sigmoid", 1), ("linear", 1)]


@pytest.mark.parametrize("ending", [".npz", ".onnx"])
@pytest.mark.parametrize("activation", NAMES)
@pytest.mark.parametrize(("head", "outputs"), HEADS)
def test_a_network_survives_its_file(ending: str, activation: str, head: str, outputs: int, rng, tmp_path) -> None:
    if ending == ".onnx":
        pytest.importorskip("onnx", reason="the onnx extra is not installed")
    network = random_network(rng, [5, 9, 6, outputs], activation=activation, head=head, favourable=0)
    network.save(tmp_path / f"net{ending}")
    back = load_model(tmp_path / f"net{ending}")
    rows = rng.normal(size=(50, 5))
    assert (back.widths, back.head, back.favourable) == (network.widths, network.head, network.favourable)
    np.testing.assert_array_equal(back.scores(rows), network.scores(rows))


@pytest.mark.parametrize("activation", NAMES)
@pytest.mark.parametrize(("head", "outputs"), HEADS)
def test_onnx_runtime_agrees(activation: str, head: str, outputs: int, rng, tmp_path) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    network = random_network(rng, [5, 9, 6, outputs], activation=activation, head=head)
    network.save(tmp_path / "net.onnx")
    rows = rng.normal(size=(50, 5)).astype(np.float32)
    theirs = runtime.InferenceSession(str(tmp_path / "net.onnx")).run(None, {"inputs": rows})[0]
    np.testing.assert_allclose(network.activations(rows)[-1], theirs, atol=1e-5)


def test_onnx_graphs_of_other_makers(rng, tmp_path) -> None:
    """Scaling in front, MatMul + Add, batch normalisation, dropout, a cast, logits at the end."""
    onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    helper, real = onnx.helper, onnx.TensorProto.FLOAT

    def constant(name: str, values: np.ndarray):
        return onnx.numpy_helper.from_array(values.astype(np.float32), name)

    constants = [
        constant("mean", rng.normal(size=4)),
        constant("scale", rng.uniform(0.5, 2, 4)),
        constant("A", rng.normal(size=(4, 6))),
        constant("a", rng.normal(size=6)),
        *(constant(name, rng.uniform(0.5, 2, 6)) for name in ("gain", "offset", "mu", "var")),
        constant("B", rng.normal(size=(3, 6))),
    ]
    nodes = [
        helper.make_node("Sub", ["x", "mean"], ["1"]),
        helper.make_node("Div", ["1", "scale"], ["2"]),
        helper.make_node("MatMul", ["2", "A"], ["3"]),
        helper.make_node("Add", ["a", "3"], ["4"]),
        helper.make_node("BatchNormalization", ["4", "gain", "offset", "mu", "var"], ["5"]),
        helper.make_node("LeakyRelu", ["5"], ["6"], alpha=0.2),
        helper.make_node("Dropout", ["6"], ["7"]),
        helper.make_node("Gemm", ["7", "B"], ["8"], transB=1),
        helper.make_node("Cast", ["8"], ["y"], to=real),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", real, [None, 4])],
        [helper.make_tensor_value_info("y", real, [None, 3])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, tmp_path / "g.onnx")
    network = load_model(tmp_path / "g.onnx")
    assert network.widths == (6, 3)
    rows = rng.normal(size=(20, 4)).astype(np.float32)
    theirs = runtime.InferenceSession(str(tmp_path / "g.onnx")).run(None, {"x": rows})[0]
    np.testing.assert_allclose(network.logits(rows), theirs, rtol=1e-4, atol=1e-5)


def test_onnx_graphs_that_are_no_dense_network_run_as_they_are(tmp_path, rng) -> None:
    onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    helper, real = onnx.helper, onnx.TensorProto.FLOAT

    def save(nodes: list, inputs: list[str], version: int = 9) -> None:
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info(name, real, [None, 2]) for name in inputs],
            [helper.make_tensor_value_info("y", real, [None, 2])],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = version
        onnx.save(model, tmp_path / "g.onnx")

    rows = rng.normal(size=(7, 2)).astype(np.float32)
    for operation, value in (("Sin", np.sin(rows)), ("Relu", np.maximum(rows, 0)), ("Identity", rows)):
        save([helper.make_node(operation, ["x"], ["y"])], ["x"])
        model = load_model(tmp_path / "g.onnx", favourable=0)
        assert not isinstance(model, Network)
        np.testing.assert_allclose(model.scores(rows), value[:, 0], atol=1e-6)
    save([helper.make_node("Add", ["x", "x2"], ["y"])], ["x", "x2"])
    with pytest.raises(ModelError, match=r"2 inputs and no dense layer\. Nor can it run .* give the schema"):
        load_model(tmp_path / "g.onnx")


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_scikit_learn_perceptrons(activation: str, classes: int, rng) -> None:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    rows = rng.normal(size=(120, 4))
    target = rows @ rng.normal(size=4) if classes == 0 else rng.integers(0, classes, 120)
    kind = MLPRegressor if classes == 0 else MLPClassifier
    estimator = kind(hidden_layer_sizes=(7, 5), activation=activation, max_iter=15, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(rows, target)
    network = network_of_sklearn(estimator)
    expected = estimator.predict(rows) if classes == 0 else estimator.predict_proba(rows)[:, 1]
    np.testing.assert_allclose(network.scores(rows), expected, atol=1e-5)


def test_estimators_that_are_no_perceptrons() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    with pytest.raises(ModelError, match="LogisticRegression is not a multi-layer perceptron"):
        network_of_sklearn(LogisticRegression())
    with pytest.raises(ModelError, match="has not been fitted"):
        network_of_sklearn(MLPClassifier())


def test_files_that_hold_no_network(tmp_path, rng) -> None:
    pytest.importorskip("onnx", reason="the onnx extra is not installed")
    whole = tmp_path / "whole"
    for ending in (".npz", ".onnx"):
        random_network(rng, [5, 9, 2]).save(whole.with_suffix(ending))
        (tmp_path / f"truncated{ending}").write_bytes(whole.with_suffix(ending).read_bytes()[:-40])
        (tmp_path / f"noise{ending}").write_bytes(rng.bytes(3000))
        (tmp_path / f"empty{ending}").touch()
    np.savez(tmp_path / "other.npz", weights=np.ones(3))
    np.savez(tmp_path / "half.npz", W0=np.ones((3, 2)))
    np.savez(tmp_path / "code.npz", W0=np.array([print], dtype=object), allow_pickle=True)
    (tmp_path / "model.pkl").write_bytes(b"anything")
    cases = {
        "nowhere.npz": "does not exist",
        "truncated.npz": "not a readable .npz",
        "truncated.onnx": "not a readable ONNX file|cannot be used|not a plain dense network",
        "noise.npz": "not a readable .npz",
        "noise.onnx": "not a readable ONNX",
        "empty.npz": "is empty",
        "empty.onnx": "is empty",
        "other.npz": "has no W0; .* it holds weights",
        "half.npz": "W0 but no b0",
        "code.npz": "not a readable .npz",
        "model.pkl": "is a pickle, which runs code",
        "whole": "ending '', which is not known",
        ".": "is a folder",
    }
    whole.write_text("x")
    for name, complaint in cases.items():
        with pytest.raises(ModelError, match=complaint):
            load_model(tmp_path / name)
    with pytest.raises(ModelError, match="cannot be written"):
        random_network(rng, [5, 9, 2]).save(tmp_path / "no" / "folder.npz")


def test_reference_networks_give_their_golden_scores(shared) -> None:
    for name in ("census", "compas", "german"):
        network = load_model(shared / "reference" / name / "model.npz")
        assert isinstance(network, Network)
        with np.load(shared / "reference" / name / "golden.npz") as golden:
            twins = np.repeat(golden["X"][:, None, :], len(golden["table"]), axis=1)
            twins[:, :, golden["protected"]] = golden["table"]
            found = network.scores(twins.reshape(-1, twins.shape[-1])).reshape(golden["scores"].shape)
            np.testing.assert_allclose(found, golden["scores"], atol=1e-5)
