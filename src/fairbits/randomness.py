"""The tree of randomness: every stage draws from a leaf of its own, named after what it is for."""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt


def generator(seed: int, *path: str | int) -> np.random.Generator:
    """A random generator of its own for each stage: the same seed and path always give the same numbers."""
    key = [step if isinstance(step, int) else zlib.crc32(step.encode()) for step in path]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def sampled_rows(count: int, limit: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Positions of some rows, in rising order: all of them, or a random sample where there are too many.

    Examples
    --------
    >>> sampled_rows(3, 5, np.random.default_rng(0))
    array([0, 1, 2])
    """
    return np.arange(count) if count <= limit else np.sort(rng.choice(count, limit, replace=False))


def even_rows(count: int, limit: int) -> npt.NDArray[np.int64]:
    """Positions of some rows, evenly over a table, which may be sorted: the same table always gives the same."""
    return np.arange(count) if count <= limit else np.linspace(0, count - 1, limit).astype(np.int64)
