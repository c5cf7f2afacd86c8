"""Figures of people whose twins get a probability for every class: whole vectors are compared, in the max norm.

Complete linkage: no class holds two twins further than ε apart in any of the probabilities. The sweep of one dimension
carries over: twins in the order of the probability that differs most among them, a class is opened by the first one
that is not covered, and takes in, in that order, everyone within ε of all its members. In the max norm that is a box: a
class need only know the lowest and the highest of each probability. It is done upwards and downwards; of the two the
one with fewer classes counts, and among equals the one that shows more bits, so that nothing hangs on which class is
called favourable. For two classes this is the sweep of the scores itself.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.batches import spread, writeable
from fairbits.engine.evaluation import Evaluation, empty_figures
from fairbits.engine.kernels.compiler import compiled, linked
from fairbits.engine.kernels.partition import ruler_of
from fairbits.errors import OptionError

#: Scalar work per twin and class, in units of the engine's multiply-adds.
_WORK = 600


def vectors(
    scores: NDArray[np.float32],
    valid: NDArray[np.bool_] | None = None,
    *,
    epsilon: float,
    favourable: int,
    threads: int | None = None,
) -> Evaluation:
    """Figures of people whose twins have a probability for every class.

    Low and high are those of the favourable class; ``decisions`` counts the different most likely classes.
    """
    if scores.ndim != 3 or not 0 <= favourable < scores.shape[2]:
        raise OptionError(f"scores must have shape (n, m, classes) and favourable be one, but got {scores.shape}.")
    n, m, classes = scores.shape
    mask = np.ones((n, m), np.bool_) if valid is None else valid
    figures, twins, decisions = empty_figures(n), np.empty(n, np.int32), np.empty(n, np.int32)
    ruler = ruler_of(m, epsilon, "constrained", True)

    def run(start: int, stop: int) -> None:
        part = writeable(scores[start:stop]), writeable(mask[start:stop])
        vectors_chunk(*part, start, favourable, ruler, figures, twins, decisions)

    spread(run, n, m * classes * _WORK, threads)
    counts = None if valid is None else twins
    return Evaluation(**figures._asdict(), m=m, twins=counts, decisions=decisions)


@compiled
def vectors_chunk(scores, valid, start, favourable, ruler, figures, twins, decisions):
    """Figures of every row of probabilities."""
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
