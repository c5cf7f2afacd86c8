"""The kernel of gradients: every person forwards as one twin, then backwards to the derivatives by code.

It is made of the parts of the forward kernel. Only the twin differs from lane to lane, so it enters like a
row of one more table; and the layers' pre-activations are kept, because the slopes are taken there.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np

from fairbits.engine.kernels.compiler import compiled, inlined
from fairbits.engine.kernels.evaluate import ALWAYS, add_lookups, dense, harmless, prefetch_codes, read_codes
from fairbits.engine.kernels.lanes import (
    IDENTITY,
    PEOPLE,
    activate,
    add,
    div,
    exp,
    fma,
    into_rows,
    leaky,
    leaky_slope,
    load,
    minimum,
    mul,
    splat,
    steepen,
    store,
    store_totals,
    sub,
)

ZERO, ONE = np.float32(0), np.float32(1)
INFINITY = np.float32(np.inf)


@inlined
def read_twins(program, twins, first, rows):
    """Put the row of each person's twin behind the rows of the merged tables."""
    at = program.table_starts.size * program.block
    for person in range(PEOPLE):
        rows[np.uint64(at + person)] = program.twin_rows + twins[np.uint64(first + person)]


@inlined
def activation(program, adjoint, tile, layer):
    """Put the outputs of a layer into ``near``; its pre-activations stay where they are."""
    before, count = adjoint.before[layer], program.widths[layer]
    if program.curves[layer] == IDENTITY:
        below = splat(program.slopes[layer])
        for j in range(count):
            store(tile, program.near + j * PEOPLE, leaky(load(tile, before + j * PEOPLE), below))
    else:
        activate(tile, before, program.near, count, program.curves[layer], program.alphas[layer])


@inlined
def activation_slope(program, adjoint, tile, layer, target):
    """Turn the gradient at a layer's outputs, in place, into that at its pre-activations."""
    before, count = adjoint.before[layer], program.widths[layer]
    if program.curves[layer] == IDENTITY:
        below = splat(program.slopes[layer])
        for j in range(count):
            at = target + j * PEOPLE
            store(tile, at, mul(load(tile, at), leaky_slope(load(tile, before + j * PEOPLE), below)))
    else:
        steepen(tile, before, target, count, program.curves[layer], program.alphas[layer])


@inlined
def head_slope(program, adjoint, tile, layer):
    """Put the gradient at the outputs x of the last layer into ``near``.

    The margin against several classes is −log(sum of exp(−x)), and exp(−x) are the odds against the score.
    """
    outputs, at = program.widths[layer], adjoint.before[layer]
    least, trouble = splat(INFINITY), splat(ZERO)
    for j in range(outputs):
        x = load(tile, at + j * PEOPLE)
        trouble = add(trouble, sub(x, x))  # NaN if x is not finite
        least = minimum(x, least)
    store(tile, adjoint.trouble, trouble)
    if outputs == 1:
        store(tile, program.near, splat(ONE))
    else:
        total = splat(ZERO)
        for j in range(outputs):
            x = exp(sub(least, load(tile, at + j * PEOPLE)))
            store(tile, program.near + j * PEOPLE, x)
            total = add(total, x)
        scale = div(splat(ONE), total)
        for j in range(outputs):
            store(tile, program.near + j * PEOPLE, mul(scale, load(tile, program.near + j * PEOPLE)))


@inlined
def there_and_back(program, adjoint, tile, live, rows, h):
    """Run the layers forwards and in reverse, and the steady steps at the end.

    All of them are dense layers on a tape, because every call of ``dense`` in a kernel is compiled anew.
    """
    layers, weight, bias = program.widths.size - 1, np.int64(0), np.int64(0)
    for step in range(adjoint.sources.size):
        source, target = adjoint.sources[step], adjoint.targets[step]
        inputs, outputs = adjoint.inputs[step], adjoint.outputs[step]
        if step == layers + 1:
            head_slope(program, adjoint, tile, layers)
        elif step > layers + 1:
            activation_slope(program, adjoint, tile, 2 * layers + 1 - step, source)
        elif step > 0:
            activation(program, adjoint, tile, step - 1)
        weights, biases, zero = adjoint.weights, adjoint.biases, np.int64(0)
        dense(tile, live, zero, ALWAYS, source, target, weights, weight, biases, bias, inputs, outputs, ONE)
        if step == 0:
            add_lookups(program, tile, rows, h, program.table_starts.size + 1, np.int64(PEOPLE))
        weight += inputs * outputs
        bias += outputs


