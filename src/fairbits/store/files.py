"""Files that are there whole or not at all, and where a run lies.

A run lies in a folder of this machine or at an address such as ``s3://bucket/run``, which becomes a path of
universal-pathlib: whoever is handed a place uses it as a ``Path``, and asks ``is_local`` only where files of this
machine can do more.

The one way from a record to JSON and back: whatever a stage returns is written, and read again, by its fields. A record
is a dataclass. Its fields say what is in the file: numbers, texts, paths, tuples, mappings, other
records, and None where the annotation allows it. ``field(metadata={"json": "other_name"})`` stores a field under
another name, ``metadata={"json": None}`` not at all: such a field needs a default. Not a number, which JSON has no word
for, is null in the file and comes back as NaN.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from fairbits.errors import FairbitsError, MissingDependencyError, OptionError
from fairbits.shape import fits, reading
from fairbits.text import shortened

if TYPE_CHECKING:
    import pyarrow as pa


MARK = "://"
#: What a file system may refuse or understand as something else: all but letters, digits, and a few marks between.
_UNSAFE = re.compile(r"[^\w.-]+")
#: Devices of Windows, whatever follows after a point.
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)
#: Bytes of a name; file systems end at 255, and more words are to come.
_MAX_BYTES = 120


def folder_name(text: str) -> str:
    """A safe folder name for any text.

    Examples
    --------
    >>> folder_name("loans/2026: first try"), folder_name(".."), folder_name("con")
    ('loans-2026-first-try', 'subject', 'subject-con')
    """
    short = _UNSAFE.sub("-", text).strip("-.").encode()[:_MAX_BYTES].decode(errors="ignore").rstrip("-.")
    return f"subject-{short}" if _DEVICE.match(short) else short or "subject"


def new_folder(*words: str) -> Path:
    """A folder below ``runs`` named after what is done, and when."""
    return Path("runs") / "-".join([*map(folder_name, words), datetime.now().strftime("%Y%m%d-%H%M%S")])


def place_of(text: str | Path) -> Path:
    """The place that a text names: a path of this machine, or a path-like object for an address."""
    if not isinstance(text, str):
        return text
    if MARK not in text or text.startswith("file://"):
        return Path(text.removeprefix("file://"))
    try:
        from upath import UPath
    except ImportError:
        raise MissingDependencyError.of("universal-pathlib", "remote", f"a run at {text!r}") from None
    try:
        place: Any = UPath(text)
        place.fs.invalidate_cache()  # what others wrote since this process last looked
    except ImportError as error:
        raise OptionError(f"{text!r} needs a package that is not installed ({error}).") from None
    except ValueError:
        place = None
    if place is None or is_local(place):
        raise OptionError(f"{text!r} is no address of a file system that fsspec knows; write e.g. s3://bucket/run.")
    return cast(Path, place)


def is_local(place: Path) -> bool:
    """Whether a place is on this machine."""
    return isinstance(place, Path)


@contextmanager
def reaching(place: Path) -> Iterator[None]:
    """Turn errors of a remote store into one sentence: each kind of store has errors of its own."""
    try:
        yield
    except FairbitsError:
        raise
    except Exception as error:  # libraries of cloud stores have exceptions of their own, without a common base
        if is_local(place):
            raise
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise OptionError(f"cannot use {str(place)!r}: {reason}; check the address and who may use it.") from error


#: What to do about a damaged file, where nothing can make it again.
RESTORE = "restore it from a copy"
#: Bits of the largest whole number in a file of a run: beyond them it is no float, and arithmetic would fail.
_BITS = 1000
#: A name that ends so is half-written: whoever finds one may delete it.
TEMPORARY = ".tmp"
#: The largest JSON files of runs, those of hundreds of repairs, have a few megabytes.
MAX_JSON = 256 << 20
#: Rows of a Parquet file beside the cases: a table of a hundred columns less than the memory below.
MAX_TABLE_ROWS = 20_000_000
#: Bytes that such a file may take, packed and unpacked; and rows unpacked at a time until that is known.
MAX_UNPACKED, _ROWS = 1 << 30, 1024


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file so that a reader, or a crash at any moment, sees the old one or the new one."""
    if not is_local(path):
        path.write_bytes(bytes(content))  # stores of objects show an object once it is whole
        return
    if path.is_dir():
        raise OptionError(f"{str(path)!r} is a folder; name a file.")
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make sure that new names in a folder survive a power cut."""
    if os.name == "nt":  # Windows cannot open a folder, and needs no such thing
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, document: Mapping[str, Any] | list[Any]) -> None:
    """Write a JSON document so that it is there whole or not at all."""
    text = json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(path, (text + "\n").encode("utf-8", errors="replace"))


def read_json(path: Path, *, remedy: str = RESTORE) -> dict[str, Any]:
    """Read a JSON document."""
    document = json_of(path, remedy=remedy)
    if not isinstance(document, dict):
        raise OptionError(f"{str(path)!r} is damaged (it holds no JSON object); {remedy}.")
    return document


def _integer(digits: str) -> int:
    """A whole number, unless it is one that no count, code or seed can be."""
    found = int(digits)
    if abs(found) >> _BITS:
        raise ValueError(f"a number has {len(digits)} digits")
    return found


def json_of(path: Path, *, remedy: str = RESTORE) -> Any:
    """Whatever a JSON file holds."""
    try:
        if path.stat().st_size > MAX_JSON:
            raise OptionError(f"{str(path)!r} has more than {MAX_JSON >> 20} MB; no file of a run is that large.")
        return json.loads(path.read_text(encoding="utf-8"), parse_int=_integer)
    except OSError as error:
        raise OptionError(f"cannot read {str(path)!r}: {error.strerror or error}.") from None
    except RecursionError:
        raise OptionError(f"{str(path)!r} is damaged (it is nested too deeply); {remedy}.") from None
    except ValueError as error:
        raise OptionError(f"{str(path)!r} is damaged ({error}); {remedy}.") from None


def write_parquet(path: Path, table: pa.Table, **settings: Any) -> None:
    """Write a Parquet file of a run, whole or not at all, with a checksum in every page."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, write_page_checksum=True, **settings)
    write_whole(path, memoryview(sink.getvalue()))


