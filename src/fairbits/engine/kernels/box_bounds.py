"""The kernel of certificates: linear bounds of a ReLU network's margin over boxes of people, for every twin.

A box is a range of steps for every numeric attribute and a set of values (a bit mask) for every other one. For each
twin the margin is bounded from below and above by linear functions of the person, by back-substitution through every
layer (CROWN: Zhang, Weng, Chen, Hsieh, Daniel, "Efficient Neural Network Robustness Certification with General
Activation Functions", NeurIPS 2018), intersected with interval bounds. All twins share the first layer but for an
offset.

Neurons that are always on or always off in a box stay so in every part of it: their state is handed down, and only
the others are bounded again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.simd import compiled

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

#: What is known about a neuron in a box: always off, always on, or either.
OFF, EITHER, ON = -1, 0, 1
#: What is known about a box: something may be open in it; nobody flips; everybody flips.
OPEN, STEADY, FLIPPING = 0, 1, 2
#: Steps into which the range of a linear function over a box is cut to count people.
BINS = 128
#: Rounding may lift a counted sum by so much of the range of sums: one attribute's part is a product, a quotient and a
#: product again, three roundings of at most 2**-53 of that part, and all parts together make that range.
SUM_ROUNDING = 64 * 2.0**-53
#: Shares are sums of products of shares: of each, so much is given away, which is more than 2**-53 times the number of
#: roundings for 2,048 steps and 200 attributes.
SHARE_ROUNDING = 1e-10
#: Boxes of so few people are not bounded: everybody in them is asked.
FEW = 32
#: How much the slopes of the bounds count beside the looseness of unsettled neurons when an attribute is chosen.
SLOPES = 0.3


class Layers(NamedTuple):
    """A ReLU network with one output, its first layer seen from the attributes, in float64.

    Attributes
    ----------
    widths : (layers,) the widths of the hidden layers.
    bias : (h,) of the first layer, for step 0 of every numeric attribute.
    twins : (m, h) what each twin adds to it.
    reach : (2, h) the least and the most that any twin adds.
    steps : (h, inputs) what one step of a numeric attribute adds (the first ``numeric`` inputs), then what each value
        of the other attributes adds.
    numeric : how many numeric attributes there are.
    first_value : (lookups + 1,) where the values of each other attribute begin among the inputs.
    down : weights of the layers after the first, each (outputs, inputs), one after the other.
    positive, negative : the same, as (inputs, outputs), the positive and the negative ones apart.
    biases : biases of these layers.
    slack : how far rounding may move a bound of the margin.
    slacks : (layers,) and a bound of each hidden layer's pre-activations.
    """

    widths: Integers
    bias: Doubles
    twins: Doubles
    reach: Doubles
    steps: Doubles
    numeric: int
    first_value: Integers
    down: Doubles
    positive: Doubles
    negative: Doubles
    biases: Doubles
    slack: float
    slacks: Doubles


@compiled
def _lower(  # noqa: PLR0912 - one pass through the layers
    layers: Any, depth: int, row: Any, spare: Any, constant: float, low: Any, high: Any, centre: Any, first: Any,
    last: Any, masks: Any, slopes: Any, front: Any, blur: Any,
) -> Any:  # fmt: skip
    """Lower bound of row · (outputs of hidden layer ``depth``) + constant by a linear function of the person.

    ``slopes`` gets the function's slopes, ``front`` its factors at the first layer, where twins come in. Gives its
    least value over the box without any twin's part, and its constant.
    """
    widths = layers.widths
    here, there = row, spare
    begin, start, offset = 0, 0, 0
    for i in range(depth):
        begin += widths[i]
        start += widths[i + 1] * widths[i]
        offset += widths[i + 1]
    for level in range(depth, -1, -1):
        width = widths[level]
        for k in range(width):
            factor = here[k]
            if level == 0 and blur.shape[0]:
                floor, roof = low[begin + k], high[begin + k]
                if floor < 0.0 < roof:
                    blur[k] += abs(factor) * roof * -floor / (roof - floor) / (roof - floor)
            if factor == 0.0:
                continue
            floor, roof = low[begin + k], high[begin + k]
            if roof <= 0.0:
                here[k] = 0.0
            elif floor < 0.0:
                if factor < 0.0:
                    slope = roof / (roof - floor)
                    constant -= factor * slope * floor
                    here[k] = factor * slope
                elif centre[begin + k] <= 0.0:
                    here[k] = 0.0
        if level == 0:
            break
        before = widths[level - 1]
        begin -= before
        start -= width * before
        offset -= width
        for j in range(before):
            there[j] = 0.0
        for k in range(width):
            factor = here[k]
            if factor != 0.0:
                constant += factor * layers.biases[offset + k]
                base = start + k * before
                for j in range(before):
                    there[j] += factor * layers.down[base + j]
        here, there = there, here
    inputs = layers.steps.shape[1]
    for i in range(inputs):
        slopes[i] = 0.0
    for k in range(widths[0]):
        factor = here[k]
        front[k] = factor
        if factor != 0.0:
            constant += factor * layers.bias[k]
            for i in range(inputs):
                slopes[i] += factor * layers.steps[k, i]
    return constant + _least(layers, slopes, first, last, masks), constant


@compiled
def _least_twin(layers: Any, front: Any) -> Any:
    """The least that any twin adds to a linear function."""
    best = np.inf
    for z in range(layers.twins.shape[0]):
        total = 0.0
        for k in range(front.shape[0]):
            total += front[k] * layers.twins[z, k]
        best = min(best, total)
    return best


@compiled
def _least(layers: Any, slopes: Any, first: Any, last: Any, masks: Any) -> Any:
    """The least value of slopes · person over a box."""
    total = 0.0
    for i in range(layers.numeric):
        total += slopes[i] * (first[i] if slopes[i] >= 0.0 else last[i])
    for a in range(masks.shape[0]):
        start, stop = layers.first_value[a], layers.first_value[a + 1]
        best = np.inf
        for v in range(start, stop):
            if (masks[a] >> np.uint64(v - start)) & np.uint64(1):
                best = min(best, slopes[v])
        total += best
    return total


@compiled
def _bound_neurons(  # noqa: PLR0912 - one pass through the layers
    layers: Any,
    first: Any,
    last: Any,
    masks: Any,
    state: Any,
    low: Any,
    high: Any,
    centre: Any,
    rows: Any,
    slopes: Any,
    front: Any,
) -> None:
    """Bounds of every hidden neuron's pre-activation over a box and all twins, and the neurons' states."""
    widths = layers.widths
    for k in range(widths[0]):
        floor, roof = layers.bias[k] + layers.reach[0, k], layers.bias[k] + layers.reach[1, k]
        for i in range(layers.numeric):
            s = layers.steps[k, i]
            if s >= 0.0:
                floor += s * first[i]
                roof += s * last[i]
            else:
                floor += s * last[i]
                roof += s * first[i]
        for a in range(masks.shape[0]):
            start, stop = layers.first_value[a], layers.first_value[a + 1]
            least, most = np.inf, -np.inf
            for v in range(start, stop):
                if (masks[a] >> np.uint64(v - start)) & np.uint64(1):
                    least = min(least, layers.steps[k, v])
                    most = max(most, layers.steps[k, v])
            floor += least
            roof += most
        low[k], high[k] = floor - layers.slacks[0], roof + layers.slacks[0]
    none = np.empty(0)
    begin, start, offset = 0, 0, 0
    _settle(state, low, high, 0, widths[0])
    for level in range(1, widths.shape[0]):
        before, width = widths[level - 1], widths[level]
        after = begin + before
        for k in range(width):
            low[after + k] = layers.biases[offset + k] - layers.slacks[level]
            high[after + k] = layers.biases[offset + k] + layers.slacks[level]
        for j in range(before):
            above = high[begin + j]
            if above > 0.0:
                below = max(low[begin + j], 0.0)
                base = start + j * width
                for k in range(width):
                    p, n = layers.positive[base + k], layers.negative[base + k]
                    low[after + k] += p * below + n * above
                    high[after + k] += p * above + n * below
        for k in range(width):
            if low[after + k] < 0.0 < high[after + k] and state[after + k] == EITHER:
                base = start + k * before
                for sign in (1.0, -1.0):
                    for j in range(before):
                        rows[0, j] = sign * layers.down[base + j]
                    found, _ = _lower(
                        layers, level - 1, rows[0], rows[1], sign * layers.biases[offset + k], low, high, centre,
                        first, last, masks, slopes, front, none,
                    )  # fmt: skip
                    found += _least_twin(layers, front) - layers.slacks[level]
                    if sign > 0.0:
                        low[after + k] = max(low[after + k], found)
                        if found >= 0.0:
                            break
                    else:
                        high[after + k] = min(high[after + k], -found)
        _settle(state, low, high, after, width)
        begin = after
        start += width * before
        offset += width


@compiled
def _forward(layers: Any, first: Any, last: Any, masks: Any, centre: Any) -> None:
    """Pre-activations at the middle of a box: where a neuron is on there, its lower bound follows it, else it is 0.

    That choice costs one forward pass and certifies more than choosing by the neuron's bounds, which are lopsided in
    deep layers.
    """
    widths = layers.widths
    for k in range(widths[0]):
        total = layers.bias[k] + 0.5 * (layers.reach[0, k] + layers.reach[1, k])
        for i in range(layers.numeric):
            total += layers.steps[k, i] * 0.5 * (first[i] + last[i])
        for a in range(masks.shape[0]):
            start, stop = layers.first_value[a], layers.first_value[a + 1]
            some, count = 0.0, 0
            for v in range(start, stop):
                if (masks[a] >> np.uint64(v - start)) & np.uint64(1):
                    some += layers.steps[k, v]
                    count += 1
            total += some / count
        centre[k] = total
    begin, start, offset = 0, 0, 0
    for level in range(1, widths.shape[0]):
        before, width = widths[level - 1], widths[level]
        after = begin + before
        for k in range(width):
            centre[after + k] = layers.biases[offset + k]
        for j in range(before):
            value = centre[begin + j]
            if value > 0.0:
                base = start + j * width
                for k in range(width):
                    centre[after + k] += value * (layers.positive[base + k] + layers.negative[base + k])
        begin = after
        start += width * before
        offset += width


@compiled
def _settle(state: Any, low: Any, high: Any, begin: int, width: int) -> None:
    """Let neurons whose sign is known by now, or was known of a larger box, have bounds that say so."""
    for k in range(begin, begin + width):
        if state[k] == ON or low[k] >= 0.0:
            state[k] = ON
            low[k] = max(low[k], 0.0)
            high[k] = max(high[k], 0.0)
        elif state[k] == OFF or high[k] <= 0.0:
            state[k] = OFF
            high[k] = min(high[k], 0.0)
            low[k] = min(low[k], 0.0)


@compiled
def _sums(  # noqa: PLR0912, PLR0915 - numeric attributes, then the others
    layers: Any, slopes: Any, first: Any, last: Any, masks: Any, parts: Any, spare: Any
) -> Any:
    """Shares of a box's people by slopes · person, each attribute's part rounded down to whole steps.

    Gives (smallest sum, length of a step, number of attributes that were rounded, how far rounding may move a sum);
    ``parts`` gets the shares.
    """
    numeric, lookups = layers.numeric, masks.shape[0]
    smallest, span = 0.0, 0.0
    for i in range(numeric):
        smallest += min(slopes[i] * first[i], slopes[i] * last[i])
        span += abs(slopes[i]) * (last[i] - first[i])
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
        return smallest, 0.0, 0, 0.0
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
    return smallest, step, rounded, SUM_ROUNDING * span


@compiled
def _at_least(
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


@compiled
def bound_boxes(  # noqa: PLR0912, PLR0915 - the whole of one box, step by step
    layers: Any,
    cut: float,
    firsts: Any,
    lasts: Any,
    masks: Any,
    states: Any,
    status: Any,
    steady: Any,
    flipping: Any,
    split: Any,
    bins: int,
    lows: Any,
    highs: Any,
    gaps: Any,
) -> None:
    """Bound the margin of every twin over some boxes, and what follows about its side of ``cut``.

    Parameters
    ----------
    layers
        The network.
    cut
        A decision is favourable where the margin is at least this.
    firsts, lasts
        Steps of numeric attributes, (boxes, numeric).
    masks
        Sets of values, (boxes, lookups).
    states
        What is known about the neurons, (boxes, neurons), updated in place.
    status
        Gets OPEN, STEADY or FLIPPING, (boxes,).
    steady, flipping
        Get the shares of the box that certainly do not flip, and certainly do, (boxes,).
    split
        Gets the attribute to split next (numeric ones first), or −1, (boxes,).
    bins
        Steps into which sums are cut to count people; 0 leaves the counting out.
    lows, highs
        Get bounds of each twin's margin over ``cut``, (boxes, m); empty where they are not wanted.
    gaps
        Gets the largest difference of two twins' margins, (boxes,); empty where it is not wanted.
    """
    m = layers.twins.shape[0]
    neurons = 0
    widest = 1
    for width in layers.widths:
        neurons += width
        widest = max(widest, width)
    inputs = layers.steps.shape[1]
    low, high, centre = np.empty(neurons), np.empty(neurons), np.empty(neurons)
    rows = np.empty((2, widest))
    front = np.empty(layers.widths[0])
    blur = np.empty(layers.widths[0])
    below, above, between = np.empty(inputs), np.empty(inputs), np.empty(inputs)
    least, most = np.empty(m), np.empty(m)  # what each twin adds to the bound from below, and to that from above
    parts, spare = np.empty(bins), np.empty(bins)
    depth = layers.widths.shape[0] - 1
    final = layers.down.shape[0] - layers.widths[depth]
    bias = layers.biases[layers.biases.shape[0] - 1]
    person = np.empty(layers.numeric + masks.shape[1])
    for box in range(firsts.shape[0]):
        first, last, mask = firsts[box], lasts[box], masks[box]
        count = _count(first, last, mask)
        if count <= (1 if gaps.shape[0] else FEW):
            _ask(layers, cut, first, last, mask, person, rows, least, box, status, steady, flipping)
            split[box] = -1
            if gaps.shape[0]:
                for z in range(m):
                    lows[box, z], highs[box, z] = least[z] - layers.slack, least[z] + layers.slack
                gaps[box] = least.max() - least.min() + 2.0 * layers.slack
            continue
        _forward(layers, first, last, mask, centre)
        _bound_neurons(layers, first, last, mask, states[box], low, high, centre, rows, below, front)
        for k in range(layers.widths[0]):
            blur[k] = 0.0
        for k in range(layers.widths[depth]):
            rows[0, k] = layers.down[final + k]
        bottom, under = _lower(
            layers,
            depth,
            rows[0],
            rows[1],
            bias - cut - layers.slack,
            low,
            high,
            centre,
            first,
            last,
            mask,
            below,
            front,
            blur,
        )
        for z in range(m):
            least[z] = 0.0
            for k in range(front.shape[0]):
                least[z] += front[k] * layers.twins[z, k]
        for k in range(layers.widths[depth]):
            rows[0, k] = -layers.down[final + k]
        # The margin is bounded from above by what bounds its opposite from below.
        top, over = _lower(
            layers,
            depth,
            rows[0],
            rows[1],
            cut - bias - layers.slack,
            low,
            high,
            centre,
            first,
            last,
            mask,
            above,
            front,
            blur,
        )
        for z in range(m):
            most[z] = 0.0
            for k in range(front.shape[0]):
                most[z] += front[k] * layers.twins[z, k]
        split[box] = -1
        steady[box], flipping[box] = 0.0, 0.0
        if gaps.shape[0]:
            for z in range(m):
                lows[box, z], highs[box, z] = bottom + least[z], -(top + most[z])
            # Both bounds are linear in the same person: what they share of the person cancels out.
            for i in range(inputs):
                between[i] = below[i] + above[i]
            gaps[box] = max(
                0.0, -(under + over + _least(layers, between, first, last, mask)) - least.min() - most.min()
            )
            split[box] = _widest(layers, below, above, first, last, mask, blur)
        if bottom + least.min() > 0.0 or top + most.min() > 0.0:
            status[box], steady[box] = STEADY, 1.0
        elif bottom + least.max() > 0.0 and top + most.max() > 0.0:
            status[box], flipping[box] = FLIPPING, 1.0
        else:
            status[box] = OPEN
            split[box] = _widest(layers, below, above, first, last, mask, blur)
            if bins == 0:
                continue
            share = _at_least(layers, below, under + least.min(), first, last, mask, parts, spare)
            share += _at_least(layers, above, over + most.min(), first, last, mask, parts, spare)
            steady[box] = share * (1.0 - SHARE_ROUNDING)
            flipping[box] = (1.0 - SHARE_ROUNDING) * _flips(
                layers, below, under + least.max(), above, over + most.max(), first, last, mask, parts, spare
            )


@compiled
def _count(first: Any, last: Any, mask: Any) -> Any:
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


@compiled
def _ask(
    layers: Any, cut: float, first: Any, last: Any, mask: Any, person: Any, rows: Any, margins: Any, box: int,
    status: Any, steady: Any, flipping: Any,
) -> None:  # fmt: skip
    """Ask every twin of everybody in a small box. ``margins`` gets those of the last person."""
    numeric, m = layers.numeric, layers.twins.shape[0]
    for i in range(numeric):
        person[i] = first[i]
    for a in range(mask.shape[0]):
        person[numeric + a] = _next_value(mask[a], -1)
    people, calm, moved = 0.0, 0.0, 0.0
    going = True
    while going:
        small, large = np.inf, -np.inf
        for z in range(m):
            margins[z] = _margin(layers, person, z, rows) - cut
            small, large = min(small, margins[z]), max(large, margins[z])
        people += 1.0
        if small > layers.slack or large < -layers.slack:
            calm += 1.0
        elif small < -layers.slack and large > layers.slack:
            moved += 1.0
        going = False  # on to the next person, like the digits of a counter
        for i in range(numeric):
            if person[i] < last[i]:
                person[i] += 1.0
                going = True
                break
            person[i] = first[i]
        if not going:
            for a in range(mask.shape[0]):
                after = _next_value(mask[a], int(person[numeric + a]))
                if after >= 0:
                    person[numeric + a] = after
                    going = True
                    break
                person[numeric + a] = _next_value(mask[a], -1)
    steady[box], flipping[box] = calm / people, moved / people
    status[box] = STEADY if calm == people else FLIPPING if moved == people else OPEN


@compiled
def _next_value(bits: Any, after: int) -> Any:
    """The next member of a set, or -1."""
    for v in range(after + 1, 64):
        if (bits >> np.uint64(v)) & np.uint64(1):
            return v
    return -1


@compiled
def _margin(layers: Any, person: Any, z: int, rows: Any) -> Any:
    """The margin of one twin of one person, within the slack."""
    widths = layers.widths
    here, there = rows[0], rows[1]
    for k in range(widths[0]):
        total = layers.bias[k] + layers.twins[z, k]
        for i in range(layers.numeric):
            total += layers.steps[k, i] * person[i]
        for a in range(person.shape[0] - layers.numeric):
            total += layers.steps[k, layers.first_value[a] + int(person[layers.numeric + a])]
        here[k] = max(total, 0.0)
    start, offset = 0, 0
    for level in range(1, widths.shape[0]):
        before, width = widths[level - 1], widths[level]
        for k in range(width):
            total = layers.biases[offset + k]
            base = start + k * before
            for j in range(before):
                total += layers.down[base + j] * here[j]
            there[k] = max(total, 0.0)
        start += width * before
        offset += width
        here, there = there, here
    total = layers.biases[offset]
    for j in range(widths[widths.shape[0] - 1]):
        total += layers.down[start + j] * here[j]
    return total


@compiled
def _widest(layers: Any, below: Any, above: Any, first: Any, last: Any, mask: Any, blur: Any) -> Any:
    """The attribute over whose range the two bounds change most; numeric ones first; -1 where the box is one person."""
    best, chosen = -1.0, -1
    for i in range(layers.numeric):
        reach = last[i] - first[i]
        weight = SLOPES * (abs(below[i]) + abs(above[i])) * reach
        for k in range(blur.shape[0]):
            weight += blur[k] * abs(layers.steps[k, i]) * reach
        if reach >= 1.0 and weight > best:
            best, chosen = weight, i
    for a in range(mask.shape[0]):
        start, stop = layers.first_value[a], layers.first_value[a + 1]
        weight = 0.0
        values = 0
        for slopes in (below, above):
            small, large = np.inf, -np.inf
            values = 0
            for v in range(start, stop):
                if (mask[a] >> np.uint64(v - start)) & np.uint64(1):
                    small, large = min(small, slopes[v]), max(large, slopes[v])
                    values += 1
            weight += large - small
        if values > 1 and weight > best:
            best, chosen = weight, layers.numeric + a
    return chosen


@compiled
def _flips(
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
    gap = _least(layers, rest, first, last, mask)
    if under + over + 2.0 * gap <= 0.0:
        return 0.0
    smallest, step, rounded, rounding = _sums(layers, mean, first, last, mask, parts, spare)
    gap -= rounding
    total = 0.0
    for b in range(parts.shape[0]):
        value = smallest + step * b
        if value + under + gap > 0.0 and value + step * rounded - over - gap < 0.0:
            total += parts[b]
    return total
