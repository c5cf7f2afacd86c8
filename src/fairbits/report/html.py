"""The record as one HTML file: no network, no script needed to read it, everything that came from outside escaped."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup, escape

from fairbits.report.figures.catalogue import pictures_of
from fairbits.report.page import part, rendered
from fairbits.report.record import ReportData
from fairbits.report.section import Section, writing
from fairbits.report.sections.people import person_id
from fairbits.report.sections.proxies import pictures as period_pictures
from fairbits.report.sections.proxies import plainly
from fairbits.report.sections.registry import sections_of


def render_html(data: ReportData) -> str:
    """The whole page."""
    shared = {
        "data": data,
        "about": data.about,
        "near": data.near,
        "measured": data.measured,
        "figures": data.measured.figures,
        "searched": data.searched,
        "debugged": data.debugged,
        "repaired": data.repaired,
        "rows_kind": "exact" if data.measured.complete else "statistical",
        "pictures": {
            name: Markup(svg)  # noqa: S704 - made by us
            for name, svg in (pictures_of(data) | period_pictures(data.proxies)).items()
        },
        "map_caption": "One cell per twin, coloured by score; the number is its ε-class, 1 the lowest."
        + ("" if data.axes.threshold is None else " The line separates decisions."),
        "threshold_caption": "" if data.axes.threshold is None else " Dashed: the decision threshold.",
    }
    there = sections_of(data)
    first, second = _sentences(data)
    return rendered(
        "report.html",
        **shared,
        parts=[_part(section, shared, data) for section in there],
        contents=[(section.name, section.title) for section in there],
        sentence=first,
        second=second,
        plainly=plainly(data.proxies, data.about.blind),
    )


def _part(section: Section, shared: dict[str, Any], data: ReportData) -> Markup:
    with writing(section):
        return part(section.template, **shared, **section.values(data))


def sections(data: ReportData) -> list[str]:
    """Names of the sections that this report has, in order."""
    return [section.name for section in sections_of(data)]


def _sentences(data: ReportData) -> tuple[Markup, Markup]:
    """What the page opens with: people, then bits, their figures marked; of a blind model, what its score tells."""
    figure = escape(f"{data.bits:.2f} of {data.about.bits_limit:.2f} bits")
    bits = Markup(str(escape(data.direct)).replace(figure, f"<em>{figure}</em>", 1))  # noqa: S704 - escaped
    leads = data.sentence.removesuffix(data.direct).strip()
    if leads:
        return escape(leads), bits
    if not data.opening.people or data.about.blind:
        return bits, Markup("")
    people = escape(data.opening.people)
    many, _, rest = people.partition(" of ")
    return Markup("<em>{}</em> of {}").format(many, rest), bits


__all__ = ["person_id", "render_html", "sections"]
