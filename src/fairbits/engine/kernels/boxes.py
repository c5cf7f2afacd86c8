"""The kernel of certificates: linear bounds of a network's margin over boxes of people, for every twin.

A box is a range of steps for every numeric attribute and a set of values (a bit mask) for every other one. For each
twin the margin is bounded from below and above by linear functions of the person, by back-substitution through every
layer (CROWN: Zhang, Weng, Chen, Hsieh, Daniel, "Efficient Neural Network Robustness Certification with General
Activation Functions", NeurIPS 2018), intersected with interval bounds. All twins share the first layer but for an
offset. Neurons that are always on or always off in a box stay so in every part of it: their state is handed down.

An activation is enclosed between two lines over a neuron's range, by one scheme for all: it is evaluated at a few
points, between which it strays from its chord by at most h² / 8 times its curvature; the lines are those of the convex
hull of these points that are nearest to the box's middle, moved outwards by so much. Of ReLU that is the triangle.

Of an open box, a part is certain all the same: the people with slopes · person + constant > 0 are counted by dynamic
programming over steps of the function's range, every contribution rounded down, so that no share is too large.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.compiler import compiled, linked
from fairbits.engine.kernels.lanes import trailing_zeros

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

#: The smallest number that float32 holds in full precision, and the largest sum that it holds with room to spare.
TINY, LARGEST = 2.0**-126, 1e37
#: What is known about a box: something may be open in it; nobody flips; everybody flips.
OPEN, STEADY, FLIPPING = 0, 1, 2
#: Activations, as neurons have them; the softplus is none of a model, but what adds up the classes of a softmax.
RELU, IDENTITY, LEAKY, TANH, SIGMOID, ELU, GELU, GELU_TANH, SOFTPLUS = range(9)
#: Points on each side of 0 at which an activation is evaluated, and where the last of them but the end lies at most.
POINTS, FAR = 8, 20.0
#: What libm and the lines' own roundings may be off by, of the largest number involved.
LINE_ROUNDING = 2.0**-46


@linked
def activated(kind: int, alpha: float, x: float) -> Any:  # noqa: PLR0911 - one for each
    """An activation, in float64."""
    if kind == RELU:
        return max(x, 0.0)
    if kind == IDENTITY:
        return x
    if kind == LEAKY:
        return x if x > 0.0 else alpha * x
    if kind == TANH:
        return math.tanh(x)
    if kind == SIGMOID:
        return 1.0 / (1.0 + math.exp(-x))
    if kind == ELU:
        return x if x > 0.0 else alpha * math.expm1(x)
    if kind == GELU:
        return 0.5 * x * math.erfc(-x / math.sqrt(2.0))
    if kind == GELU_TANH:
        return x / (1.0 + math.exp(-2.0 * math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@linked
def _ray(curve: Any, bent: bool, begin: float, end: float, side: float, at: Any, start: int) -> Any:
    """Points from ``begin`` to ``end``, of ``side``'s sign, rising, from place ``start`` on; gives the next place, and
    how far the activation is from the chords between them: its curvature is at most curve[1], and curve[2] e^-|x|.
    """
    cells = POINTS if bent else 1
    last = min(end, max(begin, FAR)) if bent else end
    count = cells + 1 + (1 if last < end else 0)
    dense = last > 4.0 and begin < 2.0  # near 0, where the bends are
    worst, before = 0.0, begin
    for j in range(count):
        t = min(j / cells, 1.0)
        x = end if j == count - 1 else begin + (last - begin) * (t * t if dense else t)
        at[start + (j if side > 0.0 else count - 1 - j)] = side * x
        if bent and j > 0:
            tail = curve[2] * math.exp(-before)
            worst = max(worst, min(min(curve[1], tail) * (x - before) * (x - before) / 8.0, 2.0 * tail))
        before = x
    return start + count, worst


@linked
def _points(curve: Any, kind: int, low: float, high: float, at: Any, values: Any) -> Any:
    """Evaluate an activation at points from ``low`` to ``high``, 0 among them; gives their number, and how far the
    activation is from the chords between them at most.
    """
    count, worst, bent = 0, 0.0, curve[1] > 0.0
    if low < 0.0:
        count, worst = _ray(curve, bent, max(-high, 0.0), -low, -1.0, at, np.int64(0))
    if high >= 0.0:
        # 0 comes once.
        begin = count - 1 if count else 0
        count, more = _ray(curve, bent and kind != ELU, max(low, 0.0), high, 1.0, at, begin)
        worst = max(worst, more)
    for j in range(count):
        values[j] = activated(kind, curve[0], at[j])
    return count, worst


@linked
def _hull_slope(at: Any, values: Any, count: int, sign: float, centre: float, chain: Any) -> Any:
    """The slope of the lower hull (of the upper one, where ``sign`` is -1) of points, where it passes ``centre``."""
    size = 0
    for j in range(count):
        while size >= 2:
            a, b = chain[size - 2], chain[size - 1]
            if sign * ((values[b] - values[a]) * (at[j] - at[b]) - (values[j] - values[b]) * (at[b] - at[a])) < 0.0:
                break
            size -= 1
        chain[size] = j
        size += 1
    for c in range(size - 1):
        a, b = chain[c], chain[c + 1]
        if (at[b] >= centre or c == size - 2) and at[b] > at[a]:
            return (values[b] - values[a]) / (at[b] - at[a])
    return 0.0


@linked
def _copy(values: Any, to: Any) -> None:
    """As a loop: for assignments of arrays Numba compiles how their shapes would be put into words."""
    for place in range(len(to)):
        to[place] = values[place]


@linked
def _put(lines: Any, k: int, *numbers: float) -> None:
    for place in range(len(numbers)):
        lines[place, k] = numbers[place]


@linked
def relax(layers: Any, begin: int, width: int, low: Any, high: Any, centre: Any, lines: Any, work: Any) -> None:
    """Enclose the activations of some neurons over their ranges: ``lines`` gets slope and intercept of a lower and an
    upper line, the least and the most that a neuron puts out, and how loose the lines are by width.
    """
    at, values, chain = work[0], work[1], work[2]
    for k in range(begin, begin + width):
        floor, roof, kind = low[k], high[k], layers.kinds[k]
        if kind == RELU:
            on, bent = floor >= 0.0, floor < 0.0 < roof
            slope = roof / (roof - floor) if bent else np.float64(on)
            under = np.float64(centre[k] > 0.0) if bent else np.float64(on)
            rest = -slope * floor if bent else 0.0
            loose = rest / (roof - floor) if bent else 0.0
            _put(lines, k, under, 0.0, slope, rest, max(floor, 0.0), max(roof, 0.0), loose)
            continue
        if kind == IDENTITY:
            _put(lines, k, 1.0, 0.0, 1.0, 0.0, floor, roof, 0.0)
            continue
        if not roof - floor < LARGEST:
            _put(lines, k, 0.0, -np.inf, 0.0, np.inf, -np.inf, np.inf, 0.0)
            continue
        roof = max(roof, floor)
        count, off = _points(layers.curves[k], kind, floor, roof, at, values)
        middle = min(max(centre[k], floor), roof)
        for side in range(2):
            sign = 1.0 if side == 0 else -1.0
            slope = _hull_slope(at, values, count, sign, middle, chain)
            rest, size, most = np.inf, 0.0, np.inf
            for j in range(count):
                rest = min(rest, sign * (values[j] - slope * at[j]))
                most = min(most, sign * values[j])
                size = max(size, abs(values[j]) + abs(slope * at[j]))
            spare = off + LINE_ROUNDING * (1.0 + size)
            lines[2 * side, k], lines[2 * side + 1, k] = slope, sign * (rest - spare)
            lines[4 + side, k] = sign * (most - spare)
        apart = (lines[2, k] - lines[0, k]) * middle + lines[3, k] - lines[1, k]
        lines[6, k] = apart / (roof - floor) if roof > floor else 0.0


@linked
def _count(bits: Any) -> Any:
    """How many members a set has that is written as a bit mask."""
    count = 0
    while bits:
        bits &= bits - np.uint64(1)
        count += 1
    return count


@linked
def _among(layers: Any, values: Any, a: int, bits: Any) -> Any:
    """Of a row of values, those of a set of one attribute's: the least, the most, the sum, and how many they are."""
    start = layers.first_value[a]
    least, most, total, count = np.inf, -np.inf, 0.0, 0
    for v in range(start, layers.first_value[a + 1]):
        if (bits >> np.uint64(v - start)) & np.uint64(1):
            least, most = min(least, values[v]), max(most, values[v])
            total += values[v]
            count += 1
    return least, most, total, count


