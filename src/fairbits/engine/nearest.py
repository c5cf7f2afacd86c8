"""How far a person is from the nearest row of a table: attributes changed, and a normalised L1 distance.

Every row is one bit. A person's values choose one set of rows per attribute; how often a row is in these sets is the
number of attributes that it shares with the person. Bitsets are added up for 512 rows at once, in planes: plane 0 holds
the lowest bit of every row's count, plane 1 the next one, and a full adder of five logical operations on whole vectors
adds a bitset (`Counters`; compare `kernels.lanes`). A counter starts at 2^planes - 1 - best instead of 0: it overflows
for just those rows whose count is larger than `best`. Rows are compared exactly; nothing is sampled.

A set is a bitset as long as all bitsets together stay within a bound (128 MiB hold the 1,000 commonest values of a
million rows); other sets are lists of row numbers, which the kernel turns into bits when it meets them. The table is
scanned in strips of 16,384 rows, each for all people of a chunk before the next one, so that what the bitsets of the
common values hold of it (2 KiB each) stays in the processor's caches. A person costs r x f bits read: 1.5 microseconds
for the 26,000 distinct rows of Census with their 10 free attributes, 11 by comparing codes.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model
from numpy.typing import NDArray

from fairbits.domain import Codes, Integers, Schema
from fairbits.engine.kernels.compiler import compiled, inlined
from fairbits.engine.kernels.lanes import emitted
from fairbits.engine.seen import keys_of
from fairbits.engine.threads import aligned, share, writeable
from fairbits.errors import TableError

#: 64-bit words in a vector: two AVX2 registers a plane, so four planes and an adder's operands fit into sixteen.
WORDS = 8

ROWS = 64 * WORDS
WORD = ir.IntType(64)
VECTOR = ir.VectorType(WORD, WORDS)


class CountersType(types.Type):  # type: ignore[misc]
    """The Numba type of `Counters` with so many planes."""

    def __init__(self, planes: int) -> None:
        self.planes = planes
        super().__init__(name=f"fairbits.Counters({planes})")


@register_model(CountersType)
class CountersModel(models.PrimitiveModel):  # type: ignore[misc]
    """The planes, and after them the rows that have overflown: vectors, which LLVM puts into registers."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.ArrayType(VECTOR, kind.planes + 1))


