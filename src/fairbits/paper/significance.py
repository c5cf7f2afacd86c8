"""Is one strategy better than another, or was it luck? A rank test and an effect size, both without assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Verdict:
    """``p`` of the two-sided Mann-Whitney test, and A12: the chance that a run of the first beats one of the second."""

    p: float
    a12: float


def against(ours: Sequence[float], theirs: Sequence[float]) -> Verdict | None:
    """The first compared with the second; None where one of them ran only once.

    >>> against([5, 6, 7], [1, 2, 3])
    Verdict(p=0.1, a12=1.0)
    """
    if min(len(ours), len(theirs)) < 2:
        return None
    from scipy.stats import mannwhitneyu

    one, other = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    higher = (one[:, None] > other).mean() + 0.5 * (one[:, None] == other).mean()
    if len(np.unique(np.concatenate([one, other]))) == 1:
        return Verdict(1.0, 0.5)  # nothing to rank
    return Verdict(float(mannwhitneyu(one, other, alternative="two-sided").pvalue), float(higher))


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of those that are there."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def deviation(values: Sequence[float | None]) -> float | None:
    """The standard deviation of those that are there; None for fewer than two."""
    known = [value for value in values if value is not None]
    return float(np.std(known, ddof=1)) if len(known) > 1 else None
