"""One study of a subject: indirect bits of every protected attribute, through what, for whom, over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairbits.domain import one_row_each, people_of
from fairbits.errors import SchemaError
from fairbits.measure import Evaluator, decided_rows, groupings_of, intersections, subject_groups
from fairbits.proxies.attributes import AttributeWork, Progress
from fairbits.proxies.periods import Period, period_grouping, periods_of
from fairbits.proxies.records import ProxyStudy
from fairbits.randomness import generator
from fairbits.subject import Subject


def study_subject(
    subject: Subject,
    *,
    justified: Sequence[str] | None = None,
    by: str | None = None,
    seed: int = 0,
    columns: bool = True,
    data_source: str | None = None,
    distributed: str | None = None,
    evaluator: Evaluator | None = None,
    progress: Progress | None = None,
) -> ProxyStudy:
    """Everything that a score tells about protected attributes, whether the model takes them or not."""
    say = progress or _ignored
    schema = subject.schema
    if not schema.protected and not schema.observed:
        raise SchemaError(
            'no attribute is protected; mark one with protected = true, or with protected = "observed" where the model '
            "does not take it."
        )
    chosen = tuple(schema.justified if justified is None else justified)
    schema.check_justified(chosen)
    over = None if by is None else period_grouping(subject, by)
    say("scoring")
    decided = decided_rows(subject)
    groupings = groupings_of(schema, subject.table)
    say("groups")
    groups = subject_groups(subject, generator(seed, "proxies", "groups"), decided=decided)
    # Bits, placebos and matches are about people: of those with several rows, one is drawn by lot.
    people = people_of(schema, subject.table)
    rows = one_row_each(people, len(subject.table), generator(seed, "proxies", "people"))
    drawn, own = groupings, replace(subject, table=subject.table.rows(rows)) if people is not None else subject
    if people is not None:
        drawn = tuple(one.take(rows) for one in groupings)
    work = AttributeWork(own, decided.take(rows), chosen, seed, columns, say, rows=rows)
    singles = [work.single(one) for one in drawn]
    several = [work.several(some) for some in intersections(drawn)]
    periods: tuple[Period, ...] = ()
    notes = work.notes(drawn, singles)
    if people is not None:
        notes.append(
            f"bits and matches are about one row of each person, by lot: {len(rows):,} of {len(people):,} rows."
        )
    if over is not None:
        say(f"periods of {over.name}")
        rng = generator(seed, "proxies", "periods")
        periods = periods_of(subject, over, groupings, decided, rng, evaluator=evaluator)
        lost = int((~over.known).sum())
        if lost:
            notes.append(f"{lost:,} people have no value of {over.name}; they are in no period.")
    return ProxyStudy(
        subject,
        (*singles, *several),
        groups,
        chosen,
        by,
        periods,
        seed,
        tuple(notes),
        data_source,
        distributed,
    )


def _ignored(_words: str) -> None:
    """Default callback: ignore progress."""
