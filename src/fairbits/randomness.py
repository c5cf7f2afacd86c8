"""The tree of randomness: every stage draws from a leaf of its own, named after what it is for."""

from __future__ import annotations

import zlib

import numpy as np


def generator(seed: int, *path: str | int) -> np.random.Generator:
    """One leaf of the tree of randomness: the same name always gives the same numbers."""
    key = [step if isinstance(step, int) else zlib.crc32(step.encode()) for step in path]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
