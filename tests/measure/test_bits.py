"""The measure against its definition, the paper's worked examples, and its properties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fairbits import qid
from fairbits.certify.exact import class_bounds
from fairbits.engine import masked, tolerance_of, vectors
from fairbits.errors import OptionError
from fairbits.measure import bits_limit
from fairbits.measure.bits import constrained


def scores_of_sizes(sizes: list[int]) -> np.ndarray:
    """One person whose twins fall into classes of these sizes."""
    return np.repeat(np.linspace(0, 1, len(sizes)), sizes)[None, :]


@pytest.mark.parametrize(
    ("sizes", "q_1", "q_inf"),
    [
        ([16], 0.0, 0.0),
        ([1] * 16, 4.0, 4.0),
        ([4, 4, 4, 4], 2.0, 2.0),
        ([8, 4, 2, 1, 1], 1.875, np.log2(5)),
    ],
)
@pytest.mark.parametrize("partition", ["constrained", "grid"])
def test_the_papers_worked_examples(sizes: list[int], q_1: float, q_inf: float, partition: str) -> None:
    result = qid(scores_of_sizes(sizes), partition=partition)
    assert result.k[0] == len(sizes)
    assert result.q_1[0] == pytest.approx(q_1)
    assert result.q_inf[0] == pytest.approx(q_inf)


tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 12)),
    elements=st.floats(0, 1, allow_nan=False, allow_subnormal=False),
)
tolerances = st.floats(0.001, 1.2)


@given(tables, tolerances, st.sampled_from(["constrained", "grid"]))
def test_bits_stay_within_their_bounds(scores: np.ndarray, epsilon: float, partition: str) -> None:
    result = qid(scores, epsilon=epsilon, partition=partition)
    m = scores.shape[1]
    assert (result.q_1 >= 0).all()
    assert (result.q_1 <= result.q_inf + 1e-9).all()
    assert (result.q_inf <= bits_limit(m, epsilon) + 1e-9).all()
    assert np.allclose(result.masses.sum(axis=1), 1)
    middle = result.renyi(0.5)
    assert (middle >= result.q_1 - 1e-9).all()
    assert (middle <= result.q_inf + 1e-9).all()


@given(tables, tolerances, st.randoms(use_true_random=False))
def test_the_order_of_twins_does_not_matter(scores: np.ndarray, epsilon: float, random) -> None:
    order = list(range(scores.shape[1]))
    random.shuffle(order)
    plain, shuffled = qid(scores, epsilon=epsilon), qid(scores[:, order], epsilon=epsilon)
    assert (plain.k == shuffled.k).all()
    np.testing.assert_allclose(plain.q_1, shuffled.q_1)


@given(tables, tolerances, tolerances)
def test_k_never_grows_with_epsilon(scores: np.ndarray, one: float, other: float) -> None:
    narrow, wide = sorted((one, other))
    assert (qid(scores, epsilon=narrow).k >= qid(scores, epsilon=wide).k).all()


@given(hnp.arrays(np.float64, (1, 6), elements=st.floats(0, 1, width=32)), tolerances)
def test_the_partition_is_the_smallest_that_keeps_the_constraint(scores: np.ndarray, epsilon: float) -> None:
    """Against brute force over all ways to cut the sorted scores."""
    ranked = np.sort(scores[0])
    best = min(
        cuts + 1
        for cuts in range(6)
        for places in itertools.combinations(range(1, 6), cuts)
        if all(part[-1] - part[0] <= tolerance_of(epsilon) for part in np.split(ranked, places))
    )
    assert qid(scores, epsilon=epsilon).k[0] == best


def test_a_grid_depends_on_where_it_starts_and_the_constraint_does_not() -> None:
    close = [[0.0249, 0.0251]]
    assert qid(close, partition="grid").k[0] == 2
    assert qid(close).k[0] == 1


def test_certainty_is_not_a_bin_of_its_own() -> None:
    assert qid([[0.99, 1.0]], partition="grid").k[0] == 1
    every = np.linspace(0, 1, 2001)[None, :]
    assert qid(every, partition="grid").k[0] == 40


@given(tables, st.floats(0.01, 0.6), st.floats(-3, 3))
def test_nobodys_classes_on_the_grid_depend_on_others(scores: np.ndarray, epsilon: float, shift: float) -> None:
    scores[0, 0] = 1.0
    together = qid(np.concatenate([scores, scores + shift]), epsilon=epsilon, partition="grid").k[: len(scores)]
    alone = [qid(row[None], epsilon=epsilon, partition="grid").k[0] for row in scores]
    assert together.tolist() == alone


def test_values_beyond_probabilities_have_a_bin_for_one() -> None:
    close = [[0.99, 1.0]]
    assert qid(close, partition="grid", bounded=False).k[0] == 2
    assert qid(close, partition="grid", bounded=True).k[0] == 1


def test_unequal_population_weights() -> None:
    result = qid([[0.0, 0.5, 1.0]], weights=[2, 1, 1])
    assert result.q_1[0] == pytest.approx(1.5)
    assert result.k[0] == 3


def test_orders_of_renyi() -> None:
    result = qid(scores_of_sizes([8, 4, 2, 1, 1]))
    assert result.renyi(0)[0] == pytest.approx(result.q_inf[0])
    assert result.renyi(1)[0] == pytest.approx(result.q_1[0])
    assert result.renyi(np.inf)[0] == pytest.approx(1.0)
    for close in (1 - 1e-6, 1 - 1e-12, 1 + 1e-12, 1 + 1e-6):
        assert result.renyi(close)[0] == pytest.approx(result.q_1[0], abs=1e-5)


@given(tables, tolerances)
def test_bits_fall_with_the_order(scores: np.ndarray, epsilon: float) -> None:
    """Above order 1 they are below Q1, not in between; and no order overflows, underflows or has a signed zero."""
    result = qid(scores, epsilon=epsilon)
    orders = (0, 0.3, 1, 1.5, 2, 40, 3000, np.inf)
    bits = np.array([result.renyi(order) for order in orders])
    assert np.isfinite(bits).all()
    assert (np.diff(bits, axis=0) <= 1e-9).all()
    assert (np.copysign(1.0, bits) == 1).all()
    assert np.allclose(bits[-1], -np.log2(result.masses.max(axis=1)))


@pytest.mark.parametrize(
    ("scores", "options", "complaint"),
    [
        ([[0.1, np.nan]], {}, "1 scores are not finite .*in row 1"),
        ([0.1, 0.2], {}, r"for one person give \[\[…\]\]"),
        ([[]], {}, "people × protected values"),
        ([["a"]], {}, "must be numbers"),
        ([[0.1, 0.2]], {"epsilon": 0}, "epsilon is 0; the tolerance between scores must be larger than 0"),
        ([[0.1, 0.2]], {"epsilon": float("nan")}, "epsilon is nan"),
        ([[0.1, 0.2]], {"partition": "constraint"}, "Did you mean 'constrained'"),
        ([[0.1, 0.2]], {"weights": [1, -1]}, "none negative"),
        ([[0.1, 0.2]], {"weights": [1]}, "weights must be 2 numbers"),
    ],
)
def test_what_cannot_be_measured_is_said(scores, options: dict, complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        qid(scores, **options)


def test_limits() -> None:
    assert bits_limit(90, 0.025) == pytest.approx(np.log2(40))
    assert bits_limit(12, 0.025) == pytest.approx(np.log2(12))
    assert bits_limit(90, 2.0) == 0
    assert bits_limit(90, 0.025, regression=True) == pytest.approx(np.log2(90))


def test_golden_scores_on_the_grid(shared) -> None:
    for name in ("census", "compas", "german"):
        with np.load(shared / "reference" / name / "golden.npz") as golden:
            assert (qid(golden["scores"], partition="grid").k == golden["k"]).all()


def test_scores_exactly_epsilon_apart_are_one_class() -> None:
    """Only what is further apart than ε is told apart; the numbers are exact in binary."""
    assert constrained(np.array([[0.0, 0.25, 0.5, 0.75]]), 0.25).max() + 1 == 2
    assert constrained(np.array([[0.0, 0.25]]), 0.25).max() == 0


#: Decimals with two digits or three, and a tolerance that is one too: 976 pairs are exactly ε apart.
EXACTLY_APART = [
    (low / 1000, (low + round(1000 * epsilon)) / 1000, epsilon)
    for epsilon in (0.025, 0.01, 0.05, 0.1)
    for low in range(0, 1001 - round(1000 * epsilon), 3)
]


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_decimals_exactly_epsilon_apart_are_one_class(kind: type) -> None:
    """0.1 and 0.125 are not further than 0.025 apart; without a rounding margin every other such pair fell in two."""
    for epsilon in {pair[2] for pair in EXACTLY_APART}:
        table = np.array([pair[:2] for pair in EXACTLY_APART if pair[2] == epsilon], dtype=kind)
        assert (qid(table, epsilon=epsilon).k == 1).all()
        assert (qid(table + kind(1e-5) * np.array([0, 1], dtype=kind), epsilon=epsilon).k == 2).all()
        ready = table.astype(np.float32)
        everybody = np.ones(table.shape, dtype=bool)
        assert (masked(ready, everybody, epsilon=epsilon, partition="constrained").k == 1).all()
        both = np.stack([ready, 1 - ready], axis=2)
        assert (vectors(both, epsilon=epsilon, favourable=1).k == 1).all()
        fewest, most = class_bounds(table.astype(np.float64), table.astype(np.float64), epsilon)
        assert (fewest == 1).all()
        assert (most >= 1).all()


def test_which_class_is_favourable_changes_nothing() -> None:
    """Upwards {0, .02} {.03}, downwards {0} {.02, .03}: sizes differ with the direction, unless both are looked at."""
    rng = np.random.default_rng(0)
    scores = (rng.integers(0, 41, (400, 9)) / 100).astype(np.float32)
    plain, turned = qid(scores), qid(1 - scores.astype(np.float64))
    np.testing.assert_array_equal(plain.k, turned.k)
    np.testing.assert_allclose(plain.q_1, turned.q_1)
    np.testing.assert_array_equal(np.sort(plain.masses, axis=1), np.sort(turned.masses, axis=1))
    everybody = np.ones(scores.shape, dtype=bool)
    for table in (scores, np.float32(1) - scores):
        counted = masked(table, everybody, epsilon=0.025, partition="constrained")
        paired = vectors(np.stack([1 - table, table], axis=2), epsilon=0.025, favourable=1)
        for found in (counted, paired):
            np.testing.assert_array_equal(found.k, plain.k)
            np.testing.assert_allclose(found.q_1, plain.q_1, atol=1e-6)
    shares = np.arange(1.0, 10.0)
    np.testing.assert_allclose(qid(scores, weights=shares).q_1, qid(1 - scores, weights=shares).q_1, atol=1e-6)


def test_the_favourable_one_of_three_classes_changes_nothing() -> None:
    table = np.random.default_rng(1).dirichlet((1, 1, 1), size=(300, 8)).astype(np.float32)
    found = [vectors(table, epsilon=0.2, favourable=one) for one in range(3)]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].k, other.k)
        np.testing.assert_array_equal(found[0].q_1, other.q_1)


def test_a_class_that_nobody_is_in_counts_at_order_0() -> None:
    found = qid([[0.1, 0.5, 0.9]], weights=[0.5, 0.5, 0.0])
    assert found.renyi(0).tolist() == found.q_inf.tolist() == [pytest.approx(np.log2(3))]
    assert found.renyi(1).tolist() == [pytest.approx(1.0)]
