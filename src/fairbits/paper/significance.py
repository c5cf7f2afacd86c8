"""Is one strategy better than another, or was it luck? One rule for every comparison.

Two strategies are *told apart* where the two-sided Mann-Whitney test on their runs says so after Holm's correction for
all comparisons made with it (Holm 1979). Whoever is not told apart from the best is tied with it, and nobody is called
the best who is tied with somebody. With few runs no test can tell anybody apart: that is said, not guessed around.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np

#: Below this, corrected for the number of comparisons, two strategies are told apart.
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Verdict:
    """One strategy compared with another."""

    p: float
    a12: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class Standing:
    """The strategy with the largest mean, and those that the test does not tell apart from it.

    ``tested`` is False where somebody ran only once, so that there was nothing to test.
    """

    best: str
    tied: tuple[str, ...]
    tested: bool

    @property
    def winner(self) -> str | None:
        """Whom the test tells apart from everybody else; None where there is nobody like that."""
        return self.best if self.tested and not self.tied else None


def against(ours: Sequence[float], theirs: Sequence[float]) -> Verdict | None:
    """Compare one strategy's runs with another's (Mann-Whitney).

    Examples
    --------
    >>> against([5, 6, 7], [1, 2, 3])
    Verdict(p=0.1, a12=1.0, p_holm=0.1)
    """
    if min(len(ours), len(theirs)) < 2:
        return None
    from scipy.stats import mannwhitneyu

    first, other = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    higher = (first[:, None] > other).mean() + 0.5 * (first[:, None] == other).mean()
    if len(np.unique(np.concatenate([first, other]))) == 1:
        return Verdict(1.0, 0.5, 1.0)  # nothing to rank
    p = float(mannwhitneyu(first, other, alternative="two-sided").pvalue)
    return Verdict(p, float(higher), p)


def against_one(runs: Mapping[str, Sequence[float]], base: str) -> dict[str, Verdict | None]:
    """Everybody else compared with one strategy, corrected for all of these comparisons."""
    plain = {name: against(values, runs[base]) for name, values in runs.items() if name != base}
    tested = {name: verdict for name, verdict in plain.items() if verdict is not None}
    corrected = dict(zip(tested, holm(verdict.p for verdict in tested.values()), strict=True))
    return {
        name: None if verdict is None else replace(verdict, p_holm=corrected[name]) for name, verdict in plain.items()
    }


def standing(runs: Mapping[str, Sequence[float]]) -> Standing:
    """Who has the largest mean, and who is not told apart from that one.

    The best is found by looking, and then compared with everybody else. To be called the winner it must be told apart
    from all of them, so that two equals at the top give a winner in at most ``LEVEL`` of the cases.
    """
    best = max(runs, key=lambda name: mean(runs[name]) or 0.0)
    verdicts = against_one(runs, best)
    tied = tuple(name for name, verdict in verdicts.items() if verdict is None or verdict.p_holm >= LEVEL)
    return Standing(best, tied, all(verdict is not None for verdict in verdicts.values()))


def holm(ps: Iterable[float]) -> list[float]:
    """p-values corrected for their number, in their order (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    plain = np.array(list(ps), dtype=np.float64)
    order = np.argsort(plain, kind="stable")
    stepped = np.minimum(1.0, np.maximum.accumulate(plain[order] * np.arange(len(plain), 0, -1)))
    corrected = np.empty_like(plain)
    corrected[order] = stepped
    return [float(p) for p in corrected]


def runs_needed(comparisons: int) -> int:
    """Smallest number of runs of each strategy at which the test can reach its level at all.

    Examples
    --------
    >>> runs_needed(1), runs_needed(11)
    (4, 6)
    """
    return next(runs for runs in range(2, 100) if max(1, comparisons) * 2 / comb(2 * runs, runs) < LEVEL)


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of known values."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def deviation(values: Sequence[float | None]) -> float | None:
    """The standard deviation of known values."""
    known = [value for value in values if value is not None]
    return float(np.std(known, ddof=1)) if len(known) > 1 else None
