"""Which of a person's scores count as the same, and how many bits of protected information the classes give away.

This is the reference that reads like the definition. The engine counts classes in compiled code; the two agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.engine import Partition, check_epsilon, check_partition, max_classes, tolerance_of
from fairbits.errors import OptionError

Members = npt.NDArray[np.int64]


def assign(
    scores: npt.NDArray[np.floating], epsilon: float, partition: Partition, *, bounded: bool | None = None
) -> Members:
    """The class of every score, (n, m), counted from 0 at each person's lowest score."""
    return constrained(scores, epsilon) if partition == "constrained" else grid(scores, epsilon, bounded=bounded)


def constrained(scores: npt.NDArray[np.floating], epsilon: float, shares: Floats | None = None) -> Members:
    """The smallest partition in which no class holds two scores further than ε apart, but for a rounding margin.

    Sorted greedy sweep: open a class at the smallest score not yet covered, close it where the distance passes ε. From
    the highest score downwards there are as many classes, of other sizes: of the two, the partition that shows more
    bits (upwards among equals), so that it is the same for a score and for 1 minus the score.
    """
    up, down = sweeps(scores, epsilon)
    own = checked_weights(None, scores.shape[1]) if shares is None else shares
    one, other = (renyi(class_masses(members, own), 1.0) for members in (up, down))
    return np.where((other > one + 1e-12)[:, None], down, up)


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


def class_masses(members: Members, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The share of each class, (n, largest k), by the weights of twins, (m,) or (n, m)."""
    n, m = members.shape
    classes = int(members.max()) + 1
    flat = (members + classes * np.arange(n)[:, None]).ravel()
    shares = np.bincount(flat, weights=np.broadcast_to(weights, (n, m)).ravel(), minlength=n * classes)
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


def _unsort(members: Members, order: Members) -> Members:
    result = np.empty_like(members)
    np.put_along_axis(result, order, members, axis=1)
    return result


Floats = npt.NDArray[np.float64]

DEFAULT_EPSILON = 0.025
#: Rényi orders this close to 1 are Shannon's: the general formula divides by their distance.
SHANNON = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class Qid:
    """Quantitative individual discrimination of n people; every array has one entry per person.

    Parameters
    ----------
    k
        Number of classes of scores.
    q_inf
        Bits in the worst case: log2 k.
    q_1
        Bits on average: Shannon's entropy of the classes.
    span
        Highest score minus lowest.
    low, high
        Lowest and highest score.
    masses
        Share of twins in each class, (n, largest k); 0 where a person has fewer classes.
    """

    k: npt.NDArray[np.int64]
    q_inf: Floats
    q_1: Floats
    span: Floats
    low: Floats
    high: Floats
    masses: Floats

    def renyi(self, order: float) -> Floats:
        """Bits of a Rényi order of the class masses: order 0 is Q∞, order 1 is Q1.

        Orders between 0 and 1 lie in between; above 1 they are no larger than Q1, down to −log2 of the largest mass.

        Parameters
        ----------
        order
            0 or larger.

        Raises
        ------
        OptionError
            If the order is negative.
        """
        return self.q_inf if order == 0 else renyi(self.masses, order)  # a class that nobody is in is one all the same


def qid(
    scores: npt.ArrayLike,
    *,
    epsilon: float = DEFAULT_EPSILON,
    partition: str = "constrained",
    weights: npt.ArrayLike | None = None,
    bounded: bool | None = None,
) -> Qid:
    """Classes and bits of an (n, m) array of scores: one row per person, one column per protected value.

    Parameters
    ----------
    scores
        Scores of n people under m protected values.
    epsilon
        Scores closer than this count as the same.
    partition
        "constrained", or "grid" as in the paper's artifact.
    weights
        Population shares of the m protected values; by default all count the same.
    bounded
        Whether scores are probabilities, so that on the grid a score of 1 opens no bin of its own. By default each
        person's own scores say so: nobody's figures depend on other people.

    Returns
    -------
    Qid
        Arrays with one entry for each person.

    Raises
    ------
    OptionError
        For scores that are no numbers or of nobody, or options that make no sense.

    Examples
    --------
    >>> result = qid([[0.0, 0.3, 0.6, 0.9], [0.5, 0.5, 0.51, 0.5]])
    >>> result.k.tolist(), result.q_1.tolist()
    ([4, 1], [2.0, 0.0])
    """
    table = checked_scores(scores)
    shares = checked_weights(weights, table.shape[1])
    sweep, tolerance = check_partition(partition) == "constrained", check_epsilon(epsilon)
    members = constrained(table, tolerance, shares) if sweep else grid(table, tolerance, bounded=bounded)
    k = members.max(axis=1) + 1
    masses = class_masses(members, shares)
    low, high = table.min(axis=1).astype(np.float64), table.max(axis=1).astype(np.float64)
    return Qid(k, np.log2(k), renyi(masses, 1.0), high - low, low, high, masses)


def renyi(masses: Floats, order: float) -> Floats:
    """Rényi entropy in bits along the last axis (Rényi 1961)."""
    if not order >= 0:
        raise OptionError(f"the Rényi order is {order}; it must be 0 or larger (0 gives Q∞, 1 gives Q1).")
    if order == 0:
        return np.log2((masses > 0).sum(axis=-1))
    largest = masses.max(axis=-1)
    if np.isinf(order):
        bits = -np.log2(largest)
    elif abs(order - 1) < SHANNON:
        logs = np.log2(masses, out=np.zeros_like(masses), where=masses > 0)
        bits = -(masses * logs).sum(axis=-1)
    else:  # relative to the largest mass, so that no power underflows whatever the order
        relative = masses / largest[..., None]
        powers = np.power(relative, order, out=np.zeros_like(masses), where=masses > 0)
        bits = (order * np.log2(largest) + np.log2(powers.sum(axis=-1))) / (1 - order)
    return np.maximum(bits, 0.0) + 0.0  # rounding makes no bits negative, and 0 has no sign


def bits_limit(m: int, epsilon: float, *, regression: bool = False) -> float:
    """The largest number of bits that a person can show: log2 of min(m, ⌈1/ε⌉) for scores within [0, 1]."""
    return float(np.log2(m if regression else min(m, max_classes(epsilon))))


def checked_scores(scores: npt.ArrayLike) -> npt.NDArray[np.floating]:
    """Scores as an (n, m) array of floats; float32 is kept as it is."""
    table = np.asarray(scores)
    if table.dtype != np.float32:
        try:
            table = table.astype(np.float64)
        except (TypeError, ValueError):
            raise OptionError(f"scores must be numbers, but got an array of {table.dtype}.") from None
    if table.ndim != 2 or 0 in table.shape:
        raise OptionError(
            f"scores must be a table of people × protected values, at least one of each, but got shape {table.shape}; "
            f"for one person give [[…]]."
        )
    bad = ~np.isfinite(table)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise OptionError(
            f"{bad.sum():,} scores are not finite (first: {table[row, column]} in row {row + 1:,}); check the model."
        )
    return table


def checked_weights(weights: npt.ArrayLike | None, m: int) -> Floats:
    """Shares of the twins in the population."""
    if weights is None:
        return np.full(m, 1 / m)
    shares = np.asarray(weights, dtype=np.float64)
    if shares.shape != (m,) or not (np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() > 0):
        raise OptionError(f"weights must be {m} numbers, none negative and not all 0, but got shape {shares.shape}.")
    return shares / shares.sum()
