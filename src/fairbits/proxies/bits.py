"""I(A;S): how many bits a score S tells about an attribute A, as a figure that can only be too small.

People are split in two halves. On one the score is cut into bins of equal counts and the frequencies of A in each bin
are taken (Krichevsky and Trofimov 1981 smoothing); on the other the log-ratio of this guess to the base rate is
averaged; then the halves change places. Whatever the guess is, its mean log-ratio is at most I(A;S) (Gibbs), and the
plug-in base rates of the test half only lower it, so the estimate errs downwards (compare McAllester and Stratos 2020
on why a guaranteed lower bound cannot be large).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.functions import normal_quantile
from fairbits.measure import MIN_PEOPLE, Grouping

#: Bins of the score.
BINS = 50
#: People of the fitting half for each free number of the table: with fewer, there are fewer bins.
PEOPLE_PER_CELL = 40
#: Weight of the base rate in every guess: no log-ratio falls far below log2 of it, and the mean can only be lowered.
MIXED = 0.01
#: Shuffles of the attribute: many where people are few and chance is large.
MAX_SHUFFLES, MIN_SHUFFLES, SHUFFLED_PEOPLE = 20, 4, 400_000
#: Bins of a table that is fitted to the people themselves, at least: coarse ones would hide what the score tells.
FITTED_BINS = 16
LEVEL = 0.95

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ScoreBits:
    """What the score tells about one attribute.

    Parameters
    ----------
    bits
        The estimate, 0 at least.
    low
        With the level's confidence the true figure is at least this (normal approximation).
    guaranteed
        The same without an approximation (empirical Bernstein); 0 where there are too few people to say anything.
    placebo
        The estimate with the attribute shuffled among people, on average: what chance alone gives.
    placebo_high
        The largest of the shuffles.
    entropy
        All the bits there are to know about the attribute.
    people
        Whose value is known.
    guess_before, guess_after
        How often the likeliest group is right, before the score is known and after.
    """

    bits: float
    low: float
    guaranteed: float
    placebo: float
    placebo_high: float
    entropy: float
    people: int
    guess_before: float
    guess_after: float


def score_bits(
    groups: Grouping, scores: npt.NDArray[np.floating], rng: np.random.Generator, *, level: float = LEVEL
) -> ScoreBits:
    """Bits of a score about an attribute; people whose value is unknown are left out.

    Parameters
    ----------
    groups
        The attribute.
    scores
        One number per person.
    rng
        For the halves and the shuffles.
    level
        The share of samples in which ``low`` holds.

    Returns
    -------
    ScoreBits
        All zero where there is one group only.
    """
    known = groups.known
    return _summed([groups.codes[known]], [len(groups.labels)], np.asarray(scores)[known], rng, level=level)


def chained_bits(
    groupings: Sequence[Grouping], scores: npt.NDArray[np.floating], rng: np.random.Generator, *, level: float = LEVEL
) -> ScoreBits:
    """Bits of a score about several attributes at once, by the chain rule I(A;S) + I(B;S|A) + …

    Parameters
    ----------
    groupings
        The attributes; groups of an earlier one with fewer than 30 people add nothing for the later ones.
    scores
        One number per person.
    rng
        For the halves and the shuffles.
    level
        The share of samples in which ``low`` holds.

    Returns
    -------
    ScoreBits
        About the combination.
    """
    known = np.logical_and.reduce([one.known for one in groupings])
    codes = [one.codes[known] for one in groupings]
    return _summed(codes, [len(one.labels) for one in groupings], np.asarray(scores)[known], rng, level=level)


def log_ratios(codes: Integers, n_groups: int, scores: npt.NDArray[np.floating], rng: np.random.Generator) -> Floats:
    """For each person the log2-ratio of the guess from the score to the base rate; their mean estimates I(A;S).

    Parameters
    ----------
    codes
        Group of each person, (n,).
    n_groups
        Number of groups.
    scores
        Score of each person, (n,).
    rng
        Source of random numbers.

    Returns
    -------
    Floats
        Ratios in bits, (n,).
    """
    return _Cut(scores, n_groups, rng).log_ratios(codes)


def fitted_log_ratios(codes: Integers, n_groups: int, scores: npt.NDArray[np.floating]) -> Floats:
    """The same with frequencies of the people themselves; their mean can only be too large, not too small.

    The likeliest table of a sample makes it likelier than the true one does, so the mean exceeds that of the true
    log-ratios, whose mean in turn is I(A;S) of the binned score in the long run: what an upper bound rests on.

    Parameters
    ----------
    codes
        Group of each person, (n,).
    n_groups
        Number of groups.
    scores
        Score of each person, (n,).

    Returns
    -------
    Floats
        Ratios in bits, (n,).
    """
    everybody = np.ones(len(scores), dtype=np.bool_)
    bins = _binned(scores, everybody, max(FITTED_BINS, _bins(len(scores), n_groups)))
    cells = np.zeros((int(bins.max(initial=0)) + 1, n_groups))
    np.add.at(cells, (bins, codes), 1)
    given = cells[bins, codes] / cells.sum(axis=1)[bins]
    return np.asarray(np.log2(given) - np.log2(cells.sum(axis=0)[codes] / len(codes)))


def _bins(n: int, n_groups: int) -> int:
    """Bins of the score that so many people can fill."""
    return int(np.clip((n // 2) // (PEOPLE_PER_CELL * max(1, n_groups - 1)), 2, BINS))


class _Cut:
    """Two halves of people and the bins of their scores, made once for the attribute and all its shuffles."""

    def __init__(self, scores: npt.NDArray[np.floating], n_groups: int, rng: np.random.Generator):
        n = len(scores)
        self.n_groups = n_groups
        first = np.zeros(n, dtype=bool)
        first[rng.permutation(n)[: n // 2]] = True
        bins = _bins(n, n_groups)
        self.halves = [
            (np.flatnonzero(fit), np.flatnonzero(~fit), _binned(scores, fit, bins))
            for fit in (first, ~first)
            if fit.any() and not fit.all()
        ]

    def log_ratios(self, codes: Integers) -> Floats:
        """One for each person, in the half that the table was not made of."""
        found = np.zeros(len(codes))
        for fit, test, bins in self.halves:
            ratios, _ = self._ratios(codes, fit, test, bins)
            found[test] = ratios[bins[test], codes[test]]
        return found

    def total(self, codes: Integers) -> float:
        """The sum of the log-ratios, from the counts of the cells: what a shuffle needs."""
        found = 0.0
        for fit, test, bins in self.halves:
            ratios, counts = self._ratios(codes, fit, test, bins)
            found += float((ratios * counts).sum())
        return found

    def guesses(self, codes: Integers) -> tuple[float, float]:
        """How often the likeliest group is right: by the base rate, and by the bin of the score in the other half."""
        after = 0
        for fit, test, bins in self.halves:
            table, counts = self._counts(codes, fit, bins), self._counts(codes, test, bins)
            after += int(counts[np.arange(len(table)), np.argmax(table, axis=1)].sum())
        before = int(np.bincount(codes).max())
        return before / len(codes), max(before, after) / len(codes)

    def _ratios(self, codes: Integers, fit: Integers, test: Integers, bins: Integers) -> tuple[Floats, Integers]:
        """For each bin and group the log2-ratio of the guess to the base rate of those tested, and their count."""
        learned, counts = self._counts(codes, fit, bins), self._counts(codes, test, bins)
        table = (learned + 0.5) / (learned.sum(axis=1, keepdims=True) + 0.5 * self.n_groups)
        prior = (learned.sum(axis=0) + 0.5) / (len(fit) + 0.5 * self.n_groups)
        base = np.maximum(counts.sum(axis=0), 1) / len(test)  # a group that nobody is tested of is never looked up
        return np.log2((1 - MIXED) * table + MIXED * prior) - np.log2(base), counts

    def _counts(self, codes: Integers, rows: Integers, bins: Integers) -> Integers:
        size = int(bins.max()) + 1
        cells = bins[rows] * self.n_groups + codes[rows]
        return np.bincount(cells, minlength=size * self.n_groups).reshape(size, self.n_groups)


def _binned(scores: npt.NDArray[np.floating], fit: npt.NDArray[np.bool_], bins: int) -> Integers:
    """The bin of every score; cut points from one half. A score with few values gets a bin for each."""
    own = scores[fit]
    if len(own) == 0:
        return np.zeros(len(scores), dtype=np.int64)
    values = np.unique(own)
    if len(values) > bins:
        values = np.unique(np.quantile(own, np.linspace(0, 1, bins + 1)[:-1], method="lower"))
    return np.maximum(np.searchsorted(values, scores, side="right") - 1, 0).astype(np.int64)


def _summed(
    codes: list[Integers], sizes: list[int], scores: npt.NDArray[np.floating], rng: np.random.Generator, *, level: float
) -> ScoreBits:
    """The estimate along the chain of attributes, with its bounds and shuffles."""
    n = len(scores)
    flat = np.zeros(n, dtype=np.int64)
    for one, size in zip(codes, sizes, strict=True):
        flat = flat * size + one
    joint = np.unique(flat, return_inverse=True)[1].astype(np.int64)
    n_joint = int(joint.max()) + 1 if n else 0
    if n < 4 or n_joint < 2:
        usual = float(np.bincount(joint).max() / n) if n else 1.0
        return ScoreBits(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, n, usual, usual)
    links = _links(codes, sizes, scores, rng)
    ratios = np.zeros(n)
    for rows, cut, own in links:
        ratios[rows] += cut.log_ratios(own)
    shuffles = [
        sum(cut.total(rng.permutation(own)) / n for _, cut, own in links)
        for _ in range(int(np.clip(SHUFFLED_PEOPLE // n, MIN_SHUFFLES, MAX_SHUFFLES)))
    ]
    base = np.bincount(joint) / n
    entropy = float(-(base * np.log2(base)).sum())
    spread = float(ratios.std(ddof=1))
    mean = float(ratios.mean())
    low = mean - normal_quantile(level) * spread / np.sqrt(n)
    whole = _Cut(scores, n_joint, rng)
    before, after = whole.guesses(joint)
    return ScoreBits(
        bits=min(max(0.0, mean), entropy),
        low=min(max(0.0, float(low)), entropy),
        guaranteed=max(0.0, _bernstein(ratios, span=-np.log2(MIXED) - float(np.log2(base.min())), level=level)),
        placebo=max(0.0, float(np.mean(shuffles))),
        placebo_high=max(0.0, float(np.max(shuffles))),
        entropy=entropy,
        people=n,
        guess_before=before,
        guess_after=after,
    )


def _links(
    codes: list[Integers], sizes: list[int], scores: npt.NDArray[np.floating], rng: np.random.Generator
) -> list[tuple[npt.NDArray[np.bool_], _Cut, Integers]]:
    """The pieces of the chain: the first attribute among everybody, each next one within the groups before it."""
    n = len(scores)
    links: list[tuple[npt.NDArray[np.bool_], _Cut, Integers]] = []
    before = np.zeros(n, dtype=np.int64)
    for one, size in zip(codes, sizes, strict=True):
        for group in np.unique(before):
            rows = np.asarray(before == group)
            if rows.sum() < MIN_PEOPLE and links:
                continue
            present, own = np.unique(one[rows], return_inverse=True)
            links.append((rows, _Cut(scores[rows], len(present), rng), own.astype(np.int64)))
        before = before * size + one
    return links


def _bernstein(values: Floats, *, span: float, level: float) -> float:
    """Maurer and Pontil's empirical Bernstein bound (2009, theorem 4) on the mean of each half, averaged.

    The halves are tested with tables of each other, so each bound gets half of the error.
    """
    n = len(values) / 2
    if n < 2:
        return -np.inf
    error = np.log(4 / (1 - level))
    spread = float(values.var(ddof=1))
    return float(values.mean() - np.sqrt(2 * spread * error / n) - 7 * span * error / (3 * (n - 1)))
