"""The kernels behind `nearest`: look people up, and scan the table for those who are not in it.

The table is scanned in strips of 16,384 rows, each for all people of a chunk before the next one: what the bitsets
of the common values hold of one strip (2 KiB each) stays in the processor's caches. Strips go through the table in
order and a row must be strictly nearer to replace another, so the first of equally near rows is found.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np

from fairbits.engine.kernels.compiler import compiled, inlined
from fairbits.engine.kernels.counters import ROWS, WORDS, add_four, overflown, start, write_out
from fairbits.engine.row_sets import choose_values, fill

# Every slice of an array, and every field of a tuple that is read, counts as a new reference, which costs more than
# comparing a few numbers. So arrays are passed whole with an index, and fields are read ahead of loops.

STRIP = 32 * WORDS
"""Words of each bitset in a strip."""


@compiled
def settle_rows(keys, homes):
    """Put each row into the first free slot from its key on; half of the slots stay empty."""
    last = np.uint64(len(homes) - 1)
    for row in range(len(keys)):
        home = keys[row] & last
        while homes[home] >= 0:
            home = (home + np.uint64(1)) & last
        homes[home] = row


@inlined
def look_up(rows, people, i, key):
    """The row of the table that is this person."""
    homes, columns, codes = rows.homes, rows.columns, rows.codes
    last = np.uint64(len(homes) - 1)
    home = key & last
    while homes[home] >= 0:
        row = np.int64(homes[home])
        same = True
        for attribute in range(len(columns)):
            same &= people[i, columns[attribute]] == codes[row, attribute]
        if same:
            return row
        home = (home + np.uint64(1)) & last
    return np.int64(-1)


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
def nearest_chunk(rows, sets, shape, people, keys, figures):
    """Nearest row of every person."""
    n, attributes = len(people), len(rows.columns)
    nearest = np.zeros(n, np.int64)
    best, found = np.zeros(n, np.int64), np.zeros(n, np.int64)
    wanted = np.zeros((n, attributes), np.int64)
    cursors = np.zeros((n, attributes), np.int64)
    for i in range(n):
        row = look_up(rows, people, i, keys[i])
        if row >= 0:
            nearest[i] = row
        else:
            found[i] = choose_values(sets, rows.columns, people, i, wanted, cursors)
    spare = np.zeros(STRIP * (attributes + 1), np.uint64)
    addresses = np.zeros(attributes + 3, np.int64)
    top = np.zeros((len(shape) + 1) * WORDS, np.uint64)
    used = WORDS * ((len(rows.codes) + ROWS - 1) // ROWS)  # bitsets may be padded
    for begin in range(0, used, STRIP):
        words = min(STRIP, used - begin)
        for i in range(n):
            if best[i] == found[i]:
                continue  # no row can share more; found is 0 for people who are in the table
            lists = place_strip(sets, wanted, cursors, i, found[i], begin, spare, addresses)
            row, best[i] = scan_strip(shape, addresses, found[i], words, best[i], top)
            if row >= 0:
                nearest[i] = 64 * begin + row
            for word in range(STRIP, (lists + 1) * STRIP):
                spare[word] = 0
    for i in range(n):
        write_figures(rows, people, i, nearest[i], figures)
