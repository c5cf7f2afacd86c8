"""Tables from files and from other libraries, as Arrow; and which of their columns are one category, one-hot encoded.

A subject.toml, a table and a model are data: they can ask for code, secrets and memory, and get what the person at the
command line (or the caller in Python) has granted, nothing else. See docs/security.md.

A group of 0/1 columns has exactly one 1 in every row, or at most one: encoders that drop a value (``drop="first"``)
leave it as zeros in all columns of the others.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, cast

import numpy as np
import numpy.typing as npt

from fairbits import sandbox
from fairbits.domain.attribute import Attribute, Category
from fairbits.domain.table import BINARY, TRUTHS, numpy_of, place_of
from fairbits.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

#: The share of the memory at hand that a table may take: it is held as Arrow and as codes, and copied on the way.
MEMORY_SHARE = 0.25
#: What a row may take where --max-rows says how many there are, text counted in; and what even a small table may take.
BYTES_PER_ROW, SMALL_TABLE = 256, 64 << 20
#: No table has more columns: each of them is an attribute somebody would have to describe.
MAX_COLUMNS = 20_000
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
    max_rows: int | None
    max_seconds: float
    max_requests: int
    max_cost: float | None


def granted_in(options: Mapping[str, Any]) -> GrantOptions:
    """The grants to files from outside among other options."""
    return cast(GrantOptions, {name: options[name] for name in GrantOptions.__annotations__ if name in options})


class TableLimit(NamedTuple):
    """How large a table may be: in rows, where somebody said so, and in bytes."""

    rows: int | None
    size: int

    def check(self, name: str, *, rows: int = 0, columns: int = 0, cells: int | None = None, size: int = 0) -> None:
        """Refuse a table that is larger, before it is unpacked: in rows, in columns, or as text and codes."""
        if columns > MAX_COLUMNS:
            raise TableError(f"the table {name!r} has {columns:,} columns; at most {MAX_COLUMNS:,} can be read.")
        if self.rows is not None and rows > self.rows:
            raise TableError(
                f"the table {name!r} has {rows:,} rows, and {self.rows:,} are allowed; raise --max-rows if it is yours."
            )
        needed = max(size, 8 * (rows * columns if cells is None else cells))
        if needed > self.size:
            why = "in the memory at hand" if self.rows is None else f"for {self.rows:,} rows"
            raise TableError(
                f"the table {name!r} takes {needed:,} bytes or more, and {self.size:,} are allowed {why}; drop rows or "
                f"columns, or raise --max-rows if it is yours."
            )


def available_memory() -> int:
    """Bytes that this process may still take: what the machine has left, or its container, or its own limit."""
    found, group = [8 << 30], Path("/sys/fs/cgroup")
    if hasattr(os, "sysconf"):
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError, IndexError):  # no Linux
        found.append(1024 * int(re.findall(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text("ascii"))[0]))
    for most, taken in (("memory.max", "memory.stat"), ("memory/memory.limit_in_bytes", "memory/memory.stat")):
        with suppress(OSError, ValueError, IndexError):  # no such version, or no limit: "max" is no number
            used = re.findall(r"^(?:anon|rss) (\d+)$", (group / taken).read_text("ascii"), re.MULTILINE)
            found.append(int((group / most).read_text("ascii")) - int(used[0]))
    with suppress(ImportError, OSError):
        import resource

        own, pages = resource.getrlimit(resource.RLIMIT_AS)[0], Path("/proc/self/statm").read_text("ascii").split()[0]
        if own != resource.RLIM_INFINITY and not sandbox.inside():  # a child's limit was made from the parent's
            found.append(own - int(pages) * resource.getpagesize())
    return max(0, min(found))


_PARQUET = frozenset({".parquet", ".pq"})

#: Seconds that the first reading of a table may take, and bytes for each further one.
_SECONDS, _BYTES_PER_SECOND = 12.0, 20e6
#: Tables that have been read in a child process, as they were then.
_sound: set[tuple[Any, ...]] = set()
#: A number as pandas reads one, a name such as "007" not among them.
_NUMBER = re.compile(r"\s*[+-]?(?:(?:0|[1-9]\d{0,17})(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?\s*")
_SEPARATORS = {";": "semicolon", "\t": "tab", "|": "bar"}
#: What pandas.read_csv reads as missing in a column of text.
NA_TEXTS = frozenset(
    (
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"),
        *("NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    )
)


def read_arrow(path: str | Path, *, delimiter: str = ",", max_rows: int | None = None) -> pa.Table:
    """A CSV, Parquet, Feather or Arrow file as an Arrow table."""
    import pyarrow as pa

    file = Path(path)
    try:
        size = file.stat().st_size
    except (OSError, ValueError):  # some paths no system accepts
        raise TableError(f"the table {str(file)!r} does not exist; check the path.") from None
    if file.is_dir():
        raise TableError(f"the table {str(file)!r} is a folder; name the file in it.")
    if size == 0:
        raise TableError(f"the table {str(file)!r} is empty; it needs a header and at least one row.")
    granted = MEMORY_SHARE * available_memory() if max_rows is None else max_rows * BYTES_PER_ROW
    limit = TableLimit(max_rows, int(granted) + SMALL_TABLE)
    try:
        table = _read_binary(file, limit) if file.suffix.lower() in BINARY else _read_csv(file, delimiter, limit)
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError, ValueError, MemoryError, OverflowError) as error:
        raise TableError(
            f"the table {str(file)!r} cannot be read as {file.suffix or 'CSV'}{_fault(error)}; {_remedy(file)}."
        ) from None
    limit.check(str(file), rows=table.num_rows, columns=table.num_columns, size=table.nbytes)
    if table.num_rows == 0:
        raise TableError(f"the table {str(file)!r} has a header but no rows; at least one person is needed.")
    return table


def check_names(names: list[str]) -> None:
    """Refuse a table with two columns of the same name, since a name must mean one column."""
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise TableError(f"the table has the column {name!r} {count} times; rename all but one.")


def _fault(error: BaseException) -> str:
    """Which line is wrong, or what the system says; never what stands in the file, which may be no table at all."""
    if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
        return f": {error.strerror or type(error).__name__}"
    said = " ".join(str(error).split())
    line = re.search(r"(?:[Rr]ow|[Ll]ine) #?(\d+)", said)
    counts = re.search(r"Expected (\d+) columns, got (\d+)", said)
    parts = [f"line {line[1]}" if line else "", f"{counts[1]} columns expected, {counts[2]} found" if counts else ""]
    if "UTF8" in said or "utf-8" in said.lower():
        parts.append("it is no text in UTF-8")
    shown = ", ".join(part for part in parts if part)
    return f": {shown or 'it is damaged, or something else'}"


def _remedy(file: Path) -> str:
    """What to do about a file that cannot be read."""
    if file.suffix.lower() in BINARY:
        return "write the file again, or name one that is whole"
    with file.open("rb") as opened:
        start = opened.read(4096)
    if b"\0" in start:  # UTF-16, as spreadsheets save "Unicode text", or no text at all
        return "save it as CSV in UTF-8"
    return "mend that line, and see that the file is CSV in UTF-8"


def _read_binary(file: Path, limit: TableLimit) -> pa.Table:
    from pyarrow import feather, parquet

    packed = file.suffix.lower() in _PARQUET
    if packed:
        _check_parquet(file, limit)
    _try_out(file, limit)
    with file.open("rb") as opened:  # as a stream: a name such as "s3://…" is a file here, and nothing else
        if packed:
            table = parquet.ParquetFile(opened, page_checksum_verification=True).read()
        else:
            table = feather.read_table(opened, memory_map=False)
    check_names(table.column_names)
    _check_columns(table, limit, str(file))
    return table


def _check_parquet(file: Path, limit: TableLimit) -> None:
    """What the footer declares."""
    from pyarrow import parquet

    with file.open("rb") as opened:
        footer = parquet.read_metadata(opened)
        groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        rows = max(footer.num_rows, sum(max(group.num_rows, 0) for group in groups))
        size = sum(max(group.total_byte_size, 0) for group in groups)
        limit.check(str(file), rows=rows, columns=footer.num_columns, size=size)


def _scan_csv(file: Path, delimiter: str, limit: TableLimit) -> bool:
    """Bytes, rows, columns and cells as the separators tell, counted before any of them becomes a number.

    Gives whether some cell begins with a zero and another digit. A packed file is unpacked for that piece by piece, as
    Arrow will do it.
    """
    import pyarrow as pa

    size = lines = marks = first = 0
    zeros, mark = False, delimiter.encode("utf-8", "replace")
    start = re.compile(rb"(?:[\r\n]|" + re.escape(mark) + rb")[ \"]*0\d")
    with pa.input_stream(str(file)) as opened:
        rest = b""
        while piece := opened.read(1 << 24):
            if not lines:
                end = piece.find(b"\n")
                first += piece.count(mark, 0, end if end >= 0 else len(piece))
            zeros = zeros or start.search(rest + piece) is not None
            rest = piece[-64:]  # a cell may begin in one piece and go on in the next
            size += len(piece)
            lines += piece.count(b"\n")
            marks += piece.count(mark)
            limit.check(str(file), rows=max(lines - 1, 0), columns=first + 1, cells=lines + marks, size=size)
    return zeros


def _check_columns(table: pa.Table, limit: TableLimit, name: str) -> None:
    """Columns that are small as they are and large once they are decoded."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in table.itercolumns():
        if pa.types.is_run_end_encoded(column.type):
            raise TableError(f"the table {name!r} has run-end encoded columns, which are not read; write them plain.")
        if not pa.types.is_dictionary(column.type):
            continue
        longest = 8
        for chunk in column.chunks:
            if pa.types.is_string(chunk.dictionary.type) or pa.types.is_large_string(chunk.dictionary.type):
                longest = max(longest, pc.max(pc.binary_length(chunk.dictionary)).as_py() or 0)
        limit.check(name, size=longest * len(column))


