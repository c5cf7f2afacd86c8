"""Which columns carry it: what each tells about an attribute, and how far the score's bits fall without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.measure import Grouping
from fairbits.proxies.bits import bits_change, score_bits

#: A column that leaves no more than this share of the mistakes of a guess without it is a copy of the attribute;
#: fewer mistakes than so many without it show nothing.
COPY_MISTAKES, MIN_MISTAKES = 0.01, 5
#: Bins of a justified attribute within which a column is permuted.
BINS = 10

Floats = npt.NDArray[np.float64]


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
    codes: Floats,
    names: tuple[str, ...],
    scores: npt.NDArray[np.floating],
    rng: np.random.Generator,
    *,
    strata: npt.NDArray[np.int64] | None = None,
    ask: Callable[[Floats], npt.NDArray[np.floating]] | None = None,
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
        mean, low, high = fall
        found.append(ColumnBits(name, alone.bits, alone.low, alone.placebo, mean, low, high, copy))
    return tuple(sorted(found, key=lambda one: (-(one.fall if one.fall is not None else one.bits), -one.bits)))


def _is_copy(column: Floats, codes: npt.NDArray[np.int64], n_groups: int) -> bool:
    """Whether the groups of the others with the same value, or with the nearest one, tell nearly everybody's group.

    Bits would not do: smoothing and bins keep them well below all there is where groups are rare or many.
    """
    sizes = np.bincount(codes, minlength=n_groups)
    shared = sizes[codes] > 1  # whoever is alone in a group can be told by nobody
    column, codes = column[shared], codes[shared]
    without = len(codes) - int(sizes.max(initial=0))
    if without < MIN_MISTAKES:
        return False
    values, place = np.unique(column, return_inverse=True)
    if len(values) < 2:
        return False
    counts = np.bincount(place * n_groups + codes, minlength=len(values) * n_groups).reshape(-1, n_groups)
    gaps = np.diff(values)
    left, right = np.concatenate([[np.inf], gaps]), np.concatenate([gaps, [np.inf]])
    nearest = np.where(left <= right, np.arange(len(values)) - 1, np.arange(len(values)) + 1)
    # People without anybody of the same value have the value beside theirs; nobody counts for the own guess.
    alone = (counts.sum(axis=1) == 1)[place]
    others = counts[np.where(alone, nearest[place], place)]
    every = np.arange(len(codes))
    others[every[~alone], codes[~alone]] -= 1
    own = others[every, codes]
    others[every, codes] = -1
    mistakes = int((own <= others.max(axis=1)).sum())  # a tie tells nothing
    return mistakes <= COPY_MISTAKES * without


def strata_of(features: Floats, categorical: tuple[bool, ...]) -> npt.NDArray[np.int64] | None:
    """Groups of people who are roughly alike on the justified attributes, as long as the groups stay large enough."""
    found: npt.NDArray[np.int64] | None = None
    for column, is_one in zip(features.T, categorical, strict=True):
        values = np.unique(column)
        if is_one or len(values) <= BINS:
            own = np.searchsorted(values, column)
        else:
            own = np.searchsorted(np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1])), column)
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
    order = np.argsort(strata, kind="stable")
    shuffled = np.lexsort((rng.random(n), strata))
    found = np.empty(n, dtype=np.int64)
    found[order] = shuffled
    return found
