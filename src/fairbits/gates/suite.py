"""A suite: frozen people, with the schema, tolerance, seed and version that they belong to; and a model's answers.

People are rows of a table (``row``) and cases that a search found (``case``). Rates and means are about rows, which
stand for people like them; cases were chosen because they are bad, so only exact figures and single people count them.

Suites and baselines are Parquet files with a description, there whole or not at all. They come from a repository that
others write to, so they are data: sizes are held against limits before anything is unpacked, the first reading happens
in a child process (:func:`fairbits.domain.read_arrow`), every column is checked.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairbits._version import __version__
from fairbits.diff import Answers, answers_of
from fairbits.domain import Codes, Schema, Table, check_domain, numpy_of, read_arrow
from fairbits.engine import check_partition
from fairbits.errors import FairbitsError, OptionError, TableError, on_disk
from fairbits.measure import default_epsilon, evaluator_of
from fairbits.randomness import generator, sampled_rows
from fairbits.store import plain, timestamp, write_parquet
from fairbits.subject import Subject
from fairbits.text import joined

if TYPE_CHECKING:
    from fairbits.store import Run


_METADATA = b"fairbits"
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
    with on_disk(f"cannot write the {kind} {str(path)!r}", "choose another place"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_parquet(path, table.replace_schema_metadata({_METADATA: text.encode()}), compression="zstd")


def read_container(path: Path, kind: str, *, max_rows: int | None = None) -> tuple[pa.Table, dict[str, Any]]:
    """Read columns and their description."""
    remedy = f"make one with {'`fairbits gate RUN --freeze`' if kind == 'suite' else '--update-baseline'}"
    check_suffix(path, kind)
    if not os.path.exists(path):
        raise OptionError(f"the {kind} {str(path)!r} does not exist; check the path, or {remedy}.")
    try:
        table = read_arrow(path, max_rows=max_rows)
    except TableError as error:
        raise OptionError(f"the {kind} cannot be used: {error}") from None
    text = (table.schema.metadata or {}).get(_METADATA, b"")
    found: Any = None
    with suppress(ValueError, RecursionError):
        found = json.loads(text) if len(text) <= _MAX_DESCRIPTION else None
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


_TYPES = {bool: pa.types.is_boolean, int: pa.types.is_integer, float: pa.types.is_floating}


def column_of(
    table: pa.Table, name: str, path: Path, kind: str, *, dtype: type = float, gaps: bool = False
) -> npt.NDArray[Any]:
    """One column as an array, checked."""
    if name not in table.column_names:
        raise damaged(path, kind, f"it has no column {name!r}")
    column = table.column(name)
    if not _TYPES[dtype](column.type) or column.null_count:
        raise damaged(path, kind, f"column {name!r} holds something else than it should")
    found: npt.NDArray[Any] = np.asarray(numpy_of(column), dtype=dtype)
    if not (np.isfinite(found) | (np.isnan(found) & gaps)).all():
        raise damaged(path, kind, f"column {name!r} has values that are no numbers")
    return found


SUITE, BASELINE = "suite.parquet", "baseline.parquet"
#: Rows of a table, and worst cases of a run, that are frozen unless somebody says otherwise.
ROWS, CASES = 20_000, 1_000
#: The ingredients of an identity that say what people are made of and what is decided: a suite holds for these alone.
SCHEMA_PARTS = ("attributes", "target", "protected")
ROW, CASE = 0, 1


@dataclass(frozen=True, eq=False)
class Suite:
    """Frozen people, with the schema and the settings that they are asked under."""

    table: Table
    origin: npt.NDArray[np.int64]
    schema: Mapping[str, str]
    subject: str
    epsilon: float
    partition: str
    repeats: int
    seed: int
    version: str
    source: str

    def __len__(self) -> int:
        return len(self.table)

    @property
    def sample(self) -> npt.NDArray[np.bool_]:
        """Whom rates and means are about: the rows; the cases where there are no rows."""
        rows = np.asarray(self.origin == ROW)
        return rows if rows.any() else np.ones(len(self), dtype=np.bool_)

    @cached_property
    def id(self) -> str:
        """A hash of the people and of everything that their figures hang on; they never change."""
        found = hashlib.sha256()
        for name in SCHEMA_PARTS:
            found.update(f"{name}={self.schema.get(name, '')}\n".encode())
        found.update(f"{self.epsilon!r} {self.partition} {self.repeats} {self.seed} {self.version}\n".encode())
        table = self.table
        for array in (table.codes, table.labels, table.held_out, table.observed, table.numbers, self.origin):
            kept = np.empty(0) if array is None else np.ascontiguousarray(array)
            found.update(f"{kept.dtype.str}{kept.shape}".encode())
            found.update(kept.astype(kept.dtype.newbyteorder("<"), copy=False).tobytes())
        for values, dtype in ((table.person, "<i8"), (table.weight, "<f8")):
            if values is not None:  # suites of tables that say nothing keep the identity that they have
                found.update(np.ascontiguousarray(values, dtype=dtype).tobytes())
        return found.hexdigest()[:16]

    def description(self) -> dict[str, Any]:
        """What gate.json says about it."""
        return {
            "id": self.id,
            "subject": self.subject,
            "people": len(self),
            "rows": int((self.origin == ROW).sum()),
            "cases": int((self.origin == CASE).sum()),
            "epsilon": self.epsilon,
            "partition": self.partition,
            "repeats": self.repeats,
            "seed": self.seed,
            "version": self.version,
            "source": self.source,
        }


def schema_parts(subject: Subject) -> dict[str, str]:
    """The ingredients of a subject's identity that a suite is bound to."""
    return {name: subject.identity.ingredients[name] for name in SCHEMA_PARTS}


