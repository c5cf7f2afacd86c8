"""The evidence in three parts: rows and cases to learn from, others to choose on, and others again to judge on.

A candidate that was trained flatters itself on the rows that it was trained on, and so does the model as it came. So
proposals learn from ``training`` alone, the choice looks at ``plan`` alone, and what is shown is ``held_out``. Where
the subject holds rows out, those are cut in two for the choice and the judgement, and neither the model nor a candidate
has seen any of them. Where it holds none out, half of the table trains candidates and a quarter each chooses and
judges: candidates have not seen those, the model may have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Table
from fairbits.errors import OptionError, TableError
from fairbits.repair.records import RepairEvidence
from fairbits.store import Run
from fairbits.subject import Subject
from fairbits.text import percent

#: At most so many cases are measured: the mean over them is within a percent of the mean over all.
PLAN_CASES, HELD_OUT_CASES = 2_000, 5_000
#: Cases that are ever trained on.
MAX_POOL = 100_000
#: Fewer held-out rows than this cannot tell two points of accuracy from nothing.
FEW_ROWS = 500
#: With fewer rows in a part, indirect bits are about all rows of the table.
MANY_PEOPLE = 200
#: The fewest rows that can be cut into parts, and of those that the model has not seen.
FEWEST_ROWS, FEWEST_UNSEEN = 4, 2


@dataclass(frozen=True, slots=True, eq=False)
class Half:
    """One part of the evidence: cases, rows of the table and their labels."""

    cases: Codes
    rows: Codes
    labels: npt.NDArray[np.float64]
    observed: Codes | None = None
    people: Table | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """The parts of the evidence, no row or case in two of them: to choose on, to judge on, to learn from."""

    plan: Half
    held_out: Half
    training: Half
    evidence: RepairEvidence

    @property
    def pool(self) -> Codes:
        """The cases that may be learned from."""
        return self.training.cases


def split(run: Run, subject: Subject, rng: np.random.Generator, *, rows_for_cases: bool = False) -> Halves:
    """Split the cases of a run and the rows of its subject.

    With ``rows_for_cases`` a run without cases is no error: the rows stand for them.
    """
    tables, unseen, notes = _rows(subject, rng)
    try:
        cases = _cases(run, rng)
    except OptionError:
        if not rows_for_cases:
            raise
        cases = [table.codes[rng.permutation(len(table))] for table in tables]
        notes += ["the search found nobody whose twins differ, so figures on cases are about rows."]
    parts = [_part(mine, table, subject) for mine, table in zip(cases, tables, strict=True)]
    training, plan, held_out = (_with_people(part, parts) for part in parts)
    notes += _few(len(held_out.rows), regression=subject.schema.regression)
    sizes = (len(plan.cases), len(plan.rows), len(held_out.cases), len(held_out.rows))
    return Halves(plan, held_out, training, RepairEvidence(*sizes, unseen, tuple(notes), len(training.rows)))


def _with_people(part: Half, everybody: list[Half]) -> Half:
    """A part with its people; where they are few, all rows of the table for figures that need many and no labels."""
    own = [part] if len(part.rows) >= MANY_PEOPLE else everybody
    observed = [one.observed for one in own if one.observed is not None]
    people = Table(
        np.concatenate([one.rows for one in own]),
        observed=np.concatenate(observed) if len(observed) == len(own) else None,
    )
    return replace(part, people=people)


def _few(rows: int, *, regression: bool) -> list[str]:
    """What must be known about figures on few rows."""
    one = "" if regression else f", so one of them moves accuracy by {percent(1 / rows)}"
    few = f"only {rows} rows are held out{one}: differences of a few points may be chance."
    return [few] if rows < FEW_ROWS else []


def _cases(run: Run, rng: np.random.Generator) -> list[Codes]:
    """Cases to learn from, to choose on and to judge on, each in random order: as many as are ever looked at."""
    total = len(run)
    if total < 3:
        count = ("no cases", "a single case", "two cases")[total]
        raise OptionError(
            f"the run in {str(run.folder)!r} has {count}, so there is nothing to repair by; "
            f"search longer, or with a smaller --epsilon."
        )
    # All that is not needed elsewhere is learned from.
    plan, judged = min(total // 3, PLAN_CASES), min(total // 3, HELD_OUT_CASES)
    parts = np.split(rng.permutation(total), [total - plan - judged, total - judged])
    chosen = [parts[0][:MAX_POOL], *parts[1:]]
    return np.split(run.codes_at(np.concatenate(chosen)), np.cumsum([len(part) for part in chosen])[:-1])


def _rows(subject: Subject, rng: np.random.Generator) -> tuple[list[Table], bool, list[str]]:
    """Rows to learn from, to choose on and to judge on; whether the model has not seen the latter two; and notes."""
    known, unseen = subject.table.training(), subject.unseen
    if unseen is not None and len(_people(unseen)) >= FEWEST_UNSEEN and len(known):
        halves = [np.sort(half) for half in np.array_split(rng.permutation(_people(unseen)), 2)]
        return [known, *(_rows_about(unseen, half) for half in halves)], True, []
    if len(_people(known)) < FEWEST_ROWS:
        raise TableError(f"the table of {subject.name!r} has {len(known)} rows; a repair needs some to be judged on.")
    order = rng.permutation(_people(known))
    quarter = len(order) // 4
    parts = np.split(order, [len(order) - 2 * quarter, len(order) - quarter])
    note = (
        "the table marks no rows as held out, so candidates learn from half of it, and a quarter each was set aside "
        "to choose and to judge on. But the model may have been trained on them: then it looks better there than it "
        "is, and losses look larger; rows that it has not seen would tell."
    )
    return [_rows_about(known, part) for part in parts], False, [note]


def _people(table: Table) -> npt.NDArray[np.int64]:
    """Whom the rows are about: a person's rows stay together, because who was learned from is no longer unseen."""
    return np.arange(len(table)) if table.person is None else np.unique(table.person)


def _rows_about(table: Table, people: npt.NDArray[np.int64]) -> Table:
    return table.rows(people if table.person is None else np.isin(table.person, people))


def _part(cases: Codes, table: Table, subject: Subject) -> Half:
    if table.labels is None:
        raise TableError(
            f"the table of {subject.name!r} has no labels, so nobody can say what a repair costs in accuracy; "
            f"name the target under [table]."
        )
    return Half(cases, table.codes, table.labels, table.observed)
