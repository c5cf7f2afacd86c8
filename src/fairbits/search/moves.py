"""The kernel behind `climb`: one or two changes for every member of a population.

For each change a member looks at a few and takes the one that its slopes like best: the twins with the lowest and the
highest score shall stay on either side of the decision, as far from it as possible. What slopes say about a long way
is worth little, so that what a change is expected to move counts against it. None of this asks the model anything.
Without slopes, changes are taken as they come.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.batches import spread
from fairbits.engine.simd import compiled, inlined

TRIES, CHANGES = 6, 2
"""Changes that a member looks at for each that it makes, and how many it makes at most."""

BOLD, ANEW, MORE = 0.03, 0.2, 0.2
"""Chance of a member not to look, of a value to be drawn anew rather than moved a little, and of a second change."""

DOUBT = 1.0
"""How much of what a change is expected to move counts against it."""

SHORTNESS = 0.4
"""A small move is n strides long with probability 0.4 · 0.6^(n−1)."""

_WORK = 20_000  # about as long as so many multiply-adds of the engine

Floats = NDArray[np.float64]


class Domain(NamedTuple):
    """The free attributes, as the kernel takes them."""

    low: Floats
    high: Floats
    stride: Floats
    discrete: NDArray[np.bool_]


class Outlook(NamedTuple):
    """What is known about the members: logit margins of their extreme twins, and slopes of these, (n, free)."""

    low: Floats
    high: Floats
    low_slopes: Floats
    high_slopes: Floats


NOTHING_KNOWN = Outlook(np.empty(0), np.empty(0), np.empty((0, 0)), np.empty((0, 0)))


def change_some(
    domain: Domain, values: Floats, outlook: Outlook, rng: np.random.Generator, *, threads: int | None
) -> Floats:
    """A copy of the members' free values (n, free) in which every member has a few changed."""
    draws = rng.random((len(values), 2 + 3 * TRIES * CHANGES))
    changed = np.array(values, order="C")

    def run(start: int, stop: int) -> None:
        change_chunk(domain, outlook, draws, changed, start, stop)

    spread(run, len(values), _WORK, threads)
    return changed


@inlined
def another(low, high, discrete, here, draw):
    """A value uniform over the others in the domain."""
    if not discrete:
        return low + draw * (high - low)
    there = low + np.floor(draw * (high - low))  # one value fewer than there are, then past the present one
    return min(there + 1.0 if there >= here else there, high)


@inlined
def near(low, high, stride, here, draw, sign):
    """A value a few strides away, turned round at a bound."""
    length = sign * stride * (1.0 + np.floor(np.log(1.0 - draw) / np.log(1.0 - SHORTNESS)))
    there = here + length
    if there < low or there > high:
        there = here - length
    return min(max(there, low), high)


@inlined
def some_change(domain, values, i, which, kind, draw):
    """A free attribute and another value for it, from three draws."""
    j = min(int(which * values.shape[1]), values.shape[1] - 1)
    if kind < ANEW:
        return j, another(domain.low[j], domain.high[j], domain.discrete[j], values[i, j], draw)
    sign = 1.0 if 2.0 * (kind - ANEW) < 1.0 - ANEW else -1.0
    return j, near(domain.low[j], domain.high[j], domain.stride[j], values[i, j], draw, sign)


@compiled
def change_chunk(domain, outlook, draws, values, start, stop):
    """Change some values of each of the members from `start` to `stop`."""
    known = len(outlook.low) > 0
    for i in range(start, stop):
        hasty = not known or draws[i, 0] < BOLD
        before = -1
        changes = CHANGES if hasty or draws[i, 1] < MORE else 1
        for change in range(changes):
            chosen, value, best = 0, values[i, 0], -np.inf
            for attempt in range(TRIES):
                at = 2 + 3 * (TRIES * change + attempt)
                j, there = some_change(domain, values, i, draws[i, at], draws[i, at + 1], draws[i, at + 2])
                if there == values[i, j] or j == before:
                    continue  # no change is always safe, and so is taking one back
                promise = 0.0
                if known:
                    above = outlook.high_slopes[i, j] * (there - values[i, j])
                    below = outlook.low_slopes[i, j] * (there - values[i, j])
                    room = min(outlook.high[i] + above, -outlook.low[i] - below)
                    promise = room - DOUBT * max(abs(above), abs(below))
                if promise > best:
                    chosen, value, best = j, there, promise
                if hasty:
                    break
            values[i, chosen] = value
            before = chosen


def margins(scores: NDArray[Any]) -> Floats:
    """Logits of scores, kept finite."""
    inside = np.clip(scores.astype(np.float64), 1e-7, 1 - 1e-7)
    return np.log(inside / (1.0 - inside))
