"""Which rows of a table have which value: for each value of each attribute, a set of rows.

A set is a bitset (one bit per row) as long as all bitsets together stay within a bound; what does not fit are
lists of row numbers, the rarest values first, which a kernel turns into bits when it meets such a value. A
bitset of r rows takes r / 8 bytes, so 128 MiB are enough for the 1,000 commonest values of a million rows.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.compiler import compiled, inlined
from fairbits.engine.kernels.counters import ROWS, WORDS

Codes = NDArray[np.float64]
Whole = NDArray[np.int64]

BYTES = 128 << 20
"""What the bitsets of a table may take up."""

DENSE = 1 << 16
"""Whole numbers that lie within so wide a range are found by indexing, others by bisection."""


class RowSets(NamedTuple):
    """The sets, as kernels take them. Values are numbered through all attributes, in rising order within each."""

    words: int  # in a bitset, a multiple of WORDS
    first: Whole  # (f + 1,) number of each attribute's first value
    values: Codes  # the values themselves
    lows: Codes  # (f,) smallest value, where values are found by indexing
    sizes: Whole  # (f,) range of that index; 0 where values are bisected
    starts: Whole  # (f,) where the attribute's index begins in `lookup`
    lookup: NDArray[np.int32]  # number of the value, -1 for none
    slots: Whole  # place among the bitsets of each value, -1 for a list
    bitsets: NDArray[np.uint64]  # flat
    ends: Whole  # (values + 1,) where the list of each value begins and ends in `members`
    members: NDArray[np.int32]


def row_sets(codes: Codes, *, bitset_bytes: int = BYTES) -> RowSets:
    """For each value of each attribute, the set of rows that have it."""
    rows = len(codes)
    # An odd number of cache lines: were it a power of two, the strips of all bitsets would compete for a few places
    # of the cache.
    words = (-(-rows // ROWS) | 1) * WORDS
    found = [np.unique(column, return_inverse=True, return_counts=True) for column in codes.T]
    first = np.cumsum([0, *(len(values) for values, _, _ in found)], dtype=np.int64)
    numbers = [number + start for (_, number, _), start in zip(found, first, strict=False)]
    counts = np.concatenate([np.zeros(0, np.int64), *(counts for _, _, counts in found)])
    slots = _slots(counts, bitset_bytes // (8 * words))
    bitsets = aligned_zeros(words * (int(slots.max(initial=-1)) + 1))
    for number in numbers:
        set_bits(bitsets, words, slots, number)
    listed = slots < 0
    indices = [_index(values, start) for (values, _, _), start in zip(found, first, strict=False)]
    sizes = np.array([len(index) for index in indices], np.int64)
    return RowSets(
        words=words,
        first=first,
        values=np.concatenate([np.zeros(0), *(values for values, _, _ in found)]),
        lows=np.array([values[0] for values, _, _ in found], np.float64),
        sizes=sizes,
        starts=np.cumsum(sizes) - sizes,
        lookup=np.concatenate([np.zeros(0, np.int32), *indices]),
        slots=slots,
        bitsets=bitsets,
        ends=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts * listed)]),
        members=np.concatenate([np.zeros(0, np.int32), *(_members(number, listed) for number in numbers)]),
    )


def _slots(counts: Whole, max_bitsets: int) -> Whole:
    """Number the values that get a bitset, the commonest ones where there are too many."""
    chosen = np.zeros(len(counts), np.bool_)
    chosen[np.argsort(-counts, kind="stable")[:max_bitsets]] = True
    return np.where(chosen, np.cumsum(chosen) - 1, -1)


def _index(values: Codes, start: int) -> NDArray[np.int32]:
    """Numbers of the values by their distance from the smallest; empty where that would not do."""
    whole = bool(np.isfinite(values).all() and (values == np.rint(values)).all())
    if not whole or values[-1] - values[0] >= DENSE:
        return np.zeros(0, np.int32)
    index = np.full(int(values[-1] - values[0]) + 1, -1, np.int32)
    index[(values - values[0]).astype(np.int64)] = start + np.arange(len(values))
    return index


def _members(numbers: Whole, listed: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Rows of an attribute's listed values, value by value."""
    rows = np.flatnonzero(listed[numbers])
    return rows[np.argsort(numbers[rows], kind="stable")].astype(np.int32)


def aligned_zeros(words: int) -> NDArray[np.uint64]:
    """Zeros that begin with a cache line, so that no vector lies across two."""
    raw = np.zeros(words + WORDS, np.uint64)
    skipped = -(raw.ctypes.data // 8) % WORDS
    return raw[skipped : skipped + words]


@compiled
def set_bits(bitsets, words, slots, numbers):
    """Enter each row into the bitset of its value, where that has one."""
    for row in range(len(numbers)):
        slot = slots[numbers[row]]
        if slot >= 0:
            bitsets[slot * words + (row >> 6)] |= np.uint64(1) << np.uint64(row & 63)


@inlined
def bisect(values, low, stop, code):
    """Position of a value among sorted ones; NaN is never found."""
    while stop - low > 1:
        middle = (low + stop) // 2
        if values[middle] <= code:
            low = middle
        else:
            stop = middle
    return low if values[low] == code else np.int64(-1)


@inlined
def choose_values(sets, columns, people, i, wanted, cursors):
    """Numbers of a person's values, and where the rows of each are listed."""
    first, values, lows, sizes = sets.first, sets.values, sets.lows, sets.sizes
    starts, lookup, ends = sets.starts, sets.lookup, sets.ends
    found = 0
    for attribute in range(len(columns)):
        code = people[i, columns[attribute]]
        number = np.int64(-1)
        if sizes[attribute]:
            offset = code - lows[attribute]
            if 0 <= offset < sizes[attribute] and offset == np.floor(offset):
                number = np.int64(lookup[starts[attribute] + np.int64(offset)])
        else:
            number = bisect(values, first[attribute], first[attribute + 1], code)
        if number >= 0:
            wanted[i, found], cursors[i, found] = number, ends[number]
            found += 1
    return found


@inlined
def fill(members, cursor, end, begin, spare, at, words):
    """Enter the rows of a list into a strip of a bitset."""
    while cursor < end:
        row = np.int64(members[cursor]) - 64 * begin
        if row >= 64 * words:
            break
        spare[at + (row >> 6)] |= np.uint64(1) << np.uint64(row & 63)
        cursor += 1
    return cursor
