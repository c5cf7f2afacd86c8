"""From intervals of twins' scores to the fewest and the most classes that they can fall into."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairbits.engine import tolerance_of

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def class_bounds(
    lows: Doubles, highs: Doubles, epsilon: float, *, spans: Doubles | None = None
) -> tuple[Integers, Integers]:
    """The fewest and the most classes of people whose twins score within intervals.

    At most: twins that lie within ε of each other whatever their scores are share a class, and a greedy sweep over the
    intervals, lowest ends first, makes groups of such twins; and scores that differ by at most D fall into
    max(1, ⌈D/ε⌉) classes. At least: twins whose intervals lie further apart than ε and its rounding margin are in
    different classes; the most leaves the margin out, so both hold whatever it is rounded to.

    Examples
    --------
    >>> import numpy as np
    >>> fewest, most = class_bounds(np.array([[0.10, 0.11, 0.50]]), np.array([[0.11, 0.12, 0.51]]), 0.025)
    >>> int(fewest[0]), int(most[0])
    (2, 2)
    """
    n, m = lows.shape
    by_low = np.argsort(lows, axis=1, kind="stable")
    low, high = np.take_along_axis(lows, by_low, axis=1), np.take_along_axis(highs, by_low, axis=1)
    groups, begin, top = np.ones(n, np.int64), low[:, 0].copy(), high[:, 0].copy()
    for j in range(1, m):
        reach = np.maximum(top, high[:, j])
        new = reach - begin > epsilon
        groups += new
        begin, top = np.where(new, low[:, j], begin), np.where(new, high[:, j], reach)
    span = highs.max(axis=1) - lows.min(axis=1)
    if spans is not None:
        span = np.minimum(span, spans)
    # Bounded before it becomes a whole number: a span of 1e30 has no integer.
    at_most = np.minimum(groups, np.clip(np.ceil(span / epsilon), 1, m).astype(np.int64))
    by_high = np.argsort(highs, axis=1, kind="stable")
    low, high = np.take_along_axis(lows, by_high, axis=1), np.take_along_axis(highs, by_high, axis=1)
    apart, last = np.ones(n, np.int64), high[:, 0].copy()
    apart_from = tolerance_of(epsilon) * (1 + 2.0**-22)  # which the kernels take as float32
    for j in range(1, m):
        new = low[:, j] - last > apart_from
        apart += new
        last = np.where(new, high[:, j], last)
    return apart, np.maximum(at_most, 1)
