"""Rows that a model is given, checked before it sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.errors import ModelError


def checked_rows(inputs: npt.ArrayLike, width: int, name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Rows as an array, refused where they have another width."""
    rows = np.asarray(inputs, dtype=dtype)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ModelError(f"{name} takes rows of {width} inputs, but got an array of shape {rows.shape}.")
    return rows
