"""A network, its encoding and the twins as plain arrays, and these made ready for the kernels.

Because the encoding is affine, the first pre-activation of twin z of a person is ::

    bias + slopes of the numeric attributes + one table row per categorical attribute + twins[z]

and only the last term depends on the protected attributes. Everything before it is paid once per person.

- Softmax over logits l is 1 / (1 + sum of exp(l_j - l_f) over the others), so the last layer may as well
  compute the margins l_f - l_j: one output less, and for two classes the same code as a sigmoid head.
- Tables of attributes with few values are merged into one with a row per combination of values: 41 lookups
  become a dozen, as long as the tables stay in the second-level cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import Doubles, Encoding, Integers, Twins
from fairbits.engine.kernels.lanes import ACTIVATIONS, IDENTITY, LEAKY_RELU, PEOPLE, PIECE, RELU, WIDTH
from fairbits.engine.threads import aligned
from fairbits.engine.wide import FEW, WIDE, Floats, WideLayers
from fairbits.errors import ROW, ModelError, TableError
from fairbits.models import Network, without_denormals

Array = NDArray[Any]

#: Merged tables may grow to this size: they share the second-level cache with the weights.
TABLE_BYTES = 128 * 1024

#: First pre-activations that are made together: to keep more costs as much as to fetch slices of tables less often.
BLOCK_BYTES = 32 * 1024

#: Rows of steps that the kernel of gradients multiplies with a gradient at the same time.
AT_ONCE = 4


class Program(NamedTuple):
    """What a kernel gets; Numba takes named tuples apart. Arrays are flat, contiguous, writeable."""

    bias: Array
    twins: Array
    widths: Array
    curves: Array  # per layer: the smooth activation, or 0
    slopes: Array  # per layer: the slope below zero
    alphas: Array  # per layer: the alpha of the smooth activation
    weights: Array
    biases: Array
    columns: Array  # of the numeric attributes, then of the categorical ones in the order of the merged tables
    shifts: Array  # per column of the codes, up to a whole number of vectors
    numeric_slopes: Array
    lookup_sizes: Array
    lookup_strides: Array  # how many rows of the merged table a step of the attribute's code is
    tables: Array  # the merged tables, then the twins: 16 neurons of all rows, padded, then the next 16
    table_starts: Array  # first row of each merged table
    table_members: Array  # first lookup of each merged table, and the end of the last
    twin_rows: int  # the row of `tables` where the twins begin
    linear: bool
    block: int  # people who are given their first pre-activation together
    near: int  # from here on: places in a tile's buffer
    far: int
    base: int
    square: int
    turned: int
    numeric: int
    indices: int
    scores: int
    size: int


class Adjoint(NamedTuple):
    """What the kernel of gradients gets beside the program: the layers transposed, and what a step of each code does.

    The derivative by a code is a row of h numbers times the gradient at the first pre-activation. For a numeric
    attribute that row is its slope. For a categorical one it is the mean of one step up and one down,
    ``(table[up] - table[down]) / (up - down)``, which depends on the code, so there is a table of such rows. With two
    values there is only one step to take, whatever the code: such attributes count as numeric here.
    """

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


class Dense(NamedTuple):
    """The arrays of a plan with the head folded in: what is left of a softmax are margins."""

    widths: Integers
    bias: Floats  # (1, h)
    twins: Floats
    slopes: Floats
    tables: Floats
    weights: Floats
    biases: Floats


class Scratch(NamedTuple):
    """The working memory of one call of a kernel."""

    tile: Array
    live: Array
    rows: Array
    counts: Array
    bits: Array


@dataclass(eq=False)
class Plan:
    """A network, its encoding and the twins of a person, as arrays.

    Arrays are converted and copied for the kernels when the plan is made; changing them later has no effect.

    Shapes: h is the width of the first layer, a the number of numeric and c of categorical non-protected attributes, m
    the number of twins. ``people`` is how many will be asked about at most, where that is known.
    """

    bias: Floats
    twins: Floats
    widths: Integers
    head: str
    favourable: int = 0
    activations: Sequence[str] = ()
    alphas: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    weights: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    biases: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    numeric_columns: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    numeric_shifts: Doubles = field(default_factory=lambda: np.empty(0, np.float64))
    numeric_slopes: Floats = field(default_factory=lambda: np.empty((0, 0), np.float32))
    lookup_columns: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    lookup_lows: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    lookup_offsets: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    lookup_tables: Floats = field(default_factory=lambda: np.empty((0, 0), np.float32))
    people: float = np.inf
    #: The number of twins of a person, and how many values each categorical attribute has.
    m: int = field(init=False)
    lookup_sizes: Integers = field(init=False, repr=False)
    dense: Dense = field(init=False, repr=False)
    #: About how many multiply-adds a person costs.
    work: int = field(init=False)
    #: Working memory that no thread is using, by its size.
    spare: dict[int, list[Scratch]] = field(init=False, repr=False, default_factory=dict)
    #: Whether the kernels are faster than NumPy: no layer is too wide, and the work is worth a compiler's.
    fused: bool = field(init=False)

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            array = np.ascontiguousarray(getattr(self, name), dtype=kind)
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ModelError(f"the plan's {name} must be finite, but hold NaN or infinity.")
            setattr(self, name, without_denormals(array) if kind is np.float32 else array)
        self.m = len(self.twins)
        self.lookup_sizes = np.diff(np.append(self.lookup_offsets, len(self.lookup_tables)))
        h, widths, weights, biases = int(self.widths[0]), self.widths, self.weights, self.biases
        first = [one.reshape(-1, h) for one in (self.bias, self.twins, self.numeric_slopes, self.lookup_tables)]
        if self.head == "softmax":
            outputs = int(widths[-1])
            if len(widths) == 1:
                first = [_margins(array, self.favourable) for array in first]
            else:
                last = weights[-int(widths[-2]) * outputs :].reshape(-1, outputs)
                weights = np.concatenate([weights[: -last.size], _margins(last, self.favourable).ravel()])
                biases = np.concatenate([biases[:-outputs], _margins(biases[-outputs:], self.favourable)])
            widths = np.append(widths[:-1], outputs - 1)
        bias, twins, slopes, tables = first
        self.dense = Dense(widths, bias, twins, slopes, tables, weights, biases)
        self.work = int(self.m * (weights.size + 4 * bias.size + 50))
        largest = int((widths[:-1] * widths[1:]).max(initial=0))
        self.fused = largest <= WIDE and self.people * self.work > FEW

    @cached_property
    def groups(self) -> list[list[int]]:
        """The categorical attributes of each merged table."""
        return _groups(self.lookup_sizes.tolist(), round_up(int(self.dense.widths[0])) * 4)

    @property
    def order(self) -> list[int]:
        """The categorical attributes as kernels meet them."""
        return [c for members in self.groups for c in members]

    @cached_property
    def program(self) -> Program:
        """What the kernels get."""
        return _lowered(self)

    @cached_property
    def adjoint(self) -> Adjoint:
        """What gradients need beside the program."""
        return _reversed(self)

    @property
    def merged(self) -> Floats:
        """The rows of the merged tables."""
        rows, width = self.program.twin_rows + self.m, int(self.program.widths[0])
        slices: Floats = self.program.tables.reshape(-1, rows, PIECE).swapaxes(0, 1)
        return slices.reshape(rows, -1)[: self.program.twin_rows, :width]

    #: The layers as matrices, for those that are too wide for the kernels.
    layers = cached_property(WideLayers)


_KINDS: dict[str, Any] = {
    **dict.fromkeys(("bias", "twins", "alphas", "weights", "biases", "numeric_slopes", "lookup_tables"), np.float32),
    **dict.fromkeys(("widths", "numeric_columns"), np.int64),
    **dict.fromkeys(("lookup_columns", "lookup_lows", "lookup_offsets"), np.int64),
    "numeric_shifts": np.float64,
}


def plan_of(network: Network, encoding: Encoding, twins: Twins | None, *, people: float = np.inf) -> Plan:
    """The plan for scoring people, so many in all, and their twins by a network."""
    weights, biases = list(network.weights), list(network.biases)
    if network.head == "sigmoid" and network.favourable == 0:  # its score is the sigmoid of the negated output
        weights[-1], biases[-1] = -weights[-1], -biases[-1]
    layer = encoding.first_layer(weights[0], biases[0])
    width, added, protected = len(layer.bias), np.zeros((1, len(layer.bias))), set[int]()
    if twins is not None:  # once per twin, summed in double precision
        protected = {int(column) for column in twins.columns}
        parts = [layer.contribution(int(c), twins.values[:, i]).astype(np.float64) for i, c in enumerate(twins.columns)]
        added = np.sum(parts, axis=0)
    numeric = [i for i in layer.slopes if i not in protected]
    lookup = [i for i in layer.tables if i not in protected]
    none = np.empty(0, np.float32)
    return Plan(
        bias=layer.bias,
        twins=added.astype(np.float32),
        widths=np.array(network.widths),
        head=network.head,
        favourable=network.favourable if network.head == "softmax" else 0,
        activations=[a.name for a in network.activations_after],
        alphas=np.array([a.alpha for a in network.activations_after], dtype=np.float32),
        weights=np.concatenate([none, *(array.ravel() for array in weights[1:])]),
        biases=np.concatenate([none, *biases[1:]]),
        numeric_columns=np.array(numeric, dtype=np.int64),
        numeric_shifts=np.array([layer.slopes[i][0] for i in numeric], dtype=np.float64),
        numeric_slopes=np.array([layer.slopes[i][1] for i in numeric], dtype=np.float32).reshape(-1, width),
        lookup_columns=np.array(lookup, dtype=np.int64),
        lookup_lows=np.array([layer.tables[i][0] for i in lookup], dtype=np.int64),
        lookup_offsets=np.cumsum([0, *(len(layer.tables[i][1]) for i in lookup)])[:-1],
        lookup_tables=np.concatenate([np.empty((0, width), np.float32), *(layer.tables[i][1] for i in lookup)]),
        people=people,
    )


def _lowered(plan: Plan) -> Program:
    """The plan as flat arrays for the kernels."""
    widths, bias, twins, slopes, tables, weights, biases = plan.dense
    h, sizes, groups = int(widths[0]), plan.lookup_sizes, plan.groups
    merged, strides = [np.zeros((0, h), np.float32)], [1]
    for members in groups:
        merged.append(_merge([tables[plan.lookup_offsets[c] :][: sizes[c]] for c in members]))
        strides += [int(np.prod(sizes[members[place + 1 :]])) for place in range(len(members))]
    columns = np.concatenate([plan.numeric_columns, plan.lookup_columns[plan.order]])
    shifts = np.zeros(-(-int(columns.max(initial=-1) + 1) // WIDTH) * WIDTH)
    shifts[columns] = np.concatenate([plan.numeric_shifts, plan.lookup_lows[plan.order]])
    padded = np.pad(np.concatenate([*merged, twins]), ((0, 0), (0, -h % PIECE)))
    # Identity, ReLU and leaky ReLU differ in their slope below zero only; layers are stored with it.
    pairs = [*zip(map(ACTIVATIONS.index, plan.activations), plan.alphas.tolist(), strict=True), (IDENTITY, 0.0)]
    arrays: dict[str, Any] = {
        "bias": bias,
        "twins": twins,
        "widths": widths,
        "curves": [code if code > LEAKY_RELU else IDENTITY for code, _ in pairs],
        "slopes": [{RELU: 0.0, LEAKY_RELU: alpha}.get(code, 1.0) for code, alpha in pairs],
        "alphas": [alpha for _, alpha in pairs],
        "weights": weights,
        "biases": biases,
        "columns": columns,
        "shifts": shifts,
        "numeric_slopes": slopes,
        "lookup_sizes": sizes[plan.order],
        "lookup_strides": strides[1:],
        "tables": padded.reshape(len(padded), -1, PIECE).swapaxes(0, 1),  # slices of 16 neurons, each of all rows
        "table_starts": np.cumsum([len(table) for table in merged])[:-1],
        "table_members": np.cumsum([0, *map(len, groups)]),
    }
    whole = ("widths", "curves", "columns", "table_members")
    kinds: dict[str, type] = {**dict.fromkeys(whole, np.int64), "shifts": np.float64}
    # Flat copies: kernels are compiled for writeable arrays, and a copy is not changed behind our back.
    flat: dict[str, Any] = {name: np.array(a, dtype=kinds.get(name, np.float32)).ravel() for name, a in arrays.items()}
    lines = aligned(flat["tables"].size, np.float32)
    lines[:], flat["tables"] = flat["tables"], lines
    # Places in a tile's buffer; `near` and `far` hold the layers in turn, `base` a block of tiles, `square` what is to
    # be transposed, what became of it, and behind it a sum for each of the people.
    widest, block = round_up(int(widths.max())), max(1, BLOCK_BYTES // (h * PEOPLE * 4))
    rows = {"near": widest, "far": widest, "base": block * h, "square": 2 * PIECE + 1, "turned": len(shifts)}
    rows |= {"numeric": plan.numeric_columns.size, "indices": len(sizes), "scores": plan.m, "size": 0}
    places = dict(zip(rows, (np.cumsum([0, *rows.values()]) * PEOPLE).tolist(), strict=False))
    twin_rows = sum(len(table) for table in merged)
    linear = plan.head == "linear"
    return Program(**flat, twin_rows=twin_rows, linear=linear, block=block * PEOPLE, **places)


def _margins(array: Array, favourable: int) -> Array:
    """Favourable column minus each of the others."""
    return array[..., favourable : favourable + 1] - np.delete(array, favourable, axis=-1)


def _groups(sizes: list[int], row_bytes: int) -> list[list[int]]:
    """Merge the two smallest tables again and again while all of them together stay small enough."""
    groups = [(size, [index]) for index, size in enumerate(sizes)]
    while len(groups) > 1:
        groups.sort()
        (one, members), (two, others), *rest = groups
        rows = one * two + sum(size for size, _ in rest)
        if rows * row_bytes > TABLE_BYTES:
            break
        groups = [(one * two, sorted(members + others)), *rest]
    return [members for _, members in groups]


def _merge(tables: list[Array]) -> Array:
    """One row per combination of values, the last table's value moving fastest."""
    merged = tables[0]
    for table in tables[1:]:
        merged = (merged[:, None, :] + table[None, :, :]).reshape(-1, table.shape[1])
    return merged


