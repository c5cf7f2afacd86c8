"""Many audits on one page: the models by severity, a link to each report, and what could not be audited and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairbits.report.page import rendered
from fairbits.store import write_json, write_whole

PAGE, DOCUMENT = "index.html", "fleet.json"


@dataclass(frozen=True, slots=True)
class FleetMember:
    """One subject of a fleet. With an ``error`` (a sentence) the figures are missing."""

    name: str
    source: str
    report: str | None = None  # relative to the index
    sentence: str = ""
    bits: float | None = None
    bits_limit: float | None = None
    k_max: int | None = None
    k_max_on_data: int | None = None
    flip_rate: float | None = None
    split_rate: float | None = None
    id_cases: int | None = None
    cases: int | None = None
    seconds: float | None = None
    error: str | None = None

    @property
    def used(self) -> float:
        """The share of its own limit that the model uses, 0 to 1: the length of its bar."""
        return (self.bits or 0.0) / self.bits_limit if self.bits_limit else 0.0

    @property
    def severity(self) -> tuple[float, float, str]:
        """What the page is ordered by: most bits first, then the largest share of rows whose decision flips."""
        return -(self.bits or 0.0), -(self.flip_rate or 0.0), self.name


@dataclass(frozen=True, slots=True)
class Fleet:
    """All of them, and on which terms they were audited."""

    folder: str
    terms: str
    created: str
    subjects: tuple[FleetMember, ...]

    @property
    def ranked(self) -> list[FleetMember]:
        """Those with figures, the most severe first."""
        return sorted((one for one in self.subjects if one.error is None), key=lambda one: one.severity)

    @property
    def failed(self) -> list[FleetMember]:
        """Those without, by name."""
        return sorted((one for one in self.subjects if one.error is not None), key=lambda one: one.name)

    def document(self) -> dict[str, Any]:
        """Everything, for JSON: ranked first, then what failed."""
        subjects = [asdict(one) for one in (*self.ranked, *self.failed)]
        return {"folder": self.folder, "terms": self.terms, "created": self.created, "subjects": subjects}

    @property
    def sentence(self) -> str:
        """The page in one sentence."""
        ranked = self.ranked
        if not ranked:
            return f"None of {_models(len(self.subjects))} could be audited."
        first = ranked[0]
        rest = f"; {len(self.failed)} could not be audited" if self.failed else ""
        if not first.bits:
            return f"No use of protected attributes was found in {_models(len(ranked))}{rest}."
        found = f"“{first.name}” uses the most: at least {first.bits:.2f} of {first.bits_limit:.2f} bits"
        return f"Of {_models(len(self.subjects))}, {found}{rest}."


def write_fleet(fleet: Fleet, folder: Path) -> Path:
    """Write index.html and fleet.json.

    Parameters
    ----------
    fleet
        Results of all subjects.
    folder
        Where to; made where it is missing.

    Returns
    -------
    Path
        Path of index.html.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / DOCUMENT, fleet.document())
    write_whole(folder / PAGE, render_fleet(fleet).encode())
    return folder / PAGE


def render_fleet(fleet: Fleet) -> str:
    """The whole page.

    Parameters
    ----------
    fleet
        Results of all subjects.

    Returns
    -------
    str
        HTML.
    """
    return rendered("fleet.html", fleet=fleet)


def _models(count: int) -> str:
    return "one model" if count == 1 else f"{count:,} models"
