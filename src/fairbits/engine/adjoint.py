"""A plan made ready for gradients: the layers transposed, and what a step of each attribute's code does.

The derivative by a code is a row of h numbers times the gradient at the first pre-activation. For a numeric
attribute that row is its slope. For a categorical one it is the mean of one step up and one down,
``(table[up] - table[down]) / (up - down)``, which depends on the code, so there is a table of such rows.
With two values there is only one step to take, whatever the code: such attributes count as numeric here.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.simd import PEOPLE
from fairbits.engine.program import Program, fold_head, lookup_groups, round_up

if TYPE_CHECKING:
    from fairbits.engine.plan import Plan

Array = NDArray[Any]

AT_ONCE = 4
"""Table rows that the kernel multiplies with a gradient at the same time."""


class Adjoint(NamedTuple):
    """What the kernel of gradients gets beside the program, whose layers it also runs forwards."""

    sources: Array  # the tape, from here on: the dense layers of the way there and back, in order
    targets: Array
    inputs: Array
    outputs: Array
    weights: Array
    biases: Array
    before: Array  # per layer: the place of its pre-activations in a tile's buffer
    steady_columns: Array  # attributes whose step does not depend on the code
    table_columns: Array  # attributes whose step is a row of `steps`
    table_indices: Array  # where in the tile their indices are; repeated up to a multiple of `AT_ONCE`
    table_starts: Array  # where in `steps` their rows begin; likewise
    steps: Array  # rows padded to a whole number of tiles
    trouble: int  # from here on: places in a tile's buffer; all from this one to the end must be finite
    steady: int
    found: int
    size: int


def reverse(plan: Plan, program: Program) -> Adjoint:
    """The adjoint of a plan."""
    h, outputs = int(program.widths[0]), int(program.widths[1:].sum())
    tables = fold_head(plan).get("lookup_tables", plan.lookup_tables).reshape(-1, h)
    lookups = [c for members in lookup_groups(plan, h) for c in members]
    steps = [_steps(tables[plan.lookup_offsets[c] :][: plan.lookup_sizes[c]]) for c in lookups]
    # An attribute with one value cannot move; its derivative stays zero.
    steady = [place for place, rows in enumerate(steps) if len(rows) == 2]
    moving = [place for place, rows in enumerate(steps) if len(rows) > 2]
    slopes = np.concatenate([program.numeric_slopes.reshape(-1, h), *(steps[place][:1] for place in steady)])
    rows = np.concatenate([np.zeros((0, h)), *(steps[place] for place in moving)])
    starts = np.cumsum([0, *(len(steps[place]) for place in moving)])[:-1] * round_up(h)
    padded = -(-len(moving) // AT_ONCE) * AT_ONCE
    at_once = np.minimum(np.arange(padded), len(moving) - 1)
    before = np.array([program.base, *program.scores + _starts(program.widths[1:]) * PEOPLE], np.int64)
    trouble = program.scores + outputs * PEOPLE
    return Adjoint(
        **_tape(program, before, slopes, trouble + PEOPLE),
        before=before,
        steady_columns=np.array([*plan.numeric_columns, *plan.lookup_columns[lookups][steady]], np.int64),
        table_columns=plan.lookup_columns[lookups][moving],
        table_indices=program.indices + np.array(moving, np.int64)[at_once] * PEOPLE,
        table_starts=starts.astype(np.int64)[at_once],
        steps=np.pad(rows, ((0, 0), (0, round_up(h) - h))).astype(np.float32).ravel(),
        trouble=trouble,
        steady=trouble + PEOPLE,
        found=trouble + (1 + len(slopes)) * PEOPLE,
        size=trouble + (1 + len(slopes) + padded) * PEOPLE,
    )


def _tape(program: Program, before: Array, slopes: Array, steady: int) -> dict[str, Array]:
    """Numeric attributes, layers forwards, layers backwards, steady steps: each a dense layer."""
    widths = program.widths.tolist()
    numeric, back = program.columns.size - program.lookup_sizes.size, widths[::-1]
    buffers = [program.near, program.far] * len(widths)
    weights = [program.numeric_slopes, program.weights, *_transposed(program), slopes.T.ravel()]
    biases = [program.bias, program.biases, np.zeros(sum(back[1:]) + len(slopes))]
    places = {
        "sources": [program.numeric, *[program.near] * len(widths[1:]), *buffers[: len(widths)]],
        "targets": [*before, *buffers[1 : len(widths)], steady],
        "inputs": [numeric, *widths[:-1], *back],
        "outputs": [*widths, *back[1:], len(slopes)],
    }
    tape = {name: np.array(values, np.int64) for name, values in places.items()}
    numbers = {"weights": np.concatenate(weights), "biases": np.concatenate(biases)}
    return tape | {name: values.astype(np.float32) for name, values in numbers.items()}


def _starts(sizes: Array) -> Array:
    return np.cumsum([0, *sizes])[:-1]


def _steps(table: Array) -> Array:
    """For every code the mean change of one step up and one down, as far as there is room."""
    exact = table.astype(np.float64)
    codes = np.arange(len(table))
    up, down = np.minimum(codes + 1, len(table) - 1), np.maximum(codes - 1, 0)
    return (exact[up] - exact[down]) / np.maximum(up - down, 1)[:, None]


def _transposed(program: Program) -> list[Array]:
    """The weights of every layer but the first, turned over, last layer first."""
    shapes = list(pairwise(program.widths.tolist()))
    starts = _starts(np.array([i * o for i, o in shapes], np.int64))
    layers = [program.weights[at : at + i * o].reshape(i, o).T for at, (i, o) in zip(starts, shapes, strict=True)]
    return [layer.ravel() for layer in reversed(layers)]
