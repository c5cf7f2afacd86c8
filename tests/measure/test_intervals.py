from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairbits.errors import OptionError
from fairbits.measure import bayes_factor, rate_bound, wilson
from fairbits.measure.intervals import bootstrap_means


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


def test_finding_nobody_bounds_the_rate() -> None:
    """The bound keeps its promise: of worlds drawn from the prior that show nobody, 95 % lie below it."""
    rng = np.random.default_rng(0)
    rates = rng.beta(0.5, 0.5, 400_000)
    silent = rates[rng.binomial(300, rates) == 0]
    assert (silent < rate_bound(300)).mean() == pytest.approx(0.95, abs=0.01)
    assert rate_bound(3000) < rate_bound(300) < rate_bound(300, 1)


def test_bayes_factor_by_hand() -> None:
    """Uniform prior, nobody found: posterior odds are (1 − (1−r)^(n+1)) / (1−r)^(n+1)."""
    n, r = 500, 0.01
    inside = 1 - (1 - r) ** (n + 1)
    assert bayes_factor(n, 0, r) == pytest.approx(inside / (1 - inside) / (r / (1 - r)))
    assert bayes_factor(0, 0, r) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: wilson(3, 2), "0 <= hits <= trials"),
        (lambda: rate_bound(0), "examined >= 1"),
        (lambda: rate_bound(10, credibility=1.0), "between 0 and 1"),
        (lambda: bayes_factor(10, 0, 0.0), "rate is 0.0"),
    ],
)
def test_impossible_questions(call, complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        call()
