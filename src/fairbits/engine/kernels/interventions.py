"""The kernels for interventions: a tile of people, one twin after the other, many neurons held at many values.

All interventions in a layer share what comes before it. So for each twin the layers up to the intervened one run
once, and the next pre-activation with them; holding neuron j at v then adds (v − a_j) W[j, :] to that, and only the
later layers, which are small, run for each intervention. All of it stays in the first cache levels; the scores of a
block of interventions stay in the second until the classes are counted.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.compiler import compiled, inlined
from fairbits.engine.kernels.evaluate import (
    HALF,
    INFINITY,
    ONE,
    ZERO,
    first_layer,
    harmless,
    read_codes,
    run_layers,
    score_of,
    start_twin,
)
from fairbits.engine.kernels.lanes import (
    PEOPLE,
    add,
    distance,
    fma,
    if_greater,
    leaky,
    load,
    lowest,
    minimum,
    sigmoid,
    splat,
    splat_at,
    store,
    sub,
)
from fairbits.engine.kernels.partition import sweep, to_bins


class Held(NamedTuple):
    """The interventions in one layer, and where their buffers lie in a tile's memory."""

    layer: int
    neurons: NDArray[np.int64]
    values: NDArray[np.float32]
    kept: int  # the layer's outputs
    before: int  # the next layer's pre-activations
    sums: int  # per intervention: the favourable twins, or the rows decided right
    scores: int  # per intervention of a block: the scores of all twins
    block: int


class Counts(NamedTuple):
    """Where the figures go, flat: intervention first, then person. What is not asked for is empty.

    ``hits`` are how many rows each intervention leaves decided as labelled.
    """

    k: NDArray[np.int32]
    q_1: NDArray[np.float32]
    flips: NDArray[np.bool_]
    hits: NDArray[np.int64]


class Missing(NamedTuple):
    """Twins that cannot exist; both are empty where all can.

    ``gaps`` are 0 for those that can and infinity for those that cannot, (tile, twin, person): added to a score they
    put it behind every class. ``twins`` is how many each person has.
    """

    gaps: NDArray[np.float32]
    twins: NDArray[np.float32]


class Decision(NamedTuple):
    """How the outputs become a class, and what each row is labelled; both are empty where that is not asked.

    Between two classes the ruler's threshold decides; between more those that come first in the order win a tie.
    """

    order: NDArray[np.int64]
    labels: NDArray[np.float32]


@inlined
def keep(tile, source, target, count):
    """Copy neurons of a tile."""
    for j in range(count):
        store(tile, target + j * PEOPLE, load(tile, source + j * PEOPLE))


@inlined
def hold(program, tile, held, do, weight):
    """Put the outputs of the layer after the intervened one, but for their curve, into ``near``."""
    layer, neuron = held.layer + 1, held.neurons[do]
    outputs = program.widths[layer]
    shift = sub(splat(held.values[do]), load(tile, held.kept + neuron * PEOPLE))
    below = splat(program.slopes[layer])
    for j in range(outputs):
        x = fma(shift, splat_at(program.weights, weight + neuron * outputs + j), load(tile, held.before + j * PEOPLE))
        store(tile, program.near + j * PEOPLE, leaky(x, below))


@inlined
def places(program, held):
    """Where the weights and biases of the layer after the intervened one begin."""
    weight, bias = np.int64(0), np.int64(0)
    for layer in range(1, held.layer + 1):
        weight += program.widths[layer - 1] * program.widths[layer]
        bias += program.widths[layer]
    return weight, bias


@inlined
def count_classes(tile, start, m, tolerance):
    """k of the tile's people, as ``partition.sweep`` counts it, without the sizes of the classes."""
    opened = splat(INFINITY)
    for twin in range(m):
        opened = minimum(load(tile, start + twin * PEOPLE), opened)
    k = splat(ZERO)
    while True:
        upcoming = splat(INFINITY)
        for twin in range(m):
            score = load(tile, start + twin * PEOPLE)
            gap = sub(score, opened)
            upcoming = minimum(if_greater(gap, splat(tolerance), score, splat(INFINITY)), upcoming)
        k = add(k, if_greater(splat(INFINITY), opened, splat(ONE), splat(ZERO)))
        opened = upcoming
        if lowest(opened) == INFINITY:
            break
    return k


@inlined
def score_tile(program, tile, near, held, slot, twin, m, missing, gap, threshold):
    """Keep the scores of one twin under one intervention, and count the favourable decisions."""
    score, favourable, trouble = score_of(program, tile, near, threshold)
    at = held.sums + slot * PEOPLE
    if missing.gaps.size:
        favourable = if_greater(load(missing.gaps, gap + twin * PEOPLE), splat(ZERO), splat(ZERO), favourable)
    store(tile, at, add(load(tile, at), favourable))
    store(tile, held.scores + (slot * m + twin) * PEOPLE, score)
    return trouble


