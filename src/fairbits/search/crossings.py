"""Moves for models that only compare: a change that crosses no threshold of the ensemble changes nothing.

What a change does to a tree ensemble is known from the thresholds that it crosses. A proposal that crosses none would
be an evaluation wasted, so it goes on to the next threshold on its way.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes

Thresholds = Mapping[int, npt.NDArray[np.float64]]


def across(people: Codes, proposed: Codes, thresholds: Thresholds, discrete: npt.NDArray[np.bool_]) -> Codes:
    """The proposals, with every changed value that stays on its side of all thresholds moved over the next one."""
    moved = proposed.copy()
    for column, at in thresholds.items():
        here, there = people[:, column], proposed[:, column]
        idle = np.flatnonzero((here != there) & (np.searchsorted(at, here) == np.searchsorted(at, there)))
        if len(idle) == 0 or len(at) == 0:
            continue
        below = np.searchsorted(at, here[idle])  # thresholds that the person is beyond
        up = there[idle] > here[idle]
        exists = np.where(up, below < len(at), below > 0)
        last = at[np.clip(np.where(up, below, below - 1), 0, len(at) - 1)]
        beyond = last + 1 if discrete[column] else np.nextafter(last, np.inf)
        moved[idle, column] = np.where(exists, np.where(up, beyond, last), there[idle])
    return moved
