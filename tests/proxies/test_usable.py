from __future__ import annotations

import numpy as np
import pytest

from fairbits.proxies import justified_of, usable_bits
from tests.proxies.planted import NOTHING_USABLE, SOMETHING_USABLE, groups_of, trap, two_groups


@pytest.mark.parametrize("name", NOTHING_USABLE)
def test_nothing_is_claimed_where_nothing_is_usable(name):
    rng = np.random.default_rng(1000)
    j, categorical, s, a, _ = NOTHING_USABLE[name](1000, rng)
    found = usable_bits(groups_of(a), justified_of(j, categorical, s, rng), rng)
    assert found is not None
    assert found.bits == 0
    assert found.low == 0


@pytest.mark.parametrize("name", SOMETHING_USABLE)
def test_what_is_not_justified_is_found(name):
    rng = np.random.default_rng(0)
    j, categorical, s, a, truth = SOMETHING_USABLE[name](3000, rng)
    found = usable_bits(groups_of(a), justified_of(j, categorical, s, rng), rng)
    assert found is not None
    assert found.bits == pytest.approx(truth, abs=0.08)
    assert 0 < found.low <= min(found.bits, truth)
    assert found.placebo < found.low


def test_same_seed_same_figures():
    def once():
        rng = np.random.default_rng(5)
        j, categorical, s, a, _ = SOMETHING_USABLE["proxy"](800, rng)
        return usable_bits(groups_of(a), justified_of(j, categorical, s, rng), rng)

    assert once() == once()


def test_a_score_of_one_value_adds_nothing():
    rng = np.random.default_rng(0)
    j, a = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
    found = usable_bits(two_groups(a), justified_of(j, (False, False), np.full(400, 0.5), rng), rng)
    assert found is not None
    assert found.bits == 0


def test_too_few_people_or_one_group_is_no_figure():
    rng = np.random.default_rng(0)
    j, s, a = trap(150, rng)
    few = justified_of(j, (False,) * 4, s, rng)
    assert usable_bits(two_groups(a), few, rng) is None
    assert usable_bits(two_groups(np.zeros(150)), few, rng) is None


def test_of_many_groups_the_smaller_ones_are_one():
    rng = np.random.default_rng(3)
    j, a = rng.normal(size=(1500, 1)), np.arange(1500) % 30
    found = usable_bits(groups_of(a), justified_of(j, (False,), j[:, 0] + (a == 0), rng), rng)
    assert found is not None
    assert found.people == 1500
    told = rng.choice(12, 1500, p=[0.5] + [0.5 / 11] * 11)
    found = usable_bits(groups_of(told), justified_of(j, (False,), j[:, 0] + (told == 0), rng), rng)
    assert found is not None
    assert 0.5 < found.low <= found.bits < 1.05  # whether somebody is of the largest group: one bit


def test_a_score_of_many_justified_columns_does_not_hide_a_finding():
    """Trees alone learn a sum of six columns too slowly to show a learning curve."""
    rng = np.random.default_rng(0)
    a, j = rng.integers(0, 2, 8000), rng.normal(size=(8000, 6))
    proxy = np.where(rng.random(8000) < 0.2, 1 - a, a)
    score = 1 / (1 + np.exp(-j.sum(axis=1) - proxy))
    found = usable_bits(two_groups(a), justified_of(j, (False,) * 6, score, rng), rng)
    assert found is not None
    assert 0.1 < found.low <= 0.2781  # the proxy tells 1 - h(0.2)