def read_parquet(
    path: Path, *, remedy: str, columns: list[str] | None = None, max_rows: int = MAX_TABLE_ROWS
) -> pa.Table:
    """Read a Parquet file of a run, unpacked piece by piece and never more of it than is allowed."""
    import pyarrow as pa
    from pyarrow import parquet

    too_much = OptionError(f"{str(path)!r} takes more than {MAX_UNPACKED >> 20:,} MB unpacked; {remedy}.")
    with reading(path, remedy):
        if path.stat().st_size > MAX_UNPACKED:
            raise too_much
        file = parquet.ParquetFile(io.BytesIO(path.read_bytes()), page_checksum_verification=True)
        if file.metadata.num_rows > max_rows:
            raise OptionError(
                f"{str(path)!r} has {file.metadata.num_rows:,} rows, where at most {max_rows:,} make sense; {remedy}."
            )
        whole = file.schema_arrow
        schema = whole if columns is None else pa.schema([whole.field(name) for name in columns], whole.metadata)
        batches, size, rows = [], 0, 0
        for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
            size, rows = size + batch.nbytes, rows + batch.num_rows
            if size > MAX_UNPACKED or rows > max_rows:
                raise too_much
            batches.append(batch)
        table = pa.Table.from_batches(batches) if batches else schema.empty_table()
        return table.replace_schema_metadata(schema.metadata)


def plain(value: Any) -> Any:
    """A value or a record, whatever they are made of, in types of JSON; numbers that are not finite become null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, one.name)) for one in fields(value) if (name := _name(one)) is not None}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value) if isinstance(value, set | frozenset) else value
        return [plain(item) for item in items]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


Record = TypeVar("Record")


def numbered(document: Any, step: int) -> Any:
    """A document whose interventions count layers from 1 (``step`` +1), as files do, or from 0 (−1), as a ``Do``."""
    if isinstance(document, list):
        return [numbered(one, step) for one in document]
    if not isinstance(document, dict):
        return document
    found = {name: numbered(value, step) for name, value in document.items()}
    return {**found, "layer": found["layer"] + step} if found.keys() == {"layer", "neuron", "value"} else found


def record_from_json(kind: type[Record], document: Any) -> Record:
    """The record that :func:`plain` made a document of; what it does not know is passed over.

    Raises ``KeyError``, ``TypeError`` or ``ValueError`` where the document does not fit: `fairbits.shape.reading` makes
    a sentence about the file of them.
    """
    return _value(kind, document, kind.__name__)


def _name(one: Field[Any]) -> str | None:
    return one.metadata.get("json", one.name)


_hints = cache(get_type_hints)


def _record(kind: type[Any], document: Any, place: str) -> Any:
    if not isinstance(document, Mapping):
        raise TypeError(f"{place} is {shortened(repr(document), 40)}")
    given, hints = {}, _hints(kind)  # type: ignore[arg-type]  # a class is hashable
    for one in fields(kind):
        name = _name(one)
        if name is None or not one.init:
            continue
        if name in document:
            given[one.name] = _value(hints[one.name], document[name], name)
        elif one.default is MISSING and one.default_factory is MISSING:
            raise KeyError(name)
    return kind(**given)


def _value(kind: Any, value: Any, place: str) -> Any:  # noqa: PLR0911 - one line for each kind of annotation
    """A value of JSON as what an annotation says."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _either(inner, value, place)
    if is_dataclass(kind):
        return _record(kind, value, place)  # type: ignore[arg-type]
    if origin is tuple and isinstance(value, list | tuple):
        kinds = (inner[0],) * len(value) if inner[1:] == (Ellipsis,) else inner
        return tuple(_value(each, item, place) for each, item in zip(kinds, value, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, Mapping):
        make = str if inner[0] is Any else inner[0]
        return {make(key): _value(inner[1], item, place) for key, item in value.items()}
    if isinstance(kind, type) and issubclass(kind, Path):
        return kind(value)
    if kind is float and value is None:
        return float("nan")
    if not fits(value, kind):
        raise TypeError(f"{place} is {shortened(repr(value), 40)}")
    return float(value) if kind is float else value


def _either(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    """The first of several kinds that fits; null is None where that is one of them."""
    if value is None and type(None) in kinds:
        return None
    for kind in kinds:
        try:
            return _value(kind, value, place)
        except (KeyError, TypeError, ValueError):
            continue
    raise TypeError(f"{place} is {shortened(repr(value), 40)}")
