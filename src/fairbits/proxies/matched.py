"""Matched people: those alike on the justified attributes and of different groups (FlipTest, Black et al. 2020).

Like is compared with like, one pair of groups at a time. People are cut into cells of much the same justified
attributes, and within each cell the larger group is thinned to the size of the smaller: then both are equally dense
everywhere. Everybody who is left is matched twice by the same steps: with the nearest person of the other group, and,
as a placebo, with the nearest of the own. Oneself is no match, so one person of the other group, drawn by lot, is none
either: both have the same number to choose from. Where a score depends on the justified attributes alone, the two gaps
are the same on average, whatever the shares of the groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from fairbits.domain import Doubles, Integers
from fairbits.measure import MIN_PEOPLE, Estimate, Grouping, qid, student_mean
from fairbits.randomness import sampled_rows

#: People may differ by so many standard deviations per justified attribute (Austin 2011 recommends 0.2).
CALIPER = 0.2
#: People who are matched, at most; more are drawn from.
MAX_PEOPLE = 20_000
#: A cell of more people of both groups is cut in two, at the middle of its widest justified attribute.
CELL = 16
#: Labels of a category are so many standard deviations apart that no caliper reaches over; people alike, so few.
FAR, ALIKE = 1e6, 1e-8


@dataclass(frozen=True, slots=True)
class Pair:
    """Two people alike on the justified attributes, of different groups, scored differently."""

    row: int
    other: int
    group: str
    other_group: str
    score: float
    other_score: float
    distance: float


@dataclass(frozen=True, slots=True)
class Matching:
    """What matched people experience: gaps to somebody of another group, and to somebody of the own (placebo).

    ``people`` are those with a match of both kinds in at least one pair of groups; k and span are means over all such
    matches.
    """

    attribute: str
    people: int
    without_match: int
    k: float
    placebo_k: float
    span: float
    placebo_span: float
    excess: Estimate
    caliper: float
    pairs: tuple[Pair, ...]


def matched_people(
    groups: Grouping,
    features: Doubles,
    categorical: tuple[bool, ...],
    scores: npt.NDArray[np.floating],
    rng: np.random.Generator,
    *,
    epsilon: float = 0.025,
    caliper: float = CALIPER,
    top: int = 5,
    whole: Integers | None = None,
) -> Matching | None:
    """Everybody's gap to the nearest person of another group, less the gap to the nearest of the own.

    ``whole`` says which rows of the whole table the people are, for those who are shown.
    """
    rows = np.flatnonzero(groups.known & np.isin(groups.codes, np.flatnonzero(groups.counts >= MIN_PEOPLE)))
    rows = rows[sampled_rows(len(rows), MAX_PEOPLE, rng)]
    codes, own = groups.codes[rows], np.asarray(scores, dtype=np.float64)[rows]
    present = [code for code in np.unique(codes) if (codes == code).sum() >= MIN_PEOPLE]
    if len(present) < 2:
        return None
    some = features[rows]
    # Numbers in standard deviations; labels of a category far apart.
    points = np.where(categorical, some * FAR, some / [column.std() or 1.0 for column in some.T])
    points += ALIKE * rng.standard_normal(points.shape)  # of people alike in all, the lot says who is nearest
    limit = caliper * np.sqrt(features.shape[1])
    found = []
    for one, other in combinations(present, 2):
        sides = _thinned(points, np.flatnonzero(codes == one), np.flatnonzero(codes == other), rng)
        found += [_matches(points, *sides, limit), _matches(points, *sides[::-1], limit)]
    # A row per match: the person, the nearest of the other group, the nearest of the own, and how far the former is.
    person, across, within, apart = (np.concatenate(column) for column in zip(*found, strict=True))
    if not len(person):
        return None
    tables = [np.column_stack([own[person], own[other]]) for other in (across, within)]
    gaps, placebo = (np.ptp(table, axis=1) for table in tables)
    k, placebo_k = (float(qid(table, epsilon=epsilon).k.mean()) for table in tables)
    return Matching(
        attribute=groups.name,
        people=len(np.unique(person)),
        without_match=len(rows) - len(np.unique(person)),
        k=k,
        placebo_k=placebo_k,
        span=float(gaps.mean()),
        placebo_span=float(placebo.mean()),
        excess=_excess(gaps - placebo, np.column_stack([person, across, within])),
        caliper=caliper,
        pairs=_pairs(groups, rows if whole is None else whole[rows], own, person, across, apart, codes, top),
    )


def _thinned(points: Doubles, one: Integers, other: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """As many people of the one group as of the other in every cell, in an order that pairs them by lot."""
    both = np.concatenate([one, other])
    member = np.repeat([0, 1], [len(one), len(other)])
    kept = list[list[Integers]]()
    cells = [np.arange(len(both))]
    while cells:
        cell = cells.pop()
        halves = _halved(points[both[cell]]) if len(cell) > CELL else None
        if halves is not None:
            cells += [cell[halves], cell[~halves]]
            continue
        sides = [rng.permutation(both[cell[member[cell] == side]]) for side in (0, 1)]
        kept.append([side[: min(map(len, sides))] for side in sides])
    first, second = (np.concatenate(side) for side in zip(*kept, strict=True))
    return first, second


def _halved(points: Doubles) -> npt.NDArray[np.bool_] | None:
    """Who is in the lower half of a cell by its widest attribute; None where all are alike."""
    column = points[:, int(np.argmax(np.ptp(points, axis=0)))]
    middle = np.sort(column)[(len(column) - 1) // 2]
    lower = column <= middle if (column > middle).any() else column < middle
    return np.asarray(lower) if lower.any() else None


def _matches(
    points: Doubles, own: Integers, others: Integers, limit: float
) -> tuple[Integers, Integers, Integers, Doubles]:
    """Those of ``own`` with the nearest of both groups within the caliper, neither of them at the own place."""
    if len(own) < 2:
        return own[:0], own[:0], own[:0], np.empty(0)
    far, across = _nearest(points, own, others, limit)
    near, within = _nearest(points, own, own, limit)
    both = np.isfinite(far) & np.isfinite(near)
    return own[both], others[across[both]], own[within[both]], far[both]


def _nearest(points: Doubles, asked: Integers, among: Integers, limit: float) -> tuple[Doubles, Integers]:
    """For each of ``asked`` the nearest of ``among``, but for the one at the same place of the list."""
    from scipy.spatial import cKDTree

    distance, place = cKDTree(points[among]).query(points[asked], k=2, distance_upper_bound=limit, workers=1)
    barred = place[:, 0] == np.arange(len(asked))
    return np.where(barred, distance[:, 1], distance[:, 0]), np.where(barred, place[:, 1], place[:, 0])


def _excess(values: Doubles, asked: Integers) -> Estimate:
    """The mean with its interval; matches that share somebody do not count as independent.

    The variance counts every two matches that share somebody, beside each one alone.
    """
    plain, n = student_mean(values), len(values)
    if n < 2:
        return plain
    centred = values - values.mean()
    match = np.repeat(np.arange(n), asked.shape[1])
    size = int(asked.max()) + 1
    keys = np.unique(match * size + asked.ravel())  # who depends on whose score, each once
    sums = np.bincount(keys % size, weights=centred[keys // size])
    times = np.bincount(keys // size, minlength=n)
    variance = float((sums**2).sum() - ((times - 1) * centred**2).sum())
    wider = np.sqrt(max(variance / float((centred**2).sum()), 1.0)) if centred.any() else 1.0
    half = float(wider) * (plain.high - plain.value)
    return Estimate(plain.value, plain.value - half, plain.value + half)


def _pairs(
    groups: Grouping,
    rows: Integers,
    scores: Doubles,
    person: Integers,
    other: Integers,
    apart: Doubles,
    codes: Integers,
    top: int,
) -> tuple[Pair, ...]:
    """The widest gaps first, the nearer pair first among equals; nobody is in two of them."""
    gap = np.abs(scores[person] - scores[other])
    chosen: list[Pair] = []
    taken: set[int] = set()
    for i in np.lexsort((apart, -gap)):
        a, b = int(person[i]), int(other[i])
        if len(chosen) == top or gap[i] <= 0:
            break
        if a in taken or b in taken:
            continue
        taken.update((a, b))
        a, b = (a, b) if scores[a] <= scores[b] else (b, a)
        names = groups.labels[codes[a]], groups.labels[codes[b]]
        chosen.append(Pair(int(rows[a]), int(rows[b]), *names, float(scores[a]), float(scores[b]), float(apart[i])))
    return tuple(chosen)
