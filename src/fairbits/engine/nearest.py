"""How far a person is from the nearest row of a table: attributes changed, and a normalised L1 distance.

Every row is one bit. A person's values choose one set of rows per attribute (`rowsets`); how often a row is in
these sets is the number of attributes that it shares with the person, and those numbers are added up for 512 rows
at once (`counters`). Rows are compared exactly; nothing is sampled, and threads do not change the answer.

The table costs 8 bytes per free attribute and distinct row, and r / 8 bytes per value (at most 128 MiB, see
`rowsets`). A person costs r x f bits read: 1.5 microseconds for the 26,000 distinct rows of Census with their 10
free attributes, some 50 for a million rows. People who are rows of the table are looked up by their hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import Schema
from fairbits.engine.kernels.scan import nearest_chunk, settle_rows
from fairbits.engine.row_sets import BYTES, RowSets, row_sets
from fairbits.engine.seen import keys_of
from fairbits.engine.threads import share
from fairbits.errors import TableError

Codes = NDArray[np.float64]

CHUNK = 5_000_000
"""Words of bitsets read for a chunk of people: about a millisecond, against some ten microseconds to hand it out."""


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
    homes: NDArray[np.int32]  # hash table of distinct rows, -1 where empty


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
        keys = keys_of(codes, columns)
        chosen = _distinct(codes[:, columns], keys)
        distinct = np.ascontiguousarray(codes[chosen][:, columns])
        homes = np.full(1 << (2 * len(chosen)).bit_length(), -1, np.int32)
        settle_rows(keys[chosen], homes)
        self._rows = _Rows(columns, distinct, chosen.astype(np.int32), np.array(widths, np.float64), homes)
        self._sets: RowSets = row_sets(distinct, bitset_bytes=bitset_bytes)
        # The length of this tuple is the number of planes, which the kernel is compiled for.
        self._shape = (0,) * max(4, len(columns).bit_length())

    def __len__(self) -> int:
        """Distinct rows."""
        return len(self._rows.codes)

    def find(self, people: Codes, *, threads: int | None = 1) -> Nearest:
        """The nearest row of each person."""
        people = _checked(people, self._width)
        n = len(people)
        nearest = Nearest(np.empty(n, np.int16), np.empty(n, np.int32), np.empty(n, np.float32))
        step = max(256, CHUNK // (self._sets.words * (len(self._rows.columns) + 1)))

        def run(begin: int) -> None:
            chunk = slice(begin, begin + step)
            part = np.require(people[chunk], requirements=["C", "A", "W"])
            keys = keys_of(part, self._rows.columns)
            figures = (nearest.changed[chunk], nearest.row[chunk], nearest.l1[chunk])
            nearest_chunk(self._rows, self._sets, self._shape, part, keys, figures)

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
