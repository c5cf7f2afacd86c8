"""The kernel behind `climb`: one or two changes for every member of a population.

For each change a member looks at a few and takes the one that its gradients like best: the twins with the lowest and
the highest score shall stay on either side of the decision, as far from it as possible. What gradients say about a long
way is worth little, so that what a change is expected to move counts against it. None of this asks the model anything.
Without gradients, changes are taken as they come.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.batches import spread
from fairbits.engine.foresight import Contributions, foresee
from fairbits.engine.simd import compiled, inlined

CHANGES = 2
"""How many changes a member makes at most."""

FEWEST, SOME, MOST = 4, 6, 9
"""Bounds of how many changes a member looks at for each that it makes: see `tries`."""

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
    """What is known about the members: logit margins of their extreme twins, and gradients at these, flat."""

    low: Floats
    high: Floats
    low_gradients: NDArray[np.float32]
    high_gradients: NDArray[np.float32]


NOTHING_KNOWN = Outlook(np.empty(0), np.empty(0), np.empty(0, np.float32), np.empty(0, np.float32))


def tries(attributes: int, twins: int) -> int:
    """How many changes to look at for each that is made.

    With few attributes the best of many would be the same one again and again. And with more than two twins there is
    k to climb, which is not what a change is chosen for.
    """
    return min(max(attributes // 2, FEWEST), MOST if twins == 2 else SOME)


def change_some(
    domain: Domain,
    values: Floats,
    contributions: Contributions,
    outlook: Outlook,
    rng: np.random.Generator,
    *,
    attempts: int,
    threads: int | None,
) -> Floats:
    """A copy of the members' free values (n, free) in which every member has a few changed.

    Each change is the best of so many ``attempts``.
    """
    draws = rng.random((len(values), 2 + 3 * attempts * CHANGES))
    changed = np.array(values, order="C")

    def run(start: int, stop: int) -> None:
        change_chunk(domain, contributions, outlook, draws, changed, start, stop)

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
def change_chunk(domain, contributions, outlook, draws, values, start, stop):
    """Change some values of each of the members from `start` to `stop`."""
    known = len(outlook.low) > 0
    low_gradients, high_gradients = outlook.low_gradients, outlook.high_gradients
    stride = len(low_gradients) // max(len(outlook.low), 1)
    foreseen = np.empty(4, np.float32)
    attempts = (draws.shape[1] - 2) // (3 * CHANGES)
    for i in range(start, stop):
        hasty = not known or draws[i, 0] < BOLD
        before = -1
        changes = CHANGES if hasty or draws[i, 1] < MORE else 1
        for change in range(changes):
            chosen, value, best = 0, values[i, 0], -np.inf
            for attempt in range(attempts):
                at = 2 + 3 * (attempts * change + attempt)
                j, there = some_change(domain, values, i, draws[i, at], draws[i, at + 1], draws[i, at + 2])
                if there == values[i, j] or j == before:
                    continue  # no change is always safe, and so is taking one back
                promise = 0.0
                if known:
                    foresee(contributions, low_gradients, high_gradients, i * stride, j, values[i, j], there, foreseen)
                    below, above = foreseen[0], foreseen[1]
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