@linked
def _outgoing(layers: Any, k: int, top: float, error: float) -> Any:
    """What a neuron puts out at most in size, whatever rounding does, and its error; ``top`` is the most of the
    pre-activation of a ReLU, of any other neuron the largest size of the output.

    A ReLU that is off whatever rounding does is exactly 0 in every library.
    """
    if layers.kinds[k] == RELU:
        return (0.0, 0.0) if top + error <= 0.0 else (max(top, 0.0) + error, error)
    curve = layers.curves[k]
    error = curve[3] * error + curve[4] * max(1.0, top)
    return top + error, error


@linked
def _error(layers: Any, tops: Any, errors: Any) -> Any:
    """How far the model's own margin can be from that of real arithmetic, whatever the library.

    ``errors[0]`` has the sizes of the first layer's sums, ``tops`` what `_outgoing` asks for. Sums of sizes are taken
    layer by layer, each times the relative error of a sum of so many terms (see `gamma`).
    """
    widths, begins, starts, gammas, drift, still, absolute = (
        layers.widths, layers.begins, layers.starts, layers.gammas, layers.drift, layers.still, layers.absolute
    )  # fmt: skip
    here, there, rate = errors[0], errors[1], gammas[0]
    for k in range(widths[0]):
        size = here[k]
        here[k] = rate * size + drift[k] + (TINY * (1.0 + size) if rate > 0.0 else 0.0)
        if not size < LARGEST:
            here[k] = np.inf
    for level in range(1, widths.shape[0]):
        before, width, rate = widths[level - 1], widths[level], gammas[level]
        begin, start, total = begins[level - 1], starts[level], 0.0
        for k in range(width):
            there[k] = rate * still[begin + before + k]
        for j in range(before):
            height, error = _outgoing(layers, begin + j, tops[begin + j], here[j])
            if height == 0.0:
                continue
            total += height
            base = start + j * width
            for k in range(width):
                there[k] += absolute[base + k] * (error + rate * height)
        if rate > 0.0:
            total = TINY * before * (1.0 + total)
            for k in range(width):
                there[k] += total
                if not there[k] < rate * LARGEST:  # a sum that float32 may not hold
                    there[k] = np.inf
        here, there = there, here
    return here[0] if here[0] < LARGEST else np.inf  # NaN too: then nothing is known


@linked
def _box_error(layers: Any, first: Any, last: Any, mask: Any, high: Any, lines: Any, errors: Any) -> Any:
    """The same for anybody in a box; ``high`` are upper bounds of all pre-activations over the box and all twins."""
    inputs, sizes, wide, kinds = layers.inputs, layers.sizes, layers.wide, layers.kinds
    tops = lines[6]  # no longer needed for what it held
    for k in range(high.shape[0]):
        tops[k] = high[k] if kinds[k] == RELU else max(abs(lines[4, k]), abs(lines[5, k]))
    for k in range(layers.widths[0]):
        size = layers.still[k]
        for i in range(layers.numeric):
            start, pace = inputs[i, 0], inputs[i, 1]
            least, most = start + pace * first[i], start + pace * (last[i] + wide[i])
            size += sizes[k, i] * max(abs(least), abs(most))
        for a in range(mask.shape[0]):
            size += _among(layers, sizes[k], a, mask[a])[1]
        errors[0, k] = size
    return _error(layers, tops, errors)


