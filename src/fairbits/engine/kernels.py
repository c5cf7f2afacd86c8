"""The fused kernel: from the codes of a few thousand people to their figures, a tile of people at a time.

Everything a tile needs (its first pre-activation, two layers' outputs, m scores a person) stays in the first
cache levels. A twin costs one addition per first-layer neuron, then the small layers; whatever m is,
the lanes are full, because people fill them and not twins.
"""

from __future__ import annotations

import numpy as np

from fairbits.engine.elementary import IDENTITY, LEAKY_RELU, RELU, activate, exp, is_smooth, sigmoid
from fairbits.engine.partition import sweep, to_bins
from fairbits.engine.simd import (
    PEOPLE,
    add,
    compiled,
    div,
    fma,
    if_greater,
    inlined,
    load,
    minimum,
    mul,
    splat,
    splat_at,
    store,
    sub,
    transpose,
)

ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)
INFINITY = np.float32(np.inf)


@inlined
def slope_below_zero(activation, alpha):  # type: ignore[no-untyped-def]
    """Identity, ReLU and leaky ReLU are one function that differs below zero only."""
    if activation == RELU:
        return ZERO
    return alpha if activation == LEAKY_RELU else ONE


@inlined
def bend(x, slope):  # type: ignore[no-untyped-def]
    """x above zero, slope * x below."""
    return if_greater(x, splat(ZERO), x, mul(x, slope))


@inlined
def dense(tile, source, target, weights, at, biases, bias_at, inputs, outputs, slope):  # type: ignore[no-untyped-def]
    """A layer, four outputs at a time: their accumulators stay in registers over the whole input loop."""
    below = splat(slope)
    output = 0
    while output + 4 <= outputs:
        a = splat_at(biases, bias_at + output)
        b = splat_at(biases, bias_at + output + 1)
        c = splat_at(biases, bias_at + output + 2)
        d = splat_at(biases, bias_at + output + 3)
        w = at + output
        for i in range(inputs):
            x = load(tile, source + i * PEOPLE)
            a = fma(x, splat_at(weights, w), a)
            b = fma(x, splat_at(weights, w + 1), b)
            c = fma(x, splat_at(weights, w + 2), c)
            d = fma(x, splat_at(weights, w + 3), d)
            w += outputs
        store(tile, target + output * PEOPLE, bend(a, below))
        store(tile, target + (output + 1) * PEOPLE, bend(b, below))
        store(tile, target + (output + 2) * PEOPLE, bend(c, below))
        store(tile, target + (output + 3) * PEOPLE, bend(d, below))
        output += 4
    while output < outputs:
        a = splat_at(biases, bias_at + output)
        b = splat(ZERO)
        w = at + output
        # Even and odd inputs apart: one chain of additions would leave the units waiting for each other.
        for i in range(0, inputs - 1, 2):
            a = fma(load(tile, source + i * PEOPLE), splat_at(weights, w), a)
            b = fma(load(tile, source + (i + 1) * PEOPLE), splat_at(weights, w + outputs), b)
            w += 2 * outputs
        if inputs % 2 == 1:
            a = fma(load(tile, source + (inputs - 1) * PEOPLE), splat_at(weights, w), a)
        store(tile, target + output * PEOPLE, bend(add(a, b), below))
        output += 1


@inlined
def read_numeric(program, codes, first, people, tile):  # type: ignore[no-untyped-def]
    """Put code - shift of the numeric attributes into the tile; says whether all of them are finite."""
    fine = True
    for person in range(PEOPLE):
        row = first + min(person, people - 1)
        for j in range(program.numeric_columns.size):
            value = codes[row, program.numeric_columns[j]] - program.numeric_shifts[j]
            fine = fine and value - value == 0.0
            tile[j * PEOPLE + person] = value
    return fine


@inlined
def read_lookups(program, codes, first, people, rows):  # type: ignore[no-untyped-def]
    """Find the rows of the merged tables; a code that has no row counts as the lowest, and is reported."""
    fine = True
    groups = program.table_starts.size
    for person in range(PEOPLE):
        row = first + min(person, people - 1)
        at = person * groups
        for group in range(groups):
            rows[at + group] = program.table_starts[group]
        for j in range(program.lookup_columns.size):
            value = codes[row, program.lookup_columns[j]] - program.lookup_lows[j]
            # Compared as floats first: NaN and huge numbers have no integer.
            inside = value >= 0.0 and value < program.lookup_sizes[j]
            index = np.int64(value) if inside else 0
            fine = fine and inside and value == index
            rows[at + program.lookup_groups[j]] += index * program.lookup_strides[j]
    return fine


@inlined
def add_lookups(program, rows, tile, base, block, h):  # type: ignore[no-untyped-def]
    """Add the table rows to the first pre-activation, 24 neurons at a time.

    A person's rows are summed with neurons in the lanes, and the square of 24 people is then turned over.
    """
    groups = program.table_starts.size
    stride = (h + PEOPLE - 1) // PEOPLE * PEOPLE
    for neuron in range(0, h, PEOPLE):
        for person in range(PEOPLE):
            total = load(program.tables, rows[person * groups] * stride + neuron)
            for group in range(1, groups):
                total = add(total, load(program.tables, rows[person * groups + group] * stride + neuron))
            store(tile, block + person * PEOPLE, total)
        transpose(tile, block)
        for j in range(neuron, min(neuron + PEOPLE, h)):
            at = base + j * PEOPLE
            store(tile, at, add(load(tile, at), load(tile, block + (j - neuron) * PEOPLE)))


