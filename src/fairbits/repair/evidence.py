"""The evidence in two halves: one to plan repairs on, one that no repair has seen, to judge them on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Table
from fairbits.errors import OptionError, TableError
from fairbits.repair.records import RepairEvidence
from fairbits.store import Run
from fairbits.subject import Subject

#: At most so many cases are measured: the mean over them is within a percent of the mean over all.
PLAN_CASES = 2_000
#: Cases of the plan's half that are ever trained on.
MAX_POOL = 100_000
HELD_OUT_CASES = 5_000
#: Rows held out here when the subject holds out none.
HELD_OUT_SHARE = 0.25
#: Fewer held-out rows than this cannot tell two points of accuracy from nothing.
FEW_ROWS = 500
#: With fewer rows in a half, indirect bits are about all rows of the table.
MANY_PEOPLE = 200


@dataclass(frozen=True, slots=True, eq=False)
class Half:
    """One half of the evidence: cases, rows of the table and their labels."""

    cases: Codes
    rows: Codes
    labels: npt.NDArray[np.float64]
    observed: Codes | None = None
    people: Table | None = None
    unlabelled: Codes | None = None

    @property
    def asked(self) -> Codes:
        """The rows whose twins are compared, which takes no labels."""
        return self.rows if self.unlabelled is None else np.concatenate([self.unlabelled, self.rows])


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """The two halves of the evidence, and how they were made."""

    plan: Half
    held_out: Half
    training: Half
    pool: Codes  # every case of the plan's half, for training
    evidence: RepairEvidence

    def with_unseen_plan(self, rng: np.random.Generator) -> Halves:
        """Choose on half of the rows that the model has not seen, and judge on the other half."""
        judged = self.held_out
        order = rng.permutation(len(judged.rows))
        chosen, rest = (np.sort(part) for part in np.array_split(order, 2))
        plan = replace(_some_rows(judged, chosen), cases=self.plan.cases, unlabelled=self.training.rows)
        held_out = _some_rows(judged, rest)
        plan, held_out = (_with_people(half, (self.training, judged)) for half in (plan, held_out))
        note = (
            f"the model knows its training rows by heart, so repairs are chosen on {len(chosen)} rows that it has not "
            f"seen and judged on {len(rest)} others."
        )
        old = _few(len(order), regression=False)
        evidence = replace(
            self.evidence,
            plan_rows=len(chosen),
            held_out_rows=len(rest),
            notes=(
                note,
                *(line for line in self.evidence.notes if line not in old),
                *_few(len(rest), regression=False),
            ),
        )
        return replace(self, plan=plan, held_out=held_out, evidence=evidence)


def split(run: Run, subject: Subject, rng: np.random.Generator, *, rows_for_cases: bool = False) -> Halves:
    """Split the cases of a run and the rows of its subject.

    With ``rows_for_cases`` a run without cases is no error: the rows stand for them.
    """
    plan_rows, judge_rows, unseen, notes = _rows(subject, rng)
    try:
        pool, judged = _cases(run, rng)
    except OptionError:
        if not rows_for_cases:
            raise
        pool, judged = plan_rows.codes[rng.permutation(len(plan_rows))], judge_rows.codes
        notes += ["the search found nobody whose twins differ, so figures on cases are about rows."]
    plan = _half(pool[:PLAN_CASES], plan_rows, subject)
    held_out = _half(judged[:HELD_OUT_CASES], judge_rows, subject)
    notes += _few(len(held_out.rows), regression=subject.schema.regression)
    sizes = (len(plan.cases), len(plan.rows), len(held_out.cases), len(held_out.rows))
    both = (plan, held_out)
    plan, held_out = (_with_people(half, both) for half in both)
    return Halves(plan, held_out, plan, pool, RepairEvidence(*sizes, unseen, tuple(notes)))


def _some_rows(half: Half, chosen: npt.NDArray[np.int64]) -> Half:
    observed = None if half.observed is None else half.observed[chosen]
    return replace(half, rows=half.rows[chosen], labels=half.labels[chosen], observed=observed)


def _with_people(half: Half, everybody: tuple[Half, ...]) -> Half:
    """A half with its people; where they are few, all rows of the table for figures that need many and no labels."""
    own = (half,) if len(half.rows) >= MANY_PEOPLE else everybody
    observed = [one.observed for one in own if one.observed is not None]
    people = Table(
        np.concatenate([one.rows for one in own]),
        observed=np.concatenate(observed) if len(observed) == len(own) else None,
    )
    return replace(half, people=people)


def _few(rows: int, *, regression: bool) -> list[str]:
    """What must be known about figures on few rows."""
    if rows >= FEW_ROWS:
        return []
    one = "" if regression else f", so one of them moves accuracy by {1 / rows:.1%}"
    return [f"only {rows} rows are held out{one}: differences of a few points may be chance."]


def _cases(run: Run, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Cases of two halves, each in random order: as many of each as are ever looked at."""
    total = len(run)
    if total < 2:
        count = "no cases" if total == 0 else "a single case"
        raise OptionError(
            f"the run in {str(run.folder)!r} has {count}, so there is nothing to repair by; "
            f"search longer, or with a smaller --epsilon."
        )
    order = rng.permutation(total)
    middle = total // 2
    pool, judged = order[:middle][:MAX_POOL], order[middle:][:HELD_OUT_CASES]
    found = run.codes_at(np.concatenate([pool, judged]))
    return found[: len(pool)], found[len(pool) :]


def _rows(subject: Subject, rng: np.random.Generator) -> tuple[Table, Table, bool, list[str]]:
    known, unseen = subject.table.training(), subject.test or subject.table.unseen()
    if unseen is not None and len(unseen) and len(known):
        return known, unseen, True, []
    if len(known) < 4:
        raise TableError(f"the table of {subject.name!r} has {len(known)} rows; a repair needs some to be judged on.")
    order = rng.permutation(len(known))
    cut = max(1, round(HELD_OUT_SHARE * len(known)))
    note = (
        f"the subject holds no rows out, so {HELD_OUT_SHARE:.0%} of its table were set aside: "
        f"the model may have been trained on them."
    )
    return known.rows(order[cut:]), known.rows(order[:cut]), False, [note]


def _half(cases: Codes, table: Table, subject: Subject) -> Half:
    if table.labels is None:
        raise TableError(
            f"the table of {subject.name!r} has no labels, so nobody can say what a repair costs in accuracy; "
            f"name the target under [table]."
        )
    return Half(cases, table.codes, table.labels, table.observed)
