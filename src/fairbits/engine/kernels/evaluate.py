"""The fused kernel: from the codes of a few thousand people to their figures, a tile of people at a time.

Everything a tile needs (its first pre-activation, two layers' outputs, m scores a person) stays in the first
cache levels. A twin costs one addition per first-layer neuron, then the small layers; whatever m is,
the lanes are full, because people fill them and not twins.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np

from fairbits.engine.kernels.compiler import compiled, inlined
from fairbits.engine.kernels.lanes import (
    IDENTITY,
    PEOPLE,
    activate,
    add,
    clip_index,
    distance,
    div,
    exp,
    fma,
    gather,
    if_greater,
    leaky,
    load,
    lowest,
    minimum,
    prefetch,
    rectified,
    sigmoid,
    splat,
    splat_at,
    stirs,
    store,
    sub,
    transpose,
)
from fairbits.engine.kernels.partition import sweep, to_bins

ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)
INFINITY = np.float32(np.inf)
TINY = np.float32(1e-30)
LINE = 8  # float64 numbers in a cache line


@inlined
def survey(tile, live, source, inputs):
    """List the inputs of a layer that are not zero for everybody in the tile; gives how many there are."""
    count = 0
    for i in range(inputs):
        live[np.uint64(count)] = i
        count += stirs(load(tile, source + i * PEOPLE))
    return count


@inlined
def dense(tile, live, source, target, weights, at, biases, bias_at, inputs, outputs, slope):
    """A layer, four outputs at a time: their accumulators stay in registers over the whole input loop.

    Inputs that are zero for the whole tile, as many of a trained network's are, change no bit and are passed over.
    """
    below = splat(slope)
    count = survey(tile, live, source, inputs)
    output = 0
    while output + 4 <= outputs:
        a = splat_at(biases, bias_at + output)
        b = splat_at(biases, bias_at + output + 1)
        c = splat_at(biases, bias_at + output + 2)
        d = splat_at(biases, bias_at + output + 3)
        for place in range(count):
            i = live[np.uint64(place)]
            x = load(tile, source + i * PEOPLE)
            w = at + i * outputs + output
            a = fma(x, splat_at(weights, w), a)
            b = fma(x, splat_at(weights, w + 1), b)
            c = fma(x, splat_at(weights, w + 2), c)
            d = fma(x, splat_at(weights, w + 3), d)
        to = target + output * PEOPLE
        if slope == ZERO:
            a, b, c, d = rectified(a), rectified(b), rectified(c), rectified(d)
        else:
            a, b, c, d = leaky(a, below), leaky(b, below), leaky(c, below), leaky(d, below)
        store(tile, to, a)
        store(tile, to + PEOPLE, b)
        store(tile, to + 2 * PEOPLE, c)
        store(tile, to + 3 * PEOPLE, d)
        output += 4
    while output < outputs:
        a, b = splat_at(biases, bias_at + output), splat(ZERO)
        # Even and odd inputs apart: one chain of additions would leave the units waiting for each other.
        for place in range(count):
            i = live[np.uint64(place)]
            x = load(tile, source + i * PEOPLE)
            weight = splat_at(weights, at + i * outputs + output)
            if i & 1:
                b = fma(x, weight, b)
            else:
                a = fma(x, weight, a)
        store(tile, target + output * PEOPLE, leaky(add(a, b), below))
        output += 1


@inlined
def harmless(trouble):
    """Whether every person's sum of deviations is zero: neither above it nor NaN."""
    return lowest(if_greater(splat(TINY), trouble, splat(ZERO), splat(-ONE))) == ZERO


@inlined
def read_codes(program, codes, first, tile):
    """Put code − shift of every attribute into the tile.

    A category is replaced by a valid index in any case, so that nothing is ever read outside of a table.
    """
    d = codes.shape[1]
    inputs = program.columns.size - program.lookup_sizes.size
    trouble = splat(ZERO)
    for j in range(inputs):
        x = gather(codes, first * d + program.columns[j], d, program.shifts[j])
        trouble = add(trouble, sub(x, x))  # NaN if x is not finite
        store(tile, program.numeric + j * PEOPLE, x)
    for table in range(program.table_starts.size):
        row = splat_at(program.table_starts, table)
        for j in range(program.table_members[table], program.table_members[table + 1]):
            x = gather(codes, first * d + program.columns[inputs + j], d, program.shifts[inputs + j])
            index = clip_index(x, splat_at(program.lookup_sizes, j))
            trouble = add(trouble, distance(x, index))
            store(tile, program.indices + j * PEOPLE, index)
            row = fma(index, splat_at(program.lookup_strides, j), row)
        store(tile, program.rows + table * PEOPLE, row)
    return harmless(trouble)


@inlined
def prefetch_codes(codes, first):
    """Prefetch the codes of a tile of people."""
    for ahead in range(0, PEOPLE * codes.shape[1], LINE):
        prefetch(codes, first * codes.shape[1] + ahead)


@inlined
def table_row(program, tile, table, person, stride, neuron):
    """24 neurons of a person's row of a merged table; unsigned, so that Numba does not test for −1."""
    row = np.int64(tile[np.uint64(program.rows + table * PEOPLE + person)])
    return load(program.tables, row * stride + neuron)


