"""A suite: frozen people, with the schema, tolerance, seed and version that they belong to.

People are rows of a table (``row``) and cases that a search found (``case``). Rates and means are about rows, which
stand for people like them; cases were chosen because they are bad, so only exact figures and single people count them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairbits._version import __version__
from fairbits.domain import Codes, Table, numpy_of
from fairbits.errors import OptionError
from fairbits.measure import default_epsilon
from fairbits.randomness import generator, sampled_rows
from fairbits.subject import Subject

if TYPE_CHECKING:
    from fairbits.store import Run

FILE = "suite.parquet"
#: Rows of a table, and worst cases of a run, that are frozen unless somebody says otherwise.
ROWS, CASES = 20_000, 1_000
#: The ingredients of an identity that say what people are made of and what is decided: a suite holds for these alone.
SCHEMA_PARTS = (
    *("attributes", "target", "classes", "favourable", "protected", "protected_values", "rules", "compared"),
)
ROW, CASE = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
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
    #: The hash of the people, once somebody has asked for it: they never change.
    _known: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def sample(self) -> npt.NDArray[np.bool_]:
        """Whom rates and means are about: the rows; the cases where there are no rows."""
        rows = np.asarray(self.origin == ROW)
        return rows if rows.any() else np.ones(len(self), dtype=np.bool_)

    @property
    def id(self) -> str:
        """A hash of the people and of everything that their figures hang on."""
        if "id" not in self._known:
            self._known["id"] = self._hash()
        return self._known["id"]

    def _hash(self) -> str:
        found = hashlib.sha256()
        for name in SCHEMA_PARTS:
            found.update(f"{name}={self.schema.get(name, '')}\n".encode())
        found.update(f"{self.epsilon!r} {self.partition} {self.repeats} {self.seed} {self.version}\n".encode())
        table = self.table
        for array in (table.codes, table.labels, table.held_out, table.observed, table.numbers, self.origin):
            kept = np.empty(0) if array is None else np.ascontiguousarray(array)
            found.update(f"{kept.dtype.str}{kept.shape}".encode())
            found.update(kept.astype(kept.dtype.newbyteorder("<"), copy=False).tobytes())
        if table.person is not None:  # suites of tables that say nothing keep the identity that they have
            found.update(np.ascontiguousarray(table.person, dtype="<i8").tobytes())
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
    known = subject.identity.ingredients
    return {name: known[name] for name in SCHEMA_PARTS}


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
    chosen = sampled_rows(len(table), rows, generator(seed, "suite"))
    kept = replace(table.rows(chosen), file=None)
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
    if top == 0:
        return np.empty((0, len(subject.schema))), np.empty(0, np.int64)
    found = run.cases(top=top, labels=False).combine_chunks()
    batches = found.to_batches()
    if not batches:
        return np.empty((0, len(subject.schema))), np.empty(0, np.int64)
    codes = np.concatenate([run.layout.codes_of(batch) for batch in batches])
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
    )
    return replace(suite, table=more, origin=np.concatenate([suite.origin, np.full(n, CASE, dtype=np.int64)]))


def numbers_of(table: Table) -> npt.NDArray[np.int64]:
    """The numbers of a table's rows, counted from 1 where it has none of its own."""
    return np.arange(1, len(table) + 1, dtype=np.int64) if table.numbers is None else table.numbers
