"""The tail: how far apart the twins' scores of the worst few are, and of people rarer than any who were asked.

A mean over people hides them, and a repair can lower the mean and make them worse. Upper quantiles of the gap (a
person's highest score minus the lowest) have intervals by order statistics, which hold whatever the gaps are like. What
one in more people exceeds than were asked is extrapolated: gaps above a high threshold are fitted with a generalised
Pareto distribution (Pickands 1975) by profile likelihood, which gives the interval too; where gaps have an end, such as
1, it is cut there. The fit is kept only where a Cramér–von Mises test by parametric bootstrap does not reject it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import floor, inf, log10
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Doubles
from fairbits.measure.intervals import Estimate, effective_size

LEVELS = (0.9, 0.99, 0.999)
#: Exceedances that a fit takes, from the most on: shares of the people, at most and at least so many.
SHARES, MOST, FEWEST = (0.1, 0.05, 0.025), 500, 50
#: End points tried, draws of the bootstrap, and the p below which a fit is no fit.
ENDS, DRAWS, REJECTED = 48, 200, 0.1
#: A shape above this, where gaps have an end, describes a lump of them and no tail.
HEAVY = 0.5
#: How near the largest a likelihood must be. Wilks says 1.92; tails with an end are not regular, and intervals by 1.92
#: held in 87 to 98 % of draws, by 2.7 in 92 to 98 %.
NEAR = 2.7
#: Of all people, those who are no further apart than this count as nowhere near a tail: there is none.
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class TailQuantile:
    """What a share of people stays below. The interval holds whatever the gaps are like; its end may not be known."""

    level: float
    value: float
    low: float
    high: float | None


@dataclass(frozen=True, slots=True)
class Extreme:
    """The gap that one in so many people exceeds, extrapolated from the people above a threshold.

    Attributes
    ----------
    one_in
        More people than were asked.
    gap
        What one of them exceeds, with a 95 % interval.
    threshold, people, shape
        The gap above which the fit begins, people above it, and the fit's shape (below 0: the tail has an end).
    end
        Where the tail ends by the fit; None where it does not.
    p
        Of the test of the fit.
    """

    one_in: int
    gap: Estimate
    threshold: float
    people: int
    shape: float
    end: float | None
    p: float


@dataclass(frozen=True, slots=True)
class Tail:
    """The largest gap between twins' scores, upper quantiles, and an estimate beyond them.

    Attributes
    ----------
    people
        Whose gaps these are: of somebody with several rows, the largest.
    largest
        The largest gap among them.
    quantiles
        At 0.9, 0.99 and 0.999, as far as there are people enough.
    extreme
        What lies beyond; None where it cannot be said.
    why
        Why not, in a sentence.
    """

    people: int
    largest: float
    quantiles: tuple[TailQuantile, ...]
    extreme: Extreme | None = None
    why: str = ""

    def document(self) -> dict[str, Any]:
        """As it is kept in JSON."""
        return {**asdict(self), "quantiles": [asdict(one) for one in self.quantiles]}


def tail_of(
    gaps: npt.ArrayLike,
    rng: np.random.Generator,
    *,
    highest: float | None = 1.0,
    people: npt.NDArray[np.int64] | None = None,
    weight: Doubles | None = None,
) -> Tail:
    """The tail of gaps; ``highest`` is the largest that there can be, None where there is no such."""
    values, every = np.asarray(gaps, dtype=np.float64), weight
    if people is not None:
        there = np.bincount(people) > 0
        largest = np.zeros(len(there))
        np.maximum.at(largest, people, values)
        values = largest[there]
        every = None if weight is None else np.bincount(people, weight)[there].astype(np.float64)
    if every is None:
        values, n = np.sort(values), len(values)
        shares = np.arange(1.0, n + 1) / n
    else:
        order = np.argsort(values, kind="stable")
        order = order[every[order] > 0]
        values, n = values[order], int(effective_size(every))
        shares = np.cumsum(every[order]) / every.sum()
    quantiles, counts = [], np.arange(n + 1)
    for level in (one for one in LEVELS if n * (1 - one) >= 1):
        # By order statistics: how many of n people lie below the true quantile is binomial. (SciPy's quantile of that
        # takes longer to import than all of this to compute.)
        steps = np.log(np.maximum(n - counts[1:] + 1, 1) / counts[1:]) + np.log(level / (1 - level))
        logs = np.concatenate([[0.0], np.cumsum(steps)])
        sums = np.cumsum(np.exp(logs - logs.max()))
        below, above = np.searchsorted(sums, np.array([0.025, 0.975]) * sums[-1])
        # The first person up to whom so large a share of everybody lies; shares are sums of fractions.
        places = np.searchsorted(shares, np.array([level, below / n, (above + 1) / n]) - 1e-9)
        value, low, high = map(float, values[np.minimum(places, len(values) - 1)])
        quantiles.append(TailQuantile(level, value, low if below else 0.0, high if above < n else highest))
    extreme, why = None, "Rows are weighted, and what lies beyond them is estimated of rows that count alike only."
    if weight is None:
        extreme, why = _extreme(values, rng, highest)
    return Tail(len(values), float(values[-1]), tuple(quantiles), extreme, why)


def _extreme(values: Doubles, rng: np.random.Generator, highest: float | None) -> tuple[Extreme | None, str]:
    n = len(values)
    if values[-1] <= _NOTHING:
        return None, "Twins of all people get the same score: there is no tail."
    if highest is not None and values[-1] >= highest * (1 - 1e-6):
        return None, "The largest gap is the largest possible, so nothing lies beyond it."
    if n * SHARES[0] < FEWEST:
        return None, f"{n:,} people are too few to say what lies beyond; {int(FEWEST / SHARES[0])} are needed."
    tried = sorted({min(MOST, int(n * share)) for share in SHARES if n * share >= FEWEST}, reverse=True)
    for count in tried:
        threshold = float(values[-count - 1])
        over = values[values > threshold] - threshold
        if len(np.unique(over)) < FEWEST:
            continue
        found = _fitted(over, threshold, n, rng, highest)
        if found.p >= REJECTED and (highest is None or found.shape <= HEAVY):
            return found, ""
    return None, "The largest gaps follow no generalised Pareto distribution, so what lies beyond cannot be said."


def _fitted(over: Doubles, threshold: float, n: int, rng: np.random.Generator, highest: float | None) -> Extreme:
    one_in, limit = 10 ** (floor(log10(n)) + 1), inf if highest is None else highest - threshold
    shape, scale = _fit(over)
    apart = _cramer_von_mises(over, shape, scale)
    draws = (_gap_at(rng.random(len(over)), shape, scale) for _ in range(DRAWS))
    worse = sum(_cramer_von_mises(drawn, *_fit(drawn)) >= apart for drawn in draws)
    beyond = n / (one_in * len(over))
    value, (low, high) = float(_gap_at(beyond, shape, scale)), _likely(over, beyond)
    # No gap of probabilities is larger than 1: what the fit says beyond that is cut, not fitted away.
    gap = Estimate(*(threshold + min(one, limit) for one in (value, min(low, value), max(high, value))))
    end = threshold + min(-scale / shape if shape < 0 else inf, limit)
    return Extreme(one_in, gap, threshold, len(over), shape, None if end == inf else end, worse / DRAWS)


def _turned(over: Doubles) -> Doubles:
    """Shape over scale, which is -1/E of an end point E: what is tried."""
    top, mean = float(over.max()), float(over.mean())
    return np.concatenate([-1 / (top * (1 + np.geomspace(1e-5, 200, 2 * ENDS))), np.geomspace(1e-3, 20, ENDS) / mean])


def _fit(over: Doubles) -> tuple[float, float]:
    """Shape and scale: for an end point E, the shape is mean(log(1 − x/E)); E is where the likelihood is largest."""
    turned = _turned(over)
    shapes = np.log1p(turned[:, None] * over[None, :]).mean(axis=1)
    scales = shapes / turned
    # Below a shape of -1 the likelihood grows without end towards the largest gap: a uniform tail is the last.
    likelihood = np.where(shapes >= -1, -np.log(scales) - shapes, -inf)
    best = int(likelihood.argmax()) if np.isfinite(likelihood).any() else int(shapes.argmax())
    return float(shapes[best]), float(scales[best])


def _likely(over: Doubles, beyond: float) -> tuple[float, float]:
    """The gaps that one in so many exceeds under every shape and end whose likelihood is near the largest (Wilks)."""
    turned = _turned(over)[:, None]
    sums = np.log1p(turned * over[None, :]).sum(axis=1, keepdims=True)
    shapes = np.sign(turned) * np.geomspace(0.01, 1.2, 2 * ENDS)[None, :]
    likelihood = -len(over) * np.log(shapes / turned) - (1 + 1 / shapes) * sums
    gaps = _gap_at(beyond, shapes, shapes / turned)[likelihood >= likelihood.max() - NEAR]
    return float(gaps.min()), float(gaps.max())


def _gap_at(beyond: float | Doubles, shape: float | Doubles, scale: float | Doubles) -> Doubles:
    """The excess that a share of the people above the threshold exceeds."""
    return np.asarray(scale * np.expm1(-shape * np.log(beyond)) / shape)


def _cramer_von_mises(over: Doubles, shape: float, scale: float) -> float:
    ranks = (np.arange(len(over)) + 0.5) / len(over)
    inside = np.maximum(1 + shape * np.sort(over) / scale, 1e-300)
    return float(((1 - inside ** (-1 / shape) - ranks) ** 2).sum())
