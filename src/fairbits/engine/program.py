"""A plan made ready for the kernels: the head folded into the last layer, small tables merged, rows padded.

- Softmax over logits l is 1 / (1 + sum of exp(l_j - l_f) over the others), so the last layer may as well
  compute the margins l_f - l_j: one output less, and for two classes the same code as a sigmoid head.
- Tables of attributes with few values are merged into one with a row per combination of values: 41 lookups
  become a dozen, as long as the tables stay in the second-level cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.activations import IDENTITY, LEAKY_RELU, RELU
from fairbits.engine.kernels.simd import PEOPLE

if TYPE_CHECKING:
    from fairbits.engine.plan import Plan

TABLE_BYTES = 128 * 1024
"""Merged tables may grow to this size: they share the second-level cache with the weights."""

Array = NDArray[Any]


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
    shifts: Array
    numeric_slopes: Array
    lookup_sizes: Array
    lookup_strides: Array  # how many rows of the merged table a step of the attribute's code is
    tables: Array  # the merged tables, then the twins; rows padded to a whole number of tiles
    table_starts: Array  # first row of each merged table
    table_members: Array  # first lookup of each merged table, and the end of the last
    twin_rows: int  # the row of `tables` where the twins begin
    linear: bool
    near: int  # from here on: places in a tile's buffer
    far: int
    base: int
    square: int
    numeric: int
    indices: int
    rows: int
    scores: int
    size: int


class Scratch(NamedTuple):
    """The working memory of one call of a kernel."""

    tile: Array
    counts: Array
    bits: Array


def scratch(size: int) -> Scratch:
    """Working memory for a tile, aligned to whole vectors."""
    buffer = np.zeros(size + 16, np.float32)
    skip = -buffer.ctypes.data % 64 // 4
    return Scratch(
        tile=buffer[skip : skip + size],
        counts=np.zeros(3 * PEOPLE, np.float32),
        bits=np.zeros(2 * PEOPLE, np.float64),
    )


def _flat(array: Array, kind: type) -> Array:
    """A flat copy: kernels are compiled for writeable arrays, and a copy is not changed behind our back."""
    return np.array(array, dtype=kind).ravel()


def _margins(array: Array, favourable: int) -> Array:
    """Favourable column minus each of the others."""
    return array[..., favourable : favourable + 1] - np.delete(array, favourable, axis=-1)


def fold_head(plan: Plan) -> dict[str, Array]:
    """The arrays of the last layer (which may be the first) with the head folded in."""
    if plan.head.name != "SOFTMAX":
        return {}
    if len(plan.widths) == 1:
        h = int(plan.widths[0])
        first = {
            "bias": plan.bias,
            "twins": plan.twins,
            "numeric_slopes": plan.numeric_slopes.reshape(-1, h),
            "lookup_tables": plan.lookup_tables.reshape(-1, h),
        }
        folded = {name: _margins(array, plan.favourable) for name, array in first.items()}
        return {**folded, "widths": plan.widths - 1}
    inputs, outputs = (int(width) for width in plan.widths[-2:])
    last = plan.weights[-inputs * outputs :].reshape(inputs, outputs)
    weights = [plan.weights[: -inputs * outputs], _margins(last, plan.favourable).ravel()]
    biases = [plan.biases[:-outputs], _margins(plan.biases[-outputs:], plan.favourable)]
    widths = np.append(plan.widths[:-1], outputs - 1)
    return {"weights": np.concatenate(weights), "biases": np.concatenate(biases), "widths": widths}


def _group(sizes: list[int], row_bytes: int) -> list[list[int]]:
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


def lookup_groups(plan: Plan, h: int) -> list[list[int]]:
    """Which lookups share a merged table; kernels meet the lookups in this order."""
    return _group(plan.lookup_sizes.tolist(), round_up(h) * 4)


def _merge(tables: list[Array]) -> Array:
    """One row per combination of values, the last table's value moving fastest."""
    merged = tables[0]
    for table in tables[1:]:
        merged = (merged[:, None, :] + table[None, :, :]).reshape(-1, table.shape[1])
    return merged


