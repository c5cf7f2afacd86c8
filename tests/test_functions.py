"""Our few functions of statistics against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from fairbits import functions
from fairbits.measure import rate_bound

NUMBERS = np.concatenate([np.linspace(-800, 800, 4001), [np.inf, -np.inf, 0.0]])


@pytest.mark.parametrize(("kind", "near"), [(np.float32, 3e-7), (np.float64, 4e-16)])
def test_expit_is_scipys(kind: type, near: float) -> None:
    """Also far out, and in the precision that was given."""
    given = NUMBERS.astype(kind)
    found = functions.expit(given)
    assert found.dtype == kind
    np.testing.assert_allclose(found, special.expit(given), rtol=near, atol=np.finfo(kind).tiny)


def test_softmax_is_scipys() -> None:
    """With classes that are left out, along either axis."""
    logits = np.random.default_rng(0).normal(0, 50, (200, 4))
    logits[:100, 1] = -np.inf
    for axis in (0, 1):
        np.testing.assert_allclose(functions.softmax(logits, axis=axis), special.softmax(logits, axis=axis), rtol=1e-13)
    assert functions.softmax(logits.astype(np.float32), axis=1).dtype == np.float32


def test_quantiles_are_scipys() -> None:
    """Of the normal and the gamma law."""
    for share in (1e-9, 0.025, 0.5, 0.975, 0.9999):
        assert functions.normal_quantile(share) == pytest.approx(special.ndtri(share), rel=1e-12, abs=1e-15)
    for shape in (1, 2, 5, 40):
        for share in (1e-4, 0.025, 0.05, 0.5, 0.95, 0.9999):
            found = functions.gamma_quantile(shape, share)
            assert found == pytest.approx(special.gammaincinv(shape, share), rel=1e-9)


def test_nobody_of_all_is_a_closed_form() -> None:
    """The bound on a rate where nobody was found equals the general one."""
    for examined in (1, 10, 1000, 32_561, 10**9):
        assert rate_bound(examined) == pytest.approx(special.betaincinv(1, examined, 0.95), rel=1e-9)