@linked
def _forward(layers: Any, values: Any, tops: Any) -> Any:
    """All pre-activations from those of the first layer; gives the margin. ``tops`` gets what `_outgoing` asks for."""
    widths, begins, starts, biases = layers.widths, layers.begins, layers.starts, layers.biases
    kinds, curves, positive, negative = layers.kinds, layers.curves, layers.positive, layers.negative
    for level in range(1, widths.shape[0]):
        begin, start = begins[level - 1], starts[level]
        width, after = widths[level], begins[level]
        for k in range(after, after + width):
            values[k] = biases[k]
        for j in range(begin, after):
            kind = kinds[j]
            value = activated(kinds[j], curves[j, 0], values[j])
            tops[j] = values[j] if kind == RELU else abs(value)
            if value != 0.0:
                base = start + (j - begin) * width
                for k in range(width):
                    values[after + k] += value * (positive[base + k] + negative[base + k])
    return values[-1]


@linked
def _margin(layers: Any, person: Any, z: int, values: Any, tops: Any, errors: Any) -> Any:
    """The margin of one twin of one person, and how far the model's own can be from it."""
    for k in range(layers.widths[0]):
        total, size = layers.biases[k] + layers.twins[z, k], layers.still[k]
        for i in range(layers.numeric):
            total += layers.steps[k, i] * person[i]
            size += layers.sizes[k, i] * abs(layers.inputs[i, 0] + layers.inputs[i, 1] * person[i])
        for a in range(person.shape[0] - layers.numeric):
            place = layers.first_value[a] + int(person[layers.numeric + a])
            total += layers.steps[k, place]
            size += layers.sizes[k, place]
        values[k], errors[0, k] = total, size
    margin = _forward(layers, values, tops)
    return margin, _error(layers, tops, errors) + layers.point_slack


@linked
def _verdict(layers: Any, cut: float, below: float, person: Any, work: Any, margins: Any) -> Any:
    """What is certain of one person, whatever the library; and the largest error. ``margins`` gets all twins'."""
    ups, downs, largest = 0, 0, 0.0
    m = layers.twins.shape[0]
    for z in range(m):
        margin, error = _margin(layers, person, z, *work)
        margins[z] = margin
        largest = max(largest, error)
        if margin - error >= cut:
            ups += 1
        elif margin + error < below:
            downs += 1
    if m in (ups, downs):
        return STEADY, largest
    return (FLIPPING if ups > 0 and downs > 0 else OPEN), largest


@linked
def ask_everybody(
    layers: Any, cut: float, below: float, first: Any, last: Any, mask: Any, person: Any, work: Any, margins: Any,
    box: int, status: Any, steady: Any, flipping: Any,
) -> Any:  # fmt: skip
    """Ask every twin of everybody in a small box; gives the largest error. ``margins`` are the last person's."""
    people = int(count_people(first, last, mask))
    calm = 0
    moved = 0
    largest = 0.0
    for number in range(people):  # a person's values are the digits of their number
        for i in range(layers.numeric):
            values = int(last[i] - first[i]) + 1
            person[i] = first[i] + number % values
            number //= values  # noqa: PLW2901 - the digits that are left
        for a in range(mask.shape[0]):
            values = _count(mask[a])
            bits = mask[a]
            for _ in range(number % values):
                bits &= bits - np.uint64(1)
            person[layers.numeric + a] = trailing_zeros(bits)
            number //= values  # noqa: PLW2901
        found, error = _verdict(layers, cut, below, person, work, margins)
        largest = max(largest, error)
        calm += found == STEADY
        moved += found == FLIPPING
    steady[box], flipping[box] = calm / people, moved / people
    status[box] = STEADY if calm == people else FLIPPING if moved == people else OPEN
    return largest


@linked
def _room(layers: Any) -> Any:
    """Room for pre-activations with the margin, for what `_outgoing` asks for, and for errors."""
    neurons = layers.kinds.shape[0]
    return np.empty(neurons + 1), np.empty(neurons), np.empty((2, layers.widths.max()))


@compiled
def ask_people(layers: Any, cut: float, below: float, people: Any, found: Any) -> None:
    """What is certain of each of some people: that they flip, that they do not, or neither."""
    work = _room(layers)
    margins = np.empty(layers.twins.shape[0])
    for i in range(people.shape[0]):
        found[i], _ = _verdict(layers, cut, below, people[i], work, margins)


#: Steps into which the range of a linear function over a box is cut to count people.
BINS = 128
#: Rounding may lift a counted sum by so much of the range of sums for each attribute: its part is a product, a quotient
#: and a product again, three roundings of at most 2**-53 of that part, and all parts together make that range.
SUM_ROUNDING = 64 * 2.0**-53
#: Shares are sums of products of shares: of each, so much is given away, which is more than 2**-53 times the number of
#: roundings for 2,048 steps and 200 attributes.
SHARE_ROUNDING = 1e-10


@linked
def least_value(layers: Any, slopes: Any, first: Any, last: Any, masks: Any) -> Any:
    """The least value of slopes · person over a box."""
    wide = layers.wide
    total = 0.0
    for i in range(layers.numeric):
        total += slopes[i] * (first[i] if slopes[i] >= 0.0 else last[i] + wide[i])
    for a in range(masks.shape[0]):
        total += _among(layers, slopes, a, masks[a])[0]
    return total


@linked
def count_people(first: Any, last: Any, mask: Any) -> Any:
    """How many people a box holds."""
    total = 1.0
    for i in range(first.shape[0]):
        total *= last[i] - first[i] + 1.0
    for a in range(mask.shape[0]):
        total *= _count(mask[a])
    return total


