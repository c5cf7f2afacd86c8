"""I(A;S): how many bits a score S tells about an attribute A, as a figure that can only be too small.

People are split in two halves. On one the score is cut into bins of equal counts, as many as guess best there, and the
frequencies of A in each bin are taken (Krichevsky and Trofimov 1981 smoothing); on the other the log-ratio of this
guess to the base rate is averaged; then the halves change places. Whatever the guess is, its mean log-ratio is at most
I(A;S) (Gibbs), and the plug-in base rates of the test half only lower it, so the estimate errs downwards (compare
McAllester and Stratos 2020 on why a guaranteed lower bound cannot be large).

Which columns carry it is what each tells about the attribute by itself, and how far the score's bits fall without it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from fairbits.domain import Doubles, Integers
from fairbits.functions import normal_quantile
from fairbits.measure import MIN_PEOPLE, Grouping

#: Bins of the score, and people of the fitting half in each at least: with fewer, there are fewer bins. Neighbouring
#: bins are added up where that guesses better.
BINS, PEOPLE_PER_BIN = 50, 10
#: Weight of the base rate in every guess: no log-ratio falls far below log2 of it, and the mean can only be lowered.
MIXED = 0.01
#: Shuffles of the attribute: many where people are few and chance is large.
MAX_SHUFFLES, MIN_SHUFFLES, SHUFFLED_PEOPLE = 20, 4, 400_000
#: Bins of a table that is fitted to the people themselves, at least (coarse ones would hide what the score tells), and
#: people for each cell of it: what the table makes of chance grows with its cells.
FITTED_BINS, FITTED_PEOPLE = 16, 10
LEVEL = 0.95
#: The halves learn from each other, so the mean varies more than people do, by 2 % where the tables are smallest; a
#: bound without any bias would hold in just under 95 % of samples.
WIDENED = 1.1


@dataclass(frozen=True, slots=True)
class ScoreBits:
    """What the score tells about one attribute."""

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
    """Bits of a score about an attribute; people whose value is unknown are left out."""
    return chained_bits((groups,), scores, rng, level=level)


def chained_bits(
    groupings: Sequence[Grouping], scores: npt.NDArray[np.floating], rng: np.random.Generator, *, level: float = LEVEL
) -> ScoreBits:
    """Bits of a score about several attributes at once, by the chain rule I(A;S) + I(B;S|A) + …

    With the bounds and shuffles of the whole chain.
    """
    known = np.logical_and.reduce([one.known for one in groupings])
    codes = [one.codes[known] for one in groupings]
    sizes = [len(one.labels) for one in groupings]
    scores, n = np.asarray(scores)[known], int(known.sum())
    joint = np.unique(np.ravel_multi_index(codes, sizes), return_inverse=True)[1].astype(np.int64)
    n_joint = int(joint.max()) + 1 if n else 0
    if n < 4 or n_joint < 2:
        usual = float(np.bincount(joint).max() / n) if n else 1.0
        return ScoreBits(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, n, usual, usual)
    links = _links(codes, sizes, scores, rng)
    ratios, spans = np.zeros(n), np.zeros(len(codes))
    for place, rows, cut, own in links:
        ratios[rows] += cut.log_ratios(own)
        spans[place] = max(spans[place], cut.span(own))
    shuffles = [sum(cut.total(rng.permutation(own)) / n for _, _, cut, own in links) for _ in range(_shuffles(n))]
    guesses = _Cut(scores, n_joint, rng).guesses(joint)
    # A person has one log-ratio for each attribute of the chain, so their ranges add up.
    return _told(ratios, float(spans.sum()), shuffles, np.bincount(joint) / n, guesses, level)


def _shuffles(people: int) -> int:
    return int(np.clip(SHUFFLED_PEOPLE // people, MIN_SHUFFLES, MAX_SHUFFLES))


def _told(
    ratios: Doubles, span: float, shuffles: Sequence[float], base: Doubles, guesses: tuple[float, float], level: float
) -> ScoreBits:
    """Bits by the log-ratios of people, those under shuffles, and the shares of groups."""
    n, mean = len(ratios), float(ratios.mean())
    entropy = float(-(base[base > 0] * np.log2(base[base > 0])).sum())
    low = mean - WIDENED * normal_quantile(level) * float(ratios.std(ddof=1)) / np.sqrt(n)
    guaranteed = _bernstein(ratios, span=span, level=level)
    bits, least, sure = (min(max(0.0, float(one)), entropy) for one in (mean, low, guaranteed))
    placebo, most = max(0.0, float(np.mean(shuffles))), max(0.0, *shuffles)
    return ScoreBits(bits, least, sure, placebo, most, entropy, n, *guesses)


def chance_bits(
    chances: Doubles, scores: npt.NDArray[np.floating], rng: np.random.Generator, *, level: float = LEVEL
) -> ScoreBits:
    """Bits of a score about groups that are known as probabilities p(Z) only, (n, groups).

    Each person counts in every group by its probability. That gives the frequencies of A in a bin of S where S tells
    nothing about A beyond what Z tells, and then the estimate errs downwards as :func:`score_bits` does.
    """
    n, cut = len(chances), _Cut(scores, chances.shape[1], rng)
    ratios, span = cut.log_ratios(chances), cut.span(chances)
    shuffles = [float(cut.log_ratios(chances[rng.permutation(n)]).mean()) for _ in range(_shuffles(n))]
    return _told(ratios, span, shuffles, chances.mean(axis=0), cut.guesses(chances), level)


def log_ratios(codes: Integers, n_groups: int, scores: npt.NDArray[np.floating], rng: np.random.Generator) -> Doubles:
    """For each person the log2-ratio of the guess from the score to the base rate; their mean estimates I(A;S)."""
    return _Cut(scores, n_groups, rng).log_ratios(codes)


@dataclass(frozen=True, slots=True, eq=False)
class FittedBits:
    """Log-ratios with frequencies of the people themselves: their mean can only be too large for the bins there are.

    The likeliest table of a sample makes it likelier than the true one does, so the mean exceeds that of the true
    log-ratios, whose mean in turn is I(A;S) of the binned score in the long run. ``surplus`` is by how much on average
    (Miller 1955): it depends on the cells, not on what the score tells. ``lost`` is what bins hide of a finer score,
    as far as coarser bins show it: where bins lose in proportion to their width, 5/3 of the step from 5/8 of them.
    """

    ratios: Doubles
    surplus: float
    lost: float

    @classmethod
    def of(cls, codes: Integers, n_groups: int, scores: npt.NDArray[np.floating]) -> FittedBits:
        """As many bins as there are ten people for each cell, within limits."""
        bins = int(np.clip(len(codes) // (FITTED_PEOPLE * max(1, n_groups)), FITTED_BINS, BINS))
        ratios, surplus = _fitted(codes, n_groups, scores, bins)
        coarse, more = _fitted(codes, n_groups, scores, 5 * bins // 8)
        return cls(ratios, surplus, max(0.0, 5 / 3 * float(ratios.mean() - surplus - coarse.mean() + more)))


def _fitted(codes: Integers, n_groups: int, scores: npt.NDArray[np.floating], bins: int) -> tuple[Doubles, float]:
    places, size = _binned(scores, np.ones(len(scores), dtype=np.bool_), bins)
    cells = np.bincount(places * n_groups + codes, minlength=size * n_groups).reshape(size, n_groups)
    given = cells[places, codes] / cells.sum(axis=1)[places]
    base = cells.sum(axis=0) / len(codes)
    freedom = np.count_nonzero(cells) - size - np.count_nonzero(base) + 1
    return np.log2(given) - np.log2(base[codes]), freedom / (2 * len(codes) * np.log(2))


def bits_high(codes: Integers, n_groups: int, scores: npt.NDArray[np.floating], *, level: float = LEVEL) -> float:
    """An upper end of I(A;S) for people who are each in one row, two-sided at this level."""
    found = FittedBits.of(codes, n_groups, scores)
    return float(found.ratios.mean()) + found.lost + _half(found.ratios, level)


def bits_change(
    codes: Integers,
    n_groups: int,
    before: npt.NDArray[np.floating],
    after: npt.NDArray[np.floating],
    *,
    level: float = LEVEL,
) -> tuple[float, float, float]:
    """How far I(A;S) rises from one score of the same people to another, with both ends.

    Guesses on people whom they were not made of err downwards, and by how much hangs on what there is to learn: their
    difference is off by that. Fitted tables of equally many bins err upwards by what their cells come to, which is
    known, and everybody is compared with themselves.
    """
    old, new = (FittedBits.of(codes, n_groups, scores) for scores in (before, after))
    moved = new.ratios - old.ratios
    value, half = float(moved.mean()) - new.surplus + old.surplus, _half(moved, level)
    return value, value - half - old.lost, value + half + new.lost


def _half(values: Doubles, level: float) -> float:
    return WIDENED * normal_quantile(0.5 + level / 2) * float(values.std(ddof=1)) / float(np.sqrt(len(values)))


class _Cut:
    """Two halves of people and the bins of their scores, made once for the attribute and all its shuffles."""

    def __init__(self, scores: npt.NDArray[np.floating], n_groups: int, rng: np.random.Generator):
        n, self.n_groups = len(scores), n_groups
        first = np.zeros(n, dtype=bool)
        first[rng.permutation(n)[: n // 2]] = True
        bins = int(np.clip((n // 2) // PEOPLE_PER_BIN, 2, BINS))
        self.halves = []
        for fit in (first, ~first):
            if fit.any() and not fit.all():
                places, size = _binned(scores, fit, bins)
                self.halves.append(_Bins(np.flatnonzero(fit), np.flatnonzero(~fit), places, size))

    def log_ratios(self, codes: Integers | Doubles) -> Doubles:
        """One for each person, in the half that the table was not made of; of probabilities their mean."""
        found = np.zeros(len(codes))
        for half in self.halves:
            ratios, _ = self._ratios(codes, half)
            own, places = codes[half.test], half.places[half.test]
            found[half.test] = ratios[places, own] if codes.ndim == 1 else (ratios[places] * own).sum(axis=1)
        return found

    def total(self, codes: Integers) -> float:
        """The sum of the log-ratios, from the counts of the cells: what a shuffle needs."""
        return sum(float(np.multiply(*self._ratios(codes, half)).sum()) for half in self.halves)

    def span(self, codes: Integers | Doubles) -> float:
        """How far apart log-ratios can be: the range of the guesses, whoever is asked about."""
        return max(float(np.ptp(self._ratios(codes, half)[0])) for half in self.halves)

    def guesses(self, codes: Integers | Doubles) -> tuple[float, float]:
        """How often the likeliest group is right: by the base rate, and by the bin of the score in the other half."""
        after = 0.0
        for half in self.halves:
            likeliest = np.argmax(half.merged(self._counts(codes, half.fit, half)), axis=1)
            after += float(self._counts(codes, half.test, half)[np.arange(half.size), likeliest].sum())
        before = float((codes.sum(axis=0) if codes.ndim == 2 else np.bincount(codes)).max())
        return before / len(codes), max(before, after) / len(codes)

    def _ratios(self, codes: Integers | Doubles, half: _Bins) -> tuple[Doubles, Integers | Doubles]:
        """For each bin and group the log2-ratio of the guess to the base rate of those tested, and their count."""
        learned, counts = self._counts(codes, half.fit, half), self._counts(codes, half.test, half)
        prior = (learned.sum(axis=0) + 0.5) / (len(half.fit) + 0.5 * self.n_groups)
        learned = half.merged(learned)
        table = (learned + 0.5) / (learned.sum(axis=1, keepdims=True) + 0.5 * self.n_groups)
        base = np.maximum(counts.sum(axis=0), 1) / len(half.test)  # a group that nobody is tested of: never looked up
        return np.log2((1 - MIXED) * table + MIXED * prior) - np.log2(base), counts

    def _counts(self, codes: Integers | Doubles, rows: Integers, half: _Bins) -> Integers | Doubles:
        if codes.ndim == 2:
            return np.column_stack([np.bincount(half.places[rows], one, half.size) for one in codes[rows].T])
        cells = half.places[rows] * self.n_groups + codes[rows]
        return np.bincount(cells, minlength=half.size * self.n_groups).reshape(half.size, self.n_groups)


@dataclass(frozen=True, slots=True, eq=False)
class _Bins:
    """Who is learned from, who is tested, and the bin of everybody."""

    fit: Integers
    test: Integers
    places: Integers
    size: int

    def merged(self, learned: Integers | Doubles) -> Integers | Doubles:
        """The counts of the fitting half with neighbouring bins added up, for each bin those of all it lies with.

        How many lie together (1, 2, 4, … or all) is what guesses the fitting half best, each of its people by all
        the others. Those tested have no say, so the estimate still errs downwards.
        """
        members, starts, places = _merging(self.size)
        together = members @ learned
        others = np.maximum(together - 0.5, 0.5)  # with one person less; where there is nobody, nobody is guessed
        everybody = together.sum(axis=1, keepdims=True) - 1 + 0.5 * learned.shape[1]
        gains = (together * np.log(others / np.maximum(everybody, 0.5))).sum(axis=1)
        return np.asarray(together[places[int(np.argmax(np.add.reduceat(gains, starts)))]])


@functools.cache
def _merging(size: int) -> tuple[Integers, Integers, Integers]:
    """Ways to add up neighbouring bins: the bins of each sum, where each way begins, and by way each bin's sum."""
    widths = 2 ** np.arange(max(1, int(size - 1).bit_length() + 1))
    own = [np.arange(size) // width for width in widths]
    members = [(place[None] == np.arange(place[-1] + 1)[:, None]).astype(np.int64) for place in own]
    starts = np.cumsum([0, *(len(one) for one in members[:-1])])
    return np.concatenate(members), starts, np.array(own) + starts[:, None]


def _binned(scores: npt.NDArray[np.floating], fit: npt.NDArray[np.bool_], bins: int) -> tuple[Integers, int]:
    """The bin of every score, and their number; cut points from one half. A score with few values: a bin for each."""
    own = scores[fit]
    values = np.unique(own)
    if len(values) > bins:
        values = np.unique(np.quantile(own, np.linspace(0, 1, bins + 1)[:-1], method="lower"))
    return np.maximum(np.searchsorted(values, scores, side="right") - 1, 0).astype(np.int64), len(values)


def _links(
    codes: list[Integers], sizes: list[int], scores: npt.NDArray[np.floating], rng: np.random.Generator
) -> list[tuple[int, npt.NDArray[np.bool_], _Cut, Integers]]:
    """The pieces of the chain: the first attribute among everybody, each next one within the groups before it.

    Each has the place of its attribute, the people it is about, their cut and their groups.
    """
    links: list[tuple[int, npt.NDArray[np.bool_], _Cut, Integers]] = []
    before = np.zeros(len(scores), dtype=np.int64)
    for place, (one, size) in enumerate(zip(codes, sizes, strict=True)):
        for group in np.unique(before):
            rows = np.asarray(before == group)
            if rows.sum() < MIN_PEOPLE and links:
                continue
            present, own = np.unique(one[rows], return_inverse=True)
            links.append((place, rows, _Cut(scores[rows], len(present), rng), own.astype(np.int64)))
        before = before * size + one
    return links


def _bernstein(values: Doubles, *, span: float, level: float) -> float:
    """Maurer and Pontil's empirical Bernstein bound (2009, theorem 4) on the mean of each half, averaged.

    The halves are tested with tables of each other, so each bound gets half of the error.
    """
    n, error = len(values) / 2, np.log(4 / (1 - level))
    if n < 2:
        return -np.inf
    spread = float(values.var(ddof=1))
    return float(values.mean() - np.sqrt(2 * spread * error / n) - 7 * span * error / (3 * (n - 1)))


@dataclass(frozen=True, slots=True)
class GuessPair:
    """Two groups and how often the lower score is the first one's; ties count half, a coin is right half of
    the time.
    """

    lower: str
    higher: str
    right: float


def best_pair(groups: Grouping, scores: npt.NDArray[np.floating]) -> GuessPair | None:
    """The two groups that the score tells apart best (Mann and Whitney's statistic)."""
    ordered = {
        code: np.sort(np.asarray(scores, dtype=np.float64)[groups.codes == code])
        for code in np.flatnonzero(groups.counts >= MIN_PEOPLE)
    }
    found = []
    for a, b in combinations(ordered, 2):
        below = np.searchsorted(ordered[b], ordered[a], side="left")
        among = np.searchsorted(ordered[b], ordered[a], side="right")
        # How often the person of group b scores higher than the one of group a.
        right = 1.0 - float((below + among).mean()) / (2 * len(ordered[b]))
        low, high = (a, b) if right >= 0.5 else (b, a)
        found.append(GuessPair(groups.labels[low], groups.labels[high], max(right, 1.0 - right)))
    return max(found, key=lambda one: one.right, default=None)


#: A column that leaves no more than this share of the mistakes of a guess without it is a copy of the attribute;
#: fewer mistakes than so many without it show nothing.
COPY_MISTAKES, MIN_MISTAKES = 0.01, 5
#: Bins of a justified attribute within which a column is permuted.
STRATA_BINS = 10


@dataclass(frozen=True, slots=True)
class ColumnBits:
    """What one column tells about a protected attribute."""

    column: str
    bits: float
    bits_low: float
    placebo: float
    fall: float | None
    fall_low: float | None
    fall_high: float | None
    copy: bool


def column_bits(
    groups: Grouping,
    codes: Doubles,
    names: tuple[str, ...],
    scores: npt.NDArray[np.floating],
    rng: np.random.Generator,
    *,
    strata: npt.NDArray[np.int64] | None = None,
    ask: Callable[[Doubles], npt.NDArray[np.floating]] | None = None,
    skip: tuple[int, ...] = (),
) -> tuple[ColumnBits, ...]:
    """What every column tells, and what the score loses without it."""
    known = groups.known
    people, own, strata = codes[known], groups.take(known), None if strata is None else strata[known]
    given = np.asarray(scores, dtype=np.float64)[known]
    found = []
    for i, name in enumerate(names):
        if i in skip:
            continue
        alone = score_bits(own, people[:, i], rng)
        fall: tuple[float | None, float | None, float | None] = (None, None, None)
        if ask is not None:
            changed = people.copy()
            changed[:, i] = people[_permuted(len(people), strata, rng), i]
            fall = bits_change(own.codes, len(own.labels), ask(changed), given)
        copy = _is_copy(people[:, i], own.codes, len(own.labels))
        found.append(ColumnBits(name, alone.bits, alone.low, alone.placebo, *fall, copy))
    return tuple(sorted(found, key=lambda one: (-(one.bits if one.fall is None else one.fall), -one.bits)))


def _is_copy(column: Doubles, codes: npt.NDArray[np.int64], n_groups: int) -> bool:
    """Whether the groups of the others with the same value, or with the nearest one, tell nearly everybody's group.

    Bits would not do: smoothing and bins keep them well below all there is where groups are rare or many.
    """
    sizes = np.bincount(codes, minlength=n_groups)
    shared = sizes[codes] > 1  # whoever is alone in a group can be told by nobody
    column, codes = column[shared], codes[shared]
    without = len(codes) - int(sizes.max(initial=0))
    values, place = np.unique(column, return_inverse=True)
    if without < MIN_MISTAKES or len(values) < 2:
        return False
    counts = np.bincount(place * n_groups + codes, minlength=len(values) * n_groups).reshape(-1, n_groups)
    gaps = np.diff(values, prepend=-np.inf, append=np.inf)
    nearest = np.arange(len(values)) + np.where(gaps[:-1] <= gaps[1:], -1, 1)
    # People without anybody of the same value have the value beside theirs; nobody counts for the own guess.
    alone = (counts.sum(axis=1) == 1)[place]
    others = counts[np.where(alone, nearest[place], place)]
    every = np.arange(len(codes))
    others[every[~alone], codes[~alone]] -= 1
    own = others[every, codes]
    others[every, codes] = -1
    mistakes = int((own <= others.max(axis=1)).sum())  # a tie tells nothing
    return mistakes <= COPY_MISTAKES * without


def strata_of(features: Doubles, categorical: tuple[bool, ...]) -> npt.NDArray[np.int64] | None:
    """Groups of people who are roughly alike on the justified attributes, as long as the groups stay large enough."""
    found: npt.NDArray[np.int64] | None = None
    for column, is_one in zip(features.T, categorical, strict=True):
        values = np.unique(column)
        if not is_one and len(values) > STRATA_BINS:
            values = np.unique(np.quantile(column, np.linspace(0, 1, STRATA_BINS + 1)[1:-1]))
        own = np.searchsorted(values, column)
        both = own if found is None else found * (int(own.max()) + 1) + own
        merged = np.unique(both, return_inverse=True)[1].astype(np.int64)
        if np.bincount(merged).mean() < 30:
            break
        found = merged
    return found


def _permuted(n: int, strata: npt.NDArray[np.int64] | None, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """For each person somebody else of the same stratum."""
    if strata is None:
        return rng.permutation(n)
    found = np.empty(n, dtype=np.int64)
    found[np.argsort(strata, kind="stable")] = np.lexsort((rng.random(n), strata))
    return found
