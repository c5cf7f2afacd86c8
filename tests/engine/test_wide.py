"""Layers that go through NumPy's matrix product: equal to the kernels, to plain NumPy, and to themselves."""

from __future__ import annotations

import dataclasses

import engine_reference as reference
import numpy as np
import pytest
from engine_reference import logits, random_codes, random_plan, score
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbits import Encoding, Twins
from fairbits.engine import (
    ACTIVATIONS,
    accuracies,
    evaluate,
    forecast,
    gradients,
    masked,
    scores,
    study,
    wide,
)
from fairbits.engine import evaluation as front
from fairbits.errors import ModelError, TableError
from fairbits.models import Do
from tests.conftest import random_network, random_people

EPSILON = 0.025
FIGURES = ("k", "q_1", "low", "high", "low_twin", "high_twin", "favourable")


def through_numpy(plan):
    """The same plan, for so few people that no kernel is worth compiling."""
    found = dataclasses.replace(plan, people=1)
    assert plan.fused
    assert not found.fused
    return found


def away_from_borders(table, epsilon=EPSILON, margin=1e-5):
    """Whose classes no rounding of the scores (people × twins) can change."""
    gaps = np.abs(table[:, :, None] - table[:, None, :])
    return ~(np.abs(gaps - epsilon) < margin).any(axis=(1, 2)) & ~(np.abs(table - 0.5) < margin).any(axis=1)


shapes = st.lists(st.integers(1, 90), min_size=0, max_size=4)


@settings(max_examples=25, deadline=None)
@given(
    hidden=shapes,
    m=st.one_of(st.integers(1, 40), st.sampled_from([200, 700])),
    numeric=st.integers(0, 5),
    lookups=st.lists(st.integers(1, 9), max_size=4),
    activation=st.sampled_from(ACTIVATIONS),
    head=st.sampled_from([("sigmoid", 1), ("linear", 1), ("softmax", 2), ("softmax", 4)]),
    seed=st.integers(0, 2**31),
)
def test_classes_are_those_of_plain_numpy_whatever_the_shape(hidden, m, numeric, lookups, activation, head, seed):
    kind, outputs = head
    plan = random_plan(
        (*hidden, outputs),
        m=m,
        numeric=numeric,
        lookups=lookups,
        activation=activation,
        head=kind,
        favourable=int(outputs > 1),
        seed=seed,
    )
    plan, codes = through_numpy(plan), random_codes(plan, 12, seed)
    table = scores(plan, codes, threads=1)
    expected = score(plan, logits(plan, codes))
    np.testing.assert_allclose(table, expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max()))
    found = evaluate(plan, codes, epsilon=EPSILON, partition="constrained", threads=1)
    np.testing.assert_array_equal(found.k, reference.sweep(table, EPSILON)[0])
    sure = away_from_borders(expected, margin=1e-5 * max(1, np.abs(expected).max()))
    np.testing.assert_array_equal(found.k[sure], reference.sweep(expected.astype(np.float32), EPSILON)[0][sure])


def test_a_wide_layer_is_enough():
    plan = random_plan((1500, 700, 2), m=3)
    assert not plan.fused
    assert random_plan((700, 700, 2), m=3).fused
    codes = random_codes(plan, 40)
    np.testing.assert_allclose(scores(plan, codes), score(plan, logits(plan, codes)), rtol=0, atol=1e-5)


@pytest.fixture(scope="module")
def plan():
    return through_numpy(random_plan((64, 32, 16, 2), m=30, numeric=4, lookups=(3, 4, 9)))


def test_threads_change_no_bit(plan):
    codes = random_codes(plan, 1500)
    chosen = np.arange(1500) % plan.m
    found, slopes = scores(plan, codes, threads=1), gradients(plan, codes, chosen, threads=1)
    for threads in (2, 3):
        np.testing.assert_array_equal(scores(plan, codes, threads=threads), found)
        np.testing.assert_array_equal(gradients(plan, codes, chosen, threads=threads), slopes)


def rounds_rows_alike():
    """Whether the BLAS at hand rounds equal rows of one product alike: OpenBLAS on some processors does not."""
    rng = np.random.default_rng(0)
    row, weights = rng.random((1, 64), dtype=np.float32), rng.random((64, 32), dtype=np.float32)
    found = np.repeat(row, 240, axis=0) @ weights
    return bool((found == found[0]).all())


