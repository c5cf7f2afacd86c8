"""The published benchmark networks: scores and grid classes as the artifact computes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairbits.engine import Plan, evaluate, scores

FOLDERS = [parent / "shared" / "reference" for parent in Path(__file__).resolve().parents]
REFERENCE = next((folder for folder in FOLDERS if folder.is_dir()), None)


@pytest.fixture(params=["census", "compas", "german"])
def golden(request):
    if REFERENCE is None or not (REFERENCE / request.param).is_dir():
        pytest.skip("the reference networks (shared/reference beside the repository) are not here")
    with (
        np.load(REFERENCE / request.param / "golden.npz") as data,
        np.load(REFERENCE / request.param / "model.npz") as net,
    ):
        return dict(data), dict(net)


def plan_of(data, net):
    protected = data["protected"]
    rest = np.setdiff1d(np.arange(data["X"].shape[1]), protected)
    layers = len(net) // 2
    return Plan(
        bias=net["b0"],
        twins=data["table"] @ net["W0"][protected].astype(np.float64),
        widths=[net[f"b{i}"].size for i in range(layers)],
        head="softmax",
        favourable=1,
        activations=["relu"] * (layers - 1),
        alphas=np.zeros(layers - 1),
        weights=np.concatenate([net[f"W{i}"].ravel() for i in range(1, layers)]),
        biases=np.concatenate([net[f"b{i}"] for i in range(1, layers)]),
        numeric_columns=rest,
        numeric_shifts=np.zeros(rest.size),
        numeric_slopes=net["W0"][rest],
    )


def test_scores_and_classes(golden):
    data, net = golden
    plan = plan_of(data, net)
    np.testing.assert_allclose(scores(plan, data["X"], threads=1), data["scores"], rtol=0, atol=1e-5)
    result = evaluate(plan, data["X"], epsilon=0.025, partition="grid", threads=1)
    np.testing.assert_array_equal(result.k, data["k"])
