"""Odds in plain words: of two people of different groups, how often does the score tell which is which?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from fairbits.measure import MIN_PEOPLE, Grouping


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
    found = None
    for a, b in combinations(ordered, 2):
        below = np.searchsorted(ordered[b], ordered[a], side="left")
        among = np.searchsorted(ordered[b], ordered[a], side="right")
        # How often the person of group b scores higher than the one of group a.
        right = 1.0 - float((below + among).mean()) / (2 * len(ordered[b]))
        low, high = (a, b) if right >= 0.5 else (b, a)
        pair = GuessPair(groups.labels[low], groups.labels[high], max(right, 1.0 - right))
        if found is None or pair.right > found.right:
            found = pair
    return found
