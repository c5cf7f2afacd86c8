"""Medians with the interval that their own scatter gives them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from scipy.stats import binom


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The median and its interval by order statistics: 95 % or more from six values on, else from end to end."""
    ordered = sorted(values)
    outside = 0  # values left out at each end
    while binom.cdf(outside, len(ordered), 0.5) <= 0.025:
        outside += 1
    ends = max(outside - 1, 0)
    return statistics.median(ordered), ordered[ends], ordered[-1 - ends]
