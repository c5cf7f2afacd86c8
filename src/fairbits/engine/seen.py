"""Who was here before: 64-bit keys of people, and the set of the keys seen so far.

A person is remembered by a hash of the codes that a search may change, eight bytes each, in one flat array with
linear probing. The price is that a new person may be taken for one seen before when both have the same key:
among n people the chance that this happens even once is about n² / 2^65, which is 3e-6 for 10 million people and
3e-4 for 100 million. A person seen before is never taken for a new one.

The array starts small, so that a short search costs nothing, and its first growth is to the size hinted at:
by default 2^26 slots (512 MiB), which hold 53 million keys. Keys scatter over the array, so all of it is in use
from then on and a long search takes no more memory than a short one. Past the hint the array doubles (100 million
keys: 1 GiB, and half of that again while the old array is copied to the new one).
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.compiler import compiled, inlined
from fairbits.engine.kernels.lanes import prefetch
from fairbits.engine.threads import writeable

Keys = NDArray[np.uint64]

#: How full the array may be: a new key then needs 13 probes on average, in two cache lines.
LOAD = 0.8

#: Slots to begin with: 1 MiB, which stays in the processor's cache.
START = 1 << 17

#: Keys whose slots are on the way from memory while one is being looked up.
AHEAD = 16

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: odd, and without a pattern in its bits
MINUS_ZERO = np.uint64(1 << 63)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # splitmix64's multipliers
EMPTY = np.uint64(0)


class Seen:
    """The keys seen so far. Not for several threads at once."""

    def __init__(self, *, capacity_hint: int = 50_000_000) -> None:
        self._hinted = 1 << 10
        while self._hinted * LOAD < capacity_hint:
            self._hinted *= 2
        self._table: Keys = np.zeros(min(START, self._hinted), np.uint64)
        self._kept = 0

    def __len__(self) -> int:
        return self._kept

    @property
    def slots(self) -> int:
        """Keys that the array has room for, of which `LOAD` may be in use; eight bytes each."""
        return len(self._table)

    def add(self, keys: Keys) -> NDArray[np.bool_]:
        """Remember keys."""
        keys = writeable(keys)
        new = np.zeros(len(keys), np.bool_)
        done = 0
        while done < len(keys):
            room = int(self.slots * LOAD) - self._kept
            if room < 1:
                self._grow()
                continue
            start = done
            done = insert(self._table, shift_of(self._table), keys, start, room, new)
            self._kept += int(np.count_nonzero(new[start:done]))
        return new

    def _grow(self) -> None:
        larger: Keys = np.zeros(max(2 * self.slots, self._hinted), np.uint64)
        move(self._table, larger, shift_of(larger))
        self._table = larger


def keys_of(codes: NDArray[np.float64], columns: NDArray[np.int64]) -> Keys:
    """A key for each row of codes (n, d), from the bits of these columns; -0.0 counts as 0.0.

    The same codes give the same key in every process and on every machine.
    """
    keys = np.empty(len(codes), np.uint64)
    bits = np.ascontiguousarray(codes, dtype=np.float64).view(np.uint64)
    hash_rows(writeable(bits), writeable(np.asarray(columns, dtype=np.int64)), keys)
    return keys


def shift_of(table: Keys) -> np.uint64:
    """How far a 64-bit number moves right to become a slot."""
    return np.uint64(65 - len(table).bit_length())


@inlined
def mixed(bits):
    """A one-to-one map of 64 bits in which every bit of the result depends on every bit given (splitmix64's)."""
    bits = (bits ^ (bits >> np.uint64(30))) * FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * SECOND
    return bits ^ (bits >> np.uint64(31))


@compiled
def hash_rows(codes, columns, keys):
    """The key of every row of bit patterns."""
    for row in range(len(codes)):
        key = GOLDEN
        for column in columns:
            bits = codes[row, column]
            if bits == MINUS_ZERO:
                bits = EMPTY
            # Adding a constant between columns keeps equal columns from cancelling out.
            key = mixed((key ^ bits) + GOLDEN)
        keys[row] = key


@inlined
def slot_of(key, shift):
    """The first slot to try for a key: the top bits of a product, so that even counting numbers spread."""
    return (key * GOLDEN) >> shift


@inlined
def settle(table, slot, key):
    """Put a key into the first free slot."""
    last = np.uint64(len(table) - 1)
    while table[slot] != EMPTY:
        if table[slot] == key:
            return False
        slot = (slot + np.uint64(1)) & last
    table[slot] = key
    return True


@compiled
def insert(table, shift, keys, start, room, new):
    """Add keys until there is no more room."""
    n = len(keys)
    for at in range(start, n):
        prefetch(table, slot_of(keys[min(at + AHEAD, n - 1)], shift))
        key = keys[at] if keys[at] != EMPTY else GOLDEN  # an empty slot holds 0: that key goes by another
        if settle(table, slot_of(key, shift), key):
            new[at] = True
            room -= 1
            if room == 0:
                return at + 1
    return n


@compiled
def move(old, larger, shift):
    """Copy all keys to a larger table; slots are top bits, so both tables are walked from front to back."""
    for key in old:
        if key != EMPTY:
            settle(larger, slot_of(key, shift), key)
