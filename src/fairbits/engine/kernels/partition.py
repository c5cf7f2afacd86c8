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

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.compiler import compiled, inlined
from fairbits.engine.kernels.lanes import PEOPLE, add, div, floor, if_greater, load, lowest, minimum, splat, store, sub
from fairbits.errors import OptionError

ZERO, ONE, HALF = np.float32(0), np.float32(1), np.float32(0.5)
INFINITY = np.float32(np.inf)


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
    if not (epsilon > 0 and np.isfinite(epsilon)):
        raise OptionError(f"epsilon must be a positive number, but got {epsilon}.")
    if partition not in ("constrained", "grid"):
        raise OptionError(f"partition must be 'constrained' or 'grid', but got {partition!r}.")
    last = np.float32(np.ceil(1.0 / epsilon - 1e-9) - 1.0) if bounded else INFINITY
    counts = np.arange(m + 1, dtype=np.float64)
    terms = counts * np.log2(np.maximum(counts, 1.0))
    tolerance = np.float32(tolerance_of(epsilon))
    grid = partition == "grid"
    return Ruler(True, np.float32(epsilon), tolerance, grid, last, terms, np.float32(threshold))


@inlined
def to_bins(scores, start, m, epsilon, last):
    """Replace scores by the number of their bin of width epsilon, counted from zero."""
    for twin in range(m):
        at = start + twin * PEOPLE
        bins = floor(div(load(scores, at), splat(epsilon)))
        store(scores, at, minimum(bins, splat(last)))


