"""Tables from files and from other libraries, as Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.domain.table import BINARY, check_names
from fairbits.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

_SEPARATORS = {";": "semicolon", "\t": "tab", "|": "bar"}


def read_arrow(path: str | Path, *, delimiter: str = ",") -> pa.Table:
    """A CSV, Parquet, Feather or Arrow file as an Arrow table."""
    import pyarrow as pa

    file = Path(path)
    if not file.exists():
        raise TableError(f"the table {str(file)!r} does not exist; check the path.")
    if file.is_dir():
        raise TableError(f"the table {str(file)!r} is a folder; name the file in it.")
    if file.stat().st_size == 0:
        raise TableError(f"the table {str(file)!r} is empty; it needs a header and at least one row.")
    try:
        table = _read(file, delimiter)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise TableError(
            f"the table {str(file)!r} cannot be read as {file.suffix or 'CSV'}: {reason.rstrip('.')}; {_remedy(file)}."
        ) from None
    check_names(table.column_names)
    if table.num_rows == 0:
        raise TableError(f"the table {str(file)!r} has a header but no rows; at least one person is needed.")
    return table


def _remedy(file: Path) -> str:
    """What to do about a file that cannot be read."""
    if file.suffix.lower() in BINARY:
        return "write the file again, or name one that is whole"
    with file.open("rb") as opened:
        start = opened.read(4096)
    if b"\0" in start:  # UTF-16, as spreadsheets save "Unicode text", or no text at all
        return "save it as CSV in UTF-8"
    return "mend that line, and see that the file is CSV in UTF-8"


def _read(file: Path, delimiter: str) -> pa.Table:
    suffix = file.suffix.lower()
    if suffix in {".parquet", ".pq"}:
        from pyarrow import parquet

        return parquet.read_table(file)
    if suffix in {".feather", ".arrow", ".ipc"}:
        from pyarrow import feather

        return feather.read_table(file)
    return _read_csv(file, delimiter)


def _read_csv(file: Path, delimiter: str) -> pa.Table:
    from pyarrow import csv

    if len(delimiter) != 1:
        raise TableError(f"the delimiter is {delimiter!r}; it must be a single character.")
    table = csv.read_csv(
        file,
        parse_options=csv.ParseOptions(delimiter=delimiter),
        # Only an empty cell is missing: "NA" is a country code and "None" a fine label.
        convert_options=csv.ConvertOptions(null_values=[""], strings_can_be_null=True),
    )
    if table.num_columns == 1:
        header = table.column_names[0]
        other = next((mark for mark in _SEPARATORS if mark in header), None)
        if other is not None:
            raise TableError(
                f"the table {str(file)!r} has the single column {header!r}, so it seems to be separated by "
                f"{_SEPARATORS[other]}s: set delimiter = {other!r}."
            )
    return table


def as_arrow(data: Any) -> pa.Table:
    """Arrow, pandas and polars tables as Arrow, without a copy where that is possible."""
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    if hasattr(data, "__arrow_c_stream__") or isinstance(data, dict):
        return pa.table(data)
    raise TableError(
        f"a table cannot be made of {type(data).__name__!r}; give Arrow, pandas, polars, a dict of columns or a file."
    )
