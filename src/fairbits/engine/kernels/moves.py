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

from fairbits.engine.gradient import Contributions, TwinForecast, forecast_change
from fairbits.engine.kernels.compiler import compiled, inlined
from fairbits.engine.seen import GOLDEN, mixed
from fairbits.engine.threads import spread

#: How many changes a member makes at most.
CHANGES = 2

#: Bounds of how many changes a member looks at for each that it makes: see `tries`.
FEWEST, SOME, MOST = 4, 6, 9

#: Chance of a member not to look, and of a value to be drawn anew rather than moved a little.
BOLD, ANEW = 0.02, 0.1

#: How much of what a change is expected to move counts against it.
DOUBT = 1.0

#: A small move is n strides long with probability 0.4 · 0.6^(n−1).
SHORTNESS = 0.4

#: The length that belongs to a number between 0 and 1, at equal steps: a logarithm would cost more than all else.
LENGTHS = 1.0 + np.floor(np.log1p(-(np.arange(4096) + 0.5) / 4096) / np.log1p(-SHORTNESS))

_WORK = 20_000  # about as long as so many multiply-adds of the engine

Floats = NDArray[np.float64]


class Domain(NamedTuple):
    """The free attributes, as the kernel takes them; one entry each."""

    columns: NDArray[np.int64]
    low: Floats
    high: Floats
    stride: Floats
    discrete: NDArray[np.bool_]


class Forecast(NamedTuple):
    """What is known about the members: logit margins of their extreme twins, and what changes do to these."""

    low: Floats
    high: Floats
    below: TwinForecast
    above: TwinForecast


NOTHING_KNOWN = Forecast(np.empty(0), np.empty(0), *2 * [TwinForecast(*2 * [np.empty((0, 0), np.float32)])])


def tries(attributes: int, twins: int) -> int:
    """How many changes to look at for each that is made.

    With few attributes the best of many would be the same one again and again. And with more than two twins there is
    k to climb, which is not what a change is chosen for.
    """
    return min(max(attributes // 2, FEWEST), MOST if twins == 2 else SOME)


def more(attributes: int) -> float:
    """Probability of a second change at once: with few attributes, single changes soon lead to people met before."""
    return min(max(4.0 / attributes, 0.2), 0.8)


def change_some(
    domain: Domain,
    people: Floats,
    contributions: Contributions,
    forecast: Forecast,
    rng: np.random.Generator,
    *,
    twins: int,
    threads: int | None,
) -> Floats:
    """Copies of the members, (n, attributes), each with a few of its free values changed."""
    free = len(domain.columns)
    habits = tries(free, twins), more(free)
    key = rng.integers(0, 2**64, dtype=np.uint64)
    changed = np.array(people, order="C")

    def run(start: int, stop: int) -> None:
        change_chunk(domain, contributions, forecast, habits, key, changed, start, stop)

    spread(run, len(people), _WORK, threads)
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
    """A value a few strides away, on the other side at a bound."""
    length = sign * stride * LENGTHS[min(int(draw * len(LENGTHS)), len(LENGTHS) - 1)]
    there = here + length
    if there < low or there > high:
        there = here - length
    return min(max(there, low), high)


@inlined
def some_change(domain, person, draw):
    """A free attribute, its value, and another for it, all from one random number.

    The digits that one choice leaves of the number make the next one.
    """
    free = len(domain.columns)
    which = draw * free
    j = min(int(which), free - 1)
    kind, here = which - j, person[domain.columns[j]]
    if kind < ANEW:
        return j, here, another(domain.low[j], domain.high[j], domain.discrete[j], here, kind * (1.0 / ANEW))
    way = (kind - ANEW) * (2.0 / (1.0 - ANEW))
    down = np.float64(way >= 1.0)  # no branch: nobody could foretell it
    return j, here, near(domain.low[j], domain.high[j], domain.stride[j], here, way - down, 1.0 - 2.0 * down)


@inlined
def drawn(key, place):
    """A random number from 0 to below 1 for every position, so that threads need not take turns."""
    return np.float64(mixed(key + np.uint64(place) * GOLDEN) >> np.uint64(11)) * 2.0**-53


@compiled
def change_chunk(domain, contributions, forecast, habits, key, people, start, stop):
    """Change some values of each of the members of a range."""
    known, (attempts, second) = len(forecast.low) > 0, habits
    low_inner, high_inner = forecast.below.inner.ravel(), forecast.above.inner.ravel()
    sums = forecast.below.inner.shape[1]
    foreseen = np.empty(4, np.float32)
    for i in range(start, stop):
        place = i * (2 + attempts * CHANGES)
        hasty = not known or drawn(key, place) < BOLD
        low, high = (forecast.low[i], forecast.high[i]) if known else (0.0, 0.0)
        agreed = known and (low >= 0.0 or high < 0.0)
        changes = CHANGES if hasty or agreed or drawn(key, place + 1) < second else 1
        before = -1
        for change in range(changes):
            chosen, value, best = 0, people[i, domain.columns[0]], -np.inf
            fall, rise = np.float32(0), np.float32(0)
            for attempt in range(attempts):
                draw = drawn(key, place + 2 + attempts * change + attempt)
                j, here, there = some_change(domain, people[i], draw)
                if there == here or j == before:
                    continue  # no change is always safe, and so is taking one back
                promise, below, above = 0.0, np.float32(0), np.float32(0)
                if known:
                    if contributions.tabled[j]:
                        forecast_change(contributions, low_inner, high_inner, i * sums, j, here, there, foreseen)
                        below, above = foreseen[0], foreseen[1]
                    else:
                        way = np.float32(there - here)
                        below, above = forecast.below.slopes[i, j] * way, forecast.above.slopes[i, j] * way
                    promise = min(high + above, -low - below) - DOUBT * max(abs(above), abs(below))
                if promise > best:
                    chosen, value, best = j, there, promise
                    fall, rise = below, above
                if hasty:
                    break
            people[i, domain.columns[chosen]] = value
            low, high = low + fall, high + rise
            before = chosen


def margins(scores: NDArray[Any]) -> Floats:
    """Logits of scores, kept finite."""
    inside = np.clip(scores.astype(np.float64), 1e-7, 1 - 1e-7)
    return np.log(inside / (1.0 - inside))
