"""What a change of one code does to the answer about a person, to first order, without asking the model again.

Codes enter a network through an affine layer: each adds a row of numbers to sums that the rest of the network
looks at. With the gradient at those sums, a change of code is worth the difference of two rows times the
gradient. For a categorical attribute this knows every value from every other, which a slope does not.

For plans the sums are the first layer's pre-activations; for other models they are the inputs themselves.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import Encoding
from fairbits.domain.encoding import Lookup, Numeric
from fairbits.engine.memory import load, splat, store_totals
from fairbits.engine.plan import Plan
from fairbits.engine.program import fold_head, round_up
from fairbits.engine.simd import PEOPLE, fma, inlined, sub

Floats = NDArray[np.float32]
Rows = NDArray[Any]

ZERO = np.float32(0)


class Contributions(NamedTuple):
    """Per attribute: which of the sums it adds to, and what each of its codes adds. Rows are whole tiles."""

    starts: NDArray[np.int64]  # the first of its sums
    sizes: NDArray[np.int64]  # how many
    tables: NDArray[np.int64]  # where in `rows` its first row begins
    lows: NDArray[np.float64]  # the code of that row
    graded: NDArray[np.bool_]  # a single row, added once per unit of code
    rows: Floats


def contributions_of(plan: Plan, columns: NDArray[np.integer[Any]]) -> Contributions:
    """Contributions of some columns of codes to a plan's first layer."""
    h = int(plan.program.widths[0])
    tables = fold_head(plan).get("lookup_tables", plan.lookup_tables).reshape(-1, h)
    slopes = plan.program.numeric_slopes.reshape(-1, h)
    numeric = {int(column): slopes[place : place + 1] for place, column in enumerate(plan.numeric_columns)}
    lookup = {
        int(column): (float(low), tables[offset : offset + size])
        for column, low, offset, size in zip(
            plan.lookup_columns, plan.lookup_lows, plan.lookup_offsets, plan.lookup_sizes, strict=True
        )
    }
    parts = [lookup.get(int(column)) or (None, numeric[int(column)]) for column in columns]
    return _contributions(parts, np.zeros(len(parts), np.int64))


def contributions_through(encoding: Encoding, columns: NDArray[np.integer[Any]]) -> Contributions:
    """Contributions of some columns of codes to a model's inputs, in the order of `arranged`."""
    sizes = [round_up(len(part.columns)) for part in encoding.parts]
    parts: list[tuple[float | None, Rows]] = []
    for part in (encoding.parts[int(column)] for column in columns):
        if isinstance(part, Lookup):
            parts.append((float(part.low), part.table))
        else:
            parts.append((None, np.array([[part.scale]] if isinstance(part, Numeric) else [[]])))
    return _contributions(parts, np.cumsum([0, *sizes])[:-1][columns])


def arranged(gradients: Rows, encoding: Encoding) -> Floats:
    """Gradients by input, (n, inputs), attribute by attribute, with nothing added to make whole tiles."""
    pieces = [np.empty((len(gradients), 0), np.float32)]
    for part in encoding.parts:
        missing = round_up(len(part.columns)) - len(part.columns)
        pieces.append(np.pad(gradients[:, part.columns], ((0, 0), (0, missing))))
    return np.concatenate(pieces, axis=1, dtype=np.float32)


def _contributions(parts: Sequence[tuple[float | None, Rows]], starts: NDArray[np.int64]) -> Contributions:
    padded = [np.pad(rows, ((0, 0), (0, round_up(rows.shape[1]) - rows.shape[1]))) for _, rows in parts]
    return Contributions(
        starts=starts,
        sizes=np.array([rows.shape[1] for rows in padded], np.int64),
        tables=np.cumsum([0, *(rows.size for rows in padded)])[:-1],
        lows=np.array([low or 0.0 for low, _ in parts]),
        graded=np.array([low is None for low, _ in parts]),
        rows=np.concatenate([np.empty(0), *(rows.ravel() for rows in padded)]).astype(np.float32),
    )


@inlined
def foresee(contributions, one, other, at, attribute, here, there, found):
    """How much a change of an attribute from `here` to `there` adds, along two flat gradients that begin at `at`:
    put into the first two places of `found`, which has four."""
    size, table = contributions.sizes[attribute], contributions.tables[attribute]
    start = at + contributions.starts[attribute]
    graded, low = contributions.graded[attribute], contributions.lows[attribute]
    to = table if graded else table + np.int64(there - low) * size
    away = table if graded else table + np.int64(here - low) * size
    a, b, nothing = splat(ZERO), splat(ZERO), splat(ZERO)
    for j in range(0, size, PEOPLE):
        difference = load(contributions.rows, to + j)
        if not graded:
            difference = sub(difference, load(contributions.rows, away + j))
        a = fma(load(one, start + j), difference, a)
        b = fma(load(other, start + j), difference, b)
    store_totals(found, 0, a, b, nothing, nothing)
    if graded:
        found[0] *= there - here
        found[1] *= there - here
