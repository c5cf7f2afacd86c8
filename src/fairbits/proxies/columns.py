"""Which columns carry it: what each tells about an attribute, and how far the score's bits fall without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.functions import normal_quantile
from fairbits.measure import Grouping
from fairbits.proxies.bits import log_ratios, score_bits

#: A column that tells so large a share of all bits about an attribute is a copy of it.
COPY = 0.98
#: Bins of a justified attribute within which a column is permuted.
BINS = 10

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ColumnBits:
    """One column.

    Parameters
    ----------
    column
        The attribute.
    bits, bits_low, placebo
        What it tells about the protected attribute by itself, as for scores.
    fall, fall_low, fall_high
        How far the score's bits fall when the column is permuted among people alike on the justified attributes, with
        a 95 % interval; None where the model cannot be asked.
    copy
        Whether it is a copy of the protected attribute.
    """

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
    """What every column tells, and what the score loses without it.

    Parameters
    ----------
    groups
        The protected attribute.
    codes
        People as codes.
    names
        What the columns are called.
    scores
        Of these people.
    rng
        For halves, shuffles and permutations.
    strata
        People alike on the justified attributes have the same number; None: everybody is alike.
    ask
        Scores people given as codes; None where the model is not at hand.
    skip
        Columns that are protected themselves.

    Returns
    -------
    tuple of ColumnBits
        Those that carry most first: by the fall of the score's bits, then by what they tell alone.
    """
    known = groups.known
    people, own, strata = codes[known], groups.take(known), None if strata is None else strata[known]
    given = np.asarray(scores, dtype=np.float64)[known]
    seed = int(rng.integers(2**31))
    before = log_ratios(own.codes, len(own.labels), given, np.random.default_rng(seed))
    z = normal_quantile(0.975) / np.sqrt(max(1, len(given)))
    found = []
    for i, name in enumerate(names):
        if i in skip:
            continue
        alone = score_bits(own, people[:, i], rng)
        fall: tuple[float | None, float | None, float | None] = (None, None, None)
        if ask is not None:
            changed = people.copy()
            changed[:, i] = people[_permuted(len(people), strata, rng), i]
            # The same halves as before, so that only the column makes the difference.
            after = log_ratios(own.codes, len(own.labels), ask(changed), np.random.default_rng(seed))
            lost = before - after
            centre, half = float(lost.mean()), z * float(lost.std(ddof=1)) if len(lost) > 1 else 0.0
            fall = (centre, centre - half, centre + half)
        copy = alone.entropy > 0 and alone.bits >= COPY * alone.entropy
        mean, low, high = fall
        found.append(ColumnBits(name, alone.bits, alone.low, alone.placebo, mean, low, high, copy))
    return tuple(sorted(found, key=lambda one: (-(one.fall if one.fall is not None else one.bits), -one.bits)))


def strata_of(features: Floats, categorical: tuple[bool, ...]) -> npt.NDArray[np.int64] | None:
    """Groups of people who are roughly alike on the justified attributes, as long as the groups stay large enough.

    Parameters
    ----------
    features
        Values of the justified attributes, (n, columns).
    categorical
        Which of them are categories.

    Returns
    -------
    npt.NDArray[np.int64] | None
        Group of each person, (n,); None where there are none.
    """
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