@linked
def shares_above(  # noqa: PLR0912, PLR0915 - numeric attributes, then the others
    layers: Any, slopes: Any, less: float, more: float, first: Any, last: Any, masks: Any, parts: Any, spare: Any
) -> Any:
    """Shares of the box, rounded down, for which slopes · person + constant > 0 holds for certain; of two constants.

    Sums are counted from the end of their range that is nearer to where they become positive, in steps of the way to
    there: every attribute's part is rounded down to whole steps from the least sum, or up from the largest; what lies
    beyond is certain, or is not. A part of a real attribute counts by its least value: the others lie above it.
    """
    numeric, lookups = layers.numeric, masks.shape[0]
    smallest, span = 0.0, 0.0
    for i in range(numeric):
        smallest += min(slopes[i] * first[i], slopes[i] * (last[i] + layers.wide[i]))
        span += abs(slopes[i]) * (last[i] - first[i])
    for a in range(lookups):
        least, most, _, _ = _among(layers, slopes, a, masks[a])
        smallest += least
        span += most - least
    rounding = SUM_ROUNDING * (1 + numeric + lookups) * span
    smallest, largest = smallest - rounding, smallest + span - rounding
    if smallest + less > 0.0:
        return 1.0, 1.0
    if not largest + more > 0.0:
        return 0.0, 0.0
    down = smallest + less < -0.5 * span  # counted from the largest sum down
    bins, shares, sums = parts.shape[0], spare[0], spare[1]
    step = max((largest + more if down else -(smallest + less)) / (bins - 1), TINY)
    parts[:] = 0.0
    parts[0] = 1.0
    top = 0  # the highest bin in use
    for i in range(numeric + lookups):
        shares[:], sums[:] = 0.0, 0.0
        if i < numeric:
            reach = last[i] - first[i]
            size = abs(slopes[i])
            if size * reach <= 0.0:
                continue
            value = 0.0
            if down:
                shares[0] = 1.0 / (reach + 1.0)
                value = 1.0
            while value <= reach:  # values that fall into the same step are taken together
                place = int(min(size * value / step, bins))
                if place + down >= bins:
                    break
                upto = np.floor((place + 1) * step / size)
                if size * upto / step >= place + 1:
                    upto -= 1.0
                upto = max(value, min(upto, reach))
                shares[place + down] += (upto - value + 1.0) / (reach + 1.0)
                value = upto + 1.0
        else:
            start = layers.first_value[i - numeric]
            least, most, _, count = _among(layers, slopes, i - numeric, masks[i - numeric])
            if not most > least:
                continue
            for v in range(start, layers.first_value[i - numeric + 1]):
                if (masks[i - numeric] >> np.uint64(v - start)) & np.uint64(1):
                    way = most - slopes[v] if down else slopes[v] - least
                    place = int(min(way / step, bins)) + (down and way > 0.0)
                    if place < bins:
                        shares[place] += 1.0 / count
        furthest = 0
        for place in range(bins):
            if shares[place] > 0.0:
                furthest = place
                for b in range(min(top, bins - 1 - place) + 1):
                    sums[b + place] += parts[b] * shares[place]
        top = min(top + furthest, bins - 1)
        _copy(sums, parts)
    few, many = 0.0, 0.0
    for b in range(bins):
        sum_ = largest - step * b if down else smallest + step * b
        if (sum_ + less > 0.0) == down:
            few += parts[b]
        if (sum_ + more > 0.0) == down:
            many += parts[b]
    if not down:
        few, many = 1.0 - few, 1.0 - many
    return few - SHARE_ROUNDING, many - SHARE_ROUNDING


#: What is known about a neuron in a box: always off, always on, or either.
OFF, EITHER, ON = -1, 0, 1


#: Linear functions that are taken back through the layers together: four vectors of AVX-512.
TOGETHER = 32


class Rows(NamedTuple):
    """Room for linear functions side by side, one in each column."""

    here: Doubles  # (neurons, columns) factors of one layer's outputs
    there: Doubles  # of the layer's before
    constants: Doubles  # (columns,)
    sure: Doubles  # (columns,) the best bound that is no function of the person
    ends: Doubles  # (columns,)
    slopes: Doubles  # (inputs, columns)
    added: Doubles  # (twins, columns)


@linked
def _silent(lines: Any, k: int) -> Any:
    """Whether a neuron puts out 0 whatever the person."""
    return lines[4, k] == 0.0 and lines[5, k] == 0.0


@linked
def lower(  # noqa: PLR0912 - layer by layer, then down to the person
    layers: Any, depth: int, count: int, rows: Any, lines: Any, under: Any, factors: Any
) -> None:
    """Bound functions of the outputs of hidden layer ``depth`` from below by linear functions of the person.

    ``rows.here`` holds their factors and ``rows.constants`` their constants; the bounds' slopes and constants, and what
    each twin adds, come out in ``rows``, and in ``rows.sure`` what follows from the least and the most that the neurons
    of some layer put out: of deep layers, often more than from linear functions. ``under`` are the slopes of lower
    lines; ``factors`` gets what the bounds make of every neuron's output, where there is room for it.
    """
    # Fields that are read in a loop would be counted as references there, which costs more than the sums.
    widths, here, there, constants, sure, ends = (
        layers.widths, rows.here, rows.there, rows.constants, rows.sure, rows.ends
    )  # fmt: skip
    begins, starts, biases, down, steps, twins = (
        layers.begins, layers.starts, layers.biases, layers.down, layers.steps, layers.twins
    )  # fmt: skip
    slopes, added = rows.slopes, rows.added
    columns = np.uint64(count)
    sure[:] = -np.inf
    for level in range(depth, -1, -1):
        width, begin, start = widths[level], begins[level], starts[level]
        before = widths[level - 1] if level else 0
        for r in range(columns):
            ends[r] = constants[r]
        for k in range(width):
            at, least, most = np.uint64(k), lines[4, begin + k], lines[5, begin + k]
            for r in range(columns):
                ends[r] += min(here[at, r] * least, here[at, r] * most)
        for r in range(columns):
            if ends[r] > sure[r]:  # noqa: PLR1730 - what is no number says nothing
                sure[r] = ends[r]
        for j in range(before):
            for r in range(columns):
                there[np.uint64(j), r] = 0.0
        for k in range(width):
            at, bias = np.uint64(k), biases[begin + k]
            if _silent(lines, begin + k):
                here[at] = 0.0
                continue  # factors of it count nowhere
            flat, floor, over, roof = (
                under[begin + k],
                lines[1, begin + k],
                lines[2, begin + k],
                lines[3, begin + k],
            )
            for r in range(factors.shape[0]):
                factors[r, begin + k] = here[at, r]
            for r in range(columns):
                factor = here[at, r]
                rest, slope = (floor, flat) if factor > 0.0 else (roof, over)
                slope *= factor
                constants[r] += (factor * rest if factor != 0.0 else 0.0) + slope * bias
                here[at, r] = slope
            base = start + k * before
            for j in range(before):
                if not _silent(lines, begins[level - 1] + j):
                    to, weight = np.uint64(j), down[np.uint64(base + j)]
                    for r in range(columns):
                        there[to, r] += weight * here[at, r]
        if level:
            here, there = there, here
    slopes[:], added[:] = 0.0, 0.0
    for k in range(widths[0]):
        at = np.uint64(k)
        if _silent(lines, k):
            continue
        for i in range(slopes.shape[0]):
            to, step = np.uint64(i), steps[k, i]
            for r in range(columns):
                slopes[to, r] += step * here[at, r]
        for z in range(added.shape[0]):
            to, step = np.uint64(z), twins[z, k]
            for r in range(columns):
                added[to, r] += step * here[at, r]