@inlined
def write_figures(program, scratch, held, slot, m, ruler, counts, row, people, missing, first):
    """Count the classes under one intervention of the block and write the people's figures."""
    tile, at, width = scratch.tile, held.scores + slot * m * PEOPLE, ruler.tolerance
    if ruler.grid:
        to_bins(tile, at, m, ruler.epsilon, ruler.last)
        width = HALF
    if missing.gaps.size:
        for twin in range(m):
            place = at + twin * PEOPLE
            store(tile, place, add(load(tile, place), load(missing.gaps, first * m + twin * PEOPLE)))
    if ruler.classes:
        sweep(tile, at, m, width, ruler.terms, scratch, counts.k, counts.q_1, row, people)
    else:
        store(tile, program.near, count_classes(tile, at, m, width))
        for person in range(people):
            counts.k[row + person] = max(np.int32(tile[program.near + person]), np.int32(1))
    for person in range(people):
        favoured = tile[held.sums + slot * PEOPLE + person]
        twins = missing.twins[first + person] if missing.gaps.size else np.float32(m)
        counts.flips[row + person] = ZERO < favoured < twins


@inlined
def count_right(tile, near, held, slot, decision, threshold, truth):
    """Count the people whom one intervention leaves decided as labelled."""
    favourable = splat(np.float32(decision.order[0]))
    best, decided = splat(ZERO), favourable  # logits against the favourable class's
    if decision.order.size == 2:
        other = splat(np.float32(decision.order[1]))
        decided = if_greater(splat(threshold), sigmoid(load(tile, near)), other, favourable)
    for place in range(1, decision.order.size if decision.order.size > 2 else 1):
        logit = sub(splat(ZERO), load(tile, near + (place - 1) * PEOPLE))
        decided = if_greater(logit, best, splat(np.float32(decision.order[place])), decided)
        best = if_greater(logit, best, logit, best)
    at = held.sums + slot * PEOPLE
    right = if_greater(splat(HALF), distance(decided, truth), splat(ONE), splat(ZERO))
    store(tile, at, add(load(tile, at), right))


@compiled
def study_chunk(program, scratch, codes, n, start, held, ruler, counts, people_in_all, missing, decision):  # noqa: PLR0912
    """Figures of people under every intervention, or how many rows each leaves decided as labelled.

    Each twin runs through the layers that no intervention changes, and up to the pre-activation after them, as if that
    were one more intervention: every call of ``dense`` in a kernel is compiled anew.
    """
    tile, layer, last = scratch.tile, held.layer, program.widths.size - 1
    m = program.twins.size // program.widths[0]
    inputs, outputs = program.widths[layer], program.widths[layer + 1]
    weight, bias = places(program, held)
    for first in range(0, n, PEOPLE):
        if not read_codes(program, codes, first, tile):
            return start + first
        first_layer(program, tile, program.widths[0], program.table_starts.size)
        people, gap = min(PEOPLE, n - first), (start + first) * m
        if decision.labels.size:
            for person in range(PEOPLE):  # the rows that only fill the tile agree with no class
                tile[held.scores + person] = decision.labels[start + first + person] if person < people else -ONE
        truth = load(tile, held.scores)
        for low in range(0, held.neurons.size, held.block):
            high = min(low + held.block, held.neurons.size)
            for do in range(high - low):
                store(tile, held.sums + do * PEOPLE, splat(ZERO))
            trouble = splat(ZERO)
            for twin in range(m):
                for do in range(low - 1, high):
                    shared = do < low
                    if shared:
                        start_twin(program, tile, twin)
                    else:
                        hold(program, tile, held, do, weight)
                    near, far = run_layers(
                        program,
                        tile,
                        np.int64(0) if shared else layer + 1,
                        layer + 1 if shared else last,
                        np.int64(0) if shared else weight + inputs * outputs,
                        np.int64(0) if shared else bias + outputs,
                        shared,
                    )
                    if shared:
                        keep(tile, far, held.kept, inputs)
                        keep(tile, near, held.before, outputs)
                    elif decision.labels.size:
                        count_right(tile, near, held, do - low, decision, ruler.threshold, truth)
                    else:
                        found = score_tile(program, tile, near, held, do - low, twin, m, missing, gap, ruler.threshold)
                        trouble = add(trouble, found)
            if not harmless(trouble):
                return start + first
            for do in range(low, high):
                if decision.labels.size:
                    for person in range(people):
                        counts.hits[do] += np.int64(tile[held.sums + (do - low) * PEOPLE + person])
                else:
                    row = do * people_in_all + start + first
                    write_figures(
                        program, scratch, held, do - low, m, ruler, counts, row, people, missing, start + first
                    )
    return -1
