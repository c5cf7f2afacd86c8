"""People of a box, one by one: the margins of all their twins, and how far any library's float32 can be from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairbits.engine.kernels.compiler import compiled, linked

#: The smallest number that float32 holds in full precision, and the largest sum that it holds with room to spare.
TINY, LARGEST = 2.0**-126, 1e37
#: What is known about a box: something may be open in it; nobody flips; everybody flips.
OPEN, STEADY, FLIPPING = 0, 1, 2


@linked
def next_value(bits: Any, after: int) -> Any:
    """The next member of a set that is written as a bit mask, or −1."""
    for v in range(after + 1, 64):
        if (bits >> np.uint64(v)) & np.uint64(1):
            return v
    return -1


@linked
def _passed(layers: Any, level: int, start: int, offset: int, heights: Any, errors: Any, spare: Any) -> None:
    """Carry errors of hidden layer ``level - 1`` to the next one: ``heights`` are the most that its neurons put out.

    A neuron that is off whatever rounding does is exactly 0 in every library.
    """
    before, width = layers.widths[level - 1], layers.widths[level]
    rate = layers.gammas[level]
    total = 0.0
    for k in range(width):
        spare[k] = rate * abs(layers.biases[offset + k])
    for j in range(before):
        error = errors[j]
        if heights[j] + error <= 0.0:
            continue
        height = max(heights[j], 0.0) + error
        total += height
        base = start + j * width
        for k in range(width):
            size = layers.positive[base + k] - layers.negative[base + k]
            spare[k] += size * (error + rate * height)
    if rate > 0.0:
        total = TINY * before * (1.0 + total)
        for k in range(width):
            spare[k] += total
            if not spare[k] < rate * LARGEST:  # a sum that float32 may not hold
                spare[k] = np.inf


@linked
def _last_error(layers: Any, heights: Any, errors: Any) -> Any:
    """The error of the margin, from those of the last hidden layer."""
    last = layers.widths.shape[0] - 1
    rate = layers.gammas[last + 1]
    total, size, heap = 0.0, layers.final_bias, 0.0
    for j in range(layers.widths[last]):
        error = errors[j]
        if heights[j] + error <= 0.0:
            continue
        height = max(heights[j], 0.0) + error
        heap += height
        total += layers.final[j] * error
        size += layers.final[j] * height
    if rate > 0.0:
        # Twice: the logits, and their difference.
        total += 2.0 * rate * size + TINY * layers.widths[last] * (1.0 + heap)
    return total if size < LARGEST and total < LARGEST else np.inf  # NaN too: then nothing is known


@linked
def margin_error(layers: Any, first: Any, last: Any, mask: Any, high: Any, errors: Any) -> Any:
    """How far the model's own margin can be from that of real arithmetic for anybody in a box, whatever the library.

    ``high`` are upper bounds of all pre-activations over the box and all twins. Sums of sizes are taken layer by layer,
    each times the relative error of a sum of so many terms (see `rounding`).
    """
    widths = layers.widths
    here, there = errors[0], errors[1]
    rate = layers.gammas[0]
    for k in range(widths[0]):
        size = layers.still[k]
        for i in range(layers.numeric):
            start, pace = layers.inputs[i, 0], layers.inputs[i, 1]
            least, most = start + pace * first[i], start + pace * (last[i] + layers.wide[i])
            size += layers.sizes[k, i] * max(abs(least), abs(most))
        for a in range(mask.shape[0]):
            begin, end = layers.first_value[a], layers.first_value[a + 1]
            most = 0.0
            for v in range(begin, end):
                if (mask[a] >> np.uint64(v - begin)) & np.uint64(1):
                    most = max(most, layers.sizes[k, v])
            size += most
        here[k] = rate * size + layers.drift[k] + (TINY * (1.0 + size) if rate > 0.0 else 0.0)
        if not size < LARGEST:
            here[k] = np.inf
    begin, start, offset = 0, 0, 0
    for level in range(1, widths.shape[0]):
        _passed(layers, level, start, offset, high[begin : begin + widths[level - 1]], here, there)
        begin += widths[level - 1]
        start += widths[level] * widths[level - 1]
        offset += widths[level]
        here, there = there, here
    return _last_error(layers, high[begin : begin + widths[widths.shape[0] - 1]], here)


@linked
def _margin(layers: Any, person: Any, z: int, rows: Any, errors: Any) -> Any:
    """The margin of one twin of one person, and how far the model's own can be from it."""
    widths = layers.widths
    here, there = rows[0], rows[1]
    off, spare = errors[0], errors[1]
    rate = layers.gammas[0]
    for k in range(widths[0]):
        total, size = layers.bias[k] + layers.twins[z, k], layers.still[k]
        for i in range(layers.numeric):
            total += layers.steps[k, i] * person[i]
            size += layers.sizes[k, i] * abs(layers.inputs[i, 0] + layers.inputs[i, 1] * person[i])
        for a in range(person.shape[0] - layers.numeric):
            place = layers.first_value[a] + int(person[layers.numeric + a])
            total += layers.steps[k, place]
            size += layers.sizes[k, place]
        here[k] = total
        off[k] = rate * size + layers.drift[k] + (TINY * (1.0 + size) if rate > 0.0 else 0.0)
        if not size < LARGEST:
            off[k] = np.inf
    start, offset = 0, 0
    for level in range(1, widths.shape[0]):
        before, width = widths[level - 1], widths[level]
        _passed(layers, level, start, offset, here[:before], off, spare)
        off, spare = spare, off
        for k in range(width):
            total = layers.biases[offset + k]
            base = start + k * before
            for j in range(before):
                total += layers.down[base + j] * max(here[j], 0.0)
            there[k] = total
        start += width * before
        offset += width
        here, there = there, here
    width = widths[widths.shape[0] - 1]
    total = layers.biases[offset]
    for j in range(width):
        total += layers.down[start + j] * max(here[j], 0.0)
    return total, _last_error(layers, here[:width], off) + layers.point_slack


