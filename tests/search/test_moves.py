"""The proposals of `climb`: within the domain, a few at a time, and away from what slopes warn of."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits.search.moves import CHANGES, NOTHING_KNOWN, Domain, Outlook, change_some, margins

DOMAIN = Domain(
    np.array([0.0, -3.0, 0.0, 5.0]),
    np.array([1.0, 9.0, 1.0, 5.0]),
    np.array([1.0, 1.0, 0.01, 1.0]),
    np.array([True, True, False, True]),
)


def members(rng: np.random.Generator, n: int) -> np.ndarray:
    whole = np.floor(DOMAIN.low + rng.random((n, 4)) * (DOMAIN.high - DOMAIN.low + 1))
    return np.where(DOMAIN.discrete, np.minimum(whole, DOMAIN.high), rng.random((n, 4)))


def outlook(rng: np.random.Generator, n: int) -> Outlook:
    return Outlook(-rng.random(n), rng.random(n), rng.normal(size=(n, 4)), rng.normal(size=(n, 4)))


@pytest.mark.parametrize("slopes", [False, True])
def test_a_few_values_change_and_stay_in_the_domain(rng: np.random.Generator, slopes: bool) -> None:
    values = members(rng, 5000)
    known = outlook(rng, 5000) if slopes else NOTHING_KNOWN
    changed = change_some(DOMAIN, values, known, rng, threads=1)
    assert ((DOMAIN.low <= changed) & (changed <= DOMAIN.high)).all()
    assert (changed[:, DOMAIN.discrete] == np.rint(changed[:, DOMAIN.discrete])).all()
    differing = (changed != values).sum(axis=1)
    assert differing.max() == CHANGES
    assert (differing == CHANGES).mean() > 0.1
    assert (differing > 0).mean() > 0.99
    assert ((changed != values).mean(axis=0)[:3] > 0.1).all()  # every attribute that has two values gets its turn


def test_threads_do_not_change_proposals(rng: np.random.Generator) -> None:
    values, known = members(rng, 4000), outlook(rng, 4000)
    one, two = (change_some(DOMAIN, values, known, np.random.default_rng(1), threads=threads) for threads in (1, 2))
    assert np.array_equal(one, two)


def test_what_would_bring_the_twins_together_is_passed_over(rng: np.random.Generator) -> None:
    """Attribute 0 ends the difference, attribute 2 does nothing to it."""
    n = 4000
    slopes = np.zeros((n, 4))
    slopes[:, 0] = 50.0
    values = members(rng, n)
    known = Outlook(np.full(n, -1.0), np.full(n, 1.0), slopes, slopes)
    moved = (change_some(DOMAIN, values, known, rng, threads=1) != values).mean(axis=0)
    assert moved[0] < 0.15  # by those who are bold, or met nothing else
    assert moved[2] > 0.5


def test_margins_are_finite() -> None:
    assert np.allclose(margins(np.array([0.5, 0.75], np.float32)), [0.0, np.log(3)])
    assert np.isfinite(margins(np.array([0.0, 1.0], np.float32))).all()
