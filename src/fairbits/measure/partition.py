"""Which of a person's scores count as the same: the partition of m scores into classes.

This is the reference that reads like the definition. The engine counts classes in compiled code; the two agree.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from fairbits.engine import tolerance_of
from fairbits.errors import OptionError, choose_from

Partition = Literal["constrained", "grid"]
Members = npt.NDArray[np.int64]


def check_partition(partition: str) -> Partition:
    """Refuse a partition that does not exist."""
    if partition not in get_args(Partition):
        raise OptionError(f"partition {partition!r} is not known; {choose_from(partition, get_args(Partition))}")
    return partition  # type: ignore[return-value]  # just checked


def check_epsilon(epsilon: float) -> float:
    """Refuse a tolerance that is not a positive number."""
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise OptionError(f"epsilon is {epsilon}; the tolerance between scores must be larger than 0 (default 0.025).")
    return float(epsilon)


def assign(
    scores: npt.NDArray[np.floating], epsilon: float, partition: Partition, *, bounded: bool | None = None
) -> Members:
    """The class of every score, (n, m), counted from 0 at each person's lowest score."""
    return constrained(scores, epsilon) if partition == "constrained" else grid(scores, epsilon, bounded=bounded)


def constrained(scores: npt.NDArray[np.floating], epsilon: float) -> Members:
    """The smallest partition in which no class holds two scores further than ε apart, but for a rounding margin.

    Sorted greedy sweep: open a class at the smallest score not yet covered, close it where the distance passes ε. From
    the highest score downwards there are as many classes, of other sizes: of the two, the partition that shows more
    bits (upwards among equals), so that it is the same for a score and for 1 minus the score.
    """
    up, down = sweeps(scores, epsilon)
    own = np.full(scores.shape[1], 1 / scores.shape[1])
    better = _entropy(down, own) > _entropy(up, own) + 1e-12
    return np.where(better[:, None], down, up)


def sweeps(scores: npt.NDArray[np.floating], epsilon: float) -> tuple[Members, Members]:
    """The classes of every score by the sweep upwards and by the one downwards, both counted from the lowest score.

    Scores are compared in their own precision, so that float32 scores give what the float32 engine gives.
    """
    up, down = (_swept(one, epsilon) for one in (scores, -scores))
    return up, down.max(axis=1, keepdims=True) - down


def _swept(scores: npt.NDArray[np.floating], epsilon: float) -> Members:
    order = np.argsort(scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=1)
    tolerance = scores.dtype.type(tolerance_of(epsilon))
    sorted_members = np.zeros(scores.shape, dtype=np.int64)
    opened = ranked[:, 0].copy()
    current = np.zeros(len(scores), dtype=np.int64)
    for j in range(1, scores.shape[1]):
        new = ranked[:, j] - opened > tolerance
        opened = np.where(new, ranked[:, j], opened)
        current = current + new
        sorted_members[:, j] = current
    return _unsort(sorted_members, order)


def _entropy(members: Members, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Shannon's bits of the classes of each person."""
    masses = class_masses(members, weights)
    logs = np.log2(masses, out=np.zeros_like(masses), where=masses > 0)
    return np.asarray(-(masses * logs).sum(axis=1))


def class_masses(members: Members, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The share of each class, (n, largest k)."""
    n, m = members.shape
    classes = int(members.max()) + 1
    flat = members + classes * np.arange(n)[:, None]
    shares = np.bincount(flat.ravel(), weights=np.broadcast_to(weights, (n, m)).ravel(), minlength=n * classes)
    return shares.reshape(n, classes).astype(np.float64)


def grid(scores: npt.NDArray[np.floating], epsilon: float, *, bounded: bool | None = None) -> Members:
    """Fixed bins of width ε, as the paper's public artifact has them (so 0.0249 and 0.0251 fall apart)."""
    bins = grid_bins(scores, epsilon, bounded=bounded)
    order = np.argsort(bins, axis=1, kind="stable")
    ranked = np.take_along_axis(bins, order, axis=1)
    new = np.zeros(bins.shape, dtype=np.int64)
    new[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    return _unsort(np.cumsum(new, axis=1), order)


def grid_bins(scores: npt.NDArray[np.floating], epsilon: float, *, bounded: bool | None = None) -> Members:
    """The bin of each score; a probability of exactly 1 belongs to the last bin below it."""
    bins = np.floor(scores / scores.dtype.type(epsilon)).astype(np.int64)
    probabilities = (scores.min(axis=1) >= 0) & (scores.max(axis=1) <= 1) if bounded is None else np.array([bounded])
    return np.where(probabilities[:, None], np.minimum(bins, max_classes(epsilon) - 1), bins)


def max_classes(epsilon: float) -> int:
    """Number of classes that scores within [0, 1] can fall into: ⌈1/ε⌉, where 1/0.025 is 40 despite rounding."""
    return max(1, int(np.ceil(1 / epsilon - 1e-9)))


def _unsort(members: Members, order: Members) -> Members:
    result = np.empty_like(members)
    np.put_along_axis(result, order, members, axis=1)
    return result
