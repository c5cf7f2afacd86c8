"""The proposals of `climb`: within the domain, a few at a time, and away from what slopes warn of."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits.domain import Encoding, Lookup, Numeric
from fairbits.engine import TwinForecast, arranged, contributions_through
from fairbits.engine.kernels.moves import CHANGES, NOTHING_KNOWN, Domain, Forecast, change_some, margins, more, tries

COLUMNS = np.arange(4)
DOMAIN = Domain(
    COLUMNS,
    np.array([0.0, -3.0, 0.0, 5.0]),
    np.array([1.0, 9.0, 1.0, 5.0]),
    np.array([1.0, 1.0, 0.01, 1.0]),
    np.array([True, True, False, True]),
)


def members(rng: np.random.Generator, n: int) -> np.ndarray:
    whole = np.floor(DOMAIN.low + rng.random((n, 4)) * (DOMAIN.high - DOMAIN.low + 1))
    return np.where(DOMAIN.discrete, np.minimum(whole, DOMAIN.high), rng.random((n, 4)))


NUMBERS = Encoding([Numeric(0), Numeric(1), Numeric(2), Numeric(3)])


def twin_forecast(gradients: np.ndarray, encoding: Encoding = NUMBERS) -> TwinForecast:
    slopes = encoding.pull_back(gradients, np.zeros((len(gradients), 4)))
    return TwinForecast(slopes.astype(np.float32), arranged(gradients, encoding))


def forecast(rng: np.random.Generator, n: int) -> Forecast:
    low, high = rng.normal(size=(2, n, 4))
    return Forecast(-rng.random(n), rng.random(n), twin_forecast(low), twin_forecast(high))


def changed_by(
    values: np.ndarray,
    known: Forecast,
    rng: np.random.Generator,
    *,
    encoding: Encoding = NUMBERS,
    threads: int = 1,
) -> np.ndarray:
    contributions = contributions_through(encoding, COLUMNS)
    return change_some(DOMAIN, values, contributions, known, rng, twins=2, threads=threads)


@pytest.mark.parametrize("slopes", [False, True])
def test_a_few_values_change_and_stay_in_the_domain(rng: np.random.Generator, slopes: bool) -> None:
    values = members(rng, 5000)
    known = forecast(rng, 5000) if slopes else NOTHING_KNOWN
    changed = changed_by(values, known, rng)
    assert ((DOMAIN.low <= changed) & (changed <= DOMAIN.high)).all()
    assert (changed[:, DOMAIN.discrete] == np.rint(changed[:, DOMAIN.discrete])).all()
    differing = (changed != values).sum(axis=1)
    assert differing.max() == CHANGES
    assert (differing == CHANGES).mean() > 0.1
    assert (differing > 0).mean() > 0.99
    assert ((changed != values).mean(axis=0)[:3] > 0.1).all()  # every attribute that has two values gets its turn


def test_threads_do_not_change_proposals(rng: np.random.Generator) -> None:
    values, known = members(rng, 4000), forecast(rng, 4000)
    one, two = (changed_by(values, known, np.random.default_rng(1), threads=threads) for threads in (1, 2))
    assert np.array_equal(one, two)


WIDE = 24
MANY = Domain(np.arange(WIDE), np.zeros(WIDE), np.full(WIDE, 12.0), np.ones(WIDE), np.ones(WIDE, np.bool_))


def changed_among_many(first: Numeric | Lookup, gradients: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Members of 24 attributes, all at 6; only changes of the first one do anything."""
    n, width = 4000, len(first.columns)
    encoding = Encoding([first, *(Numeric(width + i) for i in range(WIDE - 1))])
    slopes = np.zeros((n, encoding.width))
    slopes[:, :width] = gradients
    known = TwinForecast(
        encoding.pull_back(slopes, np.full((n, WIDE), 6.0)).astype(np.float32), arranged(slopes, encoding)
    )
    forecast = Forecast(np.full(n, -1.0), np.full(n, 1.0), known, known)
    contributions = contributions_through(encoding, MANY.columns)
    return change_some(MANY, np.full((n, WIDE), 6.0), contributions, forecast, rng, twins=2, threads=1)


def test_what_would_bring_the_twins_together_is_passed_over(rng: np.random.Generator) -> None:
    """Attribute 0 ends the difference, the others do nothing to it."""
    moved = (changed_among_many(Numeric(0), np.array([50.0]), rng) != 6.0).mean(axis=0)
    assert moved[0] < 0.005  # by those who are bold
    assert (moved[1:] > 0.03).all()


def test_values_of_a_category_are_told_apart(rng: np.random.Generator) -> None:
    """A step up to 7 is safe and one down to 5 is not; the mean slope of the two would be wrong about both."""
    effects = np.where(np.isin(np.arange(13), (6, 7)), 0.0, 50.0)
    there = changed_among_many(Lookup(np.arange(13), np.eye(13)), effects, rng)[:, 0]
    assert (there == 7.0).sum() > 30
    assert (there == 5.0).sum() < 0.2 * (there == 7.0).sum()  # only those who are bold


@pytest.mark.parametrize(
    ("attributes", "twins", "expected"), [(2, 2, 4), (12, 2, 6), (38, 2, 9), (38, 3, 6), (8, 90, 4)]
)
def test_more_is_looked_at_where_there_is_more_to_choose_from(attributes: int, twins: int, expected: int) -> None:
    assert tries(attributes, twins) == expected


def test_few_attributes_are_changed_two_at_a_time() -> None:
    assert [more(attributes) for attributes in (1, 5, 8, 20, 40)] == pytest.approx([0.8, 0.8, 0.5, 0.2, 0.2])


def test_margins_are_finite() -> None:
    assert np.allclose(margins(np.array([0.5, 0.75], np.float32)), [0.0, np.log(3)])
    assert np.isfinite(margins(np.array([0.0, 1.0], np.float32))).all()
