"""Which of the paper's subjects can be used here, and what stands in for those that cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairbits.data import BUILT_IN, available, built_in, load_subject
from fairbits.errors import FairbitsError, OptionError, UsageError
from fairbits.paper.published import SUBJECTS, number, row_of
from fairbits.paper.tables import Cell, Results
from fairbits.subject import Subject

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

    def load(self, name: str) -> Subject:
        """Load one of the subjects."""
        return load_subject(self.places.get(name, name))


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
    """The paper's table of datasets, ours beside theirs."""
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