def _try_out(file: Path, limit: TableLimit) -> None:
    """Read it in a child process first: what a damaged buffer does to the reader is done there."""
    if sandbox.inside():
        return
    state = file.stat()
    key = (str(file.resolve()), state.st_mtime_ns, state.st_size, state.st_ino, limit.rows)
    if key in _sound:
        return
    outcome = sandbox.try_out(
        "fairbits.domain.reading:first_reading",
        (str(file), limit.rows),
        seconds=_SECONDS + state.st_size / _BYTES_PER_SECOND,
        memory=2 * limit.size,
        needs=("fairbits.domain.reading", "pyarrow.parquet", "pyarrow.feather"),
    )
    if outcome.error is not None:
        raise outcome.error
    if outcome.fault:
        remedy = "raise --max-rows if it is yours" if outcome.known.get("memory") else _remedy(file)
        raise TableError(f"the table {str(file)!r} cannot be read: its reading {outcome.fault}; {remedy}.")
    _sound.add(key)


def first_reading(given: tuple[str, int | None], _notify: sandbox.Notify) -> None:
    """Read a table in the child process, so that a crash of the reader stays there."""
    read_arrow(given[0], max_rows=given[1])


def _read_csv(file: Path, delimiter: str, limit: TableLimit) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    if len(delimiter) != 1:
        raise TableError(f"the delimiter is {delimiter!r}; it must be a single character.")
    zeros = _scan_csv(file, delimiter, limit)
    parsing = csv.ParseOptions(delimiter=delimiter)
    # Only an empty cell is missing: "NA" is a country code and "None" a fine label.
    missing: dict[str, Any] = {"null_values": [""], "strings_can_be_null": True}
    with pa.input_stream(str(file)) as opened:
        header = opened.read(1 << 16).partition(b"\n")[0].decode("utf-8", "replace")
    other = next((mark for mark in _SEPARATORS if mark in header), None)
    if delimiter not in header and other is not None:  # before rows of "1,5;2,5" count as two columns
        raise TableError(
            f"the table {str(file)!r} has a single column, whose name seems to be separated by "
            f"{_SEPARATORS[other]}s: set delimiter = {other!r}."
        )
    table = csv.read_csv(file, parse_options=parsing, convert_options=csv.ConvertOptions(**missing))
    check_names(table.column_names)
    table = _read_texts(table, file, delimiter)
    times = [field.name for field in table.schema if pa.types.is_time(field.type)]
    whole = [field.name for field in table.schema if zeros and pa.types.is_integer(field.type)]
    if whole or times:
        # Columns such as "02139" or "13:30" are the text that they are: as numbers or times they would be others.
        wanted = {"include_columns": whole + times, "column_types": dict.fromkeys(whole + times, pa.string())}
        texts = csv.read_csv(file, parse_options=parsing, convert_options=csv.ConvertOptions(**missing, **wanted))
        for name in texts.column_names:
            if name in times or pc.any(pc.match_substring_regex(texts[name], r"^\s*0\d")).as_py():
                table = table.set_column(table.column_names.index(name), name, texts[name])
    return table


