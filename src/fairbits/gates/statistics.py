"""Intervals and paired tests of a gate.

Frozen people are a sample of people like them, so a rate or a mean has an interval; against a baseline the same people
are compared with themselves, which is far sharper than two separate intervals. Flips: the exact one-sided test of
McNemar (1947) on those whose answer changed. Bits and k: a paired bootstrap (Rubin 1981) whose ends hold for rare
changes too, see :func:`fairbits.measure.bounded_means`. Where people have several rows, all of these draw people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.measure import Estimate, Grouping, bounded_means, lowest_ratio, rate_of, worth_of

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
#: The number of the person of each row; None where each is somebody else.
People = npt.NDArray[np.int64] | None
#: Groups of fewer people are named elsewhere, and left out of ratios.
MIN_GROUP = 30
#: Draws of a bootstrap over a few cells: cheap, so more than usual.
DRAWS = 4000


@dataclass(frozen=True, slots=True)
class PairedChange:
    """A change among the same people."""

    value: float
    low: float
    high: float
    worse: int
    better: int
    p_value: float | None = None


def mcnemar(worse: int, better: int) -> float:
    """The exact one-sided test of McNemar: how often chance alone gives so many changes for the worse.

    Examples
    --------
    >>> mcnemar(0, 0), round(mcnemar(8, 1), 4)
    (1.0, 0.0195)
    """
    from scipy.special import betainc

    if worse == 0:
        return 1.0
    # the upper tail of the binomial law at 1/2; scipy.stats has it too, but takes a second to import
    return float(betainc(worse, better + 1, 0.5))


def rate(hits: Truths, level: float, people: People = None) -> Estimate:
    """A share of people with its interval."""
    return rate_of(hits, people=people, level=level)


def mean(
    values: Floats, rng: np.random.Generator, *, low: float, high: float, level: float, people: People = None
) -> Estimate:
    """A mean of figures between two ends, with its interval."""
    return bounded_means(values[:, None], rng, lows=low, highs=high, level=level, people=people)[0]


def rate_change(
    before: Truths, after: Truths, rng: np.random.Generator, *, level: float, people: People = None
) -> PairedChange:
    """How a share of people rose between two answers about the same people.

    Whoever has several rows counts once in the test, by which way most of those that changed went.
    """
    moved = after.astype(np.float64) - before
    found = mean(moved, rng, low=-1.0, high=1.0, level=level, people=people)
    own = moved if people is None else np.bincount(people, weights=moved)
    worse, better = int((own > 0).sum()), int((own < 0).sum())
    return PairedChange(found.value, found.low, found.high, worse, better, mcnemar(worse, better))


def mean_change(
    before: Floats, after: Floats, rng: np.random.Generator, *, limit: float, level: float, people: People = None
) -> PairedChange:
    """How a mean rose between two answers about the same people."""
    moved = after - before
    found = mean(moved, rng, low=-limit, high=limit, level=level, people=people)
    own = moved if people is None else np.bincount(people, weights=moved)
    return PairedChange(found.value, found.low, found.high, int((own > 0).sum()), int((own < 0).sum()))


def impact(groups: Grouping, selected: Truths, level: float, people: People = None) -> tuple[Estimate, str] | None:
    """The lowest selection rate of a group over the highest, with an interval, and whose it is.

    The interval is that of :func:`fairbits.measure.lowest_ratio`.
    """
    counts, chosen = _counted(groups, selected)
    worth = _worth(groups, [selected], people) / np.maximum(counts, 1)
    counts, chosen = counts * worth, chosen * worth
    fit = np.flatnonzero(counts >= MIN_GROUP)
    found = lowest_ratio(chosen[fit], counts[fit], level=level)
    return None if found is None else (found[0], f"{groups.name} {groups.labels[fit[found[1]]]}")


def impact_change(
    groups: Grouping, before: Truths, after: Truths, rng: np.random.Generator, *, level: float, people: People = None
) -> PairedChange | None:
    """How far the lowest ratio of selection rates dropped, by a paired bootstrap over people.

    The lowest ratio is that of a pair of groups. Where pair a is the lowest after, the drop is at most that of pair a,
    and where pair b was the lowest before, at least that of pair b; so the ends are taken over all pairs that may be
    the lowest. In each group one more person stands where they move that end furthest, so that changes too rare for
    the sample are allowed for.
    """
    counts, old = _counted(groups, before)
    new = _counted(groups, after)[1]
    worth = _worth(groups, [before, after, before != after], people)
    fit = np.flatnonzero(worth >= MIN_GROUP)
    if len(fit) < 2 or old[fit].sum() == 0 or new[fit].sum() == 0:
        return None
    known = groups.known
    worse, better = int((before & ~after)[known].sum()), int((after & ~before)[known].sum())
    cells = np.zeros((len(counts), 4))
    np.add.at(cells, (groups.codes[known], 2 * before[known].astype(int) + after[known]), 1)
    cells *= (worth / np.maximum(counts, 1))[:, None]
    drawn = rng.standard_gamma(np.broadcast_to(cells[fit], (DRAWS, len(fit), 4)))
    extra = rng.standard_exponential((DRAWS, len(fit)))
    outside = 0.5 - level / 2
    high = _largest_drop(drawn, extra, _BEFORE, _AFTER, outside)
    low = -_largest_drop(drawn, extra, _AFTER, _BEFORE, outside)  # what rose, seen from the other side
    value = float(_lowest(old[fit] / counts[fit]) - _lowest(new[fit] / counts[fit]))
    return PairedChange(value, min(low, value), max(high, value), worse, better)


#: Cells of a group by decision before and after: neither, only after, only before, both.
_AFTER, _BEFORE = (1, 3), (2, 3)


def _largest_drop(
    drawn: Floats, extra: Floats, first: tuple[int, int], second: tuple[int, int], outside: float
) -> float:
    """The upper end of how far the lowest ratio falls from the first moment to the second."""
    total = drawn.sum(axis=2) + extra
    was, now = (drawn[..., moment].sum(axis=2) for moment in (first, second))
    # The one more person of the lower group is selected at the first moment only, that of the higher one at the second.
    lower, higher = ((was + extra) / total, now / total), (was / total, (now + extra) / total)
    tiny = np.finfo(np.float64).tiny
    largest = np.full(len(drawn), -1.0)
    for one, other in _lowest_pairs(now / drawn.sum(axis=2), outside):
        at = [np.minimum(lower[i][:, one] / np.maximum(higher[i][:, other], tiny), 1.0) for i in (0, 1)]
        largest = np.maximum(largest, at[0] - at[1])
    return float(np.quantile(largest, 1 - outside))


def _lowest_pairs(rates: Floats, outside: float) -> list[tuple[int, int]]:
    """Pairs of groups, of a lower and a higher rate, whose ratio is the lowest in more than a tenth of ``outside``."""
    groups = rates.shape[1]
    times = np.bincount(rates.argmin(axis=1) * groups + rates.argmax(axis=1), minlength=groups * groups)
    often = np.flatnonzero(times > outside * len(rates) / 10)
    return [(int(pair) // groups, int(pair) % groups) for pair in often if pair // groups != pair % groups]


def _worth(groups: Grouping, answers: Sequence[Truths], people: People) -> Floats:
    """How many independent people each group is worth, by the answer of which it is worth least."""
    counts = groups.counts.astype(np.float64)
    if people is None:
        return counts
    for code in np.flatnonzero(counts):
        here = groups.codes == code
        counts[code] = min(worth_of(answer[here], people[here]) for answer in answers)
    return counts


def _counted(groups: Grouping, selected: Truths) -> tuple[Floats, Floats]:
    size, known = len(groups.labels), groups.known
    chosen = np.bincount(groups.codes[known & selected], minlength=size).astype(np.float64)
    return groups.counts.astype(np.float64), chosen


def _lowest(rates: Floats) -> Floats:
    top = rates.max(axis=-1)
    return np.asarray(np.where(top > 0, rates.min(axis=-1) / np.where(top > 0, top, 1.0), 1.0))


def widest(found: Sequence[PairedChange]) -> PairedChange:
    """The largest of several changes, with ends that hold for the largest of the true ones."""
    worst = max(found, key=lambda one: one.value)
    low, high = max(one.low for one in found), max(one.high for one in found)
    return PairedChange(worst.value, min(low, worst.value), high, worst.worse, worst.better, worst.p_value)
