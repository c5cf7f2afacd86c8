"""People whom several tasks of a search found: tasks know nothing of each other, so some are written more than once.

Parts are cut into row groups by a hash of the person, their bucket: two rows about the same person are always in the
same one. So doubles are looked for bucket by bucket, by as many readers as there are cores, each in the memory of one
bucket. The earliest evaluation stays. Once a search has ended, what was found is kept beside the parts, and whoever
opens the run reads only that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairbits.engine import available_cores
from fairbits.errors import OptionError
from fairbits.store.cases import BUCKET, Layout
from fairbits.store.files import read_parquet, write_parquet
from fairbits.store.location import is_local
from fairbits.store.parts import FOLDER, Part

NAME = "doubles.parquet"
#: Memory of all readers together.
MEMORY_MB = 1024
#: Rows that a reader looks at together, about.
GROUP_ROWS = 2_000_000
_PARTS = b"fairbits:parts"

Numbers = npt.NDArray[np.int64]


def find_doubles(parts: Sequence[Part], layout: Layout, *, buckets: int, readers: int | None = None) -> Numbers:
    """The evaluations that found somebody whom an earlier one had found, in order."""
    if not parts:
        return np.empty(0, np.int64)
    readers = min(readers or available_cores(), buckets)
    # Small buckets are looked at together: opening every part once more costs more than a larger table.
    together = max(1, int(GROUP_ROWS * buckets / max(1, sum(part.rows for part in parts))))
    shares = [range(first, buckets, readers) for first in range(readers)]
    with ThreadPoolExecutor(readers) as pool:
        found = list(pool.map(lambda share: _in_buckets(parts, layout, share, together, MEMORY_MB // readers), shares))
    return np.sort(np.concatenate(found))


def keep_doubles(folder: Path, parts: Sequence[Part], found: Numbers) -> None:
    """Write down which evaluations found a person who is stored already."""
    table = pa.table({"evaluation": pa.array(found, pa.int64())}).replace_schema_metadata({_PARTS: _digest(parts)})
    packed = {"evaluation": "DELTA_BINARY_PACKED"}
    write_parquet(folder / FOLDER / NAME, table, compression="lz4", column_encoding=packed, use_dictionary=False)


def kept_doubles(folder: Path, parts: Sequence[Part]) -> pa.Table | None:
    """The duplicates that were written down about exactly these parts."""
    path = folder / FOLDER / NAME
    if not path.is_file():
        return None
    try:
        table = read_parquet(path, remedy="delete it")
    except OptionError:
        return None  # it can be found again
    kept = (table.schema.metadata or {}).get(_PARTS)
    return table if kept == _digest(parts) else None


def _digest(parts: Sequence[Part]) -> bytes:
    return hashlib.sha256("\n".join(sorted(part.path.name for part in parts)).encode()).hexdigest().encode()


def _in_buckets(parts: Sequence[Part], layout: Layout, buckets: range, together: int, memory: int) -> Numbers:
    import duckdb

    from fairbits.store.sql import elsewhere, hide_progress

    with duckdb.connect(":memory:", config={"threads": 1, "python_enable_replacements": "false"}) as connection:
        hide_progress(connection)
        connection.execute(f"SET memory_limit = '{max(memory, 64)}MB'")
        connection.execute("SET preserve_insertion_order = false")
        if is_local(parts[0].path):
            listed = ", ".join(_text(str(part.path.resolve())) for part in parts)
            connection.execute(f"CREATE VIEW written AS SELECT * FROM read_parquet([{listed}])")  # noqa: S608 - quoted
        else:
            connection.register("written", elsewhere(list(parts), layout))
        groups = [buckets[first : first + together] for first in range(0, len(buckets), together)]
        found = [connection.execute(_question(layout, group)).fetchnumpy()["evaluation"] for group in groups]
    return np.concatenate([np.empty(0, np.int64), *found]).astype(np.int64)


def _question(layout: Layout, buckets: range) -> str:
    """Most people are found once: their hashes tell so in little memory, and only the others are compared in full."""
    person, listed = ", ".join(map(_name, layout.names)), ", ".join(map(str, buckets))
    return f"""
        WITH mine AS MATERIALIZED (SELECT {person}, evaluation FROM written WHERE {_name(BUCKET)} IN ({listed})),
        often AS (SELECT hash({person}) AS h FROM mine GROUP BY h HAVING count(*) > 1),
        maybe AS (SELECT {person}, evaluation FROM mine SEMI JOIN often ON hash({person}) = often.h)
        SELECT evaluation FROM (SELECT evaluation, min(evaluation) OVER (PARTITION BY {person}) AS first FROM maybe)
        WHERE evaluation <> first
    """  # noqa: S608 - names of our own columns, quoted


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
