"""What a change of one code does to the answer about a person, to first order, without asking the model again.

Codes enter a network through an affine layer: each adds a row of numbers to sums that the rest of the network
looks at. With the gradient at those sums, a change of code is worth the difference of two rows times the
gradient. For a categorical attribute this knows every value from every other, which a slope does not.

For plans the sums are the first layer's pre-activations; for other models they are the inputs themselves.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import Encoding, Lookup
from fairbits.engine.kernels.compiler import inlined
from fairbits.engine.kernels.memory import load, splat, store_totals
from fairbits.engine.kernels.simd import PEOPLE, fma, sub
from fairbits.engine.plan import Plan, round_up

Floats = NDArray[np.float32]
Columns = NDArray[np.integer[Any]]
Table = tuple[int, int, NDArray[Any]]
"""Of an attribute: the first of its sums, its first code, and what each of its codes adds."""

ZERO = np.float32(0)


class Foresight(NamedTuple):
    """Gradients of some people, each taken as one of its twins."""

    slopes: Floats
    inner: Floats


class Contributions(NamedTuple):
    """What every code adds to which sums of the first layer, per attribute that has a table. Rows are whole tiles."""

    tabled: NDArray[np.bool_]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    tables: NDArray[np.int64]
    lows: NDArray[np.float64]
    rows: Floats


def contributions_of(plan: Plan, columns: Columns) -> Contributions:
    """Contributions of some columns of codes to a plan's first layer."""
    places = zip(plan.lookup_columns, plan.lookup_lows, plan.lookup_offsets, plan.lookup_sizes, strict=True)
    tabled = set(plan.adjoint.table_columns.tolist())
    tables = {
        int(column): (0, int(low), plan.tables[at : at + size]) for column, low, at, size in places if column in tabled
    }
    return _contributions(columns, tables)


def contributions_through(encoding: Encoding, columns: Columns) -> Contributions:
    """Contributions of some columns of codes to a model's inputs, in the order of ``arranged``."""
    tables: dict[int, Table] = {}
    start = 0
    for column, part in enumerate(encoding.parts):
        if isinstance(part, Lookup):
            tables[column] = (start, part.low, part.table)
            start += round_up(len(part.columns))
    return _contributions(columns, tables)


def arranged(gradients: NDArray[Any], encoding: Encoding) -> Floats:
    """Gradients of the inputs that come from tables, padded to whole tiles."""
    pieces = [np.empty((len(gradients), 0), np.float32)]
    for part in encoding.parts:
        if isinstance(part, Lookup):
            missing = round_up(len(part.columns)) - len(part.columns)
            pieces.append(np.pad(gradients[:, part.columns], ((0, 0), (0, missing))))
    return np.concatenate(pieces, axis=1, dtype=np.float32)


def _contributions(columns: Columns, tables: dict[int, Table]) -> Contributions:
    none: Table = (0, 0, np.empty((0, 0)))
    mine = [tables.get(int(column), none) for column in columns]
    padded = [np.pad(rows, ((0, 0), (0, round_up(rows.shape[1]) - rows.shape[1]))) for _, _, rows in mine]
    return Contributions(
        tabled=np.array([int(column) in tables for column in columns]),
        starts=np.array([start for start, _, _ in mine], np.int64),
        sizes=np.array([rows.shape[1] for rows in padded], np.int64),
        tables=np.cumsum([0, *(rows.size for rows in padded)])[:-1],
        lows=np.array([low for _, low, _ in mine], np.float64),
        rows=np.concatenate([np.empty(0), *(rows.ravel() for rows in padded)]).astype(np.float32),
    )


@inlined
def foresee(contributions, one, other, at, attribute, here, there, found):
    """Change of the margin, to first order, when a tabled attribute changes, along two gradients."""
    size, table = contributions.sizes[attribute], contributions.tables[attribute]
    start = at + contributions.starts[attribute]
    to = table + np.int64(there - contributions.lows[attribute]) * size
    away = table + np.int64(here - contributions.lows[attribute]) * size
    a, b, nothing = splat(ZERO), splat(ZERO), splat(ZERO)
    for j in range(0, size, PEOPLE):
        difference = sub(load(contributions.rows, to + j), load(contributions.rows, away + j))
        a = fma(load(one, start + j), difference, a)
        b = fma(load(other, start + j), difference, b)
    store_totals(found, 0, a, b, nothing, nothing)
