"""The fused kernel: from the codes of a few thousand people to their figures, a tile of people at a time.

Everything a tile needs (its first pre-activation, two layers' outputs, m scores a person) stays in the first
cache levels. A twin costs one addition per first-layer neuron, then the small layers; whatever m is,
the lanes are full, because people fill them and not twins.
"""

from __future__ import annotations

import numpy as np

from fairbits.engine.elementary import IDENTITY, activate, exp, sigmoid
from fairbits.engine.partition import sweep, to_bins
from fairbits.engine.simd import (
    PEOPLE,
    add,
    bend,
    compiled,
    div,
    fma,
    if_greater,
    inlined,
    load,
    minimum,
    splat,
    splat_at,
    store,
    sub,
    transpose,
)

ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)
INFINITY = np.float32(np.inf)


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
        to = target + output * PEOPLE
        store(tile, to, bend(a, below))
        store(tile, to + PEOPLE, bend(b, below))
        store(tile, to + 2 * PEOPLE, bend(c, below))
        store(tile, to + 3 * PEOPLE, bend(d, below))
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
            value = np.float32(codes[row, program.numeric_columns[j]] - program.numeric_shifts[j])
            fine = fine & (value - value == ZERO)
            tile[program.numeric + j * PEOPLE + person] = value
    return fine


@inlined
def read_lookups(program, codes, first, people, rows):  # type: ignore[no-untyped-def]
    """Find the rows of the merged tables; a code that has no row counts as the lowest, and is reported."""
    fine = True
    groups = program.table_starts.size
    for person in range(PEOPLE):
        row = first + min(person, people - 1)
        for group in range(groups):
            place = program.table_starts[group]
            for j in range(program.table_members[group], program.table_members[group + 1]):
                value = codes[row, program.lookup_columns[j]] - program.lookup_lows[j]
                # Compared as a float first: NaN and huge numbers have no integer.
                inside = (value >= 0.0) & (value < program.lookup_sizes[j])
                index = np.int64(value) if inside else np.int64(0)
                fine = fine & inside & (value == np.float64(index))
                place += index * program.lookup_strides[j]
            rows[person * groups + group] = place
    return fine


@inlined
def add_lookups(program, rows, tile, h):  # type: ignore[no-untyped-def]
    """Add the table rows to the first pre-activation, 24 neurons at a time.

    A person's rows are summed with neurons in the lanes, and the square of 24 people is then turned over.
    """
    groups = program.table_starts.size
    stride = (h + PEOPLE - 1) // PEOPLE * PEOPLE
    for neuron in range(0, h, PEOPLE):
        for person in range(PEOPLE):
            total = splat(ZERO)
            for group in range(groups):
                total = add(total, load(program.tables, rows[person * groups + group] * stride + neuron))
            store(tile, program.square + person * PEOPLE, total)
        transpose(tile, program.square)
        for j in range(neuron, min(neuron + PEOPLE, h)):
            at = program.base + j * PEOPLE
            store(tile, at, add(load(tile, at), load(tile, program.square + (j - neuron) * PEOPLE)))


@inlined
def score_twins(program, tile, m):  # type: ignore[no-untyped-def]
    """Run every twin of the tile's people through the network; gives how many get the favourable decision."""
    widths, h, layers = program.widths, program.widths[0], program.widths.size - 1
    favourable = splat(ZERO)
    for twin in range(m):
        near, far, weight, bias = program.near, program.far, np.int64(0), np.int64(0)
        below = splat(program.slopes[0])
        for j in range(h):
            x = add(load(tile, program.base + j * PEOPLE), splat_at(program.twins, twin * h + j))
            store(tile, near + j * PEOPLE, bend(x, below))
        for layer in range(layers + 1):
            if layer > 0:
                inputs, outputs, slope = widths[layer - 1], widths[layer], program.slopes[layer]
                dense(tile, near, far, program.weights, weight, program.biases, bias, inputs, outputs, slope)
                weight += inputs * outputs
                bias += outputs
                near, far = far, near
            if program.curves[layer] != IDENTITY:
                activate(tile, near, widths[layer], program.curves[layer], program.alphas[layer])
        # A sigmoid head has one margin; a softmax has one against each of the other classes.
        score = load(tile, near)
        margin = splat(-ONE)
        if not program.linear:
            if widths[layers] == 1:
                score = sigmoid(score)
                margin = sub(score, splat(HALF))
            else:
                margin = score
                odds = splat(ONE)
                for j in range(widths[layers]):
                    x = load(tile, near + j * PEOPLE)
                    odds = add(odds, exp(sub(splat(ZERO), x)))
                    margin = minimum(x, margin)
                score = div(splat(ONE), odds)
        favourable = add(favourable, if_greater(splat(ZERO), margin, splat(ZERO), splat(ONE)))
        store(tile, program.scores + twin * PEOPLE, score)
    return favourable


@inlined
def extremes(tile, scores, m, favourable, first, people, figures):  # type: ignore[no-untyped-def]
    """Write the lowest and highest score of each person, the first twin that has it, and the decisions."""
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
    store(tile, 4 * PEOPLE, favourable)
    for person in range(people):
        figures.low[first + person] = tile[person]
        figures.high[first + person] = tile[PEOPLE + person]
        figures.low_twin[first + person] = np.int32(tile[2 * PEOPLE + person])
        figures.high_twin[first + person] = np.int32(tile[3 * PEOPLE + person])
        figures.favourable[first + person] = np.int32(tile[4 * PEOPLE + person])


@compiled
def run_chunk(program, scratch, codes, start, ruler, figures, ready):  # type: ignore[no-untyped-def]
    """Evaluate the people of `codes`, whose figures go to row `start` on. Gives the first faulty row, or -1.

    `ready` takes the scores, if it has columns; `ruler.classes` says whether to count classes.
    """
    tile, rows = scratch.tile, scratch.rows
    n, h = codes.shape[0], program.widths[0]
    m = program.twins.size // h
    zero = np.int64(0)
    for first in range(0, n, PEOPLE):
        people = min(PEOPLE, n - first)
        fine = read_numeric(program, codes, first, people, tile)
        inputs = program.numeric_columns.size
        dense(tile, program.numeric, program.base, program.numeric_slopes, zero, program.bias, zero, inputs, h, ONE)
        if program.table_starts.size > 0:
            fine = fine & read_lookups(program, codes, first, people, rows)
            add_lookups(program, rows, tile, h)
        if not fine:
            return start + first
        favourable = score_twins(program, tile, m)
        if ready.shape[1] > 0:
            for person in range(people):
                for twin in range(m):
                    ready[start + first + person, twin] = tile[program.scores + twin * PEOPLE + person]
        if ruler.classes:
            extremes(tile, program.scores, m, favourable, start + first, people, figures)
            width = ruler.epsilon
            if ruler.grid:
                to_bins(tile, program.scores, m, width, ruler.last)
                width = HALF
            sweep(tile, program.scores, m, width, ruler.terms, scratch, figures, start + first, people)
    return -1
