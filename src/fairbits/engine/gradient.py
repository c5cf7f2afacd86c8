"""How the model's answer about a person, taken as one of its twins, changes with each of the codes.

Codes enter a network through an affine layer: each adds a row of numbers to sums that the rest of the network
looks at. With the gradient at those sums, a change of code is worth the difference of two rows times the
gradient, to first order. For a categorical attribute this knows every value from every other, which a slope does not.
For plans the sums are the first layer's pre-activations; for other models they are the inputs themselves.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbits.domain import Encoding, Lookup
from fairbits.engine.evaluation import run_batch, whole_tiles
from fairbits.engine.kernels.compiler import inlined
from fairbits.engine.kernels.gradients import gradients_chunk
from fairbits.engine.kernels.lanes import PEOPLE, fma, load, splat, store_totals, sub
from fairbits.engine.plan import Plan, round_up, scratch
from fairbits.engine.threads import writeable
from fairbits.errors import ROW, OptionError

Floats = NDArray[np.float32]
Columns = NDArray[np.integer[Any]]
#: Of an attribute: the first of its sums, its first code, and what each of its codes adds.
Table = tuple[int, int, NDArray[Any]]

ZERO = np.float32(0)


class TwinForecast(NamedTuple):
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
    rows = plan.dense.tables
    tables = {int(column): (0, int(low), rows[at : at + size]) for column, low, at, size in places if column in tabled}
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
def forecast_change(contributions, one, other, at, attribute, here, there, found):
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


def gradients(
    plan: Plan,
    codes: NDArray[np.float64],
    twins: ArrayLike,
    *,
    threads: int | None = None,
) -> NDArray[np.float32]:
    """Derivatives by code of every row, taken as its twin number `twins[row]`: an (n, d) array like `codes`.

    Of the margin: the favourable logit minus the log-sum of the others, whose sigmoid is the score (with a linear
    head, of the output). It does not fade where the network is certain, as the slope of the score does. A
    categorical attribute has the mean of one step of code up and one down, as in `Encoding.pull_back`. Columns
    that the plan does not read have 0: among them the protected ones, whose codes are ignored.
    """
    codes = np.asarray(codes, dtype=np.float64)
    result = np.zeros(codes.shape, np.float32)
    _run(plan, codes, twins, (result, np.empty(0, np.float32)), threads)
    return result


def forecast(plan: Plan, codes: NDArray[np.float64], twins: ArrayLike, *, threads: int | None = None) -> TwinForecast:
    """Slopes and inner gradients with which any change of any code can be forecast: see ``Contributions``."""
    codes = np.asarray(codes, dtype=np.float64)
    width = round_up(int(plan.program.widths[0])) if plan.adjoint.table_columns.size else 0
    found = TwinForecast(np.zeros(codes.shape, np.float32), np.zeros((len(codes), width), np.float32))
    _run(plan, codes, twins, (found.slopes, found.inner.ravel()), threads)
    return found


def _run(
    plan: Plan,
    codes: NDArray[np.float64],
    twins: ArrayLike,
    results: tuple[Floats, Floats],
    threads: int | None,
) -> None:
    numbers = _checked(plan, twins, len(codes))
    program, adjoint = plan.program, plan.adjoint

    def fused(people: NDArray[np.float64], n: int, start: int) -> int:
        chosen = whole_tiles(writeable(numbers[start : start + n]))
        with scratch(plan, adjoint.size) as buffer:
            return int(gradients_chunk(program, adjoint, buffer, people, chosen, n, start, *results))

    def wide(people: NDArray[np.float64], n: int, start: int) -> int:
        slopes, inner, sound = plan.layers.gradients(people[:n], numbers[start : start + n])
        results[0][start : start + n] = slopes
        if results[1].size:
            results[1].reshape(len(codes), -1)[start : start + n, : inner.shape[1]] = inner
        return -1 if sound.all() else start + int(sound.argmin())

    work = adjoint.weights.size + (program.table_starts.size + adjoint.table_starts.size + 8) * program.widths[0]
    tile = None if plan.fused else plan.layers.rows
    run_batch(plan, codes, fused if plan.fused else wide, work=int(work), threads=threads, tile=tile)


def _checked(plan: Plan, twins: ArrayLike, n: int) -> NDArray[np.int64]:
    numbers = np.asarray(twins)
    if numbers.shape != (n,) or (n and numbers.dtype.kind not in "iu"):
        raise OptionError(
            f"twins must be {n} whole numbers, one per row of codes, but got shape {numbers.shape} of {numbers.dtype}."
        )
    for row in np.flatnonzero((numbers < 0) | (numbers >= plan.m))[:1]:
        raise OptionError.of_row(f"twins must be within 0..{plan.m - 1}, but {ROW} has {numbers[row]}.", int(row))
    return numbers.astype(np.int64)
