"""How sure a figure is: intervals for rates and means, and what finding nobody is worth.

Where several rows are one person, ``people`` numbers the person of each row: the figure stays that of the rows, and its
interval draws people (:mod:`fairbits.domain.table`). Where rows have survey weights, ``weight`` gives them: figures are
ratios of weighted sums, and their intervals come from the variance of these sums among people (Taylor linearisation,
people as sampling units drawn with replacement; Särndal, Swensson and Wretman 1992, section 5.6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.domain import Doubles, Integers, row_keys
from fairbits.errors import OptionError
from fairbits.functions import gamma_quantile, normal_quantile, student_quantile

#: Resamples of a bootstrap: enough for two digits of a 95 % interval.
RESAMPLES = 1000
#: Weights that a bootstrap draws at once: arrays that stay in cache, and few calls.
BLOCK = 100_000
#: People from which on the normal law is looked at, and beyond which a bootstrap lets people alike share a weight.
MANY, ALIKE = 5_000, 1_000
#: By what share of an interval's half the normal law may miss its ends.
NEARNESS = 0.01
#: People up to which an interval by the normal law is widened as Student did (1908).
FEW = 200
#: Hits (or misses) up to which Wilson's inner end gives way to the Poisson quantile, for small and for other samples.
FEW_HITS, FEW_TRIALS = (2, 3), 50


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with the interval around it."""

    value: float
    low: float
    high: float

    @property
    def remainder(self) -> Estimate:
        """What a share leaves of 1, with its interval."""
        return Estimate(1 - self.value, 1 - self.high, 1 - self.low)

    @staticmethod
    def named(name: str, estimate: Estimate | None) -> dict[str, float | None]:
        """A figure and its interval as entries of a document: ``name``, ``name_low`` and ``name_high``."""
        ends = (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)
        return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def rate_of(
    hits: npt.NDArray[np.bool_], *, people: Integers | None = None, weight: Doubles | None = None, level: float = 0.95
) -> Estimate:
    """The share of rows that are hit, with Wilson's interval over rows, or over as many independent ones as the people
    are worth: the variance of the share among people says how many (Kish 1965, "design effect").
    """
    n = len(hits)
    if n == 0:
        raise OptionError("a rate needs at least one person, but got none.")
    rate = int(np.count_nonzero(hits)) / n if weight is None else float(weight[hits].sum() / weight.sum())
    alone = people is None and weight is None
    return _wilson(rate, n if alone else worth_of(hits, people, weight), level)


def worth_of(hits: npt.NDArray[np.bool_], people: Integers | None, weight: Doubles | None = None) -> float:
    """How many independent rows would tell the share of hits as well as these people do: at most as many as there are.

    Where nobody, or everybody, is hit, they are worth as many as there are people, less what unequal sizes cost.
    """
    sums, sizes = _by_person(np.asarray(hits, dtype=np.float64)[:, None], people, weight)
    n, persons = float(sizes.sum()), len(sizes)
    rate = float(sums.sum() / n)
    spread = float(((sums[:, 0] - rate * sizes) ** 2).sum()) * persons / max(persons - 1, 1)
    if spread > 0:
        return min(rate * (1 - rate) * n * n / spread, float(len(hits)))
    return float(persons) if weight is None else effective_size(sizes)


def effective_size(weight: Doubles) -> float:
    """How many rows of equal weight are worth as much as these (Kish 1965): (Σ w)² / Σ w²."""
    return float(weight.sum() ** 2 / (weight**2).sum())


def _by_person(
    values: npt.NDArray[np.float64], people: Integers | None, weight: Doubles | None = None
) -> tuple[npt.NDArray[np.float64], Doubles]:
    """Weighted sums of columns over each person's rows, (people, columns), and the weights of their rows together."""
    sizes = np.ones(len(values)) if weight is None else weight / weight.mean()
    if people is None:
        return values * sizes[:, None], sizes
    if people.min() < 0:
        people = np.unique(people, return_inverse=True)[1]
    there = np.bincount(people) > 0  # some of the people may have no row here
    sums = np.column_stack([np.bincount(people, weights=sizes * column)[there] for column in values.T])
    return sums.astype(np.float64), np.bincount(people, weights=sizes)[there].astype(np.float64)


def wilson(hits: int, trials: int, *, level: float = 0.95) -> Estimate:
    """A rate with Wilson's score interval (Wilson 1927), mended where events are rare.

    With one to three hits (or misses) Wilson's inner end is too tight: it holds 84 % of the time instead of 95 %.
    There the Poisson quantile takes its place (Brown, Cai, DasGupta 2001, "modified Wilson").
    """
    if not 0 <= hits <= trials or trials < 1:
        raise OptionError(f"0 <= hits <= trials and trials >= 1 must hold, but got {hits} of {trials}.")
    return _wilson(hits / trials, trials, level)


