"""Which of the paper's subjects can be used here, and what stands in for those that cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairbits.data import BUILT_IN, available, built_in, load_subject
from fairbits.errors import FairbitsError, UsageError
from fairbits.paper.published import SUBJECTS, number, row_of
from fairbits.paper.tables import Cell, Results
from fairbits.subject import Subject

OURS = (
    "The networks are ours, trained by this project on these tables: k and ID counts of different networks are not "
    "comparable one to one; who beats whom, by how much, and how k grows, are."
)


@dataclass(frozen=True, slots=True)
class Roster:
    """The subjects to use, and sentences about what is missing or stands in."""

    names: list[str]
    notes: list[str]


def roster(wanted: Sequence[str] | None) -> Roster:
    """The subjects of an experiment, with stand-ins where the data are not on this machine.

    Parameters
    ----------
    wanted
        Names of subjects; None means the paper's ten.

    Returns
    -------
    Roster
        Names, and notes on what stands in for what.

    Raises
    ------
    UsageError
        If none can be used.
    """
    names: list[str] = []
    notes: list[str] = []
    for name in wanted or SUBJECTS:
        entry = built_in(name)
        if entry.ships or entry.synthetic or available(entry.needs):
            names.append(name)
        elif f"{name}-synthetic" in BUILT_IN:
            names.append(f"{name}-synthetic")
            notes.append(f"{name}: the data are not here; {name}-synthetic (generated people) stands in.")
        else:
            notes.append(f"{name} is left out: {_remedy(name)}")
    if not names:
        raise UsageError(" ".join(notes))
    return Roster(names, notes)


def datasets(found: Roster) -> Results:
    """The paper's table of datasets, ours beside theirs.

    Parameters
    ----------
    found
        The subjects.

    Returns
    -------
    Results
        The table.
    """
    rows: list[Sequence[Cell]] = []
    for name in found.names:
        subject, theirs = load_subject(name), row_of("datasets", name)
        entry = BUILT_IN[name]
        origin = "generated" if entry.synthetic else "in the package" if entry.ships else "added"
        ours = (_rows_of(subject), len(subject.schema), _m(subject))
        printed = (_whole(number(theirs, column)) for column in ("instances", "features", "m"))
        rows.append([name, origin, *(cell for pair in zip(ours, printed, strict=True) for cell in pair)])
    columns = ("subject", "data", "rows", "paper", "attributes", "paper", "m", "paper")
    return Results("Datasets", columns, rows, list(found.notes))


def _rows_of(subject: Subject) -> int:
    return len(subject.table) + (len(subject.test) if subject.test is not None else 0)


def _m(subject: Subject) -> int:
    from fairbits.domain import Twins

    return Twins(subject.schema).m


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _remedy(name: str) -> str:
    try:
        load_subject(name)
    except FairbitsError as error:
        return str(error)
    return "its data cannot be used."
