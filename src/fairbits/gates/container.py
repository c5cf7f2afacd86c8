"""A Parquet file with a description: how suites and baselines are kept, there whole or not at all.

Both come from a repository that others write to, so they are data: sizes are held against limits before anything is
unpacked, the first reading happens in a child process (:func:`fairbits.domain.read_arrow`), every column is checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairbits.domain import MAX_ROWS, is_there, numpy_of, read_arrow
from fairbits.errors import OptionError, TableError
from fairbits.store import plain, write_parquet

KEY = b"fairbits"
FORMAT = 1
SUFFIX = ".parquet"
_MAX_DESCRIPTION = 4 << 20


def write_container(
    path: Path, kind: str, columns: Mapping[str, npt.NDArray[Any]], description: Mapping[str, Any]
) -> None:
    """Write columns with their description."""
    check_suffix(path, kind)
    text = json.dumps(plain({"kind": kind, "format": FORMAT, **description}), ensure_ascii=True, allow_nan=False)
    table = pa.table({name: pa.array(np.ascontiguousarray(values)) for name, values in columns.items()})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_parquet(path, table.replace_schema_metadata({KEY: text.encode()}), compression="zstd")
    except OSError as error:
        raise OptionError(
            f"cannot write the {kind} {str(path)!r}: {error.strerror or error}; choose another place."
        ) from None


def read_container(path: Path, kind: str, *, max_rows: int = MAX_ROWS) -> tuple[pa.Table, dict[str, Any]]:
    """Read columns and their description."""
    remedy = {"suite": "make one with `fairbits gate freeze RUN`", "baseline": "make one with --update-baseline"}[kind]
    check_suffix(path, kind)
    if not is_there(path):
        raise OptionError(f"the {kind} {str(path)!r} does not exist; check the path, or {remedy}.")
    try:
        table = read_arrow(path, max_rows=max_rows)
    except TableError as error:
        raise OptionError(f"the {kind} cannot be used: {error}") from None
    text = (table.schema.metadata or {}).get(KEY, b"")
    found: Any = None
    if 0 < len(text) <= _MAX_DESCRIPTION:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
    if not isinstance(found, dict) or found.get("kind") != kind:
        raise OptionError(f"the file {str(path)!r} is no {kind}; {remedy}.")
    if found.get("format") != FORMAT:
        raise OptionError(
            f"the {kind} {str(path)!r} has format {str(found.get('format'))[:20]!r}, but this fairbits reads {FORMAT}; "
            f"{remedy}."
        )
    return table, found


def container_path(path: str | Path, name: str) -> Path:
    """The file that somebody means by a path.

    Examples
    --------
    >>> container_path("kept/people", "suite.parquet").as_posix()
    'kept/people.parquet'
    """
    place = Path(path)
    if place.is_dir():
        return place / name
    return place if place.suffix else place.with_name(f"{place.name}{SUFFIX}")


def check_suffix(path: Path, kind: str) -> None:
    """Refuse a name that says something else than Parquet."""
    if path.suffix != SUFFIX:
        raise OptionError(f"the {kind} is {str(path)!r}; its name must end in {SUFFIX}.")


def damaged(path: Path, kind: str, why: str) -> OptionError:
    """The error about a container whose contents cannot be."""
    return OptionError(f"the {kind} {str(path)!r} is damaged ({why}); restore it from a copy, or make it again.")


def column_of(
    table: pa.Table, name: str, path: Path, kind: str, *, whole: bool = False, truth: bool = False, gaps: bool = False
) -> npt.NDArray[Any]:
    """One column as an array, checked."""
    if name not in table.column_names:
        raise damaged(path, kind, f"it has no column {name!r}")
    column = table.column(name)
    fits = pa.types.is_boolean if truth else pa.types.is_integer if whole else pa.types.is_floating
    if not fits(column.type) or column.null_count:
        raise damaged(path, kind, f"column {name!r} holds something else than it should")
    found = numpy_of(column)
    if truth:
        return np.asarray(found, dtype=np.bool_)
    if whole:
        return np.asarray(found, dtype=np.int64)
    values = np.asarray(found, dtype=np.float64)
    if not (np.isfinite(values) | (np.isnan(values) if gaps else False)).all():
        raise damaged(path, kind, f"column {name!r} has values that are no numbers")
    return values