def freeze_subject(
    subject: Subject,
    *,
    rows: int = ROWS,
    seed: int = 0,
    epsilon: float | None = None,
    partition: str = "constrained",
) -> Suite:
    """A suite of the rows of a subject's table."""
    if rows < 1:
        raise OptionError(f"rows is {rows}; at least one person must be frozen.")
    table = subject.table
    kept = replace(table.rows(sampled_rows(len(table), rows, generator(seed, "suite"))), file=None)
    return Suite(
        kept,
        np.full(len(kept), ROW, dtype=np.int64),
        schema_parts(subject),
        subject.name,
        default_epsilon(subject.schema, table) if epsilon is None else float(epsilon),
        partition,
        subject.repeats,
        seed,
        __version__,
        f"rows of the table of {subject.name}",
    )


def freeze_run(run: Run, subject: Subject, *, rows: int = ROWS, cases: int = CASES, seed: int | None = None) -> Suite:
    """A suite of the rows of a run's table and of the worst cases that it found."""
    if cases < 0:
        raise OptionError(f"cases is {cases}; give 0 or more.")
    epsilon, partition = float(run.manifest["epsilon"]), str(run.manifest["partition"])
    number = int(run.manifest.get("seed", 0)) if seed is None else seed
    suite = freeze_subject(subject, rows=rows, seed=number, epsilon=epsilon, partition=partition)
    suite = replace(suite, source=f"run {run.folder.name}")
    return with_cases(suite, *cases_of(run, subject, top=cases))


def cases_of(run: Run, subject: Subject, *, top: int) -> tuple[Codes, npt.NDArray[np.int64]]:
    """The worst cases of a run as full rows, with the rows that they came from."""
    found = run.cases(top=top, labels=False).combine_chunks() if top else None
    if found is None or not found.num_rows:
        return np.empty((0, len(subject.schema))), np.empty(0, np.int64)
    codes = np.concatenate([run.layout.codes_of(batch) for batch in found.to_batches()])
    seeds = numpy_of(found.column("seed_row")).astype(np.int64)
    known = (seeds >= 0) & (seeds < len(subject.table))
    columns = np.asarray(subject.schema.protected_columns, dtype=np.int64)
    if len(columns):
        codes[np.ix_(known, columns)] = subject.table.codes[np.ix_(seeds[known], columns)]
    return codes, np.where(known, numbers_of(subject.table)[np.where(known, seeds, 0)], 0)


