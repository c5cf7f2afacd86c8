"""Group figures as the tables that New York City's Local Law 144 asks for (6 RCNY § 5-301).

Per table (sex, race or ethnicity, intersections): how many people, the selection rate or, for scores, the share above
the median of the full sample, and the impact ratio to the highest rate in the same table. People of unknown category
are counted apart. A category of less than 2 % of the data may be left out of the ratios by the auditor, with a reason:
it is marked here. The law sets no threshold; four fifths is a rule of thumb of the EEOC (29 CFR 1607.4 D), given as a
note.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from fairbits.measure.groups import GroupTable
from fairbits.subject import Subject

FOUR_FIFTHS = 0.8


@dataclass(frozen=True, slots=True)
class FilingRow:
    """One category of a filing: its people, its rate and its impact ratio."""

    category: str
    people: int
    rate: float | None
    impact_ratio: float | None
    mark: str
    impact_ratio_low: float | None = None
    impact_ratio_high: float | None = None


@dataclass(frozen=True, slots=True)
class FilingTable:
    """One table, by one attribute or an intersection."""

    attribute: str
    people: int
    unknown: int
    kind: str
    rows: tuple[FilingRow, ...]


@dataclass(frozen=True, slots=True)
class Filing:
    """The tables that New York City's Local Law 144 asks for, with what must stand beside them."""

    subject: str
    date: str
    data_source: str
    distribution_date: str | None
    tables: tuple[FilingTable, ...]
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """The filing as a JSON document."""
        return asdict(self)


def filing_of(
    tables: Sequence[GroupTable],
    subject: Subject,
    *,
    data_source: str | None = None,
    distributed: str | None = None,
    date: str | None = None,
) -> Filing:
    """The tables of a subject."""
    source = data_source or (subject.table.file.name if subject.table.file is not None else subject.name)
    found = tuple(_table(one) for one in tables)
    notes = ["the law sets no threshold for impact ratios; what they mean is for the reader to judge."]
    low = [
        f"{row.category} ({row.impact_ratio:.2f})"
        for one in found
        for row in one.rows
        if row.impact_ratio is not None and row.impact_ratio < FOUR_FIFTHS
    ]
    if low:
        notes.append(f"below four fifths, a rule of thumb of other authorities: {', '.join(low)}.")
    if distributed is None:
        notes.append("the distribution date of the tool was not given (--in-use-since).")
    return Filing(subject.name, date or datetime.now(UTC).date().isoformat(), source, distributed, found, tuple(notes))


def _table(table: GroupTable) -> FilingTable:
    decides = any(one.selection_rate is not None for one in table.groups)
    rows = []
    for one in table.groups:
        if one.missing:
            continue  # counted apart, as unknown
        rate = one.selection_rate if decides else one.scoring_rate
        name = "impact_ratio" if decides else "scoring_ratio"
        ratio, low, high = (getattr(one, f"{name}{end}") for end in ("", "_low", "_high"))
        marks = (["fewer than 30 people: no ratio"] if one.small else []) + (
            ["under 2 % of the data"] if one.under_two_percent else []
        )
        rows.append(
            FilingRow(one.group, one.people, None if rate is None else rate.value, ratio, "; ".join(marks), low, high)
        )
    kind = "selection rate" if decides else "scoring rate"
    return FilingTable(table.attribute, table.people, table.unknown, kind, tuple(rows))
