"""How good a regression is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def variance_explained(scores: npt.NDArray[Any], target: npt.NDArray[np.float64]) -> float:
    """The share of the target's variance that the scores explain: 1 where all are exact, 0 where the mean does as well.

    A target that never varies has none to explain.

    >>> variance_explained(np.array([1.0, 2.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    0.5
    """
    spread = float(np.var(target))
    missed = float(np.mean((np.asarray(scores, dtype=np.float64) - target) ** 2))
    return 1.0 - missed / spread if spread else 0.0