def with_cases(suite: Suite, codes: Codes, numbers: npt.NDArray[np.int64]) -> Suite:
    """The same suite with more people, found by a search; nobody is taken twice."""
    known = {row.tobytes() for row in np.ascontiguousarray(suite.table.codes)}
    fresh = [i for i, row in enumerate(np.ascontiguousarray(codes)) if row.tobytes() not in known]
    if not fresh:
        return suite
    table, n = suite.table, len(fresh)
    # What is not known of a made-up person: label, held-out or not, and values that the model never sees.
    more = Table(
        np.concatenate([table.codes, codes[fresh]]),
        None if table.labels is None else np.concatenate([table.labels, np.full(n, np.nan)]),
        None if table.held_out is None else np.concatenate([table.held_out, np.zeros(n, np.bool_)]),
        np.concatenate([numbers_of(table), numbers[fresh]]),
        None,
        None
        if table.observed is None
        else np.concatenate([table.observed, np.full((n, table.observed.shape[1]), np.nan)]),
        person=None if table.person is None else np.concatenate([table.person, table.person.max() + 1 + np.arange(n)]),
        weight=None if table.weight is None else np.concatenate([table.weight, np.zeros(n)]),
    )
    return replace(suite, table=more, origin=np.concatenate([suite.origin, np.full(n, CASE, dtype=np.int64)]))


def numbers_of(table: Table) -> npt.NDArray[np.int64]:
    """The numbers of a table's rows, counted from 1 where it has none of its own."""
    return np.arange(1, len(table) + 1, dtype=np.int64) if table.numbers is None else table.numbers


def write_suite(suite: Suite, path: Path) -> None:
    """Write a suite to a .parquet file, whole."""
    table = suite.table
    columns: dict[str, npt.NDArray[Any]] = {}
    for name, values in (("attribute", table.codes), ("observed", table.observed)):
        columns |= {} if values is None else {f"{name}:{i}": column for i, column in enumerate(values.T)}
    known = {"label": table.labels, "held_out": table.held_out, "person": table.person, "weight": table.weight}
    columns |= {name: values for name, values in known.items() if values is not None}
    columns |= {"number": numbers_of(table), "origin": suite.origin}
    kept = {name: value for name, value in suite.description().items() if name not in ("people", "rows", "cases")}
    write_container(path, "suite", columns, {**kept, "schema": dict(suite.schema), "created": timestamp()})


def read_suite(path: Path, subject: Subject, *, max_rows: int | None = None) -> Suite:
    """The suite in a file, for a subject of the same schema."""
    table, about = read_container(path, "suite", max_rows=max_rows)
    stored = about.get("schema")
    texts = ("id", "subject", "partition", "version", "source")
    if not isinstance(stored, dict) or any(not isinstance(about.get(name), str) for name in texts):
        raise damaged(path, "suite", "its description is not complete")
    for name, kind in (("epsilon", float), ("repeats", int), ("seed", int)):
        value = about.get(name)
        if isinstance(value, bool) or not isinstance(value, int | kind) or not abs(value) < 2**63:
            raise damaged(path, "suite", f"its {name} is no number")
    here = schema_parts(subject)
    other = [name for name in SCHEMA_PARTS if stored.get(name) != here[name]]
    if other:
        raise OptionError(
            f"the suite {str(path)!r} was frozen for another schema (other {joined(other)}); freeze one from a run of "
            f"this model and table, or name the same attributes with --protected."
        )
    people = _people(table, path, subject.schema)
    origin = column_of(table, "origin", path, "suite", dtype=int)
    if not np.isin(origin, (ROW, CASE)).all():
        raise damaged(path, "suite", "column 'origin' holds something else than it should")
    if about["repeats"] < 1 or not about["epsilon"] > 0:
        raise damaged(path, "suite", "its tolerance or its repeats cannot be")
    suite = Suite(
        people,
        origin,
        {name: str(stored.get(name, "")) for name in SCHEMA_PARTS},
        about["subject"],
        float(about["epsilon"]),
        check_partition(about["partition"]),
        int(about["repeats"]),
        int(about["seed"]),
        about["version"],
        about["source"],
    )
    if suite.id != about["id"]:
        raise OptionError(
            f"the suite {str(path)!r} has the identity {suite.id}, but was frozen as {about['id'][:16]!r}: it was "
            f"changed since; restore it from a copy, or freeze it again."
        )
    return suite


