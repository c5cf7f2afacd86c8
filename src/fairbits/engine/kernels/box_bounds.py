"""The kernel of certificates: linear bounds of a ReLU network's margin over boxes of people, for every twin.

A box is a range of steps for every numeric attribute and a set of values (a bit mask) for every other one. For each
twin the margin is bounded from below and above by linear functions of the person, by back-substitution through every
layer (CROWN: Zhang, Weng, Chen, Hsieh, Daniel, "Efficient Neural Network Robustness Certification with General
Activation Functions", NeurIPS 2018), intersected with interval bounds. All twins share the first layer but for an
offset.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.box_counts import SHARE_ROUNDING, count_people, least_value, share_above, share_flipping
from fairbits.engine.kernels.box_neurons import bound_neurons, forward, lower
from fairbits.engine.kernels.box_people import FLIPPING, OPEN, STEADY, ask_everybody, margin_error
from fairbits.engine.kernels.compiler import compiled, linked

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Boxes of so few people are not bounded: everybody in them is asked.
FEW = 32
#: How much the slopes of the bounds count beside the looseness of unsettled neurons when an attribute is chosen.
SLOPES = 0.3


class Layers(NamedTuple):
    """A ReLU network with one output, its first layer seen from the attributes, in float64.

    Bounds are those of real arithmetic, widened by ``slacks`` for float64's own rounding; by how much the model's
    float32 can differ from that is another matter (``margin_error``).
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
    wide: Doubles  # by number: 1 where a step stands for all reals up to the next, else 0
    inputs: Doubles  # by number: the first input, and the step between two
    sizes: Doubles  # as steps, of absolute weights (of numbers: of the input)
    still: Doubles  # sizes of what is the same for everybody, and of the largest twin
    drift: Doubles  # by neuron: what values stray from even steps
    gammas: Doubles  # by layer, the last one too: the relative error of the model's own sums
    final: Doubles  # sizes of the last layer's weights
    final_bias: float
    point_slack: float  # for single people: 0 where all sums are exact


@compiled
def bound_boxes(  # noqa: PLR0912, PLR0915 - the whole of one box, step by step
    layers: Any,
    cut: float,
    below: float,
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
    """Bound the margin of every twin over some boxes, and what follows about decisions.

    From ``cut`` on a margin is favourable, under ``below`` it is not, and in between (rounding) it may be either.
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
    front, blur = np.empty(layers.widths[0]), np.empty(layers.widths[0])
    slopes, between = np.empty((2, inputs)), np.empty(inputs)
    # Row 0 bounds the margin from below, row 1 its opposite: the margin is at most what that leaves.
    added = np.empty((2, m))  # what each twin adds to the bound
    floors, constants = np.empty(2), np.empty(2)
    parts, spare = np.empty(bins), np.empty(bins)
    person = np.empty(layers.numeric + masks.shape[1])
    errors = np.empty((2, widest))
    countable = layers.wide.sum() == 0.0
    for box in range(firsts.shape[0]):
        first, last, mask = firsts[box], lasts[box], masks[box]
        if countable and count_people(first, last, mask) <= (1 if gaps.shape[0] else FEW):
            error = ask_everybody(
                layers, cut, below, first, last, mask, person, rows, errors, added[0], box, status, steady, flipping
            )
            split[box] = -1
            if gaps.shape[0]:
                for z in range(m):
                    lows[box, z], highs[box, z] = added[0, z] - cut - error, added[0, z] - cut + error
                gaps[box] = added[0].max() - added[0].min() + 2.0 * error
            continue
        forward(layers, first, last, mask, centre)
        bound_neurons(layers, first, last, mask, states[box], low, high, centre, rows, slopes[0], front)
        blur[:] = 0.0
        error = margin_error(layers, first, last, mask, high, errors)
        for side in range(2):
            floors[side], constants[side] = _side(
                layers, side, cut if side == 0 else below, error, low, high, centre, first, last, mask, rows,
                slopes[side], front, blur, added[side],
            )  # fmt: skip
        lowest_below, lowest_above = added[0].min(), added[1].min()
        split[box] = -1
        steady[box], flipping[box] = 0.0, 0.0
        if gaps.shape[0]:
            for z in range(m):
                lows[box, z], highs[box, z] = floors[0] + added[0, z], below - cut - (floors[1] + added[1, z])
            # Both bounds are linear in the same person: what they share of the person cancels out.
            for i in range(inputs):
                between[i] = slopes[0, i] + slopes[1, i]
            apart = constants[0] + constants[1] + least_value(layers, between, first, last, mask)
            gaps[box] = max(0.0, below - cut - apart - lowest_below - lowest_above)
            split[box] = _widest(layers, slopes[0], slopes[1], first, last, mask, blur)
        if floors[0] + lowest_below >= 0.0 or floors[1] + lowest_above > 0.0:
            status[box], steady[box] = STEADY, 1.0
        elif floors[0] + added[0].max() >= 0.0 and floors[1] + added[1].max() > 0.0:
            status[box], flipping[box] = FLIPPING, 1.0
        else:
            status[box] = OPEN
            split[box] = _widest(layers, slopes[0], slopes[1], first, last, mask, blur)
            if bins == 0:
                continue
            calm = 0.0
            for side in range(2):
                calm += share_above(
                    layers, slopes[side], constants[side] + added[side].min(), first, last, mask, parts, spare
                )
            steady[box] = calm * (1.0 - SHARE_ROUNDING)
            flipping[box] = (1.0 - SHARE_ROUNDING) * share_flipping(
                layers, slopes[0], constants[0] + added[0].max(), slopes[1], constants[1] + added[1].max(),
                first, last, mask, parts, spare,
            )  # fmt: skip


@linked
def _side(
    layers: Any, side: int, cut: float, error: float, low: Any, high: Any, centre: Any, first: Any, last: Any,
    mask: Any, rows: Any, slopes: Any, front: Any, blur: Any, added: Any,
) -> Any:  # fmt: skip
    """Bound the margin over the cut (side 0), or its opposite (side 1), from below by a linear function.

    ``slopes`` gets the slopes, ``added`` what each twin adds. Gives the least value over the box without any twin's
    part, and the constant.
    """
    depth = layers.widths.shape[0] - 1
    final = layers.down.shape[0] - layers.widths[depth]
    sign = 1.0 if side == 0 else -1.0
    constant = sign * (layers.biases[layers.biases.shape[0] - 1] - cut) - layers.slack - error
    for k in range(layers.widths[depth]):
        rows[0, k] = sign * layers.down[final + k]
    floor, constant = lower(
        layers, depth, rows[0], rows[1], constant, low, high, centre, first, last, mask, slopes, front, blur
    )
    for z in range(added.shape[0]):
        added[z] = 0.0
        for k in range(front.shape[0]):
            added[z] += front[k] * layers.twins[z, k]
    return floor, constant


@linked
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