@linked
def steepen(  # noqa: PLR0912 - up from the person, layer by layer
    layers: Any, room: Any, twin: int, first: Any, last: Any, mask: Any, pace: float
) -> None:
    """Move the lower slopes of unsettled ReLUs so that a bound rises at the person for whom it is least."""
    widths, begins, starts, biases, steps = layers.widths, layers.begins, layers.starts, layers.biases, layers.steps
    positive, negative, wide, numeric = layers.positive, layers.negative, layers.wide, layers.numeric
    factors, under, lines, low, high, slopes, values = (
        room.factors[0], room.under, room.lines, room.low, room.high, room.slopes, room.values
    )  # fmt: skip
    for k in range(widths[0]):
        values[k] = biases[k] + layers.twins[twin, k]
    for i in range(numeric):
        x = first[i] if slopes[i] >= 0.0 else last[i] + wide[i]
        for k in range(widths[0]):
            values[k] += steps[k, i] * x
    for a in range(mask.shape[0]):
        place, least = 0, np.inf
        for v in range(layers.first_value[a], layers.first_value[a + 1]):
            if (mask[a] >> np.uint64(v - layers.first_value[a])) & np.uint64(1) and slopes[v] < least:
                place, least = v, slopes[v]
        for k in range(widths[0]):
            values[k] += steps[k, place]
    for level in range(widths.shape[0] - 1):
        begin, width, following = begins[level], widths[level], widths[level + 1]
        most = 0.0
        for k in range(begin, begin + width):
            if factors[k] > 0.0 and low[k] < 0.0 < high[k] and layers.kinds[k] == RELU:
                most = max(most, abs(factors[k] * values[k]))
        if level + 2 < widths.shape[0]:
            after = begins[level + 1]
            for k in range(after, after + following):
                values[k] = biases[k]
            for j in range(width):
                at = begin + j
                if _silent(lines, at):
                    continue
                over = factors[at] <= 0.0
                value = lines[2, at] * values[at] + lines[3, at] if over else under[at] * values[at] + lines[1, at]
                base = starts[level + 1] + j * following
                for k in range(following):
                    values[after + k] += value * (positive[base + k] + negative[base + k])
        if most > 0.0:
            for k in range(begin, begin + width):
                if factors[k] > 0.0 and low[k] < 0.0 < high[k] and layers.kinds[k] == RELU:
                    under[k] = min(max(under[k] + pace * factors[k] * values[k] / most, 0.0), 1.0)


@linked
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


@linked
def _to_middle(layers: Any, group: int, first: Any, last: Any, masks: Any, centre: Any, tops: Any) -> Any:
    """Pre-activations at the middle of a box and of a group of twins: where a neuron is on there, its lower bound
    follows it, else it is 0.

    That choice costs one forward pass and certifies more than choosing by the neuron's bounds, which are lopsided in
    deep layers. Gives the margin there.
    """
    biases, reach, steps, wide = layers.biases, layers.reach[group], layers.steps, layers.wide
    for k in range(layers.widths[0]):
        total = biases[k] + 0.5 * (reach[0, k] + reach[1, k])
        for i in range(layers.numeric):
            total += steps[k, i] * 0.5 * (first[i] + last[i] + wide[i])
        for a in range(masks.shape[0]):
            _, _, some, count = _among(layers, steps[k], a, masks[a])
            total += some / count
        centre[k] = total
    return _forward(layers, centre, tops)


