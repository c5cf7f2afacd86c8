from __future__ import annotations

import numpy as np
import pytest

from benchmarks.chances import SHARES, alike, grouped
from fairbits.proxies import matched_people
from tests.proxies.planted import two_groups


def test_matched_people_show_the_gap_and_the_placebo_does_not():
    rng = np.random.default_rng(0)
    n = 1500
    a, j = rng.integers(0, 2, n), rng.normal(size=(n, 1))
    scores = 1 / (1 + np.exp(-(j[:, 0] + 1.0 * a)))
    found = matched_people(two_groups(a), j, (False,), scores, rng)
    assert found is not None
    assert found.excess.low > 0.1
    assert found.placebo_span < 0.02
    assert found.k > found.placebo_k
    assert found.excess.value == pytest.approx(found.span - found.placebo_span)
    assert found.people + found.without_match == n
    best = found.pairs[0]
    assert (best.group, best.other_group) == ("f", "m")
    assert best.other_score - best.score == pytest.approx(0.23, abs=0.05)
    assert best.distance <= found.caliper


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
def test_no_gap_is_claimed_where_the_group_does_not_matter(shares):
    """With as many placebo matches as other groups, of groups of any size, the interval held 0 % of the time."""
    held, worlds = 0, 120
    kinds = (("noise", 0.0), ("labels", 0.0), ("exact", 0.7))
    for seed in range(worlds):
        rng = np.random.default_rng([seed, 5])
        kind, moved = kinds[seed % 3]
        found = matched_people(*alike(shares, 1200, rng, moved=moved, kind=kind), rng)
        held += found.excess.low <= 0 <= found.excess.high
    assert held >= 0.93 * worlds


@pytest.mark.parametrize("shares", [(0.95, 0.05), (0.6, 0.3, 0.1)], ids=str)
def test_a_gap_is_found_among_unequal_groups_too(shares):
    rng = np.random.default_rng(3)
    groups, j, kinds, scores = alike(shares, 2000, rng, kind="exact")
    found = matched_people(groups, j, kinds, scores + 0.3 * groups.codes, rng)
    assert found.excess.low > 0.2
    assert found.excess.high < 0.5


def test_people_alike_in_all_are_matched_by_lot():
    """Labels alone: everybody of a cell is equally near, and not all get the same match."""
    rng = np.random.default_rng(4)
    codes, cells = rng.integers(0, 2, 600), rng.integers(0, 3, (600, 1)).astype(float)
    found = matched_people(grouped(codes), cells, (True,), rng.normal(size=600), rng)
    assert found.excess.low <= 0 <= found.excess.high
    assert found.excess.high - found.excess.low < 0.5
    assert found.people > 400


def test_nobody_alike_is_no_figure():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2, 300)
    assert matched_people(two_groups(a), a[:, None].astype(float), (True,), rng.random(300), rng) is None


def test_the_excess_holds_though_matches_are_shared():
    """With a smaller group many have the same match: as if independent, 95 % held 81 % of the time (n = 500)."""
    held, worlds = 0, 100
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        codes = (rng.random(400) < 0.2).astype(np.int64)
        features = rng.normal(size=(400, 1))
        scores = 1 / (1 + np.exp(-features[:, 0] - 0.5 * rng.normal(size=400)))
        found = matched_people(two_groups(codes), features, (False,), scores, rng)
        held += found.excess.low <= 0 <= found.excess.high
    assert 92 <= held < 100
