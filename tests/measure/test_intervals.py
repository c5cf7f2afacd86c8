from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairbits.errors import OptionError
from fairbits.measure import (
    Estimate,
    bounded_means,
    bounded_ratio,
    lowest_ratio,
    rate_bound,
    student_mean,
    student_ratio,
    wilson,
)
from fairbits.measure.intervals import bootstrap_means


def covers(found: Estimate, truth: float) -> bool:
    return found.low <= truth <= found.high


def test_wilson_agrees_with_scipy() -> None:
    for hits, trials in ((0, 10), (3, 10), (10, 10), (517, 32561)):
        expected = stats.binomtest(hits, trials).proportion_ci(method="wilson")
        found = wilson(hits, trials)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
        assert found.low <= found.value <= found.high


def test_bootstrap_covers_the_mean_of_known_people() -> None:
    covered = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        found = bootstrap_means(rng.exponential(2.0, (60, 1)), rng, resamples=200)[0]
        covered += found.low <= 2.0 <= found.high
    assert 170 <= covered <= 199  # 95 % nominal; 60 skewed people give a little less


def test_bootstrap_is_a_function_of_its_generator() -> None:
    values = np.random.default_rng(0).normal(size=(50, 2))
    one, same, other = (bootstrap_means(values, np.random.default_rng(seed), resamples=50) for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize("trials", [10, 60, 400, 5000])
@pytest.mark.parametrize("expected", [0.05, 0.17, 0.5, 1.5, 4.0])
def test_wilson_holds_where_events_are_rare(trials: int, expected: float) -> None:
    """Exactly, summed over all outcomes; the unmended interval holds 84 % of the time at 0.17 expected hits."""
    rate = expected / trials
    outcomes = np.arange(trials + 1 if trials < 100 else 60)
    share = stats.binom.pmf(outcomes, trials, rate)
    for truth, flipped in ((rate, False), (1 - rate, True)):
        held = [covers(wilson(int(trials - h if flipped else h), trials), truth) for h in outcomes]
        assert share @ np.array(held) >= 0.92


def test_no_rate_leaves_its_range() -> None:
    for trials in (1, 2, 3, 7, 50, 51, 1000, 99_991):
        for hits in {0, 1, 2, 3, trials // 2, trials - 1, trials} & set(range(trials + 1)):
            found = wilson(hits, trials)
            assert 0 <= found.low <= found.value <= found.high <= 1, (hits, trials)
            assert np.copysign(1, found.low) == 1


#: What k may look like: one in a hundred has many classes, nobody has, everybody has, a long tail, two kinds.
WORLDS = {
    "rare": lambda rng, n: np.where(rng.random(n) < 0.01, 12.0, 1.0),
    "alike": lambda rng, n: np.full(n, 1.0),
    "full": lambda rng, n: np.full(n, 40.0),
    "tail": lambda rng, n: np.minimum(1 + np.floor(rng.exponential(3.0, n)), 40),
    "two": lambda rng, n: rng.choice([1.0, 30.0], n, p=[0.7, 0.3]),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("n", [20, 150])
def test_means_within_a_range_hold(world: str, n: int) -> None:
    draw = WORLDS[world]
    truth = float(draw(np.random.default_rng(1), 2_000_000).mean())
    held = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        found = bounded_means(draw(rng, n)[:, None], rng, lows=1, highs=40, resamples=200)[0]
        held += covers(found, truth)
        assert 1 <= found.low <= found.value <= found.high <= 40
    assert held >= 138  # 95 % of 150 is 142.5; 138 is two deviations below


def test_means_of_zeros_and_ones_are_clopper_pearson() -> None:
    values = np.repeat([0.0, 1.0], [47, 3])[:, None]
    found = bounded_means(values, np.random.default_rng(0), lows=0, highs=1, resamples=20_000)[0]
    exact = stats.binomtest(3, 50).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=0.004)


def test_means_are_a_function_of_their_generator() -> None:
    values = np.random.default_rng(0).random((50, 2))
    one, same, other = (
        bounded_means(values, np.random.default_rng(seed), lows=0, highs=1, resamples=50) for seed in (1, 1, 2)
    )
    assert one == same != other


@pytest.mark.parametrize("draw", ["continuous", "tied"])
def test_nobody_exceeds_the_largest_holds_though_it_was_looked_up(draw: str) -> None:
    """q is the largest of the same N draws. The bound from Jeffreys' prior held 84.9 % of the time."""
    rng, n, worlds = np.random.default_rng(0), 200, 20_000
    if draw == "continuous":
        above = 1 - rng.random((worlds, n)).max(axis=1)
    else:  # k takes few values: whoever ties with the largest does not exceed it
        tail = 1 - np.cumsum(np.array([0.9, 0.09, 0.008, 0.0015, 0.0005]))
        above = tail[rng.choice(5, (worlds, n), p=[0.9, 0.09, 0.008, 0.0015, 0.0005]).max(axis=1)]
    held = float((above <= rate_bound(n)).mean())
    jeffreys = float(stats.beta.ppf(0.95, 0.5, n + 0.5))
    if draw == "continuous":
        assert held == pytest.approx(0.95, abs=0.006)
        assert (above <= jeffreys).mean() < 0.87
    assert held >= 0.944


@pytest.mark.parametrize("rate", [0.0005, 0.003, 0.02, 0.3, 0.97])
def test_the_bound_holds_for_a_property_stated_in_advance(rate: float) -> None:
    n = 300
    outcomes = np.arange(n + 1)
    held = np.array([rate <= rate_bound(n, int(found)) for found in outcomes])
    assert stats.binom.pmf(outcomes, n, rate) @ held >= 0.95 - 1e-9
    assert rate_bound(3000) < rate_bound(300) < rate_bound(300, 1)
    assert rate_bound(5, 5) == 1.0


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: wilson(3, 2), "0 <= hits <= trials"),
        (lambda: rate_bound(0), "examined >= 1"),
        (lambda: rate_bound(10, confidence=1.0), "between 0 and 1"),
        (lambda: bounded_means(np.empty((0, 1)), np.random.default_rng(0), lows=0, highs=1), "at least one person"),
        (lambda: bootstrap_means(np.empty((0, 1)), np.random.default_rng(0)), "at least one person"),
    ],
)
def test_impossible_questions(call, complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        call()


@pytest.mark.parametrize(
    ("rates", "people"),
    [([0.5] * 2, 40), ([0.5] * 5, 40), ([0.5] * 10, 200), ([0.5, 0.5, 0.5, 0.3], 60), ([0.02, 0.05, 0.05], 100)],
    ids=str,
)
def test_the_lowest_ratio_holds_though_its_groups_were_looked_up(rates: list[float], people: int) -> None:
    """With ratios to the observed top alone, ten groups of one rate were covered 86 % of the time."""
    rng, held, worlds = np.random.default_rng(0), 0, 400
    for _ in range(worlds):
        found = lowest_ratio(rng.binomial(people, rates), np.full(len(rates), people))
        if found is None:
            worlds -= 1
            continue
        assert 0 <= found[0].low <= found[0].value <= found[0].high <= 1
        held += covers(found[0], min(rates) / max(rates))
    assert held >= 0.93 * worlds
    assert lowest_ratio([0, 0], [5, 5]) is lowest_ratio([3], [5]) is None
    assert lowest_ratio([9, 3], [10, 10])[1] == 1


@pytest.mark.parametrize("n", [3, 30, 300])
def test_students_interval_holds(n: int) -> None:
    rng = np.random.default_rng(n)
    held = sum(covers(student_mean(rng.normal(2.0, 3.0, n)), 2.0) for _ in range(600))
    assert 0.93 * 600 <= held <= 0.97 * 600
    assert (student_mean([4.0]).low, student_mean([4.0]).high) == (-np.inf, np.inf)


#: Bits of a person before and after, at most 5: what neurons that are held take away.
CHANGES = {
    "some": lambda rng, n: (_before(rng, n), 0.5),
    "few left": lambda rng, n: (_before(rng, n), rng.random(n) < 0.02),
    "few gone": lambda rng, n: (_before(rng, n), rng.random(n) >= 0.02),
    "few have any": lambda rng, n: (5.0 * (rng.random(n) < 0.1), rng.random(n) < 0.5),
}


def _before(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.log2(rng.integers(2, 32, n))


@pytest.mark.parametrize("world", CHANGES)
def test_a_ratio_of_means_within_a_range_holds(world: str) -> None:
    """A plain bootstrap of thirty people held 41 % of the time where few have bits left, 78 % where few have any."""
    before, share = CHANGES[world](np.random.default_rng(1), 500_000)
    truth = float((before * share).mean() / before.mean())
    held, worlds = 0, 150
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        before, share = CHANGES[world](rng, 30)
        if not before.any():
            worlds -= 1
            continue
        found = bounded_ratio(before * share, before, rng, high=5.0, resamples=200)
        assert 0 <= found.low <= found.value <= found.high
        held += covers(found, truth)
    assert held >= 0.93 * worlds
    with pytest.raises(OptionError, match="the lower above 0"):
        bounded_ratio([1.0], [0.0], np.random.default_rng(0), high=5.0)


@pytest.mark.parametrize("n", [30, 300])
def test_a_ratio_of_squared_errors_holds(n: int) -> None:
    """Two predictions of one label, one a little worse; a plain bootstrap held 88 to 92 % of the time."""
    rng, held = np.random.default_rng(n), 0
    for _ in range(600):
        error = rng.normal(size=n)
        held += covers(student_ratio((error + 0.5 * rng.normal(size=n)) ** 2, error**2), 1.25)
    assert held >= 0.93 * 600
    assert student_ratio([4.0], [2.0]) == Estimate(2.0, 0.0, np.inf)
