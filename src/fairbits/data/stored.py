"""Coded tables on disk: small Parquet files with the codes, the label and which rows are held out."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Schema, Table, check_domain, numpy_of
from fairbits.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

LABEL = "label"
HELD_OUT = "held_out"
HELD_OUT_SHARE = 0.25
_ORIGIN = b"fairbits.origin"


def split(name: str, table: Table, origin: str) -> Table:
    """A table of which the rows that its name draws are held out."""
    return replace(table, held_out=seeded_split(name, len(table)), origin=origin)


def seeded_split(name: str, rows: int) -> npt.NDArray[np.bool_]:
    """Rows that a subject holds out: a quarter, the same ones every time.

    Ranks of plain uniform draws are used, not a shuffle: NumPy keeps the former stable across versions.
    """
    generator = np.random.Generator(np.random.PCG64(list(name.encode())))
    ranks = np.argsort(np.argsort(generator.random(rows), kind="stable"), kind="stable")
    held_out: npt.NDArray[np.bool_] = ranks < round(rows * HELD_OUT_SHARE)
    return held_out


def fingerprint(table: Table) -> str:
    """A hash of a table's content that line ends, column order and unused columns do not change."""
    content = np.column_stack([table.codes, np.asarray(table.labels)]).astype("<i2")
    return hashlib.sha256(np.ascontiguousarray(content).tobytes()).hexdigest()


def write(path: Path, given: Table, schema: Schema, *, extra: dict[str, npt.NDArray[Any]] | None = None) -> None:
    """Write a coded table in one step: the file is either whole or not there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {name: _smallest(given.codes[:, i]) for i, name in enumerate(schema.names)}
    columns |= {LABEL: _smallest(np.asarray(given.labels)), HELD_OUT: given.held_out}
    columns |= {name: _smallest(values) for name, values in (extra or {}).items()}
    table = pa.table(columns).replace_schema_metadata({_ORIGIN: given.origin.encode()})
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        pq.write_table(table, partial, compression="zstd", compression_level=19, write_statistics=False)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read(path: Path, schema: Schema) -> Table:
    """Read a coded table and check it against the schema."""
    import pyarrow as pa

    try:
        data = _whole(path)
        codes = np.column_stack([numpy_of(data[name]) for name in schema.names]).astype(np.float64)
        labels, held_out = numpy_of(data[LABEL]).astype(np.float64), numpy_of(data[HELD_OUT]).astype(np.bool_)
    except (OSError, KeyError, pa.ArrowException) as error:
        raise TableError(f"cannot read the stored table {path} ({error}); remove it and add the data again.") from error
    check_domain(codes, schema)
    return Table(codes, labels, held_out, origin=(data.schema.metadata or {}).get(_ORIGIN, b"unknown").decode())


def read_extra(path: Path, name: str) -> npt.NDArray[np.int64]:
    """One column beside the attributes."""
    values: npt.NDArray[np.int64] = numpy_of(_whole(path, [name])[name]).astype(np.int64)
    return values


def _whole(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A Parquet file as a table. `read_table` would do it too, but imports pyarrow.dataset, and with it pandas."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return file.read(columns)


def _smallest(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    values = values.astype(np.int64)
    return values.astype(np.result_type(np.min_scalar_type(values.min()), np.min_scalar_type(values.max())))
