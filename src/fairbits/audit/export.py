"""Cases as files: CSV that no spreadsheet runs, Parquet, JSON; there whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from fairbits.errors import FairbitsError, OptionError, choose_from
from fairbits.text import NUMBER

#: Text that starts so is run as a formula by spreadsheets.
_FORMULA = r"^[=+\-@\t\r\n]"


def check_target(path: Path, *, force: bool) -> None:
    """Refuse a file to write before anything is computed."""
    if path.suffix.lower() not in _WRITERS:
        raise OptionError(f"--out is {str(path)!r}, whose ending says no format; {choose_from(path.suffix, _WRITERS)}")
    if path.is_dir():
        raise OptionError(f"--out is {str(path)!r}, which is a folder; give a file.")
    if path.exists() and not force:
        raise OptionError(f"{str(path)!r} exists; choose another --out or add --force.")
    if not path.parent.is_dir():
        raise OptionError(f"the folder {str(path.parent)!r} does not exist; make it, or choose another --out.")


def export(reader: pa.RecordBatchReader, path: Path) -> int:
    """Write a table batch after batch; the file is there whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            rows = _WRITERS[path.suffix.lower()](reader, file)
        os.replace(temporary, path)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise FairbitsError(
            f"cannot write {str(path)!r}: {reason}; nothing was changed: free space, or choose another --out."
        ) from None
    finally:
        with suppress(OSError):  # where nothing could be made, nothing can be removed either
            temporary.unlink(missing_ok=True)
    return rows


def _write_csv(reader: pa.RecordBatchReader, file: IO[bytes]) -> int:
    def guarded(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([_column(column) for column in batch.columns], names=names)

    names = [_guarded(pa.array([name]))[0].as_py() for name in reader.schema.names]
    schema = guarded(pa.RecordBatch.from_pylist([], reader.schema)).schema
    with csv.CSVWriter(file, schema) as writer:
        return _written(map(guarded, reader), writer)


def _write_parquet(reader: pa.RecordBatchReader, file: IO[bytes]) -> int:
    with parquet.ParquetWriter(file, reader.schema, compression="zstd") as writer:
        return _written(reader, writer)


def _written(batches: Iterable[pa.RecordBatch], writer: Any) -> int:
    """Write batch after batch; gives the number of rows."""
    rows = 0
    for batch in batches:
        writer.write_batch(batch)
        rows += batch.num_rows
    return rows


def _write_json(reader: pa.RecordBatchReader, file: IO[bytes]) -> int:
    rows = 0
    for record in chain.from_iterable(batch.to_pylist() for batch in reader):
        file.write(b"[\n" if rows == 0 else b",\n")
        file.write(json.dumps(record, ensure_ascii=False).encode())
        rows += 1
    file.write(b"\n]\n" if rows else b"[]\n")
    return rows


_WRITERS: dict[str, Callable[[pa.RecordBatchReader, IO[bytes]], int]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".json": _write_json,
}


def _column(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):  # guard each label once, not each cell
        return pc.take(_guarded(column.dictionary), column.indices)
    return _guarded(column) if pa.types.is_string(column.type) else column


def _guarded(texts: pa.Array) -> pa.Array:
    """Text that a spreadsheet shows and does not run; numbers never come here."""
    number = pc.match_substring_regex(texts, NUMBER)  # "-710" is a label that no spreadsheet runs
    risky = pc.and_not(pc.match_substring_regex(texts, _FORMULA), number)
    return pc.if_else(risky, pc.binary_join_element_wise("'", texts, ""), texts)
