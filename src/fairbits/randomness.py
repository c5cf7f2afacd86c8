"""The tree of randomness: every stage draws from a leaf of its own, named after what it is for."""

from __future__ import annotations

import zlib

import numpy as np


def generator(seed: int, *path: str | int) -> np.random.Generator:
    """A random generator of its own for each stage: the same seed and path always give the same numbers.

    Parameters
    ----------
    seed
        The seed of the run.
    *path
        What the numbers are for, such as "groups", 3.

    Returns
    -------
    np.random.Generator
        A generator that is independent of those of other paths.
    """
    key = [step if isinstance(step, int) else zlib.crc32(step.encode()) for step in path]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
