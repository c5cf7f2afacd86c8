"""People, not rows: whose rows belong together, so that chance is counted over people.

A table may hold a person several times (a row a month, a row an application). Such rows are no independent evidence:
1,000 people of 12 rows each are 1,000 people. With ``[table] person = "id"`` the table says whose a row is. Without it,
rows that repeat in every column are taken for one person, unless people of other protected values have the same
unprotected ones too: those are evidently different people who are alike, and so may the others be.

Rates and means stay those of rows; their intervals, splits and tests draw people.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain.schema import Schema
from fairbits.domain.table import Table

#: Where a larger share of the rows than this repeats others in all unprotected columns, it is noticed.
NOTICED = 0.01

Integers = npt.NDArray[np.int64]


def people_of(schema: Schema, table: Table) -> Integers | None:
    """The number of the person of each row, from 0; None where every row is somebody else."""
    if table.person is not None:
        codes = np.unique(table.person, return_inverse=True)[1].astype(np.int64)
        return None if codes.max(initial=-1) + 1 == len(codes) else codes
    free, whole = _kinds(schema, table)
    sizes = np.bincount(free)
    if not _noticed(sizes, len(table)):
        return None
    # A kind of unprotected values that comes with one kind of protected ones only: its rows look like one person.
    first = np.full(len(sizes), -1, dtype=np.int64)
    first[free[::-1]] = whole[::-1]
    mixed = np.bincount(free, weights=first[free] != whole, minlength=len(sizes)) > 0
    own = np.where(mixed[free], len(sizes) + np.arange(len(free)), free)
    codes = np.unique(own, return_inverse=True)[1].astype(np.int64)
    return None if codes.max() + 1 == len(codes) else codes


def people_notes(schema: Schema, table: Table) -> tuple[str, ...]:
    """What must be known about rows and people to read intervals."""
    people = people_of(schema, table)
    count = len(table) if people is None else int(people.max()) + 1
    if table.person is not None:
        return (
            f"the table has {len(table):,} rows of {count:,} people: rates and means are those of rows, and their "
            f"intervals, splits and tests draw people.",
        )
    free, _ = _kinds(schema, table)
    sizes = np.bincount(free)
    if not _noticed(sizes, len(table)):
        return ()
    repeated = int(sizes[sizes > 1].sum())
    taken = (
        f"intervals, splits and tests take rows that repeat in every column for one person ({count:,} people)"
        if people is not None
        else "people of other protected values are alike in them too, so they are taken for different people"
    )
    return (
        f"{repeated:,} of {len(table):,} rows repeat in all unprotected columns; {taken}. Where rows belong to the "
        f'same people, name the column of their id: person = "…" under [table].',
    )


def one_row_each(people: Integers | None, n: int, rng: np.random.Generator) -> Integers:
    """A row of every person, by lot, in the order of the rows; all rows where each is somebody else."""
    if people is None:
        return np.arange(n)
    order = rng.permutation(n)
    return np.sort(order[np.unique(people[order], return_index=True)[1]])


def _noticed(sizes: Integers, n: int) -> bool:
    return n > 0 and float(sizes[sizes > 1].sum()) > NOTICED * n


def _kinds(schema: Schema, table: Table) -> tuple[Integers, Integers]:
    """The kind of each row: by the unprotected columns, and by all of them, with what the model does not take."""
    columns = [table.codes[:, i] for i in schema.free_columns]
    columns += [] if table.scores is None else [table.scores]
    free = _numbered(columns, len(table))
    more: list[npt.NDArray[Any]] = [free, *(table.codes[:, i] for i in schema.protected_columns)]
    more += [] if table.observed is None else list(table.observed.T)
    return free, _numbered(more, len(table))


def _numbered(columns: list[npt.NDArray[Any]], n: int) -> Integers:
    """Rows by number, equal ones alike, by a hash of 64 bits (a million rows: 3 in 10⁸ collide)."""
    found = np.zeros(n, dtype=np.uint64)
    for column in columns:
        bits = (np.asarray(column, dtype=np.float64) + 0.0).view(np.uint64)  # 0 and −0 are the same
        found = (found ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(29)
        found *= np.uint64(0xBF58476D1CE4E5B9)
        found ^= found >> np.uint64(32)
    return np.unique(found, return_inverse=True)[1].astype(np.int64)