@inlined
def step_place(adjoint, tile, attribute, person):
    """Where a person's row of an attribute's steps begins."""
    row = np.int64(tile[np.uint64(adjoint.table_indices[np.uint64(attribute)] + person)])
    return row, adjoint.table_starts[np.uint64(attribute)]


@inlined
def transpose_layer(tile, gradient, target, h, stride):
    """Transpose the gradient at the first layer: from people in the lanes to neurons in the lanes."""
    for j in range(h, stride):
        store(tile, gradient + j * PEOPLE, splat(ZERO))
    for j in range(0, stride, PEOPLE):
        into_rows(tile, gradient + j * PEOPLE, target + j * PEOPLE)


@inlined
def table_steps(adjoint, tile, gradient, stride):
    """Multiply each person's gradient with the rows of steps that the codes point at, four rows at a time."""
    attributes = adjoint.table_starts.size
    for attribute in range(0, attributes, 4):
        for person in range(PEOPLE):
            row_a, start_a = step_place(adjoint, tile, attribute, person)
            row_b, start_b = step_place(adjoint, tile, attribute + 1, person)
            row_c, start_c = step_place(adjoint, tile, attribute + 2, person)
            row_d, start_d = step_place(adjoint, tile, attribute + 3, person)
            a, b, c, d = splat(ZERO), splat(ZERO), splat(ZERO), splat(ZERO)
            for j in range(0, stride, PEOPLE):
                x = load(tile, gradient + (j + person) * PEOPLE)
                a = fma(x, load(adjoint.steps, start_a + row_a * stride + j), a)
                b = fma(x, load(adjoint.steps, start_b + row_b * stride + j), b)
                c = fma(x, load(adjoint.steps, start_c + row_c * stride + j), c)
                d = fma(x, load(adjoint.steps, start_d + row_d * stride + j), d)
            store_totals(tile, adjoint.found + person * attributes + attribute, a, b, c, d)


@inlined
def finite(adjoint, tile, end):
    """Whether all results up to a position of the tile's buffer are finite."""
    trouble = splat(ZERO)
    for at in range(adjoint.trouble, end, PEOPLE):
        x = load(tile, at)
        trouble = add(trouble, sub(x, x))
    return harmless(trouble)


@inlined
def write(adjoint, tile, first, people, moves, result):
    """Write the derivatives of the tile's people to their columns."""
    steady, moving = adjoint.steady_columns, adjoint.table_columns
    for person in range(people):
        row = np.uint64(first + person)
        for j in range(steady.size):
            result[row, np.uint64(steady[j])] = tile[np.uint64(adjoint.steady + j * PEOPLE + person)]
        at = adjoint.found + person * adjoint.table_starts.size
        for j in range(moving.size if moves else 0):
            result[row, np.uint64(moving[j])] = tile[np.uint64(at + j)]


@inlined
def write_inner(tile, gradient, stride, first, people, inner):
    """Write the gradients at the first layer."""
    for person in range(people):
        for j in range(0, stride, PEOPLE):
            store(inner, (first + person) * stride + j, load(tile, gradient + (j + person) * PEOPLE))


@compiled
def gradients_chunk(program, adjoint, buffer, codes, twins, n, start, result, inner):
    """Derivatives of people, tile by tile.

    With room in ``inner``, the gradients at the first layer's pre-activations are written there, and the derivatives by
    the codes of tables are left out.
    """
    tile, h = buffer.tile, program.widths[0]
    stride = (h + PEOPLE - 1) // PEOPLE * PEOPLE
    last = adjoint.sources[adjoint.sources.size - 1]
    gradient = program.near + program.far - last  # the buffer that is free then
    tables, by_code = adjoint.table_starts.size > 0, inner.size == 0
    for first in range(0, n, PEOPLE):
        if not read_codes(program, codes, first, tile, buffer.rows, np.int64(0)):
            return start + first
        prefetch_codes(codes, first + PEOPLE)
        read_twins(program, twins, first, buffer.rows)
        there_and_back(program, adjoint, tile, buffer.live, buffer.rows, h)
        people = min(PEOPLE, n - first)
        if tables:
            transpose_layer(tile, last, gradient, h, stride)
        if tables and by_code:
            table_steps(adjoint, tile, gradient, stride)
        elif tables:
            write_inner(tile, gradient, stride, start + first, people, inner)
        write(adjoint, tile, start + first, people, by_code, result)
        if not finite(adjoint, tile, adjoint.size if by_code else adjoint.found):
            return start + first
    return -1