def _read_texts(table: pa.Table, file: Path, delimiter: str) -> pa.Table:
    """The table with columns of numbers and of truths as such where some cells say "NA" or the like, as in pandas.

    Columns that Arrow leaves as bytes are refused, and numbers with a decimal comma, which would pass for labels.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    gone = pa.array(sorted(NA_TEXTS), pa.string())
    for place, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if pa.types.is_binary(column.type):
            values = (value or b"" for value in column.to_pylist())
            row = next(i for i, value in enumerate(values) if value.decode(errors="ignore").encode() != value)
            raise TableError(
                f"the table {str(file)!r} is no text in UTF-8: column {name!r} has other bytes in "
                f"{place_of(row + 1, file)}; save it as CSV in UTF-8."
            )
        if not pa.types.is_string(column.type):
            continue
        texts = column.drop_null().unique()
        if delimiter != ",":
            amounts = pc.all(pc.match_substring_regex(texts, r"^\s*[+-]?\d+(,\d+)?\s*$")).as_py()
            if amounts and pc.any(pc.match_substring(texts, ",")).as_py():
                raise TableError(
                    f"the table {str(file)!r} has numbers with a decimal comma in column {name!r} (first: "
                    f"{texts[0].as_py()!r}); save it with decimal points."
                )
        present = texts.filter(pc.invert(pc.is_in(texts, value_set=gone))).to_pylist()
        truths = TRUTHS.issuperset(present)
        if len(present) in (0, len(texts)) or not (truths or all(map(_NUMBER.fullmatch, present))):
            continue
        emptied = pc.if_else(pc.is_in(column, value_set=gone), pa.scalar(None, pa.string()), column)
        if truths:
            table = table.set_column(place, name, pc.equal(pc.utf8_lower(emptied), "true"))
            continue
        whole = all("." not in text and "e" not in text.lower() for text in present)
        values = pc.utf8_trim_whitespace(emptied).cast(pa.int64() if whole else pa.float64())
        table = table.set_column(place, name, values)
    return table


def arrow_of(table: Any, *, max_rows: int | None = None) -> pa.Table:
    """A table in a file or in memory, as Arrow."""
    return read_arrow(table, max_rows=max_rows) if isinstance(table, str | Path) else as_arrow(table)


def as_arrow(data: Any) -> pa.Table:
    """Arrow, pandas and polars tables as Arrow, without a copy where that is possible; an index is no column."""
    import pyarrow as pa

    if isinstance(data, pa.Table):
        check_names(data.column_names)
        return data
    try:
        data = as_pandas(data)
        if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
            return _of_pandas(data)
        if type(data).__module__.partition(".")[0] == "polars" and type(data).__name__ == "LazyFrame":
            data = data.collect()
        if hasattr(data, "__arrow_c_stream__") or isinstance(data, dict):
            return pa.table(data)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise TableError(
            f"the {type(data).__name__} cannot be read as a table ({said[:200]}); give every column one kind of value."
        ) from None
    raise TableError(
        f"a table cannot be made of {type(data).__name__!r}; give Arrow, pandas, polars, modin, a dict of columns or "
        f"a file."
    )


def as_pandas(data: Any) -> Any:
    """A frame of modin as the pandas frame that it stands for; anything else as it is."""
    if type(data).__module__.partition(".")[0] != "modin":
        return data
    import narwhals.stable.v2 as nw

    return nw.from_native(data, eager_only=True).to_pandas()


def _of_pandas(frame: Any) -> pa.Table:
    """A data frame, whose columns may be named by numbers; spans, and what mixes kinds of values, are text."""
    import pandas as pd
    import pyarrow as pa

    named = frame.rename(columns=str)
    check_names(list(named.columns))
    kinds = {name: getattr(kind, "categories", named[name]).dtype for name, kind in named.dtypes.items()}

    def with_text(names: list[str]) -> pa.Table:
        texts = {name: named[name].astype(object).map(str, na_action="ignore") for name in names}
        return pa.Table.from_pandas(named.assign(**texts), preserve_index=False)

    spans = [name for name, kind in kinds.items() if isinstance(kind, pd.IntervalDtype | pd.PeriodDtype)]
    try:
        return with_text(spans)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return with_text([*spans, *(name for name, kind in named.dtypes.items() if pd.api.types.is_object_dtype(kind))])


#: What stands between the name of an attribute and its value in the name of a column: job_Sales, job=Sales.
_MARKS = "_=.:-/ "
#: The label of a value whose column was dropped, and with it the value's name.
DROPPED = "(dropped)"
#: Columns of at most one 1 are a group when, were they independent, at least so many rows should have had two: that
#: none has is then no accident (once in e⁵ = 150 tables).
SURPRISE = 5.0


def one_hot_groups(data: pa.Table, *, leave_out: tuple[str, ...] = ()) -> list[Attribute]:
    """Find groups of 0/1 columns of which exactly one is 1 in every row: each is a category.

    The largest groups go first, then those with the longest name: a column belongs to one group at most.
    """
    values = {name: _zeros_and_ones(data[name]) for name in data.column_names if name not in leave_out}
    binary = {name: column for name, column in values.items() if column is not None}
    candidates: dict[str, list[str]] = defaultdict(list)
    for name in binary:
        for place, character in enumerate(name):
            if character in _MARKS and 0 < place < len(name) - 1:
                candidates[name[: place + 1]].append(name)
    order = sorted(candidates.items(), key=lambda item: (-len(item[1]), -len(item[0])))
    found: list[Attribute] = []
    taken: set[str] = set()
    for dropped in (False, True):  # whole groups first: only what is left over can lack a column
        for prefix, columns in order:
            name = prefix[:-1].rstrip(_MARKS)
            if len(columns) < 2 or taken.intersection(columns) or not name or name in data.column_names:
                continue
            rows = np.array([binary[column] for column in columns])
            if _lacks_one(rows) if dropped else bool((rows.sum(axis=0) == 1).all()):
                labels = tuple(column[len(prefix) :] for column in columns)
                extra = ((DROPPED,), ("",)) if dropped else ((), ())
                found.append(Category(name=name, labels=(*extra[0], *labels), columns=(*extra[1], *columns)))
                taken.update(columns)
    return sorted(found, key=lambda group: data.column_names.index(group.own_columns[0]))


def _lacks_one(values: npt.NDArray[np.float64]) -> bool:
    """Whether columns (in rows here) never hold two 1s, although by chance they should have."""
    if values.sum(axis=0).max() > 1:
        return False
    rates = values.mean(axis=1)
    pairs = (rates.sum() ** 2 - (rates**2).sum()) / 2
    return bool(pairs * values.shape[1] >= SURPRISE)


def _zeros_and_ones(column: Any) -> npt.NDArray[np.float64] | None:
    """The column as numbers, if it holds nothing but 0 and 1."""
    import pyarrow as pa

    kind = column.type
    if column.null_count or not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    values = numpy_of(column.cast(pa.float64(), safe=False))
    return values if np.isin(values, (0.0, 1.0)).all() else None
