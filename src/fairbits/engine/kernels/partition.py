"""How many classes the twins' scores of each person of a tile fall into, without sorting them.

Sorting is a scalar affair. Sweeping is not: with `opened` the lowest score of the current class, one pass
over the twins finds both how many scores the classes cover so far and the score that opens the next class,
for all people of the tile at once. There are as many passes as the person with the most classes needs.

A sweep from the lowest score and one from the highest find equally many classes, the fewest there can be, of other
sizes: which of two outputs is called favourable must not decide. Of the two, the one that shows more bits counts.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.compiler import compiled, inlined
from fairbits.engine.kernels.memory import load, lowest, splat, store
from fairbits.engine.kernels.simd import PEOPLE, add, div, floor, if_greater, minimum, sub
from fairbits.errors import OptionError

ZERO, ONE, HALF = np.float32(0), np.float32(1), np.float32(0.5)
INFINITY = np.float32(np.inf)


def entropy_terms(m: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """c log2 c for c = 0..m, so that the kernels need no logarithm."""
    counts = np.arange(m + 1, dtype=np.float64)
    return counts * np.log2(np.maximum(counts, 1.0))


def last_bin(epsilon: float, bounded: bool) -> np.float32:
    """The bin of a score of 1: it closes the last bin of the unit interval and opens none."""
    return np.float32(np.ceil(1.0 / epsilon - 1e-9) - 1.0) if bounded else INFINITY


def tolerance_of(epsilon: float) -> float:
    """The distance up to which scores are the same: ε and a rounding margin.

    0.1 and 0.125 are 0.025 apart, but not for a computer: their difference misses it by the rounding of both, up to
    2⁻²⁴ for float32 scores below 1. The margin is 2⁻²³, or a 65,536th of ε where that is more (scores of a regression),
    and never more than a sixteenth of ε.
    """
    return epsilon + max(2.0**-16 * epsilon, min(2.0**-23, epsilon / 16))


class Ruler(NamedTuple):
    """How classes are told apart, as the kernel takes it."""

    classes: bool
    epsilon: np.float32  # the width of a bin
    tolerance: np.float32  # scores further apart are in different classes
    grid: bool
    last: np.float32
    terms: NDArray[np.float64]
    threshold: np.float32  # a score from here on is a favourable decision, between two classes


def ruler_of(m: int, epsilon: float, partition: str, bounded: bool, threshold: float = 0.5) -> Ruler:
    """Tolerance, partition and threshold for m twins, checked."""
    if not (epsilon > 0 and np.isfinite(epsilon)):
        raise OptionError(f"epsilon must be a positive number, but got {epsilon}.")
    if partition not in ("constrained", "grid"):
        raise OptionError(f"partition must be 'constrained' or 'grid', but got {partition!r}.")
    last = last_bin(epsilon, bounded)
    tolerance = np.float32(tolerance_of(epsilon))
    grid = partition == "grid"
    return Ruler(True, np.float32(epsilon), tolerance, grid, last, entropy_terms(m), np.float32(threshold))


@inlined
def to_bins(scores, start, m, epsilon, last):
    """Replace scores by the number of their bin of width epsilon, counted from zero."""
    for twin in range(m):
        at = start + twin * PEOPLE
        bins = floor(div(load(scores, at), splat(epsilon)))
        store(scores, at, minimum(bins, splat(last)))


@inlined
def sweep(scores, start, m, tolerance, terms, scratch, figures, first, people):  # noqa: PLR0912 - two sweeps in one
    """Write k and Q1 of the tile's `people`, from row `first` on. Overwrites the scores.

    Two scores are in different classes when ``score - opened > tolerance`` in float32; `scores` may be bins.
    """
    counts, bits = scratch.counts, scratch.bits
    most = np.int32(1)
    for direction in range(2):  # upwards, then downwards, where anybody has more than one class
        if direction == 1 and most <= 1:
            break
        opened = splat(INFINITY)
        for twin in range(m):
            at = start + twin * PEOPLE
            score = load(scores, at)
            if direction == 1:  # a twin that cannot be is infinite, and stays so
                score = if_greater(splat(INFINITY), score, sub(splat(ZERO), score), splat(INFINITY))
                store(scores, at, score)
            opened = minimum(score, opened)
        for person in range(PEOPLE):
            counts[person] = ZERO
            bits[direction * PEOPLE + person] = 0.0
        k = splat(ZERO)
        passes = np.int32(0)
        while True:
            upcoming = splat(INFINITY)
            covered = splat(ZERO)
            for twin in range(m):
                score = load(scores, start + twin * PEOPLE)
                gap = sub(score, opened)
                upcoming = minimum(if_greater(gap, splat(tolerance), score, splat(INFINITY)), upcoming)
                covered = add(covered, if_greater(gap, splat(tolerance), splat(ZERO), splat(ONE)))
            k = add(k, if_greater(splat(INFINITY), opened, splat(ONE), splat(ZERO)))
            # A person without further classes has opened = infinity: everything is covered, the class is empty.
            store(counts, PEOPLE, covered)
            for person in range(PEOPLE):
                bits[direction * PEOPLE + person] += terms[np.int64(counts[PEOPLE + person] - counts[person])]
                counts[person] = counts[PEOPLE + person]
            opened = upcoming
            passes += 1
            if lowest(opened) == INFINITY:
                break
            if direction == 1 and passes == most - 1:  # the last class is what is left
                for person in range(PEOPLE):
                    bits[PEOPLE + person] += terms[np.int64(counts[2 * PEOPLE + person] - counts[person])]
                break
        if direction == 0:
            for person in range(PEOPLE):
                counts[2 * PEOPLE + person] = counts[person]
            store(counts, 0, k)
            for person in range(people):
                own = max(np.int32(counts[person]), np.int32(1))
                figures.k[first + person] = own
                most = max(most, own)
    whole = terms[m] / m
    for person in range(people):
        # One class uses no bits; the difference of two equal logarithms may miss zero by a rounding.
        fewest = min(bits[person], bits[PEOPLE + person])
        figures.q_1[first + person] = 0.0 if figures.k[first + person] <= 1 else np.float32(whole - fewest / m)


@compiled
def classes_chunk(ready, scratch, start, ruler, figures):
    """k and Q1 of every row of scores."""
    n, m = ready.shape
    tile = scratch.tile
    for first in range(0, n, PEOPLE):
        people = min(PEOPLE, n - first)
        for person in range(PEOPLE):
            row = first + min(person, people - 1)
            for twin in range(m):
                tile[twin * PEOPLE + person] = ready[row, twin]
        width = ruler.tolerance
        if ruler.grid:
            to_bins(tile, 0, m, ruler.epsilon, ruler.last)
            width = HALF
        sweep(tile, 0, m, width, ruler.terms, scratch, figures, start + first, people)
