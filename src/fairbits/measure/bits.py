"""From classes to bits: how much protected information a person's scores give away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.errors import OptionError
from fairbits.measure.partition import assign, check_epsilon, check_partition, class_masses, max_classes, sweeps

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
    masses: Floats  # (n, largest k): share of twins in each class, 0 where a person has fewer classes

    def renyi(self, order: float) -> Floats:
        """Bits of a Rényi order of the class masses: order 0 is Q∞, order 1 is Q1.

        Orders between 0 and 1 lie in between; above 1 they are no larger than Q1, down to −log2 of the largest mass.

        Parameters
        ----------
        order
            0 or larger.

        Returns
        -------
        Floats
            Bits, (n,).

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
    if check_partition(partition) == "constrained":
        up, down = sweeps(table, check_epsilon(epsilon))
        k = up.max(axis=1) + 1
        both = [class_masses(members, shares) for members in (up, down)]
        one, other = (renyi(masses, 1.0) for masses in both)
        masses = np.where((other > one + 1e-12)[:, None], both[1], both[0])
    else:
        members = assign(table, check_epsilon(epsilon), "grid", bounded=bounded)
        k, masses = members.max(axis=1) + 1, class_masses(members, shares)
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
