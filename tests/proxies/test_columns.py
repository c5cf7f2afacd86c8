from __future__ import annotations

import numpy as np

from fairbits.proxies.columns import column_bits
from tests.proxies.planted import two_groups


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
