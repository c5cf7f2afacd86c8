"""How sure a figure is: intervals for rates and means, and what finding nothing is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from fairbits.errors import OptionError

#: Resamples of a bootstrap: enough for two digits of a 95 % interval.
RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with the interval around it."""

    value: float
    low: float
    high: float


def wilson(hits: int, trials: int, *, level: float = 0.95) -> Estimate:
    """A rate with Wilson's score interval (Wilson 1927), which behaves at 0 and at 1 as well."""
    if not 0 <= hits <= trials or trials < 1:
        raise OptionError(f"0 <= hits <= trials and trials >= 1 must hold, but got {hits} of {trials}.")
    z = float(special.ndtri(0.5 + level / 2))
    rate = hits / trials
    centre = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * np.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials**2)) / (1 + z * z / trials)
    return Estimate(rate, float(min(rate, centre - half)), float(max(rate, centre + half)))


def bootstrap_means(
    columns: npt.NDArray[np.floating], rng: np.random.Generator, *, level: float = 0.95, resamples: int = RESAMPLES
) -> list[Estimate]:
    """Means of the columns of an (n, c) array, each with a percentile bootstrap interval (Efron 1979).

    People are drawn, not figures: every column is resampled with the same people.
    """
    values = np.asarray(columns, dtype=np.float64)
    n = len(values)
    means = np.empty((resamples, values.shape[1]))
    for i in range(resamples):
        drawn = np.bincount(rng.integers(0, n, n, dtype=np.int32), minlength=n)
        means[i] = drawn @ values / n
    lows, highs = np.quantile(means, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    centre = values.mean(axis=0)
    return [Estimate(float(c), float(lo), float(hi)) for c, lo, hi in zip(centre, lows, highs, strict=True)]


def rate_bound(examined: int, found: int = 0, *, credibility: float = 0.95) -> float:
    """After ``found`` such people among ``examined``, the rate of such people is below this at this credibility.

    Jeffreys' prior Beta(½, ½): the bound is the quantile of the posterior Beta(½ + found, ½ + examined − found).

    >>> round(rate_bound(1000), 5)
    0.00192
    """
    if not 0 <= found <= examined or examined < 1:
        raise OptionError(f"0 <= found <= examined and examined >= 1 must hold, but got {found} of {examined}.")
    if not 0 < credibility < 1:
        raise OptionError(f"credibility is {credibility}; it must lie between 0 and 1, e.g. 0.95.")
    return float(special.betaincinv(0.5 + found, 0.5 + examined - found, credibility))


def bayes_factor(examined: int, found: int, rate: float) -> float:
    """How strongly the examined people speak for a true rate below ``rate`` rather than above it.

    Posterior odds over prior odds under a uniform prior: the Jeffreys test that the paper asks for. Above 100 is
    called decisive (Jeffreys 1961).
    """
    if not 0 < rate < 1:
        raise OptionError(f"rate is {rate}; it must lie between 0 and 1, e.g. 0.001.")
    below = special.betainc(1 + found, 1 + examined - found, rate)
    above = special.betaincc(1 + found, 1 + examined - found, rate)
    return float(np.inf if above == 0 else below / above / (rate / (1 - rate)))
