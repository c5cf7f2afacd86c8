"""Further training: slopes against finite differences, the same seed twice, and what frozen means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from fairbits.models.native.trainer import Fitting, Learner, _log_masses, refit
from tests.conftest import random_network

ACTIVATIONS = ("relu", "leaky_relu", "tanh", "sigmoid", "elu", "gelu", "gelu_tanh", "identity")
HEADS = (("softmax", 3, 1), ("softmax", 2, 0), ("sigmoid", 1, 1), ("sigmoid", 1, 0), ("linear", 1, 0))


def _learner(rng, activation, head, outputs, favourable):  # type: ignore[no-untyped-def]
    network = random_network(rng, [4, 6, 5, outputs], activation=activation, head=head, favourable=favourable)
    rows = rng.normal(size=(17, 4))
    targets = rng.normal(size=17) if head == "linear" else rng.integers(0, max(outputs, 2), 17)
    return Learner(network, targets=targets, dtype=np.float64), rows, targets


def _check(learner: Learner, loss, rng) -> None:  # type: ignore[no-untyped-def]
    slopes = loss()
    for _ in range(12):
        place, step = int(rng.integers(len(learner.flat))), 1e-6
        learner.flat[place] += step
        above = loss().loss
        learner.flat[place] -= 2 * step
        below = loss().loss
        learner.flat[place] += step
        assert slopes.flat[place] == pytest.approx((above - below) / (2 * step), abs=1e-6, rel=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("head", "outputs", "favourable"), HEADS)
def test_slopes(activation, head, outputs, favourable, rng) -> None:  # type: ignore[no-untyped-def]
    learner, rows, targets = _learner(rng, activation, head, outputs, favourable)
    _check(learner, lambda: learner.slopes(rows, targets, np.ones(17)), rng)
    _check(learner, lambda: learner.pair_slopes(rows[:8], rows[8:16]), rng)
    _check(learner, lambda: learner.pair_slopes(rows[:8], rows[8:16], whole=True), rng)
    weights = rng.random(17)
    _check(learner, lambda: learner.slopes(rows, targets, weights), rng)
    if head != "linear":
        _check(learner, lambda: learner.prejudice_slopes(rows[:16], np.array([0.5, 0.3, 0.15, 0.05])), rng)


def test_rows_of_weight_zero_are_not_there(rng) -> None:  # type: ignore[no-untyped-def]
    learner, rows, targets = _learner(rng, "tanh", "softmax", 2, 1)
    weights = np.r_[np.ones(9), np.zeros(8)]
    weighted = learner.slopes(rows, targets, weights * 17 / 9)
    plain = learner.slopes(rows[:9], targets[:9], np.ones(9))
    assert weighted.loss == pytest.approx(plain.loss)
    assert weighted.flat == pytest.approx(plain.flat)


def _task(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    rows = rng.normal(size=(600, 3)).astype(np.float32) * [1, 50, 0.1] + [0, 1000, 5]
    return rows.astype(np.float32), ((rows[:, 1] - 1000) / 50 + rows[:, 0] > 0).astype(np.int64)


@pytest.mark.parametrize(("head", "outputs"), [("softmax", 2), ("sigmoid", 1)])
def test_it_learns_whatever_the_scale(head, outputs, rng) -> None:  # type: ignore[no-untyped-def]
    rows, targets = _task(rng)
    network = random_network(rng, [3, 8, outputs], head=head)
    better = refit(network, rows, targets, np.random.default_rng(0), fitting=Fitting(600, learning_rate=0.01))
    assert (better.labels(rows) == targets).mean() > 0.95
    assert (better.inputs, better.widths) == (network.inputs, network.widths)


def test_a_regression_learns(rng) -> None:  # type: ignore[no-untyped-def]
    rows, _ = _task(rng)
    targets = 300 * rows[:, 0] + rows[:, 1]
    network = random_network(rng, [3, 8, 1], head="linear")
    # The outputs start three orders of magnitude too small, so the steps must be large.
    better = refit(network, rows, targets, np.random.default_rng(0), fitting=Fitting(1500, learning_rate=0.3))
    assert np.mean((better.scores(rows) - targets) ** 2) < 0.1 * np.var(targets)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 2), (128, 2), (60, 7)])
def test_logarithms_of_masses_are_those_of_scipy(shape, dtype, rng) -> None:  # type: ignore[no-untyped-def]
    for scale in (1, 30, 10_000):
        logits = (rng.normal(size=shape) * scale).astype(dtype)
        ours, theirs = _log_masses(logits), special.log_softmax(logits, axis=1)
        assert ours.dtype == theirs.dtype == dtype
        np.testing.assert_array_equal(ours, theirs)


def test_same_seed_same_weights(rng) -> None:  # type: ignore[no-untyped-def]
    rows, targets = _task(rng)
    network = random_network(rng, [3, 8, 2])
    one, two, other = (refit(network, rows, targets, np.random.default_rng(s), fitting=Fitting(50)) for s in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(one.weights, two.weights, strict=True))
    assert not np.array_equal(one.weights[0], other.weights[0])
    assert not np.array_equal(one.weights[0], network.weights[0])


def test_the_penalty_makes_pairs_alike_and_frozen_inputs_stay(rng) -> None:  # type: ignore[no-untyped-def]
    rows, targets = _task(rng)
    network = random_network(rng, [3, 8, 2])

    def pairs(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        one = rows[rng.integers(0, len(rows), count)]
        other = one.copy()
        other[:, 2] += 0.2
        return one, other

    def spread(chosen) -> float:  # type: ignore[no-untyped-def]
        one, other = pairs(np.random.default_rng(9), 500)
        return float(np.abs(chosen.scores(one) - chosen.scores(other)).mean())

    options = {"updates": 400, "learning_rate": 0.01}
    plain = refit(network, rows, targets, np.random.default_rng(0), fitting=Fitting(**options))
    alike = refit(
        network, rows, targets, np.random.default_rng(0), fitting=Fitting(**options, consistency=10), pairs=pairs
    )
    assert spread(alike) < 0.3 * spread(plain)
    frozen = refit(network, rows, targets, np.random.default_rng(0), fitting=Fitting(**options), frozen=[2])
    np.testing.assert_allclose(frozen.weights[0][2], network.weights[0][2], rtol=1e-5)