@linked
def bound_neurons(  # noqa: PLR0912, PLR0915 - one pass through the layers
    layers: Any, group: int, first: Any, last: Any, masks: Any, state: Any, room: Any
) -> None:
    """Bounds of every hidden neuron's pre-activation over a box and a group of twins, their lines, neurons' states."""
    low, high, centre, lines, work, rows, slopes, tilts, sway = (
        room.low, room.high, room.centre, room.lines, room.work, room.rows, room.slopes, room.tilts, room.sway
    )  # fmt: skip
    members = layers.groups[group]
    widths, begins, starts, biases, down = layers.widths, layers.begins, layers.starts, layers.biases, layers.down
    steps, reach, wide, numeric, kinds = layers.steps, layers.reach[group], layers.wide, layers.numeric, layers.kinds
    positive, negative, curves, slacks = layers.positive, layers.negative, layers.curves, layers.slacks
    here, constants, sure, sums, added = rows.here, rows.constants, rows.sure, rows.slopes, rows.added
    for k in range(widths[0]):
        floor, roof = biases[k] + reach[0, k], biases[k] + reach[1, k]
        for i in range(numeric):
            s, end = steps[k, i], last[i] + wide[i]
            if s >= 0.0:
                floor += s * first[i]
                roof += s * end
            else:
                floor += s * end
                roof += s * first[i]
        for a in range(masks.shape[0]):
            least, most, _, _ = _among(layers, layers.steps[k], a, masks[a])
            floor += least
            roof += most
        low[k], high[k] = floor - slacks[0], roof + slacks[0]
        sway[k] = reach[1, k] - reach[0, k]
    none, chosen = np.empty((0, 0)), np.empty(TOGETHER // 2, np.int64)
    _settle(state, low, high, np.int64(0), widths[0])
    relax(layers, np.int64(0), widths[0], low, high, centre, lines, work)
    for level in range(1, widths.shape[0] - 1):
        before, width, start = widths[level - 1], widths[level], starts[level]
        begin, after = begins[level - 1], begins[level]
        for k in range(after, after + width):
            low[k], high[k] = biases[k] - slacks[level], biases[k] + slacks[level]
        for j in range(before):
            below, above = lines[4, begin + j], lines[5, begin + j]
            if below != 0.0 or above != 0.0:
                base = start + j * width
                for k in range(width):
                    p, n = positive[base + k], negative[base + k]
                    low[after + k] += p * below + n * above
                    high[after + k] += p * above + n * below
        count = 0
        for k in range(width):
            kind = kinds[after + k]
            open_sign = low[after + k] < 0.0 < high[after + k] and state[after + k] == EITHER
            if curves[after + k, 1] > 0.0 or (open_sign and kind != IDENTITY):
                tilts[after + k], sway[after + k] = 0.0, 0.0
                for side in range(2):
                    sign = 1.0 - 2.0 * side
                    constants[count + side] = sign * biases[after + k]
                    for j in range(before):
                        here[j, count + side] = sign * down[start + k * before + j]
                chosen[count // 2] = after + k
                count += 2
            if count == TOGETHER or (count and k == width - 1):
                lower(layers, level - 1, count, rows, lines, lines[0], none)
                for r in range(count):
                    at = chosen[r // 2]
                    for i in range(slopes.shape[0]):
                        slopes[i] = sums[i, r]
                        tilts[at, i] += 0.5 * abs(slopes[i])
                    found = constants[r] + least_value(layers, slopes, first, last, masks)
                    least, most = np.inf, -np.inf
                    for z in range(added.shape[0]):
                        if members[z]:
                            least, most = min(least, added[z, r]), max(most, added[z, r])
                    sway[at] += 0.5 * (most - least)
                    found = max(found + least, sure[r]) - slacks[level]
                    if r % 2:
                        high[at] = min(high[at], -found)
                    else:
                        low[at] = max(low[at], found)
                count = 0
        _settle(state, low, high, after, width)
        relax(layers, after, width, low, high, centre, lines, work)


#: Boxes of so few people are not bounded: everybody in them is asked.
FEW = 32
#: How much the slopes of the bounds count beside the looseness of unsettled neurons when an attribute is chosen.
SLOPES = 0.3
#: Slopes are moved so often where a bound settles so much of the way, at least.
STEPS, NEAR = 3, 0.3
#: Twins are bounded apart where they weigh so much more than any attribute.
APART = 1.0


class Layers(NamedTuple):
    """A network with one output, its first layer seen from the attributes, in float64.

    Bounds are those of real arithmetic, widened by ``slacks`` for float64's own rounding; by how much the model's
    float32 can differ from that is another matter (``margin_error``).
    """

    widths: Integers  # the margin's too
    begins: Integers  # by layer: its first neuron
    starts: Integers  # by layer: where its weights begin
    kinds: Integers  # by neuron: its activation
    curves: Doubles  # by neuron: alpha, largest curvature, that by e^-|x|, steepest slope, the library's own error
    twins: Doubles
    groups: Any  # which twins are bounded together: all of them, or in halves that are alike
    reach: Doubles  # by group: the least and the most that one of its twins adds to the first layer
    steps: Doubles
    numeric: int
    first_value: Integers
    down: Doubles
    positive: Doubles
    negative: Doubles
    absolute: Doubles  # sizes of weights, as the model itself adds them up
    biases: Doubles  # by neuron, and of the margin
    slacks: Doubles  # by layer
    wide: Doubles  # by number: 1 where a step stands for all reals up to the next, else 0
    inputs: Doubles  # by number: the first input, and the step between two
    sizes: Doubles  # as steps, of absolute weights (of numbers: of the input)
    still: Doubles  # sizes of what is the same for everybody (of the first layer, of the largest twin), as biases
    drift: Doubles  # by neuron: what values stray from even steps
    gammas: Doubles  # by layer: the relative error of the model's own sums
    point_slack: float  # for single people: 0 where all sums are exact


class Room(NamedTuple):
    """Room for what is found about one box, and for the way there."""

    centre: Doubles
    tops: Doubles
    errors: Doubles
    low: Doubles
    high: Doubles
    lines: Doubles
    work: Any
    rows: Rows
    slopes: Doubles
    tilts: Doubles  # by neuron: how much it changes with each input
    sway: Doubles  # by neuron: how much it changes between twins
    factors: Doubles  # by side and neuron: what the margin's bound makes of its output
    under: Doubles  # by neuron: the slope of its lower line
    values: Doubles
    added: Doubles
    pulls: Doubles  # by attribute, then of the twins: how much of the bounds' looseness comes with it


class Lines(NamedTuple):
    """Bounds of the margin by group of twins and side: from below, and of its opposite; linear in the person."""

    slopes: Doubles
    added: Doubles  # what each twin adds
    constants: Doubles
    floors: Doubles  # the least over the box, before what the twins add
    sures: Doubles  # what is known of everybody and every twin without a function of the person


@linked
def _bound_margin(layers: Any, cut: float, below: float, side: int, count: int, room: Any) -> None:
    """Linear bounds of the margin from below (side 0) and of its opposite (side 1), or of one, in ``room.rows``."""
    rows, depth, begin = room.rows, layers.widths.shape[0] - 2, layers.starts[layers.widths.shape[0] - 1]
    for r in range(count):
        sign = 1.0 - 2.0 * (side + r)
        rows.constants[r] = sign * (layers.biases[-1] - (below if side + r else cut)) - layers.slacks[-1]
        for k in range(layers.widths[depth]):
            rows.here[k, r] = sign * layers.down[begin + k]
    lower(layers, depth, count, rows, room.lines, room.under, room.factors[:count])


@linked
def _ends(added: Any, members: Any) -> Any:
    """The least and the most that a twin of a group adds."""
    least, most = np.inf, -np.inf
    for z in range(added.shape[0]):
        if members[z]:
            least, most = min(least, added[z]), max(most, added[z])
    return least, most


@linked
def bound_group(
    layers: Any, cut: float, below: float, group: int, first: Any, last: Any, mask: Any, state: Any, room: Any,
    bounds: Any, steps: int,
) -> Any:  # fmt: skip
    """Bound the margin of one group of twins over a box; gives how nearly that settles their side.

    The lower slopes of unsettled ReLUs follow the middle of the box, which is best for counting people; where that
    bound nearly settles the box, slopes are also moved to raise it where it is least (alpha-CROWN: Xu, Zhang, Wang,
    Wang, Jana, Lin, Hsieh, "Fast and Complete: Enabling Complete Neural Network Verification with Rapid and Massively
    Parallel Incomplete Verifiers", ICLR 2021).
    """
    slopes, added, constants, floors, sures = (
        bounds.slopes[group // 2], bounds.added[group // 2], bounds.constants[group // 2], bounds.floors[group // 2],
        bounds.sures[group // 2],
    )  # fmt: skip
    lines, rows, pulls, numeric, members = room.lines, room.rows, room.pulls, layers.numeric, layers.groups[group]
    margin = _to_middle(layers, group, first, last, mask, room.centre, room.tops) - cut
    bound_neurons(layers, group, first, last, mask, state, room)
    _copy(lines[0], room.under)
    _bound_margin(layers, cut, below, np.int64(0), np.int64(2), room)
    for k in range(lines.shape[1]):
        blur = (abs(room.factors[0, k]) + abs(room.factors[1, k])) * lines[6, k]
        if blur > 0.0:
            pulls[-1] += 2.0 * blur * room.sway[k]
            for i in range(numeric):
                pulls[i] += blur * room.tilts[k, i] * (last[i] - first[i] + 1.0)
    error = _box_error(layers, first, last, mask, room.high, lines, room.errors)
    for side in range(2):
        _copy(rows.slopes[:, side], slopes[side])
        _copy(rows.added[:, side], added[side])
        constants[side] = rows.constants[side] - error
        floors[side] = constants[side] + least_value(layers, slopes[side], first, last, mask)
        sures[side] = rows.sure[side] - error
        least, most = _ends(added[side], members)
        pulls[-1] += 2.0 * SLOPES * (most - least)
        for i in range(numeric):
            pulls[i] += SLOPES * abs(slopes[side, i]) * (last[i] - first[i] + 1.0)
        for a in range(mask.shape[0]):
            small, large, _, _ = _among(layers, slopes[side], a, mask[a])
            pulls[numeric + a] += large - small
    side = 0 if margin >= 0.0 else 1
    floor = max(floors[side] + _ends(added[side], members)[0], sures[side])
    near = min(abs(margin) / (abs(margin) - floor), 1.0) if floor < 0.0 else 1.0
    if floor >= 0.0 or near < NEAR:
        return near
    _copy(room.factors[side], room.factors[0])
    _copy(slopes[side], room.slopes)
    _copy(added[side], room.added)
    for step in range(steps):
        worst = np.int64(0)  # for a literal, functions would be compiled apart
        for z in range(members.shape[0]):
            if members[z] and (not members[worst] or room.added[z] < room.added[worst]):
                worst = np.int64(z)
        steepen(layers, room, worst, first, last, mask, 0.5 * 0.8**step)
        _bound_margin(layers, cut, below, side, np.int64(1), room)
        _copy(rows.slopes[:, 0], room.slopes)
        _copy(rows.added[:, 0], room.added)
        constant = rows.constants[0] - error
        lowest = constant + least_value(layers, room.slopes, first, last, mask)
        if lowest + _ends(room.added, members)[0] > 0.0:
            _copy(room.slopes, slopes[side])
            _copy(room.added, added[side])
            constants[side], floors[side] = constant, lowest
            break
    return near


@compiled
def bound_boxes(  # noqa: PLR0912, PLR0915 - the whole of one box, step by step
    layers: Any, cut: float, below: float, firsts: Any, lasts: Any, masks: Any, states: Any, status: Any, steady: Any,
    flipping: Any, split: Any, bins: int, lows: Any, highs: Any, gaps: Any, nearness: Any,
) -> None:  # fmt: skip
    """Bound the margin of every twin over some boxes, and what follows about decisions.

    From ``cut`` on a margin is favourable, under ``below`` it is not, and in between (rounding) it may be either.
    ``states`` are those of the neurons; the last one is ON where twins are bounded in two groups, because more of the
    bounds' looseness comes with them than with any attribute. ``nearness`` of an open box says how nearly its bound
    settles it: the margin of its middle, as a share of how far that margin is from the bound.
    """
    m, neurons, inputs = layers.twins.shape[0], layers.kinds.shape[0], layers.steps.shape[1]
    point = _room(layers)
    widest = layers.widths.max()
    rows = Rows(
        np.empty((widest, TOGETHER)), np.empty((widest, TOGETHER)), np.empty(TOGETHER), np.empty(TOGETHER),
        np.empty(TOGETHER), np.empty((inputs, TOGETHER)), np.empty((m, TOGETHER)),
    )  # fmt: skip
    work = np.empty((2, 2 * POINTS + 6))
    room = Room(
        point[0], point[1], point[2], np.empty(neurons), np.empty(neurons), np.empty((7, neurons)),
        (work[0], work[1], np.empty(2 * POINTS + 6, np.int64)), rows, np.empty(inputs), np.zeros((neurons, inputs)),
        np.zeros(neurons), np.zeros((2, neurons)), np.empty(neurons), np.empty(neurons), np.empty(m),
        np.empty(layers.numeric + masks.shape[1] + 1),
    )  # fmt: skip
    for k in range(layers.widths[0]):
        for i in range(inputs):
            room.tilts[k, i] = abs(layers.steps[k, i])
    # By group, row 0 bounds the margin from below, row 1 its opposite: the margin is at most what that leaves.
    bounds = Lines(np.empty((2, 2, inputs)), np.empty((2, 2, m)), np.empty((2, 2)), np.empty((2, 2)), np.empty((2, 2)))
    slopes, added, constants, floors, sures = bounds
    between, held = np.empty(inputs), np.empty((2, neurons), np.int8)
    parts, spare, shares, lowest = np.empty(bins), np.empty((2, bins)), np.empty((2, 2)), np.empty(2)
    person = np.empty(layers.numeric + masks.shape[1])
    countable = layers.wide.sum() == 0.0
    for box in range(firsts.shape[0]):
        first, last, mask, state = firsts[box], lasts[box], masks[box], states[box]
        if countable and count_people(first, last, mask) <= (1 if gaps.shape[0] else FEW):
            error = ask_everybody(
                layers, cut, below, first, last, mask, person, point, room.added, box, status, steady, flipping
            )
            split[box] = -1
            if gaps.shape[0]:
                for z in range(m):
                    lows[box, z], highs[box, z] = room.added[z] - cut - error, room.added[z] - cut + error
                gaps[box] = room.added.max() - room.added.min() + 2.0 * error
            continue
        groups, near = 2 if state[neurons] == ON else 1, 1.0
        room.pulls[:] = 0.0
        for g in range(groups):
            _copy(state, held[g])
            mine = bound_group(
                layers,
                cut,
                below,
                g + groups - 1,
                first,
                last,
                mask,
                held[g],
                room,
                bounds,
                0 if gaps.shape[0] else STEPS,
            )
            near = min(near, mine)
        for k in range(neurons):
            if held[0, k] == held[groups - 1, k]:
                state[k] = held[0, k]
        split[box] = -1
        steady[box], flipping[box] = 0.0, 0.0
        all_up, all_down, some_up, some_down = True, True, False, False
        for g in range(groups):
            members = layers.groups[g + groups - 1]
            least, most = _ends(added[g, 0], members)
            all_up = all_up and max(floors[g, 0] + least, sures[g, 0]) >= 0.0
            some_up = some_up or max(floors[g, 0] + most, sures[g, 0]) >= 0.0
            least, most = _ends(added[g, 1], members)
            all_down = all_down and max(floors[g, 1] + least, sures[g, 1]) > 0.0
            some_down = some_down or max(floors[g, 1] + most, sures[g, 1]) > 0.0
        if gaps.shape[0]:
            for z in range(m):
                lows[box, z], highs[box, z] = (
                    max(floors[0, 0] + added[0, 0, z], sures[0, 0]),
                    below - cut - max(floors[0, 1] + added[0, 1, z], sures[0, 1]),
                )
            # Both bounds are linear in the same person: what they share of the person cancels out.
            for i in range(inputs):
                between[i] = slopes[0, 0, i] + slopes[0, 1, i]
            apart = constants[0, 0] + constants[0, 1] + least_value(layers, between, first, last, mask)
            gaps[box] = max(0.0, below - cut - apart - added[0, 0].min() - added[0, 1].min())
            split[box] = _widest(layers, room.pulls, first, last, mask)
        if all_up or all_down:
            status[box], steady[box] = STEADY, 1.0
        elif some_up and some_down:
            status[box], flipping[box] = FLIPPING, 1.0
        else:
            status[box], nearness[box] = OPEN, near
            split[box] = _widest(layers, room.pulls, first, last, mask)
            if gaps.shape[0] == 0 and groups == 1 and m > 1 and room.pulls[-1] > room.pulls[:-1].max() * APART:
                state[neurons] = ON
            if bins == 0:
                continue
            for side in range(2):
                # Nobody is open but who is open in one of the groups of twins.
                every, fewest = 1.0, 1.0
                for g in range(groups):
                    least, most = _ends(added[g, side], layers.groups[g + groups - 1])
                    lowest[g], shares[g, side] = shares_above(
                        layers, slopes[g, side], constants[g, side] + least, constants[g, side] + most,
                        first, last, mask, parts, spare,
                    )  # fmt: skip
                    if sures[g, side] > 0.0:
                        lowest[g], shares[g, side] = 1.0, 1.0
                    every -= 1.0 - lowest[g]
                    fewest = min(fewest, lowest[g])
                if groups > 1 and fewest > 0.0:
                    # Or both groups are compared with one linear function between their bounds.
                    apart = np.inf
                    for i in range(inputs):
                        between[i] = (slopes[0, side, i] + slopes[1, side, i]) / 2.0
                    for g in range(groups):
                        for i in range(inputs):
                            room.slopes[i] = slopes[g, side, i] - between[i]
                        least, _ = _ends(added[g, side], layers.groups[g + 1])
                        rest = least_value(layers, room.slopes, first, last, mask)
                        apart = min(apart, constants[g, side] + least + rest)
                    both, _ = shares_above(layers, between, apart, apart, first, last, mask, parts, spare)
                    every = max(every, both)
                steady[box] += max(every, 0.0)
            for g in range(groups):
                other = groups - 1 - g
                flipping[box] = max(flipping[box], shares[g, 0] + shares[other, 1] - 1.0)


@linked
def _widest(layers: Any, pulls: Any, first: Any, last: Any, mask: Any) -> Any:
    """The attribute with the largest pull; numeric ones first; -1 where the box is one person."""
    best, chosen = -1.0, -1
    for i in range(layers.numeric):
        if last[i] > first[i] and pulls[i] > best:
            best, chosen = pulls[i], i
    for a in range(mask.shape[0]):
        if _count(mask[a]) > 1 and pulls[layers.numeric + a] > best:
            best, chosen = pulls[layers.numeric + a], layers.numeric + a
    return chosen
