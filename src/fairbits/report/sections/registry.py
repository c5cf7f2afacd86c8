"""The sections of the page, in order. A new one is a file in this folder and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbits.report.section import Section
from fairbits.report.sections import (
    again,
    certified,
    decided,
    drivers,
    harmed,
    hashes,
    headline,
    ll144,
    network,
    origin,
    people,
    pointers,
    proxies,
    repairs,
    severity,
    sign_off,
    trees,
    verdict,
)

if TYPE_CHECKING:
    from fairbits.report.record import ReportData

SECTIONS: tuple[Section, ...] = (
    decided.SECTION,
    verdict.SECTION,
    headline.SECTION,
    severity.SECTION,
    people.SECTION,
    drivers.SECTION,
    harmed.SECTION,
    proxies.SECTION,
    network.SECTION,
    trees.SECTION,
    origin.SECTION,
    repairs.SECTION,
    certified.SECTION,
    again.SECTION,
    hashes.SECTION,
    sign_off.SECTION,
    ll144.SECTION,
    pointers.SECTION,
)


def sections_of(data: ReportData) -> tuple[Section, ...]:
    """The sections that a report has, in order."""
    there = [section for section in SECTIONS if section.shown(data)]
    return tuple(sorted(there, key=lambda section: not section.first(data)))
