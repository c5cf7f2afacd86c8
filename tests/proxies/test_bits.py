from __future__ import annotations

import numpy as np
import pytest

from fairbits.measure import Grouping
from fairbits.proxies import chained_bits, score_bits
from tests.proxies.planted import gaussian, groups_of, noisy_copy, two_groups


@pytest.mark.parametrize("plant", [noisy_copy, gaussian])
@pytest.mark.parametrize(("n", "repetitions"), [(1000, 60), (10_000, 15)])
def test_the_lower_bound_holds_and_is_near(plant, n, repetitions):
    lows, values, truth = [], [], 0.0
    for i in range(repetitions):
        rng = np.random.default_rng((n, i))
        a, s, truth = plant(n, rng)
        found = score_bits(two_groups(a), s, rng)
        assert found.guaranteed <= found.low <= found.bits
        lows.append(found.low)
        values.append(found.bits)
    # 95 % of repetitions; a run of 60 (15) may by chance miss 7 (3) of them.
    assert np.sum(np.array(lows) > truth) <= {60: 7, 15: 3}[repetitions]
    assert abs(np.mean(values) - truth) < (0.05 if n == 1000 else 0.01)
    assert np.mean(lows) > truth / 2


def test_nothing_is_claimed_where_there_is_nothing():
    claims = 0
    for i in range(60):
        rng = np.random.default_rng(i)
        found = score_bits(two_groups(rng.integers(0, 2, 1000)), rng.normal(size=1000), rng)
        claims += found.low > 0
        assert found.placebo < 0.005
    assert claims <= 7


def test_a_score_that_is_the_attribute_tells_everything():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 4000)
    found = score_bits(two_groups(a), a.astype(float), rng)
    assert found.bits > 0.98
    assert found.guess_after == pytest.approx(1.0)
    assert found.guess_before < 0.6


def test_one_group_and_hardly_anybody():
    rng = np.random.default_rng(0)
    lonely = score_bits(Grouping("sex", ("f", "m"), np.zeros(500, dtype=np.int64)), rng.normal(size=500), rng)
    assert (lonely.bits, lonely.low, lonely.entropy) == (0.0, 0.0, 0.0)
    assert score_bits(two_groups([0, 1, 0]), np.arange(3.0), rng).bits == 0.0


def test_unknown_values_are_left_out():
    rng = np.random.default_rng(1)
    a, s, _ = noisy_copy(2000, rng)
    hidden = np.where(rng.random(2000) < 0.3, -1, a)
    found = score_bits(two_groups(hidden), s, rng)
    assert found.people == (hidden >= 0).sum()


def test_a_constant_score_tells_nothing():
    rng = np.random.default_rng(1)
    found = score_bits(two_groups(rng.integers(0, 2, 1000)), np.full(1000, 0.5), rng)
    assert found.bits < 0.005
    assert found.low == 0


def test_intersections_add_up_by_the_chain_rule():
    rng = np.random.default_rng(2)
    n = 20_000
    a, b = rng.integers(0, 2, n), rng.integers(0, 2, n)
    score = (2 * a + b).astype(float)  # tells both completely
    both = chained_bits([two_groups(a), two_groups(b, "race")], score, rng)
    assert both.bits == pytest.approx(2.0, abs=0.05)
    xor = chained_bits([two_groups(a), two_groups(b, "race")], (a ^ b).astype(float), rng)
    assert xor.bits == pytest.approx(1.0, abs=0.05)  # no attribute alone shows it
    assert score_bits(two_groups(a), (a ^ b).astype(float), rng).bits < 0.01


def test_the_same_seed_gives_the_same_figures():
    a, s, _ = gaussian(1500, np.random.default_rng(0))
    first, second = (score_bits(two_groups(a), s, np.random.default_rng(5)) for _ in range(2))
    assert first == second


def test_small_shifts_and_many_groups_are_not_lost_in_bins():
    """Fifty bins of few people would guess worse than the base rate; the fitting half says how many to have."""
    rng = np.random.default_rng(6)
    a, s, truth = gaussian(10_000, rng, shift=0.3)
    found = score_bits(two_groups(a), s, rng)
    assert 0.005 < found.low <= truth
    assert found.bits > 0.6 * truth
    code = rng.integers(0, 12, 2000)
    copied = score_bits(groups_of(code), code.astype(float), rng)
    assert copied.bits > 0.8 * copied.entropy


def test_an_attribute_more_never_hides_what_the_first_tells():
    rng = np.random.default_rng(7)
    a, s, _ = gaussian(3000, rng)
    idle = two_groups(rng.integers(0, 2, 3000), "idle")
    one, both = score_bits(two_groups(a), s, rng), chained_bits([two_groups(a), idle], s, rng)
    assert both.bits == pytest.approx(one.bits, abs=0.01)


def test_ranges_of_a_chain_add_up_in_the_guaranteed_bound():
    """The score tells the second attribute within the first, so that a person has two log-ratios of full range."""
    rng = np.random.default_rng(8)
    a, b = rng.integers(0, 2, 2000), rng.integers(0, 2, 2000)
    both = chained_bits([two_groups(a), two_groups(b, "race")], (2 * a + b).astype(float), rng)
    assert 0 < both.guaranteed < both.low <= 2.0