def _wilson(rate: float, trials: float, level: float) -> Estimate:
    """The same for a rate among a number of trials that need not be whole."""
    z, few = normal_quantile(0.5 + level / 2), FEW_HITS[trials > FEW_TRIALS] + 1e-9
    centre = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials**2)) / (1 + z * z / trials)
    low, high = centre - half, centre + half
    if 0 < rate * trials <= few:
        low = gamma_quantile(max(1, int(rate * trials + 1e-9)), 1 - level) / trials
    if 0 < (1 - rate) * trials <= few:
        high = 1 - gamma_quantile(max(1, int((1 - rate) * trials + 1e-9)), 1 - level) / trials
    return Estimate(rate, min(max(low, 0.0), rate), min(max(high, rate), 1.0))


def bounded_means(
    columns: npt.NDArray[np.floating],
    rng: np.random.Generator,
    *,
    lows: npt.ArrayLike,
    highs: npt.ArrayLike,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    many: int = MANY,
    nearness: float = NEARNESS,
    people: Integers | None = None,
    weight: Doubles | None = None,
) -> list[Estimate]:
    """Means of the columns of an (n, c) array whose values are known to lie between ``lows`` and ``highs``.

    A Bayesian bootstrap (Rubin 1981: people get exponential weights) in which one more person stands at the end of
    the range: at the top for the upper end of the interval, at the bottom for the lower one (Gaffke 2005;
    Learned-Miller and Thomas 2019). Such an interval never leaves the range, and it holds for rare cases too, where a
    plain bootstrap of people who are all alike has no width at all. For values of 0 and 1 it is Clopper and Pearson's.
    For thousands of people whose values are not too skewed the normal law says the same, and is used.
    The one more person of a table of repeated ones has as many rows as people have on average.
    """
    values = np.asarray(columns, dtype=np.float64)
    if values.ndim != 2 or len(values) == 0:
        raise OptionError(f"a mean needs at least one person, but got an array of shape {values.shape}.")
    bottom, top = (np.broadcast_to(np.asarray(ends, dtype=np.float64), values.shape[1]) for ends in (lows, highs))
    centre, rows = np.average(values, axis=0, weights=weight), len(values)
    sums, sizes = (values, np.ones(rows)) if people is None and weight is None else _by_person(values, people, weight)
    usual = rows / len(sums)
    if len(sums) >= many:
        centred = centre * sizes[:, None]  # in place: there may be millions of people
        np.subtract(sums, centred, out=centred)
        centred /= usual
        half = _normal_halves(centred, level, nearness)
        if half is not None:
            ends = np.array([np.maximum(centre - half, bottom), np.minimum(centre + half, top)])
            return [Estimate(*map(float, one)) for one in zip(centre, *ends, strict=True)]
    counts = np.ones(len(sums), np.int64)
    if len(sums) > ALIKE:  # people alike share one weight
        whole = np.column_stack([sums, sizes])
        numbers = np.unique(row_keys(whole.T, len(whole)), return_inverse=True)[1]
        one_of = np.empty(numbers.max() + 1, np.int64)
        one_of[numbers] = np.arange(len(whole))
        order = np.lexsort(whole[one_of].T[::-1])
        kinds, counts = whole[one_of[order]], np.bincount(numbers)[order]
        sums, sizes = kinds[:, :-1], kinds[:, -1]
    drawn = np.empty((2, resamples, values.shape[1]))
    shapes = np.append(counts, 1.0)  # the last is the one more person: a gamma weight of shape 1 is exponential
    single = bool((shapes == 1).all())
    step = max(1, BLOCK // len(shapes))
    for start in range(0, resamples, step):
        some = slice(start, min(start + step, resamples))
        size = (some.stop - start, len(shapes))
        # Where everybody is single, exponential weights are the same draws in half the time.
        weights = rng.standard_exponential(size) if single else rng.standard_gamma(shapes, size)
        summed, one_more = weights[:, :-1] @ sums, usual * weights[:, -1:]
        total = (weights[:, :-1] @ sizes)[:, None] + one_more
        drawn[0, some] = (summed + one_more * bottom) / total
        drawn[1, some] = (summed + one_more * top) / total
    outside = 0.5 - level / 2
    ends = np.quantile(drawn, (outside, 1 - outside), axis=1)
    low, high = np.clip(ends[0, 0], bottom, centre), np.clip(ends[1, 1], centre, top)
    return [Estimate(*map(float, one)) for one in zip(centre, low, high, strict=True)]


def _normal_halves(centred: npt.NDArray[np.float64], level: float, nearness: float) -> npt.NDArray[np.float64] | None:
    """Half the width of each mean's interval by the normal law; None where the law is not near enough.

    The first term that the law leaves out moves an end by (1 + 2z²)/(6√n) · skewness standard errors (Hall 1992): where
    that is more than ``nearness`` of the interval's half, or nobody differs, the bootstrap decides.
    """
    n, z = len(centred), normal_quantile(0.5 + level / 2)
    squares = centred * centred
    spread = np.sqrt(squares.mean(axis=0))
    if not np.all(spread > 0):
        return None
    squares *= centred
    skewness = np.abs(squares.mean(axis=0)) / spread**3
    if np.any((1 + 2 * z * z) / (6 * np.sqrt(n)) * skewness > z * nearness):
        return None
    return np.asarray(z * spread * np.sqrt(n / (n - 1)) / np.sqrt(n))


def bootstrap_means(
    columns: npt.NDArray[np.floating],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    people: Integers | None = None,
) -> list[Estimate]:
    """Means of columns, each with a percentile bootstrap interval (Efron 1979).

    For values without a known range, and samples of a few dozen or more. People are drawn, not figures: every column is
    resampled with the same people.
    """
    values = np.asarray(columns, dtype=np.float64)
    n = len(values)
    if n == 0:
        raise OptionError(f"a mean needs at least one person, but got an array of shape {values.shape}.")
    means = np.empty((resamples, values.shape[1]))
    sums, sizes = (values, np.ones(n)) if people is None else _by_person(values, people)
    drawn_from = len(sums)
    for i in range(resamples):
        drawn = np.bincount(rng.integers(0, drawn_from, drawn_from, dtype=np.int32), minlength=drawn_from)
        means[i] = drawn @ sums / (drawn @ sizes)
    lows, highs = np.quantile(means, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    centre = values.mean(axis=0)
    return [Estimate(*map(float, one)) for one in zip(centre, lows, highs, strict=True)]


def student_mean(
    values: npt.ArrayLike, *, level: float = 0.95, people: Integers | None = None, weight: Doubles | None = None
) -> Estimate:
    """A mean of values without a known range, with Student's interval."""
    given = np.asarray(values, dtype=np.float64)
    mean, upper = float(np.average(given, weights=weight)), 0.5 + level / 2
    if people is not None or weight is not None:  # each person's part of the mean in place of each row
        sums, sizes = _by_person(given[:, None], people, weight)
        given = (sums[:, 0] - mean * sizes) / float(sizes.mean())
    n = len(given)
    if n < 2:
        return Estimate(mean, -np.inf, np.inf)
    factor = student_quantile(n - 1, upper) if n <= FEW else normal_quantile(upper)
    half = factor * float(given.std(ddof=1)) / float(np.sqrt(n))
    return Estimate(mean, mean - half, mean + half)


def bounded_ratio(
    tops: npt.ArrayLike,
    bottoms: npt.ArrayLike,
    rng: np.random.Generator,
    *,
    high: float,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    people: Integers | None = None,
) -> Estimate:
    """The mean of one figure over the mean of another, of the same people; both lie between 0 and ``high``.

    The interval of :func:`bounded_means` for tops − t · bottoms, turned round: it holds every t for which 0 is in
    that. One more person stands at the end of the range: with all of the top and nothing of the bottom, and the
    reverse. So it has a width where nobody in the sample differs, and where few have anything at all.
    """
    over, under = (np.asarray(one, dtype=np.float64) for one in (tops, bottoms))
    if over.ndim != 1 or over.shape != under.shape or not under.sum() > 0:
        raise OptionError(f"a ratio needs two figures of each person, the lower above 0, but got {over.shape}.")
    outside, value = 0.5 - level / 2, float(over.sum() / under.sum())
    if people is not None:
        sums, sizes = _by_person(np.column_stack([over, under]), people)
        over, under, high = sums[:, 0], sums[:, 1], high * float(sizes.mean())
    weights = rng.standard_exponential((resamples, len(over) + 1))
    above, below, extra = weights[:, :-1] @ over, weights[:, :-1] @ under, high * weights[:, -1]
    low = float(np.quantile(above / (below + extra), outside))
    return Estimate(value, min(low, value), max(float(np.quantile((above + extra) / below, 1 - outside)), value))


def clustered_ratio(tops: npt.ArrayLike, bottoms: npt.ArrayLike, people: Integers, *, level: float = 0.95) -> Estimate:
    """The mean of one figure, of either sign, over the mean of another above 0, with an interval over people.

    By the variance of the ratio among people (linearised) and Student's quantile for their number, which holds for a
    handful of them too; with one there is none to tell, and the rows are taken for people.
    """
    over, under = (np.asarray(one, dtype=np.float64) for one in (tops, bottoms))
    value = float(over.sum() / under.sum())
    rest = (over - value * under)[:, None]
    sums, _ = _by_person(rest, people)
    sums = rest if len(sums) == 1 else sums
    n = len(sums)
    if n < 2:
        return Estimate(value, value, value)
    half = float(student_quantile(n - 1, 0.5 + level / 2) * np.sqrt(n / (n - 1) * (sums**2).sum()) / under.sum())
    return Estimate(value, value - half, value + half)


def student_ratio(tops: npt.ArrayLike, bottoms: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """The mean of one figure over the mean of another, of the same people, neither with a known range (Fieller
    1954).
    """
    over, under = (np.asarray(one, dtype=np.float64) for one in (tops, bottoms))
    n, upper = len(over), 0.5 + level / 2
    value = float(over.mean() / under.mean())
    if n < 2:
        return Estimate(value, 0.0, np.inf)
    factor = student_quantile(n - 1, upper) ** 2 / n
    spread = np.cov(under, over)
    square = under.mean() ** 2 - factor * spread[0, 0]
    linear = under.mean() * over.mean() - factor * spread[0, 1]
    constant = over.mean() ** 2 - factor * spread[1, 1]
    if square <= 0:
        return Estimate(value, 0.0, np.inf)
    root = float(np.sqrt(max(linear**2 - square * constant, 0.0)))
    return Estimate(value, max(float(linear - root) / square, 0.0), float(linear + root) / square)


def lowest_ratio(hits: npt.ArrayLike, trials: npt.ArrayLike, *, level: float = 0.95) -> tuple[Estimate, int] | None:
    """The lowest rate of several groups over the highest, and whose it is.

    Which groups these are is seen in the same people, so the interval is that of the lowest of all ratios: each pair
    of groups gets the one of Katz and others (1978), half a person added to every count, and the pairs share the error.
    """
    found, people = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    if len(people) < 2 or found.sum() == 0:
        return None
    rates = found / people
    lowest, value = int(np.argmin(rates)), float(rates.min() / rates.max())
    low, high = (float(ends.min()) for ends in _pair_ratios(found, people, level, len(people) * (len(people) - 1)))
    return Estimate(value, min(low, value), min(max(high, value), 1.0)), lowest


def ratio_ends(
    hits: npt.ArrayLike, trials: npt.ArrayLike, *, level: float = 0.95
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Ends of the intervals of each group's rate over the highest of all, whichever that truly is.

    A rate over the highest is the lowest of its ratios to the others: each of them gets the interval of Katz and others
    (1978), half a person added to every count, and they share the error.
    """
    found, people = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    if len(people) < 2:
        return np.ones(len(people)), np.ones(len(people))
    low, high = (ends.min(axis=1) for ends in _pair_ratios(found, people, level, 2 * (len(people) - 1)))
    return np.minimum(low, 1.0), np.minimum(high, 1.0)


def _pair_ratios(hits: Doubles, trials: Doubles, level: float, shared: int) -> tuple[Doubles, Doubles]:
    """Ends of the interval of each group's rate over each other's, (groups, groups); infinite beside themselves."""
    z = normal_quantile(1 - (1 - level) / shared)
    inside = (hits + 0.5) / (trials + 0.5)
    spread = np.maximum(1 / (hits + 0.5) - 1 / (trials + 0.5), 0.0)
    middle, half = inside[:, None] / inside, z * np.sqrt(spread[:, None] + spread)
    alone = np.where(np.eye(len(trials), dtype=bool), np.inf, 0.0)
    return middle * np.exp(-half) + alone, middle * np.exp(half) + alone


def rate_bound(examined: int, found: int = 0, *, confidence: float = 0.95) -> float:
    """After ``found`` such people among ``examined``, the rate of such people is at most this, with this confidence.

    The upper end of Clopper and Pearson's one-sided interval (1934): the quantile of Beta(found + 1, examined − found).
    It holds for a property stated in advance, whatever the true rate. With ``found`` = 0 it also holds for "exceeds
    the largest value among those examined", although that value is taken from the same people: what lies above the
    largest of N draws has the distribution Beta(1, N), or less where values are tied (Wilks 1941).

    Examples
    --------
    >>> round(rate_bound(1000), 5)
    0.00299
    """
    if not 0 <= found <= examined or examined < 1:
        raise OptionError(f"0 <= found <= examined and examined >= 1 must hold, but got {found} of {examined}.")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence is {confidence}; it must lie between 0 and 1, e.g. 0.95.")
    if found == 0:  # the chance of that, (1 − rate)ⁿ, solved for the rate
        return float(-np.expm1(np.log1p(-confidence) / examined))
    from scipy import special

    return 1.0 if found == examined else float(special.betaincinv(found + 1, examined - found, confidence))
