"""Matched people: those alike on the justified attributes and of different groups (FlipTest, Black et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.measure import MIN_PEOPLE, Estimate, Grouping, qid, student_mean
from fairbits.randomness import sampled_rows

#: People may differ by so many standard deviations per justified attribute (Austin 2011 recommends 0.2).
CALIPER = 0.2
#: People who are matched, at most; more are drawn from.
MAX_PEOPLE = 20_000

Floats = npt.NDArray[np.float64]


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
    """What matched people experience."""

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
    features: Floats,
    categorical: tuple[bool, ...],
    scores: npt.NDArray[np.floating],
    rng: np.random.Generator,
    *,
    epsilon: float = 0.025,
    caliper: float = CALIPER,
    top: int = 5,
) -> Matching | None:
    """Each person's nearest neighbour in every other group, and the same within the own group as a placebo."""
    from scipy.spatial import cKDTree

    rows = np.flatnonzero(groups.known)
    large = np.flatnonzero(groups.counts >= MIN_PEOPLE)
    rows = rows[np.isin(groups.codes[rows], large)]
    rows = rows[sampled_rows(len(rows), MAX_PEOPLE, rng)]
    codes, own = groups.codes[rows], np.asarray(scores, dtype=np.float64)[rows]
    present = [code for code in large if (codes == code).sum() >= MIN_PEOPLE]
    if len(present) < 2:
        return None
    points = _standard(features[rows], categorical)
    limit = caliper * np.sqrt(features.shape[1])
    n, others = len(rows), len(present) - 1
    near = np.full((n, len(present)), -1, dtype=np.int64)
    apart = np.full((n, len(present)), np.inf)
    alike = np.full((n, others), -1, dtype=np.int64)
    for place, code in enumerate(present):
        members = np.flatnonzero(codes == code)
        tree = cKDTree(points[members])
        outside = np.flatnonzero(codes != code)
        distance, found = tree.query(points[outside], distance_upper_bound=limit, workers=2)
        hit = np.isfinite(distance)
        near[outside[hit], place], apart[outside[hit], place] = members[found[hit]], distance[hit]
        own_distance, own_found = tree.query(points[members], k=others + 2, distance_upper_bound=limit, workers=2)
        _own_matches(alike, members, own_distance, own_found, others)
    in_group = codes[:, None] == np.array(present)[None]
    complete = ((near >= 0) | in_group).all(axis=1) & (alike >= 0).all(axis=1)
    if not complete.any():
        return None
    crossed = np.where(in_group, np.arange(n)[:, None], near)[complete]
    inside = np.column_stack([np.arange(n)[complete], alike[complete]])
    across, within = own[crossed], own[inside]
    spans, placebo = np.ptp(across, axis=1), np.ptp(within, axis=1)
    return Matching(
        attribute=groups.name,
        people=int(complete.sum()),
        without_match=int(n - complete.sum()),
        k=float(qid(across, epsilon=epsilon).k.mean()),
        placebo_k=float(qid(within, epsilon=epsilon).k.mean()),
        span=float(spans.mean()),
        placebo_span=float(placebo.mean()),
        excess=_excess(spans - placebo, np.column_stack([crossed, inside])),
        caliper=caliper,
        pairs=_pairs(groups, rows, own, near, apart, codes, top),
    )


def _excess(values: Floats, asked: npt.NDArray[np.int64]) -> Estimate:
    """The mean with its interval; people whose matches are the same person do not count as independent.

    The variance counts every two people who share somebody (themselves, or a match), beside each one alone.
    """
    plain = student_mean(values)
    n = len(values)
    if n < 2:
        return plain
    centred = values - values.mean()
    person = np.repeat(np.arange(n), asked.shape[1])
    pairs = np.unique(np.column_stack([person, asked.ravel()]), axis=0)  # who depends on whose score, each once
    sums = np.bincount(pairs[:, 1], weights=centred[pairs[:, 0]])
    times = np.bincount(pairs[:, 0], minlength=n)
    variance = float((sums**2).sum() - ((times - 1) * centred**2).sum())
    wider = np.sqrt(max(variance / float((centred**2).sum()), 1.0)) if centred.any() else 1.0
    half = float(wider) * (plain.high - plain.value)
    return Estimate(plain.value, plain.value - half, plain.value + half)


def _own_matches(
    alike: npt.NDArray[np.int64],
    members: npt.NDArray[np.int64],
    distance: Floats,
    found: npt.NDArray[np.int64],
    others: int,
) -> None:
    """The nearest people of the own group, without the person."""
    valid = np.isfinite(distance)
    own = np.where(valid, found, 0) == np.arange(len(members))[:, None]
    distance = np.where(own, np.inf, distance)
    order = np.argsort(distance, axis=1, kind="stable")[:, :others]
    picked = np.take_along_axis(found, order, axis=1)
    fine = np.isfinite(np.take_along_axis(distance, order, axis=1))
    alike[members] = np.where(fine, members[np.where(fine, picked, 0)], -1)


def _pairs(
    groups: Grouping,
    rows: npt.NDArray[np.int64],
    scores: Floats,
    near: npt.NDArray[np.int64],
    apart: Floats,
    codes: npt.NDArray[np.int64],
    top: int,
) -> tuple[Pair, ...]:
    """The widest gaps first, the nearer pair first among equals; nobody is in two of them."""
    person, place = np.nonzero(near >= 0)
    other = near[person, place]
    gap = np.abs(scores[person] - scores[other])
    chosen: list[Pair] = []
    taken: set[int] = set()
    for i in np.lexsort((apart[person, place], -gap)):
        a, b = int(person[i]), int(other[i])
        if len(chosen) == top or gap[i] <= 0:
            break
        if a in taken or b in taken:
            continue
        taken.update((a, b))
        a, b = (a, b) if scores[a] <= scores[b] else (b, a)
        names = groups.labels[codes[a]], groups.labels[codes[b]]
        distance = float(apart[person[i], place[i]])
        chosen.append(Pair(int(rows[a]), int(rows[b]), *names, float(scores[a]), float(scores[b]), distance))
    return tuple(chosen)


def _standard(features: Floats, categorical: tuple[bool, ...]) -> Floats:
    """Numbers in standard deviations; labels of a category so far apart that no caliper reaches over."""
    found = np.empty(features.shape)
    for i, is_one in enumerate(categorical):
        column = features[:, i]
        found[:, i] = column * 1e6 if is_one else column / (column.std() or 1.0)
    return found