@inlined
def add_lookups(program, tile, h, tables):
    """Add a row of each of the first tables to the first pre-activation, 24 neurons at a time.

    A person's rows are summed with neurons in the lanes, and the square of 24 people is then transposed.
    """
    stride = (h + PEOPLE - 1) // PEOPLE * PEOPLE
    for neuron in range(0, h, PEOPLE):
        for person in range(PEOPLE):
            even, odd = splat(ZERO), splat(ZERO)
            for table in range(0, tables - 1, 2):
                even = add(even, table_row(program, tile, table, person, stride, neuron))
                odd = add(odd, table_row(program, tile, table + 1, person, stride, neuron))
            if tables % 2 == 1:
                even = add(even, table_row(program, tile, tables - 1, person, stride, neuron))
            store(tile, program.square + person * PEOPLE, add(even, odd))
        transpose(tile, program.square)
        for j in range(neuron, min(neuron + PEOPLE, h)):
            at = program.base + j * PEOPLE
            store(tile, at, add(load(tile, at), load(tile, program.square + (j - neuron) * PEOPLE)))


@inlined
def first_layer(program, tile, live, h, tables):
    """The first pre-activation, without the part of the twins."""
    inputs = program.columns.size - program.lookup_sizes.size
    zero = np.int64(0)
    dense(tile, live, program.numeric, program.base, program.numeric_slopes, zero, program.bias, zero, inputs, h, ONE)
    if tables > 0:
        add_lookups(program, tile, h, tables)


@inlined
def start_twin(program, tile, twin):
    """Put the outputs of the first layer for one twin of the tile's people into ``near``."""
    h, slope = program.widths[0], program.slopes[0]
    for j in range(h):
        x = add(load(tile, program.base + j * PEOPLE), splat_at(program.twins, twin * h + j))
        x = rectified(x) if slope == ZERO else leaky(x, splat(slope))
        store(tile, program.near + j * PEOPLE, x)


@inlined
def run_layers(program, tile, live, first, last, weight, bias, bare):
    """Run layers whose first one is in ``near``, but for its curve; gives where the last two are.

    ``weight`` and ``bias`` say where those of the layer after the first begin; a bare last layer is not activated.
    """
    widths, near, far = program.widths, program.near, program.far
    for layer in range(first, last + 1):
        if layer > first:
            inputs, outputs = widths[layer - 1], widths[layer]
            slope = ONE if bare and layer == last else program.slopes[layer]
            dense(tile, live, near, far, program.weights, weight, program.biases, bias, inputs, outputs, slope)
            weight += inputs * outputs
            bias += outputs
            near, far = far, near
        if program.curves[layer] != IDENTITY and not (bare and layer == last):
            activate(tile, near, near, widths[layer], program.curves[layer], program.alphas[layer])
    return near, far


@inlined
def score_of(program, tile, near, threshold):
    """Scores from the last layer, whether each is a favourable decision, and NaN where one is not finite.

    A sigmoid head has one margin; a softmax has one against each of the other classes.
    """
    outputs = program.widths[program.widths.size - 1]
    score = load(tile, near)
    trouble, margin = sub(score, score), splat(-ONE)
    if not program.linear:
        if outputs == 1:
            score = sigmoid(score)
            margin = sub(score, splat(threshold))
        else:
            margin = score
            odds = splat(ONE)
            for j in range(outputs):
                x = load(tile, near + j * PEOPLE)
                odds = add(odds, exp(sub(splat(ZERO), x)))
                margin = minimum(x, margin)
                trouble = add(trouble, sub(x, x))
            score = div(splat(ONE), odds)
    return score, if_greater(splat(ZERO), margin, splat(ZERO), splat(ONE)), trouble


@inlined
def score_twins(program, tile, live, m, threshold):
    """Run every twin of the tile's people through the network.

    NaN inside the network reaches an output; an infinity does so too, or stays where it only saturates a neuron.
    """
    layers = program.widths.size - 1
    favourable, trouble = splat(ZERO), splat(ZERO)
    for twin in range(m):
        start_twin(program, tile, twin)
        near, _ = run_layers(program, tile, live, np.int64(0), layers, np.int64(0), np.int64(0), False)
        score, favoured, wrong = score_of(program, tile, near, threshold)
        trouble = add(trouble, wrong)
        favourable = add(favourable, favoured)
        store(tile, program.scores + twin * PEOPLE, score)
    return favourable, harmless(trouble)


@inlined
def extremes(tile, scores, m, favourable, first, people, figures):
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
def run_chunk(program, scratch, codes, n, start, ruler, figures, ready):
    """Evaluate people, tile by tile."""
    tile, h = scratch.tile, program.widths[0]
    m = program.twins.size // h
    for first in range(0, n, PEOPLE):
        if not read_codes(program, codes, first, tile):
            return start + first
        prefetch_codes(codes, first + PEOPLE)
        first_layer(program, tile, scratch.live, h, program.table_starts.size)
        favourable, sound = score_twins(program, tile, scratch.live, m, ruler.threshold)
        if not sound:
            return start + first
        people = min(PEOPLE, n - first)
        if ready.shape[1] > 0:
            for person in range(people):
                for twin in range(m):
                    ready[start + first + person, twin] = tile[program.scores + twin * PEOPLE + person]
        if ruler.classes:
            extremes(tile, program.scores, m, favourable, start + first, people, figures)
            width = ruler.tolerance
            if ruler.grid:
                to_bins(tile, program.scores, m, ruler.epsilon, ruler.last)
                width = HALF
            sweep(tile, program.scores, m, width, ruler.terms, scratch, figures.k, figures.q_1, start + first, people)
    return -1
