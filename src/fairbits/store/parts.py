"""The Parquet parts of a run: written fast, checked when read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fairbits.domain.attribute import Codes
from fairbits.store.files import write_whole
from fairbits.store.places import is_local
from fairbits.store.records import FIGURES, Layout

FOLDER = "cases"
SET_ASIDE = ".damaged"
PART = re.compile(r"part-(\d{6,})\.parquet")
ROW_GROUP = 131_072

#: Floats without few values: their bytes are sorted by significance, which costs little and compresses well.
_SPLIT = ("q_1", "low", "high", "span", "l1")


@dataclass(frozen=True, slots=True)
class Part:
    """A part that can be read."""

    path: Path
    rows: int

    @property
    def number(self) -> int:
        """Its place in the run."""
        return number_of(self.path.name)


def name_of(number: int) -> str:
    """The file name of a part."""
    return f"part-{number:06d}.parquet"


def number_of(name: str) -> int:
    """The number in the file name of a part, set aside or not; -1 for any other file."""
    match = PART.fullmatch(name.removesuffix(SET_ASIDE))
    return int(match[1]) if match else -1


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A file as Arrow reads it best: by its name on this machine, as an open file elsewhere."""
    if is_local(path):
        yield path
    else:
        with path.open("rb") as file:
            yield file


def write_part(path: Path, batches: list[pa.RecordBatch], layout: Layout) -> None:
    """Write rows as one part. Encoding happens in memory: one write, so that a full disk is noticed at once."""
    # Every append has its own small dictionary of origins; a column must have one.
    table = pa.Table.from_batches(batches, schema=layout.arrow).unify_dictionaries()
    reals = [name for name, a in zip(layout.names, layout.attributes, strict=True) if a.kind == "real"]
    split = dict.fromkeys((*_SPLIT, *reals), "BYTE_STREAM_SPLIT")
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="lz4",
        row_group_size=ROW_GROUP,
        use_dictionary=[name for name in layout.arrow.names if name not in split and name != "evaluation"],
        column_encoding={"evaluation": "DELTA_BINARY_PACKED", **split},
        write_page_checksum=True,
    )
    write_whole(path, memoryview(sink.getvalue()))


def find_parts(folder: Path, layout: Layout, *, deep: bool = False) -> tuple[list[Part], dict[str, str]]:
    """The readable parts in order, and the others with what is wrong. ``deep`` reads every page and its checksum."""
    good, damaged = [], {}
    files = {number_of(path.name): path for path in (folder / FOLDER).glob("part-*") if number_of(path.name) >= 0}
    for number in range(max(files, default=-1) + 1):
        path = files.get(number)
        if path is None:
            damaged[name_of(number)] = "it is missing"
        elif path.name.endswith(SET_ASIDE):
            damaged[path.name] = "it was set aside"
        else:
            fault, rows = fault_of(path, layout, deep=deep)
            if fault:
                damaged[path.name] = fault
            else:
                good.append(Part(path, rows))
    return good, damaged


def codes_in(parts: list[Part], layout: Layout, *, rows: int = 65_536) -> Iterator[Codes]:
    """Full rows of codes, batch after batch, in the memory of one batch."""
    positions = list(range(len(layout.names)))
    for part in parts:
        with opened(part.path) as source, pq.ParquetFile(source) as file:
            # By position, because a name with a dot would be read as a path into a nested column.
            names = [file.schema.column(i).path for i in positions]
            for batch in file.iter_batches(batch_size=rows, columns=names):
                yield layout.codes_of(batch)


def fault_of(path: Path, layout: Layout, *, deep: bool) -> tuple[str, int]:
    """What is wrong with a part (nothing: an empty text), and how many rows it has."""
    if path.stat().st_size == 0:
        return "it is empty", 0
    try:
        with opened(path) as source, pq.ParquetFile(source, page_checksum_verification=deep) as file:
            found = file.schema_arrow
            if not _fits(found, layout.arrow):
                return "its columns are not those of this run", 0
            if deep:
                for _ in file.iter_batches(batch_size=ROW_GROUP):
                    pass
            return "", int(file.metadata.num_rows)
    except (pa.ArrowException, OSError, ValueError) as error:
        return f"it cannot be read ({str(error).splitlines()[0][:80].rstrip('. ')})", 0


def _fits(found: pa.Schema, wanted: pa.Schema) -> bool:
    if found.names != wanted.names:
        return False
    return all(a.type == b.type for a, b in zip(found, wanted, strict=True) if b.name != "origin") and (
        pa.types.is_dictionary(found.field("origin").type) or found.field("origin").type == FIGURES["origin"].value_type
    )
