"""How far apart the twins of a person are inside a network: the largest L1 distance over all pairs, exactly.

Two twins are never further apart than the sum of their distances to the twins' mean. With twins ordered by that
distance, most pairs need not be looked at: the result is the same, the work a fraction of m²/2.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.compiler import compiled
from fairbits.engine.threads import spread, writeable

ROUNDING = 1e-5
"""Bounds and distances are sums in float32: a pair is passed over only if it is short by more than this share."""


def widest(outputs: NDArray[np.float32], *, threads: int | None = None) -> NDArray[np.float64]:
    """The largest L1 distance between the twins of each person."""
    n, m, width = outputs.shape
    found = np.zeros(n)

    def run(start: int, stop: int) -> None:
        widest_chunk(writeable(np.asarray(outputs[start:stop], dtype=np.float32)), found[start:stop])

    if m > 1 and width > 0:
        spread(run, n, m * m * width // 4, threads)
    return found


@compiled
def widest_chunk(outputs, found):  # noqa: PLR0912 - one person, step by step
    """The largest L1 distance between twins, for a few people.

    The twins of a person are laid side by side, so that one is compared with many at a time.
    """
    n, m, width = outputs.shape
    twins = np.empty((width, m), np.float32)
    distances, reach = np.empty(m, np.float32), np.empty(m, np.float32)
    for person in range(n):
        for twin in range(m):
            reach[twin] = 0
        for j in range(width):
            mean = np.float32(0)
            for twin in range(m):
                mean += outputs[person, twin, j]
            mean /= np.float32(m)
            for twin in range(m):
                reach[twin] += abs(outputs[person, twin, j] - mean)
        order = np.argsort(-reach, kind="mergesort")  # farthest first
        for twin in range(m):
            for j in range(width):
                twins[j, twin] = outputs[person, order[twin], j]
        best = np.float32(0)
        for one in range(m - 1):
            enough = best * np.float32(1 - ROUNDING) - reach[order[one]]
            last = one + 1
            while last < m and reach[order[last]] >= enough:
                last += 1
            if last == one + 1:
                break
            for other in range(one + 1, last):
                distances[other] = 0
            for j in range(width):
                here = twins[j, one]
                for other in range(one + 1, last):
                    distances[other] += abs(twins[j, other] - here)
            for other in range(one + 1, last):
                best = max(best, distances[other])
        found[person] = best