@inlined
def sweep(scores, start, m, tolerance, terms, scratch, classes, shown, first, people):  # noqa: PLR0912 - two in one
    """Write k (``classes``) and Q1 (``shown``) of the tile's `people`, from row `first` on. Overwrites the scores.

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
                classes[first + person] = own
                most = max(most, own)
    whole = terms[m] / m
    for person in range(people):
        # One class uses no bits; the difference of two equal logarithms may miss zero by a rounding.
        fewest = min(bits[person], bits[PEOPLE + person])
        shown[first + person] = 0.0 if classes[first + person] <= 1 else np.float32(whole - fewest / m)


def _extremes(scores: NDArray[np.float32], valid: NDArray[np.bool_], rows: slice, figures: Any) -> None:
    lows, highs, some = np.where(valid, scores, INFINITY), np.where(valid, scores, -INFINITY), valid.any(axis=1)
    figures.low_twin[rows], figures.high_twin[rows] = lows.argmin(axis=1), highs.argmax(axis=1)
    figures.low[rows] = np.where(some, lows.min(axis=1), ZERO)
    figures.high[rows] = np.where(some, highs.max(axis=1), ZERO)


def masked_rows(
    scores: NDArray[np.float32],
    valid: NDArray[np.bool_],
    start: int,
    ruler: Ruler,
    decides: bool,
    figures: Any,
    twins: NDArray[np.int32],
    *,
    many: bool,
) -> None:
    """Figures of every row of scores, over the twins that are valid; of ``many``, classes are counted by a kernel."""
    rows, count = slice(start, start + len(scores)), valid.sum(axis=1)
    _extremes(scores, valid, rows, figures)
    figures.favourable[rows] = ((scores >= ruler.threshold) & valid).sum(axis=1) if decides else 0
    twins[rows] = count
    width = ruler.tolerance
    if ruler.grid:
        scores, width = np.minimum(np.floor(scores / ruler.epsilon), ruler.last), HALF
    # Of a partition upwards and one downwards the one that shows more bits counts, see the head of this module.
    passes = passes_chunk if many else _passes
    k, bits = passes(np.where(valid, scores, INFINITY), width, ruler.terms)
    _, downwards = passes(np.where(valid, -scores, INFINITY), width, ruler.terms)
    figures.k[rows] = np.maximum(k, 1)
    shown = ruler.terms[count] / np.maximum(count, 1) - np.minimum(bits, downwards) / np.maximum(count, 1)
    # One class uses no bits; the difference of two equal logarithms may miss zero by a rounding.
    figures.q_1[rows] = np.where(k > 1, shown, 0)


def _passes(scores: NDArray[np.float32], width: Any, terms: NDArray[np.float64]) -> tuple[Any, Any]:
    """Classes of every row, and the sum of c log2 c over them; twins that cannot exist have an infinite score.

    For so few scores that compiling would take longer.
    """
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
def passes_chunk(scores, width, terms):
    """The same to the last bit, person by person: each pass leaves out what the class before it has covered."""
    n, m = scores.shape
    k, bits, rest = np.zeros(n, np.int64), np.zeros(n), np.empty(m, np.float32)
    for person in range(n):
        count, opened = 0, INFINITY
        for twin in range(m):
            rest[count] = scores[person, twin]
            opened = min(opened, rest[count])
            count += rest[count] < INFINITY
        while count > 0:
            left, upcoming = 0, INFINITY
            for i in range(count):
                score = rest[i]
                outside = score - opened > width
                rest[left] = score
                left += outside
                upcoming = min(upcoming, score if outside else INFINITY)
            k[person] += 1
            bits[person] += terms[count - left]
            opened, count = upcoming, left
    return k, bits


def vectors_rows(
    scores: NDArray[np.float32],
    valid: NDArray[np.bool_],
    start: int,
    favourable: int,
    ruler: Ruler,
    figures: Any,
    twins: NDArray[np.int32],
    decisions: NDArray[np.int32],
) -> None:
    """Figures of every row of probabilities: whole vectors are compared, in the max norm.

    Complete linkage: no class holds two twins further than ε apart in any of the probabilities. The sweep of one
    dimension carries over: twins in the order of the probability that differs most among them, a class is opened by the
    first one that is not covered, and takes in, in that order, everyone within ε of all its members. It is done upwards
    and downwards; of the two the one with fewer classes counts, and among equals the one that shows more bits, so that
    nothing hangs on which class is called favourable. For two classes this is the sweep of the scores itself.
    """
    rows, count, own = slice(start, start + len(scores)), valid.sum(axis=1), scores[:, :, favourable]
    _extremes(own, valid, rows, figures)
    # The most likely class decides; a tie goes to the favourable one.
    decided = np.where(own >= scores.max(axis=2), favourable, scores.argmax(axis=2))
    votes = [((decided == place) & valid).sum(axis=1) for place in range(scores.shape[2])]
    figures.favourable[rows], decisions[rows], twins[rows] = votes[favourable], np.count_nonzero(votes, axis=0), count
    there = valid[:, :, None]
    spans = np.where(there, scores, -INFINITY).max(axis=1) - np.where(there, scores, INFINITY).min(axis=1)
    widest = np.take_along_axis(scores, spans.argmax(axis=1)[:, None, None], axis=2)[:, :, 0]
    order = np.argsort(widest, axis=1, kind="stable")
    k, bits = _linked(scores, valid, order, ruler)
    other, fewest = _linked(scores, valid, order[:, ::-1], ruler)
    bits = np.where((other < k) | ((other == k) & (fewest < bits)), fewest, bits)
    k = np.minimum(k, other)
    figures.k[rows] = np.maximum(k, 1)
    # One class uses no bits; the difference of two equal logarithms may miss zero by a rounding.
    figures.q_1[rows] = np.where(k > 1, (ruler.terms[count] - bits) / np.maximum(count, 1), 0)


def _linked(scores: NDArray[np.float32], valid: NDArray[np.bool_], order: NDArray[np.int64], ruler: Ruler) -> Any:
    """Classes of every row, and the sum of c log2 c over them: twins in order join the first class that has them.

    In the max norm a class is a box: it need only know the lowest and the highest of each probability. The first box
    that is still empty has everybody.
    """
    people = np.arange(len(scores))
    lows, highs = np.full(scores.shape, INFINITY), np.full(scores.shape, -INFINITY)
    sizes, opened = np.zeros(valid.shape, np.int64), 1
    for twins in order.T:
        some = people[valid[people, twins]]
        score = scores[some, twins[some]]
        apart = np.maximum(score[:, None] - lows[some, :opened], highs[some, :opened] - score[:, None]).max(axis=2)
        mine = (apart <= ruler.tolerance).argmax(axis=1)
        lows[some, mine] = np.minimum(lows[some, mine], score)
        highs[some, mine] = np.maximum(highs[some, mine], score)
        sizes[some, mine] += 1
        opened = min(opened + int((mine == opened - 1).any()), scores.shape[1])
    return (sizes > 0).sum(axis=1), np.cumsum(ruler.terms[sizes], axis=1)[:, -1]