def _lower_lookups(plan: Plan, tables: Array, twins: Array, h: int) -> dict[str, Array]:
    sizes = plan.lookup_sizes
    padded = round_up(h)
    groups = lookup_groups(plan, h)
    merged, strides, order = [np.zeros((0, h), np.float32)], [], []
    for members in groups:
        merged.append(_merge([tables[plan.lookup_offsets[c] : plan.lookup_offsets[c] + sizes[c]] for c in members]))
        strides += [int(np.prod(sizes[members[place + 1 :]])) for place in range(len(members))]
        order += members
    return {
        "columns": np.concatenate([plan.numeric_columns, plan.lookup_columns[order]]),
        "shifts": np.concatenate([plan.numeric_shifts, plan.lookup_lows[order]]),
        "lookup_sizes": sizes[order],
        "lookup_strides": np.array(strides),
        "tables": np.pad(np.concatenate([*merged, twins]), ((0, 0), (0, padded - h))),
        "table_starts": np.cumsum([len(table) for table in merged])[:-1],
        "table_members": np.cumsum([0, *map(len, groups)]),
    }


def _lower_activations(plan: Plan) -> dict[str, Array]:
    """Identity, ReLU and leaky ReLU differ in their slope below zero only; layers are stored with it."""
    pairs = [*zip(plan.activations.tolist(), plan.alphas.tolist(), strict=True), (IDENTITY, 0.0)]
    curves = [code if code > LEAKY_RELU else IDENTITY for code, _ in pairs]
    slopes = [{RELU: 0.0, LEAKY_RELU: alpha}.get(code, 1.0) for code, alpha in pairs]
    alphas = [alpha for _, alpha in pairs]
    return {"curves": np.array(curves), "slopes": np.array(slopes), "alphas": np.array(alphas)}


def round_up(count: int) -> int:
    """The next multiple of a tile."""
    return -(-count // PEOPLE) * PEOPLE


def _layout(widths: Array, numeric: int, lookups: int, tables: int, m: int) -> dict[str, Any]:
    """Places in a tile's buffer; `near` and `far` hold the layers in turn, `square` a tile to transpose."""
    widest = round_up(int(widths.max()))
    rows = {"near": widest, "far": widest, "base": round_up(int(widths[0])), "square": PEOPLE}
    # The twin, where each person has one only, is one more table row.
    rows |= {"numeric": numeric, "indices": lookups, "rows": tables + 1, "scores": m, "size": 0}
    starts = np.cumsum([0, *rows.values()]) * PEOPLE
    return dict(zip(rows, starts.tolist(), strict=False))


def lower(plan: Plan) -> Program:
    """The plan as flat arrays for the kernels."""
    arrays: dict[str, Any] = {name: getattr(plan, name) for name in Program._fields if hasattr(plan, name)}
    arrays["lookup_tables"] = plan.lookup_tables
    arrays["widths"] = plan.widths
    arrays |= fold_head(plan)
    h = int(arrays["widths"][0])
    arrays |= _lower_lookups(plan, arrays.pop("lookup_tables").reshape(-1, h), arrays["twins"], h)
    arrays |= _lower_activations(plan)
    whole = ("widths", "curves", "columns", "table_members")
    kinds: dict[str, type] = {**dict.fromkeys(whole, np.int64), "shifts": np.float64}
    flat: dict[str, Any] = {name: _flat(array, kinds.get(name, np.float32)) for name, array in arrays.items()}
    layout: dict[str, Any] = _layout(
        flat["widths"], plan.numeric_columns.size, plan.lookup_columns.size, flat["table_starts"].size, plan.m
    )
    twin_rows = flat["tables"].size // round_up(h) - plan.m
    return Program(**flat, twin_rows=twin_rows, linear=plan.head.name == "LINEAR", **layout)
