from __future__ import annotations

import numpy as np
import pytest

from fairbits.proxies.bits import column_bits
from tests.proxies.planted import groups_of, two_groups


def test_xor_proxies_that_no_single_column_shows_are_found_by_the_fall():
    rng = np.random.default_rng(0)
    n = 4000
    a, b = rng.integers(0, 2, n), rng.integers(0, 2, n)
    codes = np.column_stack([a ^ b, b, rng.integers(0, 2, n)]).astype(float)

    def ask(people):
        return np.logical_xor(people[:, 0] > 0, people[:, 1] > 0).astype(float)

    found = column_bits(two_groups(a), codes, ("x", "y", "idle"), ask(codes), rng, ask=ask)
    by_name = {one.column: one for one in found}
    assert by_name["x"].bits < 0.01
    assert by_name["y"].bits < 0.01
    assert by_name["x"].fall_low > 0.8
    assert by_name["y"].fall_low > 0.8
    assert by_name["idle"].fall == 0
    assert found[-1].column == "idle"


def test_a_copy_is_named():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 2000)
    codes = np.column_stack([rng.normal(size=2000), 7.0 * a])
    found = column_bits(two_groups(a), codes, ("noise", "mirror"), rng.random(2000), rng)
    assert [one.column for one in found if one.copy] == ["mirror"]
    assert found[0].column == "mirror"


@pytest.mark.parametrize(
    ("n", "shares"),
    [(200, (0.5, 0.5)), (300, (0.6, 0.2, 0.1, 0.07, 0.03)), (1000, (0.99, 0.01)), (300, (0.01,) * 100)],
    ids=["two groups", "five groups", "a rare group", "a hundred groups"],
)
def test_copies_are_named_whatever_the_groups(n, shares):
    rng = np.random.default_rng(4)
    a = rng.choice(len(shares), n, p=shares)
    labels = rng.permutation(len(shares))
    columns = {
        "same": a,
        "other labels": labels[a],
        "nearly always": np.where(rng.random(n) < 0.1, rng.permutation(a), a),
        "noise": rng.normal(size=n),
        "number of the row": np.arange(n),
        "constant": np.zeros(n),
    }
    codes = np.column_stack(list(columns.values())).astype(float)
    found = column_bits(groups_of(a), codes, tuple(columns), rng.random(n), rng)
    assert {one.column for one in found if one.copy} == {"same", "other labels"}


def test_a_finer_column_that_tells_all_is_a_copy_too():
    rng = np.random.default_rng(5)
    a = rng.integers(0, 3, 600)
    codes = np.column_stack([10 * a + rng.integers(0, 10, 600), a + 0.8 * rng.random(600)]).astype(float)
    found = column_bits(groups_of(a), codes, ("zip", "measured"), rng.random(600), rng)
    assert all(one.copy for one in found)
