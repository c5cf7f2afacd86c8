from __future__ import annotations

import numpy as np
import pytest

from fairbits.proxies import justified_of, usable_bits
from tests.proxies.planted import trap, two_groups


@pytest.mark.parametrize("seed", range(2))
def test_the_trap_of_a_weak_observer_claims_nothing(seed):
    rng = np.random.default_rng(seed)
    j, s, a = trap(1500, rng)
    found = usable_bits(two_groups(a), justified_of(j, (False,) * 4, s, rng), rng)
    assert found is not None
    assert found.bits == 0
    assert found.low == 0


def test_nothing_is_claimed_of_noise():
    claims = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        j = rng.normal(size=(1000, 3))
        s = j[:, 0] + rng.normal(size=1000)  # its own noise knows nothing
        a = (rng.random(1000) < 1 / (1 + np.exp(-2 * j[:, 0]))).astype(int)
        found = usable_bits(two_groups(a), justified_of(j, (False,) * 3, s, rng), rng)
        claims += found is not None and found.bits > 0
    assert claims <= 1


def test_what_is_not_justified_is_found():
    rng = np.random.default_rng(0)
    n = 3000
    j, a = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
    proxy = np.where(rng.random(n) < 0.15, 1 - a, a)
    s = 0.5 * j[:, 0] + proxy
    found = usable_bits(two_groups(a), justified_of(j, (False,) * 2, s, rng), rng)
    assert found is not None
    # I(A;proxy) = 1 − h(0.15) = 0.39, and the proxy can be read off S once J is known.
    assert found.bits == pytest.approx(0.39, abs=0.08)
    assert 0 < found.low <= found.bits
    assert found.placebo < found.low


def test_too_few_people_or_one_group_is_no_figure():
    rng = np.random.default_rng(0)
    j, s, a = trap(150, rng)
    few = justified_of(j, (False,) * 4, s, rng)
    assert usable_bits(two_groups(a), few, rng) is None
    assert usable_bits(two_groups(np.zeros(150)), few, rng) is None