def _half_add(builder: Any, one: ir.Value, two: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Sum and carry of two bits."""
    return builder.xor(one, two), builder.and_(one, two)


def _full_add(builder: Any, one: ir.Value, two: ir.Value, three: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Sum and carry of three bits."""
    partial, carry = _half_add(builder, one, two)
    total, second = _half_add(builder, partial, three)
    return total, builder.or_(carry, second)


@intrinsic
def start(_typing: Any, shape: Any, _value: Any) -> Any:
    """Counters that all hold one value."""
    kind = CountersType(shape.count)

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> ir.Value:
        counters = ir.Constant(ir.ArrayType(VECTOR, kind.planes + 1), None)
        for plane in range(kind.planes):
            bit = builder.and_(builder.lshr(values[1], WORD(plane)), WORD(1))
            spread = builder.sub(WORD(0), bit)
            vector = ir.Constant(VECTOR, ir.Undefined)
            for lane in range(WORDS):
                vector = builder.insert_element(vector, spread, ir.IntType(32)(lane))
            counters = builder.insert_value(counters, vector, plane)
        return counters

    return kind(shape, types.int64), codegen


@intrinsic
def add_four(_typing: Any, counters: Any, addresses: Any, _first: Any, _offset: Any) -> Any:
    """Count the rows of four bitsets: eight words of each, at an offset in bytes from four consecutive addresses.

    The addresses are read here because an index that Numba sees is tested for being negative, four times over.
    """
    planes = counters.planes

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
        result, array, first, offset = values
        data = context.make_array(signature.args[1])(context, builder, array).data
        vectors = []
        for i in range(4):
            address = builder.add(builder.load(builder.gep(data, [builder.add(first, WORD(i))])), offset)
            vectors.append(builder.load(builder.inttoptr(address, VECTOR.as_pointer()), align=8))
        one, two, three, four = vectors
        bits = [builder.extract_value(result, plane) for plane in range(planes + 1)]
        bits[0], left = _full_add(builder, bits[0], one, two)
        bits[0], right = _full_add(builder, bits[0], three, four)
        bits[1], carry = _full_add(builder, bits[1], left, right)
        for plane in range(2, planes):
            bits[plane], carry = _half_add(builder, bits[plane], carry)
        bits[planes] = builder.or_(bits[planes], carry)
        for plane in range(planes + 1):
            result = builder.insert_value(result, bits[plane], plane)
        return result

    return counters(counters, addresses, types.int64, types.int64), codegen


@emitted(types.boolean, None)
def overflown(_context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
    """Whether any counter has overflown."""
    rows = builder.extract_value(values[0], signature.args[0].planes)
    kind = ir.FunctionType(WORD, [VECTOR])
    reduce = builder.module.declare_intrinsic(f"llvm.vector.reduce.or.v{WORDS}i64", fnty=kind)
    return builder.icmp_unsigned("!=", builder.call(reduce, [rows]), WORD(0))


@emitted(types.void, None, types.int64)
def write_out(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
    """Write the planes, then the overflown rows, to an address with room for planes + 1 vectors."""
    target = builder.inttoptr(values[1], VECTOR.as_pointer())
    for plane in range(signature.args[0].planes + 1):
        place = builder.gep(target, [WORD(plane)])
        builder.store(builder.extract_value(values[0], plane), place, align=8)
    return context.get_dummy_value()


#: What the bitsets of a table may take up.
BYTES = 128 << 20

#: Whole numbers that lie within so wide a range are found by indexing, others by bisection.
DENSE = 1 << 16


class RowSets(NamedTuple):
    """The sets, as kernels take them. Values are numbered through all attributes, in rising order within each."""

    words: int  # in a bitset, a multiple of WORDS
    first: Integers  # (f + 1,) number of each attribute's first value
    values: Codes  # the values themselves
    lows: Codes  # (f,) smallest value, where values are found by indexing
    sizes: Integers  # (f,) range of that index; 0 where values are bisected
    starts: Integers  # (f,) where the attribute's index begins in `lookup`
    lookup: NDArray[np.int32]  # number of the value, -1 for none
    slots: Integers  # place among the bitsets of each value, -1 for a list
    bitsets: NDArray[np.uint64]  # flat
    ends: Integers  # (values + 1,) where the list of each value begins and ends in `members`
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
    # Values with a bitset are numbered; the commonest ones have one, where there are too many.
    chosen = np.isin(np.arange(len(counts)), np.argsort(-counts, kind="stable")[: bitset_bytes // (8 * words)])
    slots = np.where(chosen, np.cumsum(chosen) - 1, -1)
    bitsets = aligned(words * (int(slots.max(initial=-1)) + 1), np.uint64)
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


def _index(values: Codes, start: int) -> NDArray[np.int32]:
    """Numbers of the values by their distance from the smallest; empty where that would not do."""
    whole = bool(np.isfinite(values).all() and (values == np.rint(values)).all())
    if not whole or values[-1] - values[0] >= DENSE:
        return np.zeros(0, np.int32)
    index = np.full(int(values[-1] - values[0]) + 1, -1, np.int32)
    index[(values - values[0]).astype(np.int64)] = start + np.arange(len(values))
    return index


def _members(numbers: Integers, listed: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Rows of an attribute's listed values, value by value."""
    rows = np.flatnonzero(listed[numbers])
    return rows[np.argsort(numbers[rows], kind="stable")].astype(np.int32)


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


# Every slice of an array, and every field of a tuple that is read, counts as a new reference, which costs more than
# comparing a few numbers. So arrays are passed whole with an index, and fields are read ahead of loops.

#: Words of each bitset in a strip.
STRIP = 32 * WORDS


@inlined
def highest(top, planes):
    """The largest counter among the overflown rows, and the first row that holds it."""
    over = planes * WORDS
    value = 0
    for plane in range(planes - 1, -1, -1):
        both = np.uint64(0)
        for word in range(WORDS):
            both |= top[over + word] & top[plane * WORDS + word]
        if both:
            value += 1 << plane
            for word in range(WORDS):
                top[over + word] &= top[plane * WORDS + word]
    word = 0
    while top[over + word] == 0:
        word += 1
    row, rest = 64 * word, top[over + word]
    for width in (32, 16, 8, 4, 2, 1):
        if rest & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)) == 0:
            rest >>= np.uint64(width)
            row += width
    return value, row


@inlined
def place_strip(sets, wanted, cursors, i, found, begin, spare, addresses):
    """Put down where the strip of each wanted value's bitset lies; lists are entered into ``spare`` first.

    The first strip of ``spare`` is always empty: it pads the addresses to fours.
    """
    slots, ends, members, words = sets.slots, sets.ends, sets.members, sets.words
    base, spare_base = np.int64(sets.bitsets.ctypes.data), np.int64(spare.ctypes.data)
    lists = 0
    for place in range(found):
        number = wanted[i, place]
        if slots[number] >= 0:
            addresses[place] = base + 8 * (words * slots[number] + begin)
        else:
            lists += 1
            cursors[i, place] = fill(members, cursors[i, place], ends[number + 1], begin, spare, lists * STRIP, STRIP)
            addresses[place] = spare_base + 8 * STRIP * lists
    for place in range(found, found + 3):
        addresses[place] = spare_base
    return lists


@inlined
def scan_strip(shape, addresses, found, words, best, top):
    """The first row of a strip that is in the largest number of sets."""
    ceiling = (1 << len(shape)) - 1
    nearest = -1
    for block in range(0, words, WORDS):
        at = 8 * block
        counters = start(shape, ceiling - best)
        for i in range(0, found, 4):
            counters = add_four(counters, addresses, i, at)
        if overflown(counters):
            write_out(counters, np.int64(top.ctypes.data))
            value, row = highest(top, len(shape))
            best += 1 + value
            nearest = 64 * block + row
    return nearest, best


@inlined
def write_figures(rows, people, i, row, figures):
    """Write attributes changed between person and row, the row's position in the table, and the L1 distance."""
    columns, codes, widths = rows.columns, rows.codes, rows.widths
    changed, distance = 0, 0.0
    for attribute in range(len(columns)):
        code = people[i, columns[attribute]]
        if code != codes[row, attribute]:
            changed += 1
            width = widths[attribute]
            distance += abs(code - codes[row, attribute]) / width if width > 0 else 1.0
    figures[0][i], figures[1][i], figures[2][i] = changed, rows.original[row], distance


@compiled
def nearest_chunk(rows, sets, shape, people, figures):
    """Nearest row of every person."""
    n, attributes = len(people), len(rows.columns)
    nearest = np.zeros(n, np.int64)
    best, found = np.zeros(n, np.int64), np.zeros(n, np.int64)
    wanted = np.zeros((n, attributes), np.int64)
    cursors = np.zeros((n, attributes), np.int64)
    for i in range(n):
        found[i] = choose_values(sets, rows.columns, people, i, wanted, cursors)
    spare = np.zeros(STRIP * (attributes + 1), np.uint64)
    addresses = np.zeros(attributes + 3, np.int64)
    top = np.zeros((len(shape) + 1) * WORDS, np.uint64)
    used = WORDS * ((len(rows.codes) + ROWS - 1) // ROWS)  # bitsets may be padded
    for begin in range(0, used, STRIP):
        words = min(STRIP, used - begin)
        for i in range(n):
            if best[i] == found[i]:
                continue  # no row can share more
            lists = place_strip(sets, wanted, cursors, i, found[i], begin, spare, addresses)
            row, best[i] = scan_strip(shape, addresses, found[i], words, best[i], top)
            if row >= 0:
                nearest[i] = 64 * begin + row
            for word in range(STRIP, (lists + 1) * STRIP):
                spare[word] = 0
    for i in range(n):
        write_figures(rows, people, i, nearest[i], figures)


#: Words of bitsets read for a chunk of people: about a millisecond, against some ten microseconds to hand it out.
CHUNK = 5_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Nearest:
    """The nearest row of each person, over the attributes that are not protected.

    `changed` counts the attributes in which person and row differ. Several rows may be equally near: `row` is the
    first of them in the table. `l1` is the distance to that row: the sum of |difference| / (high - low) over
    integers and reals, plus 1 for each category that differs (and for a number whose domain is a single value).
    """

    changed: NDArray[np.int16]
    row: NDArray[np.int32]
    l1: NDArray[np.float32]


class _Rows(NamedTuple):
    """Distinct rows, as the kernel takes them."""

    columns: NDArray[np.int64]  # free columns of a person
    codes: Codes  # (r, f)
    original: NDArray[np.int32]  # first row of the table with these codes
    widths: Codes  # (f,) high - low; 0 for a category


class NearestRow:
    """The rows of a table, ready for people to be compared with them."""

    def __init__(self, schema: Schema, codes: Codes, *, bitset_bytes: int = BYTES) -> None:
        codes = _checked(codes, len(schema))
        if len(codes) == 0:
            raise TableError("the table has no rows; at least one is needed to be near to.")
        self._width = len(schema)
        columns = np.array(schema.free_columns, np.int64)
        free = [schema.attributes[column] for column in schema.free_columns]
        widths = [0.0 if a.kind == "category" else a.upper - a.low for a in free]
        chosen = _distinct(codes[:, columns], keys_of(codes, columns))
        distinct = np.ascontiguousarray(codes[chosen][:, columns])
        self._rows = _Rows(columns, distinct, chosen.astype(np.int32), np.array(widths, np.float64))
        self._sets: RowSets = row_sets(distinct, bitset_bytes=bitset_bytes)
        # The length of this tuple is the number of planes, which the kernel is compiled for.
        self._shape = (0,) * max(4, len(columns).bit_length())

    def find(self, people: Codes, *, threads: int | None = 1) -> Nearest:
        """The nearest row of each person."""
        people = _checked(people, self._width)
        n = len(people)
        nearest = Nearest(np.empty(n, np.int16), np.empty(n, np.int32), np.empty(n, np.float32))
        step = max(256, CHUNK // (self._sets.words * (len(self._rows.columns) + 1)))

        def run(begin: int) -> None:
            chunk = slice(begin, begin + step)
            part = writeable(people[chunk])
            figures = (nearest.changed[chunk], nearest.row[chunk], nearest.l1[chunk])
            nearest_chunk(self._rows, self._sets, self._shape, part, figures)

        share(run, range(0, n, step), threads)
        return nearest


def _checked(codes: Any, width: int) -> Codes:
    array: Codes = np.asarray(codes, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != width:
        raise TableError(f"codes must have shape (n, {width}), but got {array.shape}.")
    return array


def _distinct(codes: Codes, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The first of every set of equal rows. Rows that only share their key are kept."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    leaders = first[inverse]
    differs = (codes != codes[leaders]).any(axis=1)
    return np.flatnonzero((leaders == np.arange(len(codes))) | differs)