@linked
def _verdict(layers: Any, cut: float, below: float, person: Any, rows: Any, errors: Any, margins: Any) -> Any:
    """What is certain of one person, whatever the library; and the largest error. ``margins`` gets all twins'."""
    ups, downs, largest = 0, 0, 0.0
    m = layers.twins.shape[0]
    for z in range(m):
        margin, error = _margin(layers, person, z, rows, errors)
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
    layers: Any, cut: float, below: float, first: Any, last: Any, mask: Any, person: Any, rows: Any, errors: Any,
    margins: Any, box: int, status: Any, steady: Any, flipping: Any,
) -> Any:  # fmt: skip
    """Ask every twin of everybody in a small box; gives the largest error. ``margins`` are the last person's."""
    numeric = layers.numeric
    for i in range(numeric):
        person[i] = first[i]
    for a in range(mask.shape[0]):
        person[numeric + a] = next_value(mask[a], -1)
    people, calm, moved, largest = 0.0, 0.0, 0.0, 0.0
    going = True
    while going:
        found, error = _verdict(layers, cut, below, person, rows, errors, margins)
        largest = max(largest, error)
        people += 1.0
        if found == STEADY:
            calm += 1.0
        elif found == FLIPPING:
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
                after = next_value(mask[a], int(person[numeric + a]))
                if after >= 0:
                    person[numeric + a] = after
                    going = True
                    break
                person[numeric + a] = next_value(mask[a], -1)
    steady[box], flipping[box] = calm / people, moved / people
    status[box] = STEADY if calm == people else FLIPPING if moved == people else OPEN
    return largest


@compiled
def ask_people(layers: Any, cut: float, below: float, people: Any, found: Any) -> None:
    """What is certain of each of some people: that they flip, that they do not, or neither."""
    widest = 1
    for width in layers.widths:
        widest = max(widest, width)
    rows, errors, margins = np.empty((2, widest)), np.empty((2, widest)), np.empty(layers.twins.shape[0])
    for i in range(people.shape[0]):
        found[i], _ = _verdict(layers, cut, below, people[i], rows, errors, margins)
