"""How many classes the twins' scores of each person fall into, without sorting them.

Sorting is a scalar affair. Sweeping is not: with `opened` the lowest score of the current class, one pass
over the twins finds both how many scores the classes cover so far and the score that opens the next class,
for all people of a tile at once. There are as many passes as the person with the most classes needs.

A sweep from the lowest score and one from the highest find equally many classes, the fewest there can be, of other
sizes: which of two outputs is called favourable must not decide. Of the two, the one that shows more bits counts.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.compiler import compiled, inlined, linked
from fairbits.engine.kernels.lanes import PEOPLE, add, div, floor, if_greater, load, lowest, minimum, splat, store, sub
from fairbits.errors import OptionError, choose_from

Partition = Literal["constrained", "grid"]

ZERO, ONE, HALF = np.float32(0), np.float32(1), np.float32(0.5)
INFINITY = np.float32(np.inf)


def check_partition(partition: str) -> Partition:
    """Refuse a partition that does not exist."""
    if partition not in get_args(Partition):
        raise OptionError(f"partition {partition!r} is not known; {choose_from(partition, get_args(Partition))}")
    return partition  # type: ignore[return-value]  # just checked


def check_epsilon(epsilon: float) -> float:
    """Refuse a tolerance that is not a positive number."""
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise OptionError(f"epsilon is {epsilon}; the tolerance between scores must be larger than 0 (default 0.025).")
    return float(epsilon)


def max_classes(epsilon: float) -> int:
    """Number of classes that scores within [0, 1] can fall into: ⌈1/ε⌉, where 1/0.025 is 40 despite rounding."""
    return max(1, int(np.ceil(1 / epsilon - 1e-9)))


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
    last: np.float32  # the bin of a score of 1: it closes the last bin of the unit interval and opens none
    terms: NDArray[np.float64]  # c log2 c for c = 0..m, so that the kernels need no logarithm
    threshold: np.float32  # a score from here on is a favourable decision, between two classes


def ruler_of(m: int, epsilon: float, partition: str, bounded: bool, threshold: float = 0.5) -> Ruler:
    """Tolerance, partition and threshold for m twins, checked."""
    epsilon, grid = check_epsilon(epsilon), check_partition(partition) == "grid"
    last = np.float32(max_classes(epsilon) - 1) if bounded else INFINITY
    counts = np.arange(m + 1, dtype=np.float64)
    terms = counts * np.log2(np.maximum(counts, 1.0))
    tolerance = np.float32(tolerance_of(epsilon))
    return Ruler(True, np.float32(epsilon), tolerance, grid, last, terms, np.float32(threshold))


@inlined
def to_bins(scores, start, m, epsilon, last):
    """Replace scores by the number of their bin of width epsilon, counted from zero."""
    for twin in range(m):
        at = start + twin * PEOPLE
        bins = floor(div(load(scores, at), splat(epsilon)))
        store(scores, at, minimum(bins, splat(last)))


@inlined
def sweep(scores, start, m, tolerance, terms, counts, bits, classes, shown, first, people):  # noqa: PLR0912 - two in one
    """Write k (``classes``) and Q1 (``shown``) of the tile's `people`, from row `first` on. Overwrites the scores.

    Two scores are in different classes when ``score - opened > tolerance`` in float32; `scores` may be bins. A twin
    that cannot be is infinite, and in no class.
    """
    most, mixed = np.int32(1), False
    for direction in range(2):  # upwards, then downwards, where the twins of anybody neither all agree nor all differ
        if direction == 1 and not mixed:
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
            # A person without further classes has opened = infinity: the class is empty.
            store(counts, PEOPLE, if_greater(splat(INFINITY), opened, covered, load(counts, 0)))
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
                classes[first + person] = own
                most = max(most, own)
                mixed |= 1 < own < counts[2 * PEOPLE + person]
            for person in range(PEOPLE):
                bits[PEOPLE + person] = bits[person]
    for person in range(people):
        # One class uses no bits; the difference of two equal logarithms may miss zero by a rounding.
        fewest, twins = min(bits[person], bits[PEOPLE + person]), np.int64(counts[2 * PEOPLE + person])
        many = classes[first + person] > 1
        shown[first + person] = np.float32(terms[twins] / twins - fewest / twins) if many else np.float32(0)


@compiled
def masked_chunk(scores, valid, start, ruler, decides, figures, twins):
    """Figures of every row of scores, over the twins that are valid."""
    n, m = scores.shape
    tile, counts, bits = np.empty(m * PEOPLE, np.float32), np.empty(3 * PEOPLE, np.float32), np.empty(2 * PEOPLE)
    for first in range(0, n, PEOPLE):
        people = min(PEOPLE, n - first)
        tile[:] = INFINITY
        for person in range(people):
            row = start + first + person
            count, favourable = 0, 0
            low, high = INFINITY, -INFINITY
            low_twin, high_twin = 0, 0
            for twin in range(m):
                if not valid[first + person, twin]:
                    continue
                score = scores[first + person, twin]
                if score < low:
                    low, low_twin = score, twin
                if score > high:
                    high, high_twin = score, twin
                if score >= ruler.threshold:
                    favourable += 1
                if ruler.grid:
                    score = min(np.floor(score / ruler.epsilon), ruler.last)
                tile[twin * PEOPLE + person] = score
                count += 1
            figures.low_twin[row], figures.high_twin[row] = low_twin, high_twin
            figures.favourable[row] = favourable if decides else 0
            figures.low[row], figures.high[row] = (low, high) if count > 0 else (ZERO, ZERO)
            twins[row] = count
        width = HALF if ruler.grid else ruler.tolerance
        row = start + first
        sweep(tile, 0, m, width, ruler.terms, counts, bits, figures.k, figures.q_1, row, people)


def masked_rows(
    scores: NDArray[np.float32],
    valid: NDArray[np.bool_],
    ruler: Ruler,
    decides: bool,
    figures: Any,
    twins: NDArray[np.int32],
    start: int,
    stop: int,
) -> None:
    """Of some rows the same to the last bit as ``masked_chunk``, in NumPy: for so few that compiling takes longer."""
    rows = slice(start, stop)
    scores, valid = scores[rows], valid[rows]
    count = valid.sum(axis=1)
    lows, highs = np.where(valid, scores, INFINITY), np.where(valid, scores, -INFINITY)
    figures.low_twin[rows], figures.high_twin[rows] = lows.argmin(axis=1), highs.argmax(axis=1)
    figures.low[rows] = np.where(count > 0, lows.min(axis=1), ZERO)
    figures.high[rows] = np.where(count > 0, highs.max(axis=1), ZERO)
    figures.favourable[rows] = ((scores >= ruler.threshold) & valid).sum(axis=1) if decides else 0
    twins[rows] = count
    width = ruler.tolerance
    if ruler.grid:
        scores, width = np.minimum(np.floor(scores / ruler.epsilon), ruler.last), HALF
    k, bits = _passes(np.where(valid, scores, INFINITY), width, ruler.terms)
    _, downwards = _passes(np.where(valid, -scores, INFINITY), width, ruler.terms)
    figures.k[rows] = np.maximum(k, 1)
    shown = ruler.terms[count] / np.maximum(count, 1) - np.minimum(bits, downwards) / np.maximum(count, 1)
    figures.q_1[rows] = np.where(k > 1, shown, 0)


def _passes(scores: NDArray[np.float32], width: Any, terms: NDArray[np.float64]) -> tuple[Any, Any]:
    """Classes of every row, and the sum of c log2 c over them; twins that cannot exist have an infinite score."""
    k, bits, left = np.zeros(len(scores), np.int64), np.zeros(len(scores)), scores < INFINITY
    while left.any():
        opened = np.where(left, scores, INFINITY).min(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):  # infinity less infinity: nobody is left there
            outside = left & (scores - opened > width)
        k += left.any(axis=1)
        bits += terms[left.sum(axis=1) - outside.sum(axis=1)]
        left = outside
    return k, bits


@compiled
def vectors_chunk(scores, valid, start, favourable, ruler, figures, twins, decisions):
    """Figures of every row of probabilities: whole vectors are compared, in the max norm.

    Complete linkage: no class holds two twins further than ε apart in any of the probabilities. The sweep of one
    dimension carries over: twins in the order of the probability that differs most among them, a class is opened by the
    first one that is not covered, and takes in, in that order, everyone within ε of all its members. In the max norm
    that is a box: a class need only know the lowest and the highest of each probability. It is done upwards and
    downwards; of the two the one with fewer classes counts, and among equals the one that shows more bits, so that
    nothing hangs on which class is called favourable. For two classes this is the sweep of the scores itself.
    """
    n, m, classes = scores.shape
    rest, order = np.empty(m, np.int64), np.empty(m, np.int64)
    lows, highs = np.empty(classes, np.float32), np.empty(classes, np.float32)
    votes = np.empty(classes, np.int64)
    for person in range(n):
        row = start + person
        count = 0
        votes[:] = 0
        own = scores[person, :, favourable]
        for twin in np.argsort(own, kind="mergesort"):
            if valid[person, twin]:
                rest[count] = twin
                count += 1
                votes[_decision(scores, person, twin, favourable)] += 1
        twins[row] = count
        decisions[row] = (votes > 0).sum()
        figures.favourable[row] = votes[favourable]
        first = rest[0] if count > 0 else 0
        last = rest[0] if count > 0 else 0
        for i in range(count):  # the first twin with the highest score, as everywhere
            if own[rest[i]] > own[last]:
                last = rest[i]
        figures.low_twin[row], figures.high_twin[row] = first, last
        figures.low[row] = own[first] if count > 0 else np.float32(0)
        figures.high[row] = own[last] if count > 0 else np.float32(0)
        k, bits = 0, 0.0
        widest = _widest(scores, person, rest, count)
        place = 0
        for twin in np.argsort(scores[person, :, widest], kind="mergesort"):
            if valid[person, twin]:
                order[place] = twin
                place += 1
        for direction in range(2):
            for i in range(count):
                rest[i] = order[i] if direction == 0 else order[count - 1 - i]
            classes_here, bits_here, left = 0, 0.0, count
            while left > 0:
                before = left
                left = _cover(scores, person, rest, left, lows, highs, ruler.tolerance)
                classes_here += 1
                bits_here += ruler.terms[before - left]
            if direction == 0 or classes_here < k or (classes_here == k and bits_here < bits):
                k, bits = classes_here, bits_here
            if k <= 1:
                break
        figures.k[row] = max(k, 1)
        # One class uses no bits; the difference of two equal logarithms may miss zero by a rounding.
        figures.q_1[row] = np.float32((ruler.terms[count] - bits) / count) if k > 1 else np.float32(0)


@linked
def _decision(scores, person, twin, favourable):
    """The most likely class; a tie goes to the favourable one."""
    best = favourable
    for j in range(scores.shape[2]):
        if scores[person, twin, j] > scores[person, twin, best]:
            best = j
    return best


@linked
def _widest(scores, person, rest, count):
    """The class whose probability differs most among the twins; the first of equals."""
    best, span = 0, np.float32(-1)
    for j in range(scores.shape[2]):
        low, high = np.float32(np.inf), np.float32(-np.inf)
        for i in range(count):
            low, high = min(low, scores[person, rest[i], j]), max(high, scores[person, rest[i], j])
        if high - low > span:
            best, span = j, high - low
    return best


@linked
def _cover(scores, person, rest, count, lows, highs, tolerance):
    """Take one class out of the first `count` twins, keeping the order of the others; gives how many are left."""
    classes = scores.shape[2]
    for j in range(classes):
        lows[j] = highs[j] = scores[person, rest[0], j]
    left = 0
    for i in range(1, count):
        twin = rest[i]
        inside = True
        for j in range(classes):
            score = scores[person, twin, j]
            if score - lows[j] > tolerance or highs[j] - score > tolerance:
                inside = False
                break
        if inside:
            for j in range(classes):
                score = scores[person, twin, j]
                lows[j] = min(lows[j], score)
                highs[j] = max(highs[j], score)
        else:
            rest[left] = twin
            left += 1
    return left
