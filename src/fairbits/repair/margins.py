"""What a change costs on some rows, and how much more it may cost than these rows show.

Both models decide about the same rows, so their losses are compared in pairs: Agresti and Min's interval for matched
proportions (Statistics in Medicine 2005), which adds half a row to each of the four kinds of pairs. Without a single
difference among 74 rows it still says that 1.7 points may be lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.functions import normal_quantile

#: The share of samples in which the true loss lies below the upper end.
CONFIDENCE = 0.9
#: The same for each end of the intervals beside held-out figures: together they hold in 95 % of samples.
TWO_SIDED = 0.975

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss on the rows (below 0: a gain), and the ends of its one-sided intervals."""

    value: float
    upper: float
    lower: float = -float("inf")


def accuracy_loss(before: Flags, after: Flags, *, confidence: float = CONFIDENCE) -> Loss:
    """Loss of accuracy, with an upper end."""
    value, variance = _matched(before, after)
    reach = _quantile(confidence) * float(np.sqrt(variance))
    return Loss(float(before.mean() - after.mean()), value + reach, value - reach)


def balanced_loss(
    before: Flags, after: Flags, labels: npt.NDArray[np.float64], *, confidence: float = CONFIDENCE
) -> Loss:
    """Loss of balanced accuracy, with an upper end."""
    members = [labels == label for label in np.unique(labels)]
    found = np.array([_matched(before[mine], after[mine]) for mine in members])
    value = float(np.mean([before[mine].mean() - after[mine].mean() for mine in members]))
    spread = float(np.sqrt(found[:, 1].sum())) / len(members)
    middle, reach = float(found[:, 0].mean()), _quantile(confidence) * spread
    return Loss(value, middle + reach, middle - reach)


def variance_loss(
    before: npt.NDArray[np.floating],
    after: npt.NDArray[np.floating],
    values: npt.NDArray[np.float64],
    *,
    confidence: float = CONFIDENCE,
) -> Loss:
    """Loss of explained variance of a regression, with an upper end."""
    total = float(np.var(values)) or 1.0
    extra = ((after - values) ** 2 - (before - values) ** 2) / total
    value = float(np.mean(extra, dtype=np.float64))
    spread = float(np.std(extra, ddof=1)) / np.sqrt(len(extra)) if len(extra) > 1 else np.inf
    reach = _quantile(confidence) * float(spread)
    return Loss(value, value + reach, value - reach)


def _matched(before: Flags, after: Flags) -> tuple[float, float]:
    """The adjusted loss and its variance."""
    n = len(before) + 2
    worse, better = int((before & ~after).sum()), int((after & ~before).sum())
    lost = (worse - better) / n
    return lost, (worse + better + 1 - n * lost**2) / n**2


def _quantile(confidence: float) -> float:
    return normal_quantile(confidence)