@pytest.mark.skipif(not rounds_rows_alike(), reason="the BLAS at hand rounds a row by its place among the others")
@pytest.mark.parametrize("partition", ["constrained", "grid"])
def test_neither_threads_nor_neighbours_change_a_bit(plan, partition, monkeypatch):
    monkeypatch.setattr("fairbits.engine.threads.CHUNK", 1)
    monkeypatch.setattr("fairbits.engine.threads.SMALL", 1)
    codes, order = random_codes(plan, 301), np.random.default_rng(5).permutation(301)

    def run(rows, threads=1):
        return evaluate(plan, rows, epsilon=EPSILON, partition=partition, threads=threads)

    together, alone = run(codes), run(codes[123:124])
    for name in FIGURES:
        expected = getattr(together, name)
        np.testing.assert_array_equal(getattr(run(codes, 3), name), expected)
        np.testing.assert_array_equal(getattr(run(codes[order], 2), name), expected[order])
        np.testing.assert_array_equal(getattr(alone, name), expected[123:124])
    chosen = np.arange(301) % plan.m
    slopes = gradients(plan, codes, chosen, threads=1)
    np.testing.assert_array_equal(gradients(plan, codes[order], chosen[order], threads=3), slopes[order])
    np.testing.assert_array_equal(gradients(plan, codes[7:8], chosen[7:8]), slopes[7:8])


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(1, 40), m=st.integers(1, 30), share=st.sampled_from([0.2, 0.9, 2.0]))
def test_few_scores_are_counted_as_many_are(seed, n, m, share):
    rng = np.random.default_rng(seed)
    table = rng.random((n, m), dtype=np.float32) * rng.choice(np.array([0.1, 1, 5], np.float32))
    table = np.where(rng.random((n, m)) < 0.3, np.float32(0.025) * np.round(table / np.float32(0.025)), table)
    valid = rng.random((n, m)) < share
    for partition in ("constrained", "grid"):
        options = {"epsilon": EPSILON, "partition": partition, "bounded": bool(seed % 2)}
        few = masked(table, valid, **options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(front, "FEW_SCORES", 0)
            many = masked(table, valid, **options)
        for name in (*FIGURES, "twins"):
            np.testing.assert_array_equal(getattr(few, name), getattr(many, name), err_msg=name)


@pytest.mark.parametrize("head", [("sigmoid", 1), ("linear", 1), ("softmax", 2), ("softmax", 5)])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_are_those_of_the_kernels(activation, head):
    kind, outputs = head
    fused = random_plan(
        (19, 10, outputs), m=5, lookups=(3, 2, 1, 6), activation=activation, head=kind, favourable=int(outputs > 1)
    )
    plan, codes, chosen = through_numpy(fused), random_codes(fused, 50), np.arange(50) % 5
    expected = gradients(fused, codes, chosen)
    np.testing.assert_allclose(gradients(plan, codes, chosen), expected, rtol=0, atol=2e-6)
    inner, expected = forecast(plan, codes, chosen).inner, forecast(fused, codes, chosen).inner
    np.testing.assert_allclose(inner, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("head", ["softmax", "sigmoid", "linear"])
@pytest.mark.parametrize("partition", ["constrained", "grid"])
def test_interventions_are_those_of_the_kernels(rng, people_schema, head, partition, monkeypatch):
    encoding, twins = Encoding.one_hot(people_schema), Twins(people_schema)
    outputs = 3 if head == "softmax" else 1
    network = random_network(rng, [encoding.width, 9, 6, outputs], head=head)
    people, labels = random_people(rng, people_schema, 61), rng.integers(0, max(network.classes, 2), 61).astype(float)
    dos = [Do(layer, j, value) for layer in (1, 0) for j in range(6) for value in (0.0, 0.7)]
    options = {"epsilon": EPSILON, "partition": partition, "threads": 2}

    def ask():
        valid = np.random.default_rng(3).random((61, twins.m)) < 0.6
        yield study(network, encoding, twins, people, dos, bits=True, **options)
        yield study(network, encoding, twins, people, dos, bits=True, valid=valid, **options)
        if head != "linear":
            yield accuracies(network, encoding, people, labels, dos, threads=2)

    expected = list(ask())
    monkeypatch.setattr("fairbits.engine.plan.WIDE", -1)
    monkeypatch.setattr("fairbits.engine.interventions.FASTER", -1)
    for block in (2**20, 100):
        monkeypatch.setattr(wide, "BLOCK", block)
        monkeypatch.setattr("fairbits.engine.interventions.BLOCK", block)
        for found, want in zip(ask(), expected, strict=True):
            if isinstance(want, np.ndarray):
                assert np.abs(found - want).max() <= 1.5 / 61
                continue
            assert (found.k == want.k).mean() > 0.99
            assert (found.flips == want.flips).mean() > 0.99
            assert want.q_1 is None or (np.abs(found.q_1 - want.q_1) < 1e-5).mean() > 0.99


@pytest.mark.parametrize("value", [np.nan, np.inf, -2, 0.5, 1e300])
def test_unusable_codes_are_named(plan, value):
    codes = random_codes(plan, 100)
    codes[98, 5] = value
    with pytest.raises(TableError, match=r"column 6 must be whole numbers within -1..1, but row 99 holds"):
        evaluate(plan, codes, epsilon=EPSILON, partition="grid")
    with pytest.raises(TableError, match="row 99 holds"):
        gradients(plan, codes, np.zeros(100, int))


def test_overflow_names_the_first_row(monkeypatch):
    plan = through_numpy(random_plan((9, 6, 3), m=4, numeric=2))
    plan = dataclasses.replace(plan, weights=plan.weights * np.float32(1e10))
    codes = random_codes(plan, 2000)
    codes[[1234, 1235, 1900], 0] = 1e37
    monkeypatch.setattr(front, "BLOCK", 1)
    for ask in (scores, lambda *a: evaluate(*a, epsilon=EPSILON, partition="grid")):
        with pytest.raises(ModelError, match="overflows for row 1,235;"):
            ask(plan, codes)
