"""Figures of people some of whose twins cannot exist, from ready scores.

The fused kernel keeps people in lanes and gives every one of them the same m twins. Here twins differ from person to
person, so people are taken one at a time: the scores of the twins that exist are put side by side, and each sweep
leaves out what the class before it has covered. That costs a few passes over at most m numbers, little beside scoring.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.batches import spread, writeable
from fairbits.engine.evaluation import Evaluation, Partition, empty_figures
from fairbits.engine.kernels.compiler import compiled, linked
from fairbits.engine.kernels.partition import ruler_of

_HALF = np.float32(0.5)
#: Scalar work per twin, in units of the engine's multiply-adds.
_WORK = 300


def masked(
    scores: NDArray[np.float32],
    valid: NDArray[np.bool_],
    *,
    epsilon: float,
    partition: Partition,
    bounded: bool = True,
    decides: bool = True,
    threshold: float = 0.5,
    threads: int | None = None,
) -> Evaluation:
    """Figures over the valid twins of people; someone without any has k = 1 and no span."""
    n, m = scores.shape
    figures, twins = empty_figures(n), np.empty(n, np.int32)
    ruler = ruler_of(m, epsilon, partition, bounded, threshold)

    def run(start: int, stop: int) -> None:
        part, mask = writeable(scores[start:stop]), writeable(valid[start:stop])
        masked_chunk(part, mask, start, ruler, decides, figures, twins)

    spread(run, n, m * _WORK, threads)
    return Evaluation(**figures._asdict(), m=m, twins=twins)


@compiled
def masked_chunk(scores, valid, start, ruler, decides, figures, twins):
    """Figures of every row of scores."""
    n, m = scores.shape
    rest, turned = np.empty(m, np.float32), np.empty(m, np.float32)
    for person in range(n):
        row = start + person
        count, favourable = 0, 0
        low, high = np.float32(np.inf), np.float32(-np.inf)
        low_twin, high_twin = 0, 0
        for twin in range(m):
            if not valid[person, twin]:
                continue
            score = scores[person, twin]
            if score < low:
                low, low_twin = score, twin
            if score > high:
                high, high_twin = score, twin
            if score >= ruler.threshold:
                favourable += 1
            rest[count] = score
            count += 1
        figures.low_twin[row], figures.high_twin[row] = low_twin, high_twin
        figures.favourable[row] = favourable if decides else 0
        twins[row] = count
        if count == 0:
            low, high = np.float32(0), np.float32(0)
        figures.low[row], figures.high[row] = low, high
        width = ruler.tolerance
        if ruler.grid:
            for i in range(count):
                rest[i] = min(np.floor(rest[i] / ruler.epsilon), ruler.last)
            width = _HALF
        for i in range(count):
            turned[i] = -rest[i]
        k, bits = _sweep(rest, count, width, ruler.terms)
        if k > 1:  # downwards too: of two partitions the one that shows more bits counts, see ``partition``
            bits = min(bits, _sweep(turned, count, width, ruler.terms)[1])
        figures.k[row] = max(k, 1)
        # One class uses no bits; the difference of two equal logarithms may miss zero by a rounding.
        figures.q_1[row] = np.float32((ruler.terms[count] - bits) / count) if k > 1 else np.float32(0)


@linked
def _sweep(rest: Any, count: Any, width: Any, terms: Any) -> Any:
    """Classes of the first `count` scores, and the sum of c log2 c over them. Overwrites the scores."""
    k, bits = 0, 0.0
    opened = np.float32(np.inf)
    for i in range(count):
        opened = min(opened, rest[i])
    while count > 0:
        left = 0
        upcoming = np.float32(np.inf)
        for i in range(count):
            score = rest[i]
            outside = score - opened > width
            rest[left] = score
            left += outside
            upcoming = min(upcoming, score if outside else np.float32(np.inf))
        k += 1
        bits += terms[count - left]
        opened, count = upcoming, left
    return k, bits
