"""A plan made ready for the kernels: the head folded into the last layer, small tables merged, rows padded.

- Softmax over logits l is 1 / (1 + sum of exp(l_j - l_f) over the others), so the last layer may as well compute the
  margins l_f - l_j: one output less, and for two classes the same code as a sigmoid head.
- Tables of attributes with few values are merged into one with a row per combination of values: 41 lookups
  become a dozen, as long as the tables stay in the second-level cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.simd import PEOPLE

if TYPE_CHECKING:
    from fairbits.engine.plan import Plan

TABLE_BYTES = 192 * 1024
"""Merged tables may grow to this size: they share the second-level cache (512 KiB and up) with the weights."""

Array = NDArray[Any]


class Program(NamedTuple):
    """What a kernel gets. Numba takes named tuples apart by itself; every array is flat, contiguous, writeable."""

    bias: Array
    twins: Array
    widths: Array
    activations: Array
    alphas: Array
    weights: Array
    biases: Array
    numeric_columns: Array
    numeric_shifts: Array
    numeric_slopes: Array
    lookup_columns: Array
    lookup_lows: Array
    lookup_sizes: Array
    lookup_groups: Array  # the merged table that a categorical attribute belongs to
    lookup_strides: Array  # and how many of its rows a step of the attribute's code is
    tables: Array  # rows padded to a whole number of tiles
    table_starts: Array  # first row of each merged table
    linear: bool


def _flat(array: Array, kind: type) -> Array:
    """A flat copy: kernels are compiled for writeable arrays only, and a copy cannot be changed behind our back."""
    return np.array(array, dtype=kind).ravel()


def _margins(array: Array, favourable: int) -> Array:
    """Favourable column minus each of the others."""
    return array[..., favourable : favourable + 1] - np.delete(array, favourable, axis=-1)


def _fold_head(plan: Plan) -> dict[str, Array]:
    """The arrays that the head concerns: those of the last layer, which may be the first layer."""
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


def _merge(tables: list[Array]) -> Array:
    """One row per combination of values, the last table's value moving fastest."""
    merged = tables[0]
    for table in tables[1:]:
        merged = (merged[:, None, :] + table[None, :, :]).reshape(-1, table.shape[1])
    return merged


def _lower_lookups(plan: Plan, tables: Array, h: int) -> dict[str, Array]:
    sizes = [int(size) for size in plan.lookup_sizes]
    padded = -(-h // PEOPLE) * PEOPLE
    groups = _group(sizes, padded * 4) if sizes else []
    group_of, strides = np.zeros(len(sizes), np.int64), np.ones(len(sizes), np.int64)
    merged, starts, rows = [np.zeros((0, h), np.float32)], [], 0
    for number, members in enumerate(groups):
        parts = [tables[plan.lookup_offsets[c] : plan.lookup_offsets[c] + sizes[c]] for c in members]
        merged.append(_merge(parts))
        starts.append(rows)
        rows += merged[-1].shape[0]
        for place, member in enumerate(members):
            group_of[member] = number
            strides[member] = int(np.prod([sizes[c] for c in members[place + 1 :]]))
    stacked = np.concatenate(merged)
    return {
        "lookup_sizes": np.array(sizes),
        "lookup_groups": group_of,
        "lookup_strides": strides,
        "tables": np.pad(stacked, ((0, 0), (0, padded - h))),
        "table_starts": np.array(starts),
    }


def lower(plan: Plan) -> Program:
    """The program of a plan."""
    arrays: dict[str, Any] = {name: getattr(plan, name, None) for name in Program._fields}
    arrays["lookup_tables"] = plan.lookup_tables
    if plan.head.name == "SOFTMAX":
        arrays |= _fold_head(plan)
    h = int(arrays["widths"][0])
    arrays |= _lower_lookups(plan, arrays.pop("lookup_tables").reshape(-1, h), h)
    arrays["linear"] = plan.head.name == "LINEAR"
    kinds: dict[str, type] = {"numeric_shifts": np.float64}
    whole = ("widths", "activations", "numeric_columns", "lookup_columns", "lookup_lows", "lookup_sizes")
    kinds |= dict.fromkeys((*whole, "lookup_groups", "lookup_strides", "table_starts"), np.int64)
    flat = {n: _flat(a, kinds.get(n, np.float32)) for n, a in arrays.items() if n != "linear"}
    return Program(**flat, linear=arrays["linear"])
