"""People and scores with a known amount of information about an attribute."""

from __future__ import annotations

import numpy as np

from fairbits.measure.groups import Grouping


def two_groups(codes: np.ndarray, name: str = "sex") -> Grouping:
    return Grouping(name, ("f", "m"), np.asarray(codes, dtype=np.int64))


def binary_entropy(p: float) -> float:
    return float(-(p * np.log2(p) + (1 - p) * np.log2(1 - p)))


def noisy_copy(n: int, rng: np.random.Generator, *, flip: float = 0.2) -> tuple[np.ndarray, np.ndarray, float]:
    """An even attribute, a score of two values that is wrong with probability ``flip``, and I(A;S) = 1 − h(flip)."""
    a = rng.integers(0, 2, n)
    return a, np.where(rng.random(n) < flip, 1 - a, a).astype(float), 1 - binary_entropy(flip)


def gaussian(n: int, rng: np.random.Generator, *, shift: float = 1.0) -> tuple[np.ndarray, np.ndarray, float]:
    """An even attribute that shifts a normal score, and I(A;S) by numerical integration."""
    a = rng.integers(0, 2, n)
    x = np.linspace(-9, 9 + shift, 20_001)
    one, two = (np.exp(-((x - m) ** 2) / 2) / np.sqrt(2 * np.pi) for m in (0.0, shift))
    mix = (one + two) / 2
    q = np.clip(one / (one + two), 1e-300, 1 - 1e-12)
    left = mix * -(q * np.log2(q) + (1 - q) * np.log2(1 - q))
    truth = 1 - float(np.sum((left[1:] + left[:-1]) / 2) * (x[1] - x[0]))
    return a, rng.normal(size=n) + shift * a, truth


def trap(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The score is a function of justified attributes, so it adds nothing to them; a weak observer errs."""
    j = rng.normal(size=(n, 4))
    f = np.sin(2 * j[:, 0]) * j[:, 1] + np.abs(j[:, 2]) * j[:, 3]
    a = (rng.random(n) < 1 / (1 + np.exp(-2 * f))).astype(int)
    return j, 1 / (1 + np.exp(-f)), a
