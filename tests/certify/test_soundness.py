"""No certificate about a random small network is false, however a library computes it (see `soundness`)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.certify.soundness import check


@pytest.mark.parametrize("chunk", range(10))
def test_no_certificate_is_false(chunk):
    pytest.importorskip("torch")
    settled = [check(seed, rationals=1) for seed in range(50 * chunk, 50 * chunk + 50)]
    assert np.mean(settled) > 0.3  # they say something