def _people(table: Any, path: Path, schema: Schema) -> Table:
    """The columns of a suite as people, every value checked."""

    def known(name: str, **how: Any) -> npt.NDArray[Any] | None:
        return column_of(table, name, path, "suite", **how) if name in table.column_names else None

    codes = np.column_stack([column_of(table, f"attribute:{i}", path, "suite") for i in range(len(schema))])
    more = [column_of(table, f"observed:{i}", path, "suite", gaps=True) for i in range(len(schema.observed))]
    observed = np.column_stack(more) if more else None
    labels = known("label", gaps=True)
    if labels is not None and schema.classes:
        given = labels[~np.isnan(labels)]
        if not np.isin(given, np.arange(len(schema.classes))).all():
            raise damaged(path, "suite", "column 'label' holds something else than classes")
    numbers = column_of(table, "number", path, "suite", dtype=int)
    held_out, person, weight = known("held_out", dtype=bool), known("person", dtype=int), known("weight")
    if weight is not None and not ((weight >= 0).all() and weight.any()):
        raise damaged(path, "suite", "column 'weight' holds no weights")
    try:
        check_domain(codes, schema)
    except FairbitsError as error:
        raise damaged(path, "suite", str(error).rstrip(".")) from None
    return Table(codes, labels, held_out, numbers, None, observed, person=person, weight=weight)


def replay(
    subject: Subject, suite: Suite, *, threads: int | None = None, progress: Callable[[int, int], None] | None = None
) -> Answers:
    """Ask a model about frozen people and their twins again; nothing is searched, and nothing is drawn."""
    asked = replace(subject, table=suite.table)
    asked = asked if asked.repeats == suite.repeats else asked.with_repeats(suite.repeats)
    evaluator = evaluator_of(asked, epsilon=suite.epsilon, partition=suite.partition, threads=threads)
    return answers_of(asked, evaluator, identity=subject.identity.id, progress=progress)


def write_baseline(path: Path, answers: Answers, suite: Suite, subject: Subject) -> None:
    """Write a model's answers, whole, so that later models are compared with it."""
    columns: dict[str, npt.NDArray[Any]] = {
        "k": answers.k,
        "flips": answers.flips,
        "score": answers.scores,
        "decision": answers.decisions,
    }
    about = {
        "suite": suite.id,
        "identity": answers.identity,
        "decision": answers.rule,
        "subject": subject.name,
        "version": __version__,
        "created": timestamp(),
    }
    write_container(path, "baseline", columns, about)


def read_baseline(path: Path, suite: Suite, *, max_rows: int | None = None) -> Answers:
    """An earlier model's answers about a suite."""
    table, about = read_container(path, "baseline", max_rows=max_rows)
    stated, identity = about.get("suite"), about.get("identity")
    if not isinstance(stated, str) or not isinstance(identity, str):
        raise damaged(path, "baseline", "its description is not complete")
    if stated != suite.id:
        raise OptionError(
            f"the baseline {str(path)!r} belongs to another suite ({stated[:16]} there, {suite.id} here); name the one "
            f"of this suite, or let --update-baseline write it anew."
        )
    k = column_of(table, "k", path, "baseline", dtype=int)
    if len(k) != len(suite) or (len(k) and (k.min() < 1 or k.max() > 2**31)):
        raise damaged(path, "baseline", f"it has {len(k):,} people for {len(suite):,}, or a k below 1")
    return Answers(
        k,
        column_of(table, "flips", path, "baseline", dtype=bool),
        column_of(table, "score", path, "baseline"),
        column_of(table, "decision", path, "baseline", dtype=int),
        identity[:64],
        str(about.get("decision") or "")[:400],
    )
