"""Hidden neurons over a box: bounds by back-substitution through every layer, and what is known of their signs.

CROWN: Zhang, Weng, Chen, Hsieh, Daniel, "Efficient Neural Network Robustness Certification with General Activation
Functions", NeurIPS 2018; intersected with interval bounds. Neurons that are always on or always off in a box stay so
in every part of it: their state is handed down, and only the others are bounded again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairbits.engine.kernels.box_counts import least_value
from fairbits.engine.kernels.compiler import linked

#: What is known about a neuron in a box: always off, always on, or either.
OFF, EITHER, ON = -1, 0, 1


@linked
def lower(  # noqa: PLR0912 - one pass through the layers
    layers: Any, depth: int, row: Any, spare: Any, constant: float, low: Any, high: Any, centre: Any, first: Any,
    last: Any, masks: Any, slopes: Any, front: Any, blur: Any,
) -> Any:  # fmt: skip
    """Lower bound of row · (outputs of hidden layer ``depth``) + constant by a linear function of the person."""
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
    return constant + least_value(layers, slopes, first, last, masks), constant


@linked
def _least_twin(layers: Any, front: Any) -> Any:
    """The least that any twin adds to a linear function."""
    best = np.inf
    for z in range(layers.twins.shape[0]):
        total = 0.0
        for k in range(front.shape[0]):
            total += front[k] * layers.twins[z, k]
        best = min(best, total)
    return best


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
def forward(layers: Any, first: Any, last: Any, masks: Any, centre: Any) -> None:
    """Pre-activations at the middle of a box: where a neuron is on there, its lower bound follows it, else it is 0.

    That choice costs one forward pass and certifies more than choosing by the neuron's bounds, which are lopsided in
    deep layers.
    """
    widths = layers.widths
    for k in range(widths[0]):
        total = layers.bias[k] + 0.5 * (layers.reach[0, k] + layers.reach[1, k])
        for i in range(layers.numeric):
            total += layers.steps[k, i] * 0.5 * (first[i] + last[i] + layers.wide[i])
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


@linked
def bound_neurons(  # noqa: PLR0912 - one pass through the layers
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
            s, end = layers.steps[k, i], last[i] + layers.wide[i]
            if s >= 0.0:
                floor += s * first[i]
                roof += s * end
            else:
                floor += s * end
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
                    found, _ = lower(
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
