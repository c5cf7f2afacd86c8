"""Branch and bound, as every certificate does it: bound boxes, split those that leave most open, a batch at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fairbits.engine import BoxNetwork, bound_boxes, share

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Boxes that are split at once, at most, and that a thread bounds at once; seconds that a batch may take, about.
BATCH, PIECE, ROUND = 2048, 16, 0.3
#: Counts of people up to which 64-bit integers are exact.
WHOLE = 2**62


def in_batches(
    step: Callable[[int], bool], going: Callable[[], bool], *, clock: Callable[[], float] = time.perf_counter
) -> None:
    """Take steps of a number of boxes while there are some; batches grow while they are quick, to keep the budget."""
    size = 16
    while going():
        begin = clock()
        if not step(size):
            return
        size = size // 2 + 1 if clock() - begin > ROUND else min(2 * size, BATCH)


def most_open(priority: Doubles, size: int) -> Integers:
    """The boxes with the highest priority, of those that have one: about half of them, and no more than a batch."""
    wanted = min(size, max(1, int(np.count_nonzero(priority)) // 2 + 1))
    order = np.argpartition(-priority, wanted - 1)[:wanted] if wanted < len(priority) else np.arange(len(priority))
    return np.sort(order[priority[order] > 0])


class Bounds(NamedTuple):
    """What is known of boxes: their status, shares that are certain, where to split; margins of twins, if asked for."""

    status: Integers
    steady: Doubles
    flipping: Doubles
    split: Integers
    lows: Doubles
    highs: Doubles
    gaps: Doubles


def bound(
    network: BoxNetwork,
    cuts: tuple[float, float],
    boxes: tuple[Any, ...],
    *,
    bins: int = 0,
    margins: bool = False,
    threads: int | None = None,
) -> Bounds:
    """Bound boxes (first and last steps, sets, states of neurons) on several threads; cuts are (below, from)."""
    n, m = len(boxes[0]), network.layers.twins.shape[0]
    kept = n if margins else 0
    found = Bounds(
        np.zeros(n, np.int64), np.zeros(n), np.zeros(n), np.zeros(n, np.int64),
        np.empty((kept, m)), np.empty((kept, m)), np.empty(kept),
    )  # fmt: skip

    def piece(start: int) -> None:
        part = slice(start, start + PIECE)
        status, steady, flipping, split, lows, highs, gaps = (array[part] for array in found)
        some = (array[part] for array in boxes)
        bound_boxes(network.layers, cuts[1], cuts[0], *some, status, steady, flipping, split, bins, lows, highs, gaps)

    share(piece, range(0, n, PIECE), threads)
    return found


def bits_of(mask: Any) -> list[int]:
    """The members of a set that is written as a bit mask.

    Examples
    --------
    >>> bits_of(0b1101)
    [0, 2, 3]
    """
    return [b for b in range(64) if int(mask) >> b & 1]


def halves(
    network: BoxNetwork, first: Any, last: Any, masks: Any, where: Integers
) -> tuple[tuple[Any, Any, Any], Integers, Integers]:
    """Boxes cut in two at one attribute each: all left halves, then all right ones; and of how many values, how many go
    left.
    """
    numeric = network.numeric
    left_last, right_first = last.copy(), first.copy()
    left_masks, right_masks = masks.copy(), masks.copy()
    sizes, lefts = np.empty(len(first), np.int64), np.empty(len(first), np.int64)
    steps = np.flatnonzero(where < numeric)
    at = where[steps]
    middle = np.floor((first[steps, at] + last[steps, at]) / 2)
    left_last[steps, at], right_first[steps, at] = middle, middle + 1
    sizes[steps] = (last[steps, at] - first[steps, at] + 1).astype(np.int64)
    lefts[steps] = (middle - first[steps, at] + 1).astype(np.int64)
    for place in np.flatnonzero(where >= numeric).tolist():
        at_set = int(where[place]) - numeric
        bits = bits_of(masks[place, at_set])
        half = len(bits) // 2
        left_masks[place, at_set] = np.uint64(sum(1 << b for b in bits[:half]))
        right_masks[place, at_set] = np.uint64(sum(1 << b for b in bits[half:]))
        sizes[place], lefts[place] = len(bits), half
    both = (
        np.concatenate([first, right_first]),
        np.concatenate([left_last, last]),
        np.concatenate([left_masks, right_masks]),
    )
    return both, sizes, lefts
