"""Over time: bits, flips, group rates and indirect bits per period; periods by name and in the order of time."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairbits.domain import Integers, is_number, one_row_each, people_of, plain, read_arrow, text_of
from fairbits.errors import OptionError, choose_from
from fairbits.measure import (
    Decided,
    Estimate,
    Evaluator,
    Grouping,
    GroupTable,
    documents_of,
    evaluator_of,
    group_table,
    grouping_of,
    measure_table,
    rate_of,
)
from fairbits.proxies.bits import ScoreBits, score_bits
from fairbits.randomness import sampled_rows
from fairbits.subject import Subject, read_document

#: Periods that a table can be told apart by, at most.
MAX_PERIODS = 200
#: People in a period, at least, for bits to be said.
MIN_PEOPLE = 200
#: Twins scored over all periods, at most; of more people in a period some are drawn.
MAX_TWIN_SCORES = 2_000_000
#: Dates of more different days than this are taken by month, those of more months by year.
MAX_DATES = 60
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_LENGTHS = (10, 7, 4)  # of a day, a month and a year
_TOKENS = re.compile(r"\d+|[^\W\d_]+")
_YEARS = range(1900, 2200)
_MONTHS = {
    name.lower(): number for names in (calendar.month_name, calendar.month_abbr) for number, name in enumerate(names)
}


@dataclass(frozen=True, slots=True)
class Period:
    """The figures of one period."""

    period: str
    people: int
    selection_rate: Estimate | None
    q_inf_mean: Estimate | None
    q_inf_max: float | None
    flip_rate: Estimate | None
    bits: tuple[tuple[str, ScoreBits | None], ...]  # by attribute; None where there are too few people
    groups: tuple[GroupTable, ...]

    def document(self) -> dict[str, Any]:
        """As JSON; rates carry their intervals under ``_low`` and ``_high``."""
        found: dict[str, Any] = {"period": self.period, "people": self.people, "q_inf_max": self.q_inf_max}
        for name in ("selection_rate", "q_inf_mean", "flip_rate"):
            found |= Estimate.named(name, getattr(self, name))
        bits = [{"attribute": name, **({} if told is None else asdict(told))} for name, told in self.bits]
        return {**found, "bits": bits, "groups": documents_of(self.groups)}


def periods_of(
    subject: Subject,
    over: Grouping,
    groupings: Sequence[Grouping],
    decided: Decided,
    rng: np.random.Generator,
    *,
    evaluator: Evaluator | None = None,
) -> tuple[Period, ...]:
    """Every period by itself, in order."""
    people = people_of(subject.schema, subject.table)
    found = []
    for code, label in enumerate(over.labels):
        rows = np.flatnonzero(over.codes == code)
        if len(rows) == 0:
            continue
        here, whose = decided.take(rows), None if people is None else people[rows]
        weight = None if subject.table.weight is None else subject.table.weight[rows]
        once = one_row_each(whose, len(rows), rng, weight)
        bits, tables = [], []
        for one in groupings:
            own, single = one.take(rows), one.take(rows[once])
            enough = single.known.sum() >= MIN_PEOPLE and (single.counts > 0).sum() > 1
            bits.append((one.name, score_bits(single, here.scores[once], rng) if enough else None))
            tables.append(
                group_table(
                    own,
                    rng,
                    scores=here.scores,
                    selected=here.selected,
                    labels=here.labels,
                    probabilities=not subject.schema.regression,
                    people=whose,
                    weight=weight,
                )
            )
        rate = None if here.selected is None else rate_of(here.selected, people=whose, weight=weight)
        direct = _direct(subject, rows, MAX_TWIN_SCORES // len(over.labels), rng, evaluator)
        found.append(Period(label, len(rows), rate, *direct, tuple(bits), tuple(tables)))
    return tuple(found)


def _direct(
    subject: Subject,
    rows: Integers,
    max_scores: int,
    rng: np.random.Generator,
    evaluator: Evaluator | None,
) -> tuple[Estimate | None, float | None, Estimate | None]:
    """Mean and largest bits of a period's people, and the share whose decision flips."""
    if subject.scores_only or not subject.schema.protected:
        none = None if subject.scores_only else Estimate(0.0, 0.0, 0.0)
        return none, None if none is None else 0.0, None if subject.schema.regression else none
    evaluator = evaluator or evaluator_of(subject)
    chosen = rows[sampled_rows(len(rows), max(MIN_PEOPLE, max_scores // evaluator.m), rng)]
    measured = measure_table(evaluator, subject.table.rows(chosen), rng)
    return measured.q_inf_mean, float(measured.evaluation.q_inf.max()), measured.flip_rate


def period_grouping(subject: Subject, by: str) -> Grouping:
    """The periods of a table's rows, in order: an attribute, or any other column of the file it was read from."""
    over = _grouped(subject, by)
    if len(over.labels) > MAX_PERIODS:
        raise OptionError(
            f"{over.name!r} has {len(over.labels):,} different values, more than {MAX_PERIODS} periods; use a coarser "
            f"column, such as a month."
        )
    return over


def _grouped(subject: Subject, by: str) -> Grouping:
    schema, table = subject.schema, subject.table
    if by in schema.names:
        values, own = np.unique(table.codes[:, schema.column(by)], return_inverse=True)
        return Grouping(by, tuple(schema[by].read(code) for code in values), own.astype(np.int64))
    watched = [one.name for one in schema.observed]
    if by in watched and table.observed is not None:
        return grouping_of(schema.observed[watched.index(by)], table.observed[:, watched.index(by)])
    texts = dated_periods(_column_of_file(subject, by))
    present = in_time_order(sorted({text for text in texts if text is not None}))
    places: dict[str | None, int] = {name: place for place, name in enumerate(present)}
    return Grouping(by, tuple(present), np.array([places.get(text, -1) for text in texts], dtype=np.int64))


def _column_of_file(subject: Subject, by: str) -> list[str | None]:
    """A column that the schema does not know, from the file."""
    table = subject.table
    if table.file is None:
        raise OptionError(
            f"--by names {by!r}, which is no attribute of the table; {choose_from(by, subject.schema.names)}"
        )
    stated = read_document(subject.source) if subject.source and subject.source.endswith(".toml") else {}
    delimiter = str(stated.get("table", {}).get("delimiter", ","))
    data = read_arrow(table.file, delimiter=delimiter)
    if by not in data.column_names:
        raise OptionError(f"--by names {by!r}, which is not in the table; {choose_from(by, data.column_names)}")
    values = plain(data[by]).to_pylist()
    if table.numbers is not None:
        values = [values[number - 1] for number in table.numbers]
    return [None if value is None else text_of(value) for value in values]


def dated_periods(texts: Sequence[str | None]) -> list[str | None]:
    """Dates and times (ISO 8601) as days, months or years, whichever is finest and gives no more than 60 periods."""
    found = list(texts)
    dated = any(found) and all(_DATE.match(text) for text in found if text is not None)
    for length in _LENGTHS if dated else ():
        found = [None if text is None else text[:length] for text in texts]
        if len(set(found) - {None}) <= MAX_DATES:
            break
    return found


def in_time_order(names: Sequence[str]) -> list[str]:
    """Names of periods as a reader expects them one after the other."""
    if all(is_number(name) and np.isfinite(float(name)) for name in names):
        return sorted(names, key=lambda name: (float(name), name))
    words = {word.lower() for name in names for word in _TOKENS.findall(name) if not word.isdecimal()}
    months = bool(words) and words <= _MONTHS.keys()
    return sorted(names, key=lambda name: (_key(name, months=months), name))


def _key(name: str, *, months: bool) -> tuple[int, list[tuple[int, int, str]]]:
    """The year first, then the other tokens: numbers before words."""
    tokens = _TOKENS.findall(name)
    years = [i for i, token in enumerate(tokens) if len(token) == 4 and token.isdecimal() and int(token) in _YEARS]
    year = int(tokens.pop(years[0])) if years else 0
    numbers = {token: int(token) for token in tokens if token.isdecimal()}
    if months:
        numbers |= {token: _MONTHS[token.lower()] for token in tokens if token not in numbers}
    return year, [(0, numbers[token], "") if token in numbers else (1, 0, token.lower()) for token in tokens]
