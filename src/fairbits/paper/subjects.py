"""The paper's subjects: which of them can be used here, what stands in for the others, and the published figures.

Those are Monjezi et al., ICSE 2023, Tables 1 to 4, as they were printed.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from fairbits.data import BUILT_IN, available, built_in, load_subject
from fairbits.errors import FairbitsError, OptionError, UsageError

FOLDER = Path(__file__).parent / "figures"
#: The ten subjects, in the paper's order.
SUBJECTS = ("census", "compas", "german", "default", "heart", "bank", "diabetes", "students", "meps15", "meps16")

Row = dict[str, str]


@cache
def published(table: str) -> tuple[Row, ...]:
    """The rows of a table as it was printed."""
    with (FOLDER / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def row_of(table: str, subject: str, **more: str) -> Row | None:
    """The printed row about a subject; variants of a subject (german-600, meps15-synthetic) have its row."""
    wanted = {"dataset": subject.split("-", maxsplit=1)[0], **more}
    return next((row for row in published(table) if all(row[key] == value for key, value in wanted.items())), None)


def number(row: Row | None, column: str) -> float | None:
    """A figure as the paper prints it; None where it prints none."""
    text = "" if row is None else row.get(column, "")
    return float(text) if text else None


OURS = (
    "The networks are ours, trained by this project on these tables: k and ID counts of different networks are not "
    "comparable one to one; who beats whom, by how much, and how k grows, are."
)


@dataclass(frozen=True, slots=True)
class Roster:
    """The subjects to use, and what must be known about them."""

    names: list[str]
    notes: list[str]
    places: Mapping[str, str] = field(default_factory=dict)


def networks(folder: Path) -> Roster:
    """The subjects in a folder, such as the paper's own networks: every subject.toml in it or in a folder of it."""
    if not folder.is_dir():
        raise OptionError(f"--networks is {str(folder)!r}, which is no folder; give one that holds subject.toml files.")
    files = sorted({*folder.glob("subject.toml"), *folder.glob("*/subject.toml")})
    if not files:
        raise OptionError(
            f"no subject.toml lies in {str(folder)!r} or in a folder of it; `fairbits init TABLE` writes one."
        )
    places: dict[str, str] = {}
    for file in files:
        name = load_subject(str(file)).name
        if name in places:
            raise OptionError(f"{str(file)!r} and {places[name]!r} are both called {name!r}; rename one of them.")
        places[name] = str(file)
    return Roster(list(places), [f"The networks are those in {folder.name!r}."], places)


def roster(wanted: Sequence[str] | None) -> Roster:
    """The subjects of an experiment, with stand-ins where the data are not on this machine."""
    names, notes = list[str](), list[str]()
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


def _remedy(name: str) -> str:
    try:
        load_subject(name)
    except FairbitsError as error:
        return str(error)
    return "its data cannot be used."
