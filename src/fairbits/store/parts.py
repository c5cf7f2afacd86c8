"""The Parquet parts of a run: written fast, checked when read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fairbits.domain import Codes, numpy_of
from fairbits.store.cases import BUCKET, FIGURES, Layout
from fairbits.store.files import write_whole
from fairbits.store.location import is_local

FOLDER = "cases"
SET_ASIDE = ".damaged"
PART = re.compile(r"part-(\d{6,})-([0-9a-f]{8})-(\d{4,})\.parquet")
ROW_GROUP = 131_072
#: Files that are opened at the same time where each of them costs a journey over the network.
JOURNEYS = 16
#: Parts that cannot be read, with the reason.
Faults = dict[str, str]

#: Floats without few values: their bytes are sorted by significance, which costs little and compresses well.
_SPLIT = ("q_1", "low", "high", "span", "l1")


@dataclass(frozen=True, slots=True)
class Part:
    """A part that can be read."""

    path: Path
    rows: int


def name_of(task: int, token: str, number: int) -> str:
    """The file name of a part: the task, the attempt at it, and its place in that attempt."""
    return f"part-{task:06d}-{token}-{number:04d}.parquet"


def task_of(name: str) -> int:
    """The task that a part belongs to, also for a part that was set aside."""
    match = PART.fullmatch(name.removesuffix(SET_ASIDE))
    return int(match[1]) if match else -1


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a file for Arrow: by its name on this machine, as an open file elsewhere."""
    if is_local(path):
        yield path
    else:
        with path.open("rb") as file:
            yield file


def write_part(path: Path, batches: list[pa.RecordBatch], layout: Layout, *, buckets: int = 1) -> None:
    """Write rows as one part, cut into row groups by bucket, so that a reader of one bucket skips the others.

    Encoding happens in memory: one write, so that a full disk is noticed at once.
    """
    # Every append has its own small dictionary of origins; a column must have one.
    table = pa.Table.from_batches(batches, schema=layout.arrow).unify_dictionaries()
    reals = [name for name, a in zip(layout.names, layout.attributes, strict=True) if a.kind == "real"]
    split = dict.fromkeys((*_SPLIT, *reals), "BYTE_STREAM_SPLIT")
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="lz4",
        use_dictionary=[name for name in layout.arrow.names if name not in split and name != "evaluation"],
        column_encoding={"evaluation": "DELTA_BINARY_PACKED", **split},
        write_page_checksum=True,
    ) as writer:
        for piece in _by_bucket(table, buckets):
            writer.write_table(piece, row_group_size=ROW_GROUP)
    write_whole(path, memoryview(sink.getvalue()))


def _by_bucket(table: pa.Table, buckets: int) -> Iterator[pa.Table]:
    if buckets == 1:
        yield table
        return
    which = numpy_of(table[BUCKET])
    order = np.argsort(which, kind="stable")
    sorted_rows = table.take(pa.array(order))
    edges = np.searchsorted(which[order], np.arange(buckets + 1))
    for first, last in itertools.pairwise(edges.tolist()):
        if last > first:
            yield sorted_rows.slice(first, last - first)


def check_parts(folder: Path, names: Sequence[str], layout: Layout, *, deep: bool = False) -> tuple[list[Part], Faults]:
    """Which parts can be read, and what is wrong with the others.

    Where the files are far away, several are looked at at a time.
    """
    place = folder / FOLDER
    there = {path.name for path in place.iterdir()} if place.is_dir() else set()
    damaged = {name: "it is missing" for name in names if name not in there}
    paths = [place / name for name in names if name in there]
    faults = spread(lambda path: fault_of(path, layout, deep=deep), paths)
    good = []
    for path, (fault, rows) in zip(paths, faults, strict=True):
        if fault:
            damaged[path.name] = fault
        else:
            good.append(Part(path, rows))
    return good, damaged


def spread(work: Callable[[Path], Any], paths: list[Path]) -> list[Any]:
    """Apply a function to many files, several at a time where they are far away."""
    if len(paths) < 2 or is_local(paths[0]):
        return [work(path) for path in paths]
    with ThreadPoolExecutor(JOURNEYS) as pool:
        return list(pool.map(work, paths))


def codes_in(parts: list[Part], layout: Layout, *, rows: int = 65_536) -> Iterator[Codes]:
    """Codes of the cases in some parts, batch after batch."""
    positions = list(range(len(layout.names)))
    for part in parts:
        with opened(part.path) as source, pq.ParquetFile(source) as file:
            # By position, because a name with a dot would be read as a path into a nested column.
            names = [file.schema.column(i).path for i in positions]
            for batch in file.iter_batches(batch_size=rows, columns=names):
                yield layout.codes_of(batch)


def fault_of(path: Path, layout: Layout, *, deep: bool) -> tuple[str, int]:
    """What is wrong with a part."""
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
