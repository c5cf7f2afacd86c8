"""The fused kernel: from the codes of a few thousand people to their figures, a tile of people at a time.

Everything a tile needs (its first pre-activation, two layers' outputs, m scores a person) stays in the first
cache levels. So do the rows of tables: a block of tiles is given its first pre-activation together, 24 neurons of all
its people before the next 24. A twin costs one addition per first-layer neuron, then the small layers; whatever m is,
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
    PIECE,
    WIDTH,
    activate,
    add,
    clip_index,
    distance,
    div,
    exp,
    fma,
    if_greater,
    into_tiles,
    leaky,
    load,
    load_row,
    lowest,
    minimum,
    prefetch,
    rectified,
    sigmoid,
    splat,
    splat_at,
    splat_row,
    stirs,
    store,
    store_whole,
    sub,
    turn_codes,
)
from fairbits.engine.kernels.partition import sweep, to_bins

ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)
ALWAYS, NEVER = np.bool_(True), np.bool_(False)  # for literals functions would be compiled apart
INFINITY = np.float32(np.inf)
TINY = np.float32(1e-30)
LINE = 8  # float64 numbers in a cache line


@inlined
def survey(tile, live, listed, source, inputs):
    """List the inputs of a layer that are not zero for everybody in the tile, behind how many there are."""
    count = 0
    for i in range(inputs):
        live[np.uint64(listed + 1 + count)] = i
        count += stirs(load(tile, source + i * PEOPLE))
    live[np.uint64(listed)] = count


@inlined
def dense(tile, live, listed, anew, source, target, weights, at, biases, bias_at, inputs, outputs, slope):
    """A layer, four outputs at a time: their accumulators stay in registers over the whole input loop.

    Inputs that are zero for the whole tile, as many of a trained network's are, change no bit and are passed over. They
    are looked for ``anew``, or where the last look found some; a list of all inputs holds from twin to twin.
    """
    below = splat(slope)
    if anew or live[np.uint64(listed)] < inputs:
        survey(tile, live, listed, source, inputs)
    count = live[np.uint64(listed)]
    output = 0
    while output + 4 <= outputs:
        a = splat_at(biases, bias_at + output)
        b = splat_at(biases, bias_at + output + 1)
        c = splat_at(biases, bias_at + output + 2)
        d = splat_at(biases, bias_at + output + 3)
        for place in range(count):
            i = live[np.uint64(listed + 1 + place)]
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
            i = live[np.uint64(listed + 1 + place)]
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
def read_codes(program, codes, first, tile, rows, place):
    """Put code − shift of every attribute into the tile, and the people's rows of the merged tables among ``rows``.

    A category is replaced by a valid index in any case, so that nothing is ever read outside of a table.
    """
    d = codes.shape[1]
    for column in range(0, program.shifts.size, WIDTH):
        turn_codes(tile, program.turned + column * PEOPLE, codes, first * d, d, program.shifts, column)
    inputs = program.columns.size - program.lookup_sizes.size
    trouble = splat(ZERO)
    for j in range(inputs):
        x = load(tile, program.turned + program.columns[j] * PEOPLE)
        trouble = add(trouble, sub(x, x))  # NaN if x is not finite
        store(tile, program.numeric + j * PEOPLE, x)
    for table in range(program.table_starts.size):
        row = splat_at(program.table_starts, table)
        for j in range(program.table_members[table], program.table_members[table + 1]):
            x = load(tile, program.turned + program.columns[inputs + j] * PEOPLE)
            index = clip_index(x, splat_at(program.lookup_sizes, j))
            trouble = add(trouble, distance(x, index))
            store(tile, program.indices + j * PEOPLE, index)
            row = fma(index, splat_at(program.lookup_strides, j), row)
        store_whole(rows, table * program.block + place, row)
    return harmless(trouble)


@inlined
def prefetch_codes(codes, first):
    """Prefetch the codes of a tile of people."""
    for ahead in range(0, PEOPLE * codes.shape[1], LINE):
        prefetch(codes, first * codes.shape[1] + ahead)


@inlined
def table_row(program, rows, place, start):
    """Some neurons of a person's row of a merged table; unsigned, so that Numba does not test for −1."""
    return load_row(program.tables, start + np.int64(rows[np.uint64(place)]) * PIECE)


