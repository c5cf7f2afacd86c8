"""Classes and bits against sorting and sweeping, exactly, on the engine's own scores."""

from __future__ import annotations

import engine_reference as reference
import numpy as np
import pytest
from engine_reference import random_codes, random_plan

from fairbits.engine import evaluate, masked, scores


def by_reference(values, epsilon, partition, bounded):
    if partition == "grid":
        return reference.grid(values, epsilon, bounded)
    return reference.sweep(values, epsilon)


@pytest.mark.parametrize("partition", ["constrained", "grid"])
@pytest.mark.parametrize("m", [1, 2, 5, 16, 90])
@pytest.mark.parametrize("n", [1, 7, 48, 501])
def test_evaluate_measures_its_own_scores(partition, m, n):
    plan = random_plan((16, 8, 2), m=m, lookups=(3, 4))
    codes = random_codes(plan, n)
    values = scores(plan, codes, threads=1)
    result = evaluate(plan, codes, epsilon=0.025, partition=partition, threads=1)
    k, q_1 = by_reference(values, 0.025, partition, True)
    np.testing.assert_array_equal(result.k, k)
    np.testing.assert_allclose(result.q_1, q_1, atol=1e-6)
    np.testing.assert_array_equal(result.low, values.min(axis=1))
    np.testing.assert_array_equal(result.high, values.max(axis=1))
    np.testing.assert_array_equal(result.low_twin, values.argmin(axis=1))
    np.testing.assert_array_equal(result.high_twin, values.argmax(axis=1))
    np.testing.assert_array_equal(result.favourable, (values >= 0.5).sum(axis=1))


def classes(values, *, epsilon, partition, bounded=True, threads=1):
    valid = np.ones(values.shape, bool)
    found = masked(values, valid, epsilon=epsilon, partition=partition, bounded=bounded, threads=threads)
    return found.k, found.q_1


@pytest.mark.parametrize("partition", ["constrained", "grid"])
@pytest.mark.parametrize("epsilon", [0.01, 0.025, 0.2, 3.0])
def test_regression_scores_are_unbounded(partition, epsilon):
    plan = random_plan((16, 8, 1), m=40, head="linear")
    codes = random_codes(plan, 100) * 5
    values = scores(plan, codes, threads=1)
    assert values.min() < -1
    assert values.max() > 1
    k, q_1 = by_reference(values, epsilon, partition, False)
    result = evaluate(plan, codes, epsilon=epsilon, partition=partition, threads=1)
    np.testing.assert_array_equal(result.k, k)
    np.testing.assert_allclose(result.q_1, q_1, atol=1e-6)
    ready = classes(values, epsilon=epsilon, partition=partition, bounded=False, threads=1)
    np.testing.assert_array_equal(ready[0], k)
    np.testing.assert_array_equal(ready[1], result.q_1)


@pytest.mark.parametrize("partition", ["constrained", "grid"])
def test_ready_scores_with_many_ties(partition):
    values = np.random.default_rng(0).integers(0, 41, (500, 30)).astype(np.float32) * np.float32(0.025)
    k, q_1 = classes(values, epsilon=0.025, partition=partition, threads=2)
    expected = by_reference(values, 0.025, partition, True)
    np.testing.assert_array_equal(k, expected[0])
    np.testing.assert_allclose(q_1, expected[1], atol=1e-6)


@pytest.mark.parametrize(
    ("sizes", "k", "q_1"),
    [([16], 1, 0.0), ([1] * 16, 16, 4.0), ([4] * 4, 4, 2.0), ([8, 4, 2, 1, 1], 5, 1.875)],
)
@pytest.mark.parametrize("partition", ["constrained", "grid"])
def test_check_values_of_the_method(sizes, k, q_1, partition):
    row = np.repeat(np.arange(len(sizes)) * 0.05 + 0.01, sizes).astype(np.float32)
    got = classes(row[None, ::-1], epsilon=0.025, partition=partition, threads=1)
    assert (got[0][0], got[1][0]) == (k, q_1)


def test_certainty_opens_no_bin_of_its_own():
    k, _ = classes(np.array([[0.99, 1.0]], np.float32), epsilon=0.025, partition="grid", threads=1)
    assert k[0] == 1
    k, _ = classes(np.array([[0.99, 1.0]], np.float32), epsilon=0.025, partition="grid", bounded=False, threads=1)
    assert k[0] == 2


def test_classes_do_not_depend_on_the_order_of_twins():
    rng = np.random.default_rng(3)
    values = rng.random((100, 37), dtype=np.float32)
    one = classes(values, epsilon=0.05, partition="constrained", threads=1)
    two = classes(rng.permuted(values, axis=1), epsilon=0.05, partition="constrained", threads=1)
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
