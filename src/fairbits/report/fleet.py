"""Many audits on one page: the models by severity, a link to each report, and what could not be audited and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

from fairbits.blocks import (
    Bar,
    Block,
    Link,
    Page,
    PagePart,
    Paragraph,
    Small,
    TableBlock,
    Text,
    figure,
    label,
    shown,
    table_by,
)
from fairbits.report.html import render_page
from fairbits.store import record_from_json, write_json, write_whole
from fairbits.subject import Quality
from fairbits.text import number, percent

PAGE, DOCUMENT = "index.html", "fleet.json"
#: What models can be ranked by.
RANKS = {
    "people": "people affected",
    "found": "largest k found",
    "proved": "largest k proved possible",
    "bits": "bits",
}


@dataclass(frozen=True, slots=True)
class FleetMember:
    """One subject of a fleet. With an ``error`` the figures are missing."""

    name: str
    source: str
    report: str | None = None
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
    rows: int | None = None
    m: int | None = None
    k_proved: int | None = None
    indirect: float | None = None
    indirect_about: str = ""
    quality: Mapping[str, Any] | None = None
    scores_only: bool = False

    @property
    def affected(self) -> float:
        """The share of rows whose decision flips; of a regression, those with more than one class."""
        return (self.split_rate if self.flip_rate is None else self.flip_rate) or 0.0

    def severity(self, rank: str) -> tuple[float, float, str]:
        """What the page is ordered by, the most severe first."""
        bits, found = self.bits or 0.0, self.k_max or 0
        # Whoever proves nothing may have as many classes as there are twins.
        proved = self.m or 0 if self.k_proved is None else self.k_proved
        by = {"people": (self.affected, bits), "found": (found, self.affected), "proved": (proved, found)}
        first, second = by.get(rank, (bits, self.affected))
        return -first, -second, self.name


@dataclass(frozen=True, slots=True)
class Fleet:
    """The subjects of a fleet, and the terms on which they were audited."""

    folder: str
    terms: str
    created: str
    subjects: tuple[FleetMember, ...]
    rank: str = "people"

    @property
    def ranked(self) -> list[FleetMember]:
        return sorted((one for one in self.subjects if one.error is None), key=lambda one: one.severity(self.rank))

    @property
    def failed(self) -> list[FleetMember]:
        return sorted((one for one in self.subjects if one.error is not None), key=lambda one: one.name)

    def document(self) -> dict[str, Any]:
        """Everything, for JSON: ranked first, then what failed."""
        return asdict(self) | {"subjects": [asdict(one) for one in (*self.ranked, *self.failed)]}

    @property
    def sentence(self) -> str:
        ranked, of = self.ranked, _models(len(self.subjects))
        if not ranked:
            return f"None of {of} could be audited."
        first = ranked[0]
        worst = max(ranked, key=lambda one: one.indirect or 0.0)
        rest = f"; {len(self.failed)} could not be audited" if self.failed else ""
        if not any(one.bits for one in ranked) and not worst.indirect:
            return f"No use of protected attributes was found in {_models(len(ranked))}{rest}."
        known = first.k_proved if self.rank == "proved" else first.k_max
        if not any(one.bits for one in ranked):
            score = f"the score of “{worst.name}” tells at least {worst.indirect:.2f} bits about {worst.indirect_about}"
            found = f"none was seen to use a protected attribute; {score}"
        elif self.rank == "people" and first.affected:
            what = "score differently" if first.flip_rate is None else "get a different decision"
            share = f"{100 * first.affected:.1f} % of its rows would {what} if only protected values differed"
            found = f"“{first.name}” affects most people: {share}"
        elif self.rank not in ("found", "proved"):
            found = f"“{first.name}” uses the most: at least {first.bits:.2f} of {first.bits_limit:.2f} bits"
        elif known is None:
            found = f"of “{first.name}” nothing is proved, so any of its {first.m} twins may differ"
        else:
            found = f"“{first.name}” has the largest {self.rank} k: {known}"
        return f"Of {of}, {found}{rest}."


def write_fleet(fleet: Fleet, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / DOCUMENT, fleet.document())
    write_whole(folder / PAGE, render_page(fleet_page(fleet)).encode())
    return folder / PAGE


def fleet_page(fleet: Fleet) -> Page:
    lead = (
        f"Each model was audited by itself: {fleet.terms}. Rows affected are those of the model's own table whose "
        "decision flips, or whose twins score differently where nothing is decided (exact); bits and k found come "
        "from a search (lower bounds); k proved holds for everybody. Indirect bits are what the score tells about "
        "the protected attribute that it tells most about (statistical). Models with other protected attributes "
        "have other limits, so read the order as where to look first."
    )
    opening: list[Block] = [Paragraph(lead, tone="lead")]
    parts = []
    ranked = fleet.ranked
    if ranked:
        table = table_by(
            ranked,
            [
                (figure("#"), lambda one: ranked.index(one) + 1),
                (label("model"), _named),
                (shown("rows affected"), _affected),
                (label("bits, at least"), lambda one: "scores only" if one.bits is None else number(one.bits, 2)),
                (label(""), lambda one: None if one.bits is None else Bar(one.bits / (one.bits_limit or inf))),
                (figure("of", 2), lambda one: one.bits_limit),
                (figure("k found"), lambda one: one.k_max),
                (figure("on real rows"), lambda one: one.k_max_on_data),
                (shown("k proved"), lambda one: None if one.k_proved is None else f"≤ {one.k_proved}"),
                (figure("cases that flip"), lambda one: one.id_cases),
                (
                    shown("indirect bits, at least"),
                    lambda one: "–" if one.indirect is None else (number(one.indirect, 2), Small(one.indirect_about)),
                ),
            ],
        )
        parts.append(PagePart("ranking", f"By {RANKS[fleet.rank]}", [table]))
    if fleet.failed:
        count = f"{number(len(fleet.failed))} of {number(len(fleet.subjects))} could not be audited: "
        opening.append(Paragraph((count, Link("why", "#failed"), "."), tone="warning"))
        failed = [((one.name, Small(one.source)), one.error) for one in fleet.failed]
        parts.append(PagePart("failed", "Not audited", [TableBlock([label("model"), label("why")], failed)]))
    return Page(
        subject=fleet.folder,
        command=f"fleet · {fleet.created[:10]}",
        title=f"{fleet.folder}: {len(fleet.subjects)} models",
        sentence=fleet.sentence,
        opening=opening,
        parts=parts,
        made_from="the runs beside this page",
    )


def _named(one: FleetMember) -> Text:
    agreement = () if one.quality is None else record_from_json(Quality, one.quality).lines()
    return Link(one.name, one.report or ""), *(Small(line) for line in agreement)


def _affected(one: FleetMember) -> Text:
    if one.flip_rate is None and one.split_rate is not None:
        return percent(one.split_rate), Small("score differently")
    return percent(one.flip_rate)


def _models(count: int) -> str:
    return "one model" if count == 1 else f"{count:,} models"
