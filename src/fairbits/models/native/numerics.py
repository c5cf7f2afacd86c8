"""Numbers that networks hold and no sum needs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Below this float32 numbers are not normal.
SMALLEST = np.finfo(np.float32).tiny


def without_denormals(weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The weights, with 0 in place of numbers that are not normal.

    Training leaves weights of 1e-40, which cost some processors a hundred times as much as others and add nothing that
    a float32 sum could hold.
    """
    return np.where(np.abs(weights) < SMALLEST, np.float32(0), weights)