def check_values(codes: Doubles, row: int, columns: Integers, lows: Array, sizes: Integers) -> None:
    """Refuse codes of a row that are none of the values of a categorical attribute."""
    for column, low, size in zip(columns, lows, sizes, strict=True):
        code = codes[column]
        if not (low <= code < low + size and code == np.floor(code)):
            raise TableError.of_row(
                f"codes of column {column + 1} must be whole numbers within {low:.0f}..{low + size - 1:.0f}, "
                f"but {ROW} holds {code}.",
                row,
            )


def round_up(count: int) -> int:
    """The next multiple of a tile."""
    return -(-count // PEOPLE) * PEOPLE


def _reversed(plan: Plan) -> Adjoint:
    program, lookups = plan.program, plan.order
    h, outputs = int(program.widths[0]), int(program.widths[1:].sum())
    steps = [_steps(plan.dense.tables[plan.lookup_offsets[c] :][: plan.lookup_sizes[c]]) for c in lookups]
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


@contextmanager
def scratch(plan: Plan, size: int) -> Iterator[Scratch]:
    """Working memory for a block of tiles, whose buffer has this size: made once a thread, not once a chunk."""
    free, program = plan.spare.setdefault(size, []), plan.program
    try:
        buffer = free.pop()
    except IndexError:
        buffer = Scratch(
            tile=aligned(size, np.float32),
            live=np.zeros(size // PEOPLE + int(program.widths.sum()) + program.widths.size, np.int64),
            rows=np.zeros((program.table_starts.size + 1) * program.block, np.int32),
            counts=np.zeros(3 * PEOPLE, np.float32),
            bits=np.zeros(2 * PEOPLE, np.float64),
        )
    yield buffer
    free.append(buffer)
