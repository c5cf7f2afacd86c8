"""The arithmetic of the guard, on plain arrays: averages over twins, the shift of the log-odds, and the clip.

A guarded score is ``C + a · (S − C)`` with ``a = min(1, tau / max|S − C|)``: a convex combination of the person's own
score S and the average C over their twins, so that it stays a probability (or a vector of them) and lies within tau of
C. C is the same for all twins, whatever the model, so two of them differ by 2·tau at most.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

#: Room for rounding, as a share of a score (see :func:`least_size`). Scores are float32, whose steps are 6e-8 of a
#: score; four roundings lie between two twins and the count of their classes. At exactly ε/2 they make k = 2 of 1.
HAIR = 2.0**-20
#: Log-odds beyond this are not told apart in float32 probabilities.
_TINY = 1e-9


def half_width(guarantee: int, epsilon: float, partition: str, *, vector: bool = False) -> float:
    """How far a score may lie from the average of its twins, so that nobody has more than ``guarantee`` classes.

    Two twins differ by 2·tau at most, and a sweep with classes of width ε covers that with ⌈2·tau/ε⌉ of them. On the
    grid a bin may begin anywhere, which costs one more. Whole vectors are classes by boxes, where this holds
    for one box only. One class is the plain average: then nobody's decision depends on a twin either.
    """
    if guarantee == 1:
        return 0.0
    if vector:
        return epsilon / 2
    return (guarantee - (partition == "grid")) * epsilon / 2


def proved_classes(tau: float, epsilon: float, partition: str, *, vector: bool = False) -> int:
    """The largest number of classes that anybody can have, for a half width with room for rounding."""
    if tau == 0:
        return 1
    if vector:
        return 1 if tau <= epsilon / 2 else 0
    classes = max(1, int(np.ceil(2 * tau / epsilon - 1e-9)))
    return classes + (partition == "grid")


def least_size(tau: float) -> float:
    """The size below which no score counts as smaller where room is left for rounding: 1, or tau.

    A score lies within tau of its average, so that it may be as large as tau where the average is 0 (a regression).
    """
    return max(1.0, tau)


def moved(scores: npt.NDArray[Any], shift: float, *, regression: bool) -> Doubles:
    """Scores with their log-odds (for a regression: their values) moved by the same amount for every twin."""
    exact = np.asarray(scores, dtype=np.float64)
    if shift == 0:
        return exact
    if regression:
        return exact + shift
    return moved_odds(exact, shift, _TINY)


def moved_odds(scores: Doubles, shift: float | Doubles, tiny: float) -> Doubles:
    """Probabilities with their log-odds moved."""
    inside = np.clip(scores, tiny, 1 - tiny)
    odds = np.exp(shift) * inside / (1 - inside)
    return np.asarray(odds / (1 + odds))


def averaged(scores: npt.NDArray[Any], weights: Doubles, valid: npt.NDArray[np.bool_] | None) -> Doubles:
    """The weighted mean over the twins that can exist; over all where none can."""
    exact = np.asarray(scores, dtype=np.float64)
    if valid is None:
        return np.asarray(np.tensordot(exact, weights, axes=([1], [0])))
    some = np.asarray(valid.any(axis=1))
    shares = np.where(some[:, None], valid * weights, weights)
    shares /= shares.sum(axis=1, keepdims=True)
    return np.einsum("nm...,nm->n...", exact, shares)


def clipped(own: Doubles, centre: Doubles, tau: float) -> Doubles:
    """Scores moved towards the average until no further from it than tau, less room for rounding."""
    if tau == 0:
        return np.asarray(np.broadcast_to(centre, np.broadcast_shapes(own.shape, centre.shape)))
    room = np.maximum(tau - HAIR * np.maximum(least_size(tau), np.abs(centre)), 0.0)
    return np.asarray(centre + np.clip(own - centre, -room, room))


def clipped_vectors(own: Doubles, centre: Doubles, tau: float) -> Doubles:
    """Vectors of probabilities moved towards the average until no further from it than tau; they still add up to 1."""
    if tau == 0:
        return np.asarray(np.broadcast_to(centre, np.broadcast_shapes(own.shape, centre.shape)))
    apart = own - centre
    far = np.abs(apart).max(axis=-1, keepdims=True)
    factor = np.minimum(1.0, max(tau - HAIR, 0.0) / np.maximum(far, np.finfo(np.float64).tiny))
    return np.asarray(centre + factor * apart)
