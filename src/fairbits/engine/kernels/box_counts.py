"""Counts of people in a box by the value of a linear function: the part of an open box that is certain all the same.

The number of people with slopes · person + constant > 0 is a knapsack count. It is done by dynamic programming over
steps of the function's range, every contribution rounded down, so that the share found is never too large.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairbits.engine.kernels.compiler import linked

#: Steps into which the range of a linear function over a box is cut to count people.
BINS = 128
#: Rounding may lift a counted sum by so much of the range of sums: one attribute's part is a product, a quotient and a
#: product again, three roundings of at most 2**-53 of that part, and all parts together make that range.
SUM_ROUNDING = 64 * 2.0**-53
#: Shares are sums of products of shares: of each, so much is given away, which is more than 2**-53 times the number of
#: roundings for 2,048 steps and 200 attributes.
SHARE_ROUNDING = 1e-10


@linked
def least_value(layers: Any, slopes: Any, first: Any, last: Any, masks: Any) -> Any:
    """The least value of slopes · person over a box."""
    total = 0.0
    for i in range(layers.numeric):
        total += slopes[i] * (first[i] if slopes[i] >= 0.0 else last[i] + layers.wide[i])
    for a in range(masks.shape[0]):
        start, stop = layers.first_value[a], layers.first_value[a + 1]
        best = np.inf
        for v in range(start, stop):
            if (masks[a] >> np.uint64(v - start)) & np.uint64(1):
                best = min(best, slopes[v])
        total += best
    return total


@linked
def count_people(first: Any, last: Any, mask: Any) -> Any:
    """How many people a box holds."""
    total = 1.0
    for i in range(first.shape[0]):
        total *= last[i] - first[i] + 1.0
    for a in range(mask.shape[0]):
        values, bits = 0.0, mask[a]
        while bits:
            bits &= bits - np.uint64(1)
            values += 1.0
        total *= values
    return total


@linked
def _sums(  # noqa: PLR0912, PLR0915 - numeric attributes, then the others
    layers: Any, slopes: Any, first: Any, last: Any, masks: Any, parts: Any, spare: Any
) -> Any:
    """Shares of a box's people by slopes · person, each attribute's part rounded down to whole steps.

    Gives (smallest sum, length of a step, how far sums may lie above what is counted, how far rounding may move a sum);
    ``parts`` gets the shares. A part of a real attribute counts by its least value: the others lie above it.
    """
    numeric, lookups = layers.numeric, masks.shape[0]
    smallest, span, above = 0.0, 0.0, 0.0
    for i in range(numeric):
        smallest += min(slopes[i] * first[i], slopes[i] * (last[i] + layers.wide[i]))
        span += abs(slopes[i]) * (last[i] - first[i])
        above += abs(slopes[i]) * layers.wide[i]
    for a in range(lookups):
        start, stop = layers.first_value[a], layers.first_value[a + 1]
        least, most = np.inf, -np.inf
        for v in range(start, stop):
            if (masks[a] >> np.uint64(v - start)) & np.uint64(1):
                least = min(least, slopes[v])
                most = max(most, slopes[v])
        smallest += least
        span += most - least
    bins = parts.shape[0]
    for b in range(bins):
        parts[b] = 0.0
    parts[0] = 1.0
    if span <= 0.0:
        return smallest, 0.0, above, SUM_ROUNDING * above
    step = span / (bins - 1)
    top, rounded = 0, 0  # the highest bin in use
    for i in range(numeric + lookups):
        for b in range(bins):
            spare[b] = 0.0
        if i < numeric:
            reach = last[i] - first[i]
            size = abs(slopes[i])
            if size * reach <= 0.0:
                continue
            count = reach + 1.0
            # Values that fall into the same step are taken together.
            value = 0.0
            furthest = 0
            while value <= reach:
                place = int(size * value / step)
                place = min(place, bins - 1)
                upto = np.floor((place + 1) * step / size)
                if size * upto / step >= place + 1:
                    upto -= 1.0
                upto = max(value, min(upto, reach))
                share = (upto - value + 1.0) / count
                furthest = place
                for b in range(min(top, bins - 1 - place) + 1):
                    spare[b + place] += parts[b] * share
                value = upto + 1.0
            top = min(top + furthest, bins - 1)
        else:
            a = i - numeric
            start, stop = layers.first_value[a], layers.first_value[a + 1]
            least = np.inf
            count = 0.0
            for v in range(start, stop):
                if (masks[a] >> np.uint64(v - start)) & np.uint64(1):
                    least = min(least, slopes[v])
                    count += 1.0
            if count == 1.0:
                continue
            furthest = 0
            for v in range(start, stop):
                if (masks[a] >> np.uint64(v - start)) & np.uint64(1):
                    place = min(int((slopes[v] - least) / step), bins - 1)
                    furthest = max(furthest, place)
                    for b in range(min(top, bins - 1 - place) + 1):
                        spare[b + place] += parts[b] / count
            top = min(top + furthest, bins - 1)
        rounded += 1
        for b in range(bins):
            parts[b] = spare[b]
    return smallest, step, above + step * rounded, SUM_ROUNDING * (span + above)


@linked
def share_above(
    layers: Any, slopes: Any, constant: float, first: Any, last: Any, masks: Any, parts: Any, spare: Any
) -> Any:
    """A share of the box, rounded down, for which slopes · person + constant > 0 holds for certain."""
    smallest, step, _, rounding = _sums(layers, slopes, first, last, masks, parts, spare)
    base = smallest + constant - rounding
    total = 0.0
    for b in range(parts.shape[0]):
        if base + step * b > 0.0:
            total += parts[b]
    return total


@linked
def share_flipping(
    layers: Any,
    below: Any,
    under: float,
    above: Any,
    over: float,
    first: Any,
    last: Any,
    mask: Any,
    parts: Any,
    spare: Any,
) -> Any:
    """A share of the box, rounded down, whose people certainly flip: one twin above the cut, another below.

    One twin's margin is at least below · x + under, another's at most −above · x − over; both are compared with one
    linear function between the two, so that a single count of its values settles it.
    """
    inputs = below.shape[0]
    mean, rest = np.empty(inputs), np.empty(inputs)
    for i in range(inputs):
        mean[i] = 0.5 * (below[i] - above[i])
        rest[i] = 0.5 * (below[i] + above[i])
    gap = least_value(layers, rest, first, last, mask)
    if under + over + 2.0 * gap <= 0.0:
        return 0.0
    smallest, step, above_count, rounding = _sums(layers, mean, first, last, mask, parts, spare)
    gap -= rounding
    total = 0.0
    for b in range(parts.shape[0]):
        value = smallest + step * b
        if value + under + gap > 0.0 and value + above_count - over - gap < 0.0:
            total += parts[b]
    return total
