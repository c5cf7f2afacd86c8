"""An appendix: which texts ask for what stands where on this page. Pointers, not legal advice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairbits.blocks import Block, Inline, Link, Paragraph, Small, TableBlock, label
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData


@dataclass(frozen=True, slots=True)
class LegalPointer:
    """One text: where it is, what it asks for, and the sections of this page that speak of it."""

    text: str
    place: str
    address: str
    asks: str
    sections: tuple[str, ...]


POINTERS = (
    LegalPointer(
        "EU AI Act, Regulation (EU) 2024/1689",
        "Annex IV, point 2 (g)",
        "https://eur-lex.europa.eu/eli/reg/2024/1689/oj",
        "validation and testing procedures and data; metrics of accuracy, robustness and potentially discriminatory "
        "impacts; test logs and reports, dated and signed by the responsible persons",
        ("decided", "headline", "people", "harmed", "certified", "again", "files", "sign-off"),
    ),
    LegalPointer(
        "EU AI Act, Regulation (EU) 2024/1689",
        "Annex IV, point 3; Article 15",
        "https://eur-lex.europa.eu/eli/reg/2024/1689/oj",
        "degrees of accuracy, also for specific persons or groups; foreseeable unintended outcomes; risks to "
        "fundamental rights and of discrimination",
        ("decided", "harmed", "indirect"),
    ),
    LegalPointer(
        "New York City, Local Law 144 of 2021",
        "6 RCNY § 5-301 and § 5-302",
        "https://rules.cityofnewyork.us/rule/automated-employment-decision-tools-updated/",
        "a bias audit: selection or scoring rates and impact ratios by sex, race or ethnicity, and their "
        "intersections; a summary that is published (also: fairbits proxies SUBJECT --filing)",
        ("filing", "indirect"),
    ),
    LegalPointer(
        "US model risk guidance, SR 26-2 / OCC Bulletin 2026-13",
        "development, validation, monitoring (before April 2026: SR 11-7)",
        "https://www.federalreserve.gov/supervisionreg/srletters/SR2602.htm",
        "evaluation of conceptual soundness, testing and outcomes analysis, limitations, documentation, and who "
        "approved the use",
        ("decided", "network", "origin", "repairs", "certified", "again", "sign-off"),
    ),
    LegalPointer(
        "UK, PRA Supervisory Statement SS1/23",
        "Principles 3 and 4",
        "https://www.bankofengland.co.uk/prudential-regulation/publication/2023/may/"
        "model-risk-management-principles-for-banks-ss",
        "testing in development, independent validation, and documentation of both",
        ("decided", "certified", "again", "sign-off"),
    ),
)
NOTE = (
    "Pointers, not legal advice: whether a text applies, in which version and since when, is for your counsel to say."
)


def _there(data: ReportData) -> dict[str, str]:
    """Title by name, of the sections that this report has."""
    from fairbits.report.sections.registry import sections_of

    return {section.name: section.title for section in sections_of(data)}


def pointer_blocks(there: Mapping[str, str]) -> Iterator[Block]:
    """The texts, with links to the sections that are there, by name and title."""
    yield Paragraph(NOTE, tone="lead")
    rows = []
    for one in POINTERS:
        here: list[Inline] = []
        for name in one.sections:
            if name in there:
                here += [", "] if here else []
                here.append(Link(there[name].lower(), f"#{name}"))
        rows.append(((Link(one.text, one.address), Small(one.place)), one.asks, tuple(here) or "nothing on this page"))
    yield TableBlock([label("text"), label("asks for"), label("here")], rows, stacked=True)


SECTION = Section("pointers", "Regulations", lambda data: pointer_blocks(_there(data)))