@inlined
def forward(program, tile, base, near, far, twin):  # type: ignore[no-untyped-def]
    """Run one twin of the tile through the network; gives where in the tile the last layer's outputs are."""
    widths = program.widths
    h = widths[0]
    layers = widths.size - 1
    activation = program.activations[0] if layers > 0 else IDENTITY
    alpha = program.alphas[0] if layers > 0 else ZERO
    below = splat(slope_below_zero(activation, alpha))
    for j in range(h):
        x = add(load(tile, base + j * PEOPLE), splat_at(program.twins, twin * h + j))
        store(tile, near + j * PEOPLE, bend(x, below))
    if is_smooth(activation):
        activate(tile, near, h, activation, alpha)
    weight, bias = 0, 0
    for layer in range(layers):
        activation, alpha = IDENTITY, ZERO
        if layer + 1 < layers:
            activation, alpha = program.activations[layer + 1], program.alphas[layer + 1]
        inputs, outputs = widths[layer], widths[layer + 1]
        slope = slope_below_zero(activation, alpha)
        dense(tile, near, far, program.weights, weight, program.biases, bias, inputs, outputs, slope)
        if is_smooth(activation):
            activate(tile, far, outputs, activation, alpha)
        weight += inputs * outputs
        bias += outputs
        near, far = far, near
    return near


@inlined
def score_and_margin(tile, at, outputs, linear):  # type: ignore[no-untyped-def]
    """The score, and a number that is negative when the decision is not the favourable one."""
    first = load(tile, at)
    score = first
    margin = splat(-ONE)
    if not linear:
        if outputs == 1:
            score = sigmoid(first)
            margin = sub(score, splat(HALF))
        else:
            others = splat(ONE)
            margin = first
            for j in range(outputs):
                x = load(tile, at + j * PEOPLE)
                others = add(others, exp(sub(splat(ZERO), x)))
                margin = minimum(x, margin)
            score = div(splat(ONE), others)
    return score, margin


@inlined
def extremes(tile, scores, m, first, people, figures):  # type: ignore[no-untyped-def]
    """Write the lowest and highest score of each person, and the first twin that has it."""
    low, high = splat(INFINITY), splat(-INFINITY)
    low_twin, high_twin = splat(ZERO), splat(ZERO)
    for twin in range(m):
        score = load(tile, scores + twin * PEOPLE)
        number = splat(np.float32(twin))
        low_twin = if_greater(low, score, number, low_twin)
        high_twin = if_greater(score, high, number, high_twin)
        low = if_greater(low, score, score, low)
        high = if_greater(score, high, score, high)
    # The layers' buffers, which lie at the start of the tile, are free by now.
    store(tile, 0, low)
    store(tile, PEOPLE, high)
    store(tile, 2 * PEOPLE, low_twin)
    store(tile, 3 * PEOPLE, high_twin)
    for person in range(people):
        figures.low[first + person] = tile[person]
        figures.high[first + person] = tile[PEOPLE + person]
        figures.low_twin[first + person] = np.int32(tile[2 * PEOPLE + person])
        figures.high_twin[first + person] = np.int32(tile[3 * PEOPLE + person])


@compiled
def run_chunk(program, codes, start, ruler, figures, ready):  # type: ignore[no-untyped-def]
    """Evaluate the people of `codes`, whose figures go to row `start` on. Gives the first faulty row, or -1.

    `ready` takes the scores, if it has columns; `ruler.classes` says whether to count classes.
    """
    h, n = program.widths[0], codes.shape[0]
    m = program.twins.size // h
    widest, outputs = program.widths.max(), program.widths[-1]
    padded = (h + PEOPLE - 1) // PEOPLE * PEOPLE
    inputs = program.numeric_columns.size
    # Offsets into one buffer: two layers, the first pre-activation, a square to turn over, inputs, scores.
    near, far = 0, (widest + 4) * PEOPLE
    base = 2 * far
    block = base + padded * PEOPLE
    numeric = block + PEOPLE * PEOPLE
    scores = numeric + inputs * PEOPLE
    tile = np.zeros(scores + m * PEOPLE, np.float32)
    rows = np.zeros(max(1, PEOPLE * program.table_starts.size), np.int64)
    counts = np.zeros(2 * PEOPLE, np.float32)
    bits = np.zeros(PEOPLE, np.float64)
    for first in range(0, n, PEOPLE):
        people = min(PEOPLE, n - first)
        fine = read_numeric(program, codes, first, people, tile[numeric:])
        dense(tile, numeric, base, program.numeric_slopes, 0, program.bias, 0, inputs, h, ONE)
        if program.table_starts.size > 0:
            fine = read_lookups(program, codes, first, people, rows) and fine
            add_lookups(program, rows, tile, base, block, h)
        if not fine:
            return start + first
        favourable = splat(ZERO)
        for twin in range(m):
            at = forward(program, tile, base, near, far, twin)
            score, margin = score_and_margin(tile, at, outputs, program.linear)
            favourable = add(favourable, if_greater(splat(ZERO), margin, splat(ZERO), splat(ONE)))
            store(tile, scores + twin * PEOPLE, score)
        if ready.shape[1] > 0:
            for person in range(people):
                for twin in range(m):
                    ready[start + first + person, twin] = tile[scores + twin * PEOPLE + person]
        if ruler.classes:
            store(tile, 0, favourable)
            for person in range(people):
                figures.favourable[start + first + person] = np.int32(tile[person])
            extremes(tile, scores, m, start + first, people, figures)
            width = ruler.epsilon
            if ruler.grid:
                to_bins(tile, scores, m, width, ruler.last)
                width = HALF
            sweep(
                tile, scores, m, width, ruler.terms, counts, bits, figures.k, figures.q_1, start + first, people
            )
    return -1