@inlined
def add_lookups(program, tile, rows, h, tables, people):
    """Add a row of each of the first tables to the first pre-activation of a block of people.

    A person's rows are summed with neurons in the lanes, and those of 24 people are then transposed. The tables hold
    16 neurons of all rows before the next 16: so much stays in the first cache levels for the whole block.
    """
    slices, turned = (h + PIECE - 1) // PIECE, program.square + PIECE * PEOPLE
    for neuron in range(0, h, PIECE):
        start = neuron * (program.tables.size // (slices * PIECE))
        for first in range(0, people, PEOPLE):
            for person in range(first, first + PEOPLE):
                even, odd = splat_row(ZERO), splat_row(ZERO)
                for table in range(0, tables - 1, 2):
                    even = add(even, table_row(program, rows, table * program.block + person, start))
                    odd = add(odd, table_row(program, rows, (table + 1) * program.block + person, start))
                if tables % 2 == 1:
                    even = add(even, table_row(program, rows, (tables - 1) * program.block + person, start))
                store(tile, program.square + (person - first) * PIECE, add(even, odd))
            into_tiles(tile, program.square, turned)
            for j in range(neuron, min(neuron + PIECE, h)):
                at = program.base + first * h + j * PEOPLE
                store(tile, at, add(load(tile, at), load(tile, turned + (j - neuron) * PEOPLE)))


@inlined
def first_layer(program, scratch, codes, first, people, h):
    """The first pre-activation of a block of people, without the part of the twins; gives the row of a faulty tile."""
    inputs, zero = program.columns.size - program.lookup_sizes.size, np.int64(0)
    tile, live, tables = scratch.tile, scratch.live, program.table_starts.size
    for place in range(0, people, PEOPLE):
        if not read_codes(program, codes, first + place, tile, scratch.rows, place):
            return first + place
        base = program.base + place * h
        weights, biases = program.numeric_slopes, program.bias
        dense(tile, live, zero, ALWAYS, program.numeric, base, weights, zero, biases, zero, inputs, h, ONE)
    if tables > 0:
        add_lookups(program, tile, scratch.rows, h, tables, people)
    return -1


@inlined
def start_twin(program, tile, base, twin):
    """Put the outputs of the first layer for one twin of the tile's people into ``near``."""
    h, slope = program.widths[0], program.slopes[0]
    for j in range(h):
        x = add(load(tile, base + j * PEOPLE), splat_at(program.twins, twin * h + j))
        x = rectified(x) if slope == ZERO else leaky(x, splat(slope))
        store(tile, program.near + j * PEOPLE, x)


@inlined
def start_twins(program, tile, base, twin, people, m):
    """The same where few people fill the tile again and again, each time as the next of their twins."""
    h, slope = program.widths[0], program.slopes[0]
    rows, turned = program.tables.size // ((h + PIECE - 1) // PIECE * PIECE), program.square + PIECE * PEOPLE
    for neuron in range(0, h, PIECE):
        for lane in range(PEOPLE):
            row = neuron // PIECE * rows + program.twin_rows + min(twin + lane // people, m - 1)
            store(tile, program.square + lane * PIECE, load_row(program.tables, row * PIECE))
        into_tiles(tile, program.square, turned)
        for j in range(neuron, min(neuron + PIECE, h)):
            x = add(load(tile, base + j * PEOPLE), load(tile, turned + (j - neuron) * PEOPLE))
            x = rectified(x) if slope == ZERO else leaky(x, splat(slope))
            store(tile, program.near + j * PEOPLE, x)


@inlined
def part_twins(program, tile, score, favourable, scores, sums, twin, people, m, gaps, gap):
    """Put the scores of several twins of few people, which lie side by side, below each other, as they lie elsewhere.

    Favourable decisions are added to ``sums``, but for twins that cannot exist: their gap is infinite. Lanes beyond the
    people follow the first person.
    """
    lanes = program.square
    store(tile, lanes, score)
    store(tile, lanes + PEOPLE, favourable)
    for z in range(twin, min(twin + PEOPLE // people, m)):
        at, lane = scores + z * PEOPLE, lanes + (z - twin) * people
        store(tile, at, splat_at(tile, lane))
        for person in range(people):
            tile[at + person] = tile[lane + person]
            if gaps.size == 0 or gaps[gap + z * PEOPLE + person] == ZERO:
                tile[sums + person] += tile[lane + PEOPLE + person]


@inlined
def run_layers(program, tile, live, anew, first, last, weight, bias, bare):
    """Run layers whose first one is in ``near``, but for its curve; gives where the last two are.

    ``weight`` and ``bias`` say where those of the layer after the first begin; a bare last layer is not activated. For
    ``anew`` see ``dense``.
    """
    widths, near, far, listed = program.widths, program.near, program.far, np.int64(0)
    for layer in range(first, last + 1):
        if layer > first:
            inputs, outputs = widths[layer - 1], widths[layer]
            slope = ONE if bare and layer == last else program.slopes[layer]
            weights, biases = program.weights, program.biases
            dense(tile, live, listed, anew, near, far, weights, weight, biases, bias, inputs, outputs, slope)
            listed += inputs + 1
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
def score_twins(program, tile, live, base, people, m, threshold):
    """Run every twin of the tile's people through the network.

    NaN inside the network reaches an output; an infinity does so too, or stays where it only saturates a neuron.
    """
    layers, sums, at_once = program.widths.size - 1, program.square + 2 * PIECE * PEOPLE, min(PEOPLE // people, m)
    trouble = splat(ZERO)
    store(tile, sums, splat(ZERO))
    for twin in range(0, m, at_once):
        if at_once == 1:
            start_twin(program, tile, base, twin)
        else:
            start_twins(program, tile, base, twin, people, m)
        near, _ = run_layers(program, tile, live, twin == 0, np.int64(0), layers, np.int64(0), np.int64(0), NEVER)
        score, favourable, wrong = score_of(program, tile, near, threshold)
        trouble = add(trouble, wrong)
        if at_once == 1:
            store(tile, sums, add(load(tile, sums), favourable))
            store(tile, program.scores + twin * PEOPLE, score)
        else:
            part_twins(
                program, tile, score, favourable, program.scores, sums, twin, people, m, program.bias[:0], np.int64(0)
            )
    return load(tile, sums), harmless(trouble)


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
    """Evaluate people, block by block and tile by tile."""
    tile, h = scratch.tile, program.widths[0]
    m = program.twins.size // h
    for block in range(0, n, program.block):
        size = min(program.block, (n - block + PEOPLE - 1) // PEOPLE * PEOPLE)
        faulty = first_layer(program, scratch, codes, block, size, h)
        if faulty >= 0:
            return start + faulty
        for first in range(block, block + size, PEOPLE):
            prefetch_codes(codes, first + program.block)
            base = program.base + (first - block) * h
            people = min(PEOPLE, n - first)
            favourable, sound = score_twins(program, tile, scratch.live, base, people, m, ruler.threshold)
            if not sound:
                return start + first
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
                counts, bits, row = scratch.counts, scratch.bits, start + first
                sweep(tile, program.scores, m, width, ruler.terms, counts, bits, figures.k, figures.q_1, row, people)
    return -1
