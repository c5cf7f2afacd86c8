"""What whoever runs fairbits grants to files from outside, and how large a table may be.

A subject.toml, a table and a model are data: they can ask for code, secrets and memory, and get what the person at the
command line (or the caller in Python) has granted, nothing else. See docs/security.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, cast

from fairbits.errors import OptionError, TableError

#: Rows of a table, unless --max-rows says otherwise; and cells for each of these rows, which bounds wide tables.
MAX_ROWS = 2_000_000
CELLS_PER_ROW = 32
#: No table has more columns: each of them is an attribute somebody would have to describe.
MAX_COLUMNS = 20_000
#: What a cell may take in memory on average, text counted in, and what even a small table may take.
_BYTES_PER_CELL, _BYTES = 8, 64 << 20
#: Bytes of a model when it is unpacked, and of the values that it computes for one row, unless --max-model-bytes
#: says otherwise.
MAX_MODEL_BYTES = 512 * 1024 * 1024
#: Seconds that a foreign model may take until it has answered for the first time, unless --max-seconds says otherwise.
MAX_SECONDS = 12.0
#: Requests to a language model, unless --max-requests says otherwise.
MAX_REQUESTS = 10_000


class GrantOptions(TypedDict, total=False):
    """What may be granted, by its name in Python; the command line has the same names with dashes."""

    trust: bool
    trust_code: bool
    trust_pickle: bool
    credential: str | None
    max_model_bytes: int
    max_rows: int
    max_seconds: float
    max_requests: int
    max_cost: float


def granted_in(options: Mapping[str, Any]) -> GrantOptions:
    """The grants to files from outside among other options."""
    known = GrantOptions.__annotations__
    return cast(GrantOptions, {name: value for name, value in options.items() if name in known})


def check_rows(rows: int, columns: int, max_rows: int, name: str) -> None:
    """Refuse a table that is larger than granted, before it is unpacked."""
    if rows > max_rows:
        raise TableError(
            f"the table {name!r} has {rows:,} rows, and {max_rows:,} are allowed; raise --max-rows if it is yours."
        )
    if columns > MAX_COLUMNS:
        raise TableError(f"the table {name!r} has {columns:,} columns; at most {MAX_COLUMNS:,} can be read.")
    check_cells(rows * columns, max_rows, name)


def check_cells(cells: int, max_rows: int, name: str) -> None:
    """Refuse a table with more cells than the allowed number of rows can have."""
    if cells > max_rows * CELLS_PER_ROW + CELLS_PER_ROW * MAX_COLUMNS:
        raise TableError(
            f"the table {name!r} has about {cells:,} cells, and {max_rows * CELLS_PER_ROW:,} are allowed; raise "
            f"--max-rows if it is yours."
        )


def check_bytes(size: int, max_rows: int, name: str) -> None:
    """Refuse a table that takes more memory than the allowed number of rows can take."""
    if size > max_table_bytes(max_rows):
        raise TableError(
            f"the table {name!r} takes {size:,} bytes, and {max_table_bytes(max_rows):,} are allowed; raise "
            f"--max-rows if it is yours."
        )


def max_table_bytes(max_rows: int) -> int:
    """Memory that a table may take."""
    return max_rows * CELLS_PER_ROW * _BYTES_PER_CELL + _BYTES


def check_limit(name: str, value: object) -> None:
    """Refuse a limit that is no whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError(f"{name} is {value!r}; it must be a whole number from 1 up.")
