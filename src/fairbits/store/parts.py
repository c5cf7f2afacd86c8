"""The cases of a run as Parquet parts: written fast, checked when read.

One row is one distinct individual: the attributes that are not protected (and a protected one of which twins take some
values only, because a person's own is one more), and what its twins experience. An attribute whose name is taken (by a
figure, or by another attribute that differs only in case, which SQL does not see) is stored as ``attribute_<name>``.

Tasks know nothing of each other, so some people are written more than once. Parts are cut into row groups by a hash of
the person, their bucket: two rows about the same person are always in the same one. So doubles are looked for bucket by
bucket, each in the memory that one takes. The earliest evaluation stays. Once a
search has ended, what was found is kept beside the parts, and whoever opens the run reads only that.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from fairbits.domain import Attribute, Codes, Integers, Schema, numpy_of
from fairbits.errors import OptionError
from fairbits.store.files import is_local, read_parquet, write_parquet, write_whole

#: The figures of a case. ``favourable`` counts the twins with a favourable decision, ``twins`` those that can exist,
#: ``plausibility`` is a percentile among the rows of the table, ``seed_row`` the row that the search started from
#: (-1: none), ``changed`` the attributes changed from the nearest row.
FIGURES: dict[str, pa.DataType] = {
    "k": pa.int32(),
    "q_inf": pa.float32(),
    "q_1": pa.float32(),
    "low": pa.float32(),
    "high": pa.float32(),
    "span": pa.float32(),
    "flips": pa.bool_(),
    "low_twin": pa.int32(),
    "high_twin": pa.int32(),
    "favourable": pa.int32(),
    "twins": pa.int32(),
    "plausibility": pa.float32(),
    "origin": pa.dictionary(pa.int32(), pa.string()),
    "seed_row": pa.int32(),
    "changed": pa.int16(),
    "l1": pa.float32(),
    "evaluation": pa.int64(),
    "seconds": pa.float32(),
}
#: The column that says which bucket of people, by their hash, a case is in: only readers that look for doubles see it.
BUCKET = "fairbits:bucket"
#: Columns that reading adds: which protected values get the lowest and the highest score.
WORDS = ("worst", "best")


@dataclass(frozen=True, slots=True)
class Case:
    """One case as people read it.

    Parameters
    ----------
    k, q_inf, q_1
        Classes of twins, and bits of protected information by both measures.
    low, high, span
        Lowest and highest score of a twin, and their difference.
    flips
        Whether twins get different decisions.
    worst, best
        The protected values of the twins with the lowest and the highest score, in words.
    favourable
        How many twins are decided favourably.
    twins
        How many twins there are under the rules.
    plausibility
        A percentile among the rows of the table, between 0 and 1.
    origin
        What proposed the person: a row, or a step of the strategy.
    seed_row
        The row that the search started from, from 0; -1 where there is none.
    changed, l1
        Number of attributes changed from the nearest row, and the normalised distance to it.
    evaluation, seconds
        When it was found: after how many people, and after how long.
    attributes
        The person, in words, by attribute.
    """

    k: int
    q_inf: float
    q_1: float
    low: float
    high: float
    span: float
    flips: bool
    worst: str
    best: str
    favourable: int
    twins: int
    plausibility: float
    origin: str
    seed_row: int
    changed: int
    l1: float
    evaluation: int
    seconds: float
    attributes: dict[str, str]


@dataclass(frozen=True)
class Layout:
    """Which column of a part holds what, for one schema."""

    schema: Schema

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes that are stored, in column order."""
        return tuple(self.schema.attributes[i] for i in self.schema.person_columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column of each stored attribute."""
        taken = {name.casefold() for name in (*FIGURES, *WORDS)}
        # Names that stand as they are go first, so that a renamed one never takes the name of another attribute.
        waiting = {attribute.name.casefold() for attribute in self.attributes}
        names = []
        for attribute in self.attributes:
            name = attribute.name
            while name.casefold() in taken or (name != attribute.name and name.casefold() in waiting):
                name = f"attribute_{name}"
            taken.add(name.casefold())
            names.append(name)
        return tuple(names)

    @cached_property
    def arrow(self) -> pa.Schema:
        """Names and types of all columns."""
        codes = [pa.field(n, _type_of(a)) for n, a in zip(self.names, self.attributes, strict=True)]
        return pa.schema([*codes, *FIGURES.items(), (BUCKET, pa.int16())])

    def batch(self, codes: Codes, figures: Mapping[str, npt.NDArray[Any]]) -> pa.RecordBatch:
        """Rows to be stored, from codes, (n, attributes), and a column for each figure and the bucket, (n,)."""
        arrays = [_codes(codes[:, i], field) for i, field in zip(self.schema.person_columns, self.arrow, strict=False)]
        known = {"q_inf": np.log2(figures["k"]), "span": np.subtract(figures["high"], figures["low"]), **figures}
        names, index = np.unique(figures["origin"], return_inverse=True)
        origins = pa.DictionaryArray.from_arrays(index.astype(np.int32), pa.array(names.tolist(), pa.string()))
        for name, kind in {**FIGURES, BUCKET: pa.int16()}.items():
            arrays.append(origins if name == "origin" else pa.array(known[name].astype(kind.to_pandas_dtype())))
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow)

    def codes_of(self, batch: pa.RecordBatch) -> Codes:
        """Codes from stored rows; protected attributes whose every value twins take get their lowest."""
        rows = np.empty((batch.num_rows, len(self.schema)), dtype=np.float64)
        for i in self.schema.protected_columns:
            rows[:, i] = self.schema.attributes[i].twin_values()[0]
        for i, name in zip(self.schema.person_columns, self.names, strict=True):
            rows[:, i] = numpy_of(batch.column(batch.schema.get_field_index(name)))
        return rows


def _type_of(attribute: Attribute) -> pa.DataType:
    """Signed types only: with unsigned ones, `hours - 40` in a filter would overflow."""
    if attribute.kind == "real":
        return pa.float64()
    low = attribute.low if attribute.gap is None else min(attribute.low, attribute.gap)
    kinds = (
        one
        for one in (np.int8, np.int16, np.int32)
        if np.iinfo(one).min <= low and attribute.upper <= np.iinfo(one).max
    )
    return pa.from_numpy_dtype(next(kinds, np.int64))


def _codes(column: Codes, field: pa.Field) -> pa.Array:
    whole: npt.NDArray[Any] = column.astype(field.type.to_pandas_dtype())
    if not np.array_equal(whole, column):
        raise ValueError(f"attribute {field.name!r} has codes that are no {field.type}")
    return pa.array(whole)


CASES = "cases"
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
    place = folder / CASES
    there = {path.name for path in place.iterdir()} if place.is_dir() else set()
    damaged = {name: "it is missing" for name in names if name not in there}
    paths = [place / name for name in names if name in there]
    found = list(zip(paths, spread(lambda path: fault_of(path, layout, deep=deep), paths), strict=True))
    damaged |= {path.name: fault for path, (fault, _) in found if fault}
    return [Part(path, rows) for path, (fault, rows) in found if not fault], damaged


def spread(work: Callable[[Path], Any], paths: list[Path]) -> list[Any]:
    """Apply a function to many files, several at a time where they are far away."""
    if len(paths) < 2 or is_local(paths[0]):
        return [work(path) for path in paths]
    with ThreadPoolExecutor(JOURNEYS) as pool:
        return list(pool.map(work, paths))


def codes_in(parts: list[Part], layout: Layout, *, rows: int = 65_536) -> Iterator[Codes]:
    """Codes of the cases in some parts, batch after batch."""
    for part in parts:
        with opened(part.path) as source, pq.ParquetFile(source) as file:
            # By position, because a name with a dot would be read as a path into a nested column.
            names = [file.schema.column(i).path for i in range(len(layout.names))]
            yield from map(layout.codes_of, file.iter_batches(batch_size=rows, columns=names))


def fault_of(path: Path, layout: Layout, *, deep: bool) -> tuple[str, int]:
    """What is wrong with a part."""
    if path.stat().st_size == 0:
        return "it is empty", 0
    try:
        with opened(path) as source, pq.ParquetFile(source, page_checksum_verification=deep) as file:
            if not _fits(file.schema_arrow, layout.arrow):
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


DOUBLES = "doubles.parquet"
#: Rows that a reader looks at together, about.
GROUP_ROWS = 2_000_000
_PARTS = b"fairbits:parts"


def find_doubles(parts: Sequence[Part], layout: Layout, *, buckets: int) -> Integers:
    """The evaluations that found somebody whom an earlier one had found, in order."""
    if not parts:
        return np.empty(0, np.int64)
    from fairbits.store.query import connected

    # Small buckets are looked at together: opening every part once more costs more than a larger table.
    together = max(1, int(GROUP_ROWS * buckets / max(1, sum(part.rows for part in parts))))
    with connected(parts, layout) as connection:
        found = [
            connection.execute(_question(layout, range(first, min(first + together, buckets)))).fetchnumpy()
            for first in range(0, buckets, together)
        ]
    return np.sort(np.concatenate([answer["evaluation"] for answer in found]).astype(np.int64))


def keep_doubles(folder: Path, parts: Sequence[Part], found: Integers) -> None:
    """Write down which evaluations found a person who is stored already."""
    table = pa.table({"evaluation": pa.array(found, pa.int64())}).replace_schema_metadata({_PARTS: _digest(parts)})
    packed = {"evaluation": "DELTA_BINARY_PACKED"}
    write_parquet(folder / CASES / DOUBLES, table, compression="lz4", column_encoding=packed, use_dictionary=False)


def kept_doubles(folder: Path, parts: Sequence[Part]) -> pa.Table | None:
    """The duplicates that were written down about exactly these parts."""
    path = folder / CASES / DOUBLES
    if not path.is_file():
        return None
    try:
        table = read_parquet(path, remedy="delete it")
    except OptionError:
        return None  # it can be found again
    return table if (table.schema.metadata or {}).get(_PARTS) == _digest(parts) else None


def _digest(parts: Sequence[Part]) -> bytes:
    return hashlib.sha256("\n".join(sorted(part.path.name for part in parts)).encode()).hexdigest().encode()


def _question(layout: Layout, buckets: range) -> str:
    """Most people are found once: their hashes tell so in little memory, and only the others are compared in full."""
    person, listed = ", ".join(map(sql_name, layout.names)), ", ".join(map(str, buckets))
    return f"""
        WITH mine AS MATERIALIZED (SELECT {person}, evaluation FROM written WHERE {sql_name(BUCKET)} IN ({listed})),
        often AS (SELECT hash({person}) AS h FROM mine GROUP BY h HAVING count(*) > 1),
        maybe AS (SELECT {person}, evaluation FROM mine SEMI JOIN often ON hash({person}) = often.h)
        SELECT evaluation FROM (SELECT evaluation, min(evaluation) OVER (PARTITION BY {person}) AS first FROM maybe)
        WHERE evaluation <> first
    """  # noqa: S608 - names of our own columns, quoted


def sql_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def sql_text(text: str) -> str:
    return "'" + text.replace("'", "''").replace("\0", "\ufffd") + "'"


ROWS = "rows.parquet"


def row_names(schema: Schema) -> dict[str, str]:
    """Names under which a filter knows the protected attributes of a case's row."""
    taken = {name.casefold() for name in (*FIGURES, *WORDS)}
    taken |= {schema.attributes[i].name.casefold() for i in schema.person_columns}
    names = {}
    for name in schema.protected:
        shown = name
        while shown.casefold() in taken:
            shown = f"row_{shown}"
        taken.add(shown.casefold())
        names[name] = shown
    return names


def write_rows(folder: Path, schema: Schema, people: Codes) -> None:
    """Keep the protected values of the table's rows, as labels, by their position in the table."""
    columns: dict[str, pa.Array] = {"seed_row": pa.array(np.arange(len(people), dtype=np.int32))}
    for name, shown in row_names(schema).items():
        attribute, codes = schema[name], people[:, schema.column(name)]
        if attribute.labels:
            found, place = np.unique(codes, return_inverse=True)
            labels = pa.array([attribute.read(code) for code in found], pa.string())
            columns[shown] = labels.take(pa.array(place))
        else:
            columns[shown] = pa.array(codes, mask=None if attribute.gap is None else codes == attribute.gap)
    write_parquet(folder / ROWS, pa.table(columns))


def read_rows(folder: Path) -> pa.Table | None:
    """The protected values that ``write_rows`` kept."""
    file, remedy = folder / ROWS, "restore it from a copy, or search again"
    return read_parquet(file, remedy=remedy) if file.is_file() else None
