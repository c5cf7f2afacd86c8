"""The record as one HTML file: no network, no script needed to read it, everything that came from outside escaped."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup, escape

from fairbits.report import words
from fairbits.report.figures.catalogue import pictures_of
from fairbits.report.foremost import foremost
from fairbits.report.page import rendered
from fairbits.report.record import Portrait, ReportData
from fairbits.report.sections.proxies import WHAT_A_BIT_IS, carriers, matches, sentences
from fairbits.report.sections.proxies import pictures as period_pictures

_TITLES = {
    "headline": "Headline figures",
    "severity": "How many, how severe",
    "people": "The worst people",
    "drivers": "Which attribute",
    "harmed": "Who is harmed",
    "indirect": "Without the columns",
    "network": "Inside the network",
    "origin": "Data or training",
    "repairs": "Repairs",
    "certified": "What is certain",
    "again": "Again, and limits",
}
_VERDICTS = {
    "data": "More of the evidence points to the data.",
    "training": "More of the evidence points to the training.",
    "mixed": "Mixed: the evidence points both ways.",
    "unknown": "Unknown: no evidence points either way.",
    "none": "Nothing to explain: the twins of every case looked at are treated alike.",
}


def render_html(data: ReportData) -> str:
    """The whole page.

    Parameters
    ----------
    data
        The record of the report.

    Returns
    -------
    str
        HTML.
    """
    about = data.about
    real = [_view(one) for one in data.people if one.real]
    found = [_view(one) for one in data.people if not one.real]
    for people in (real, found):
        if people and people is (real or found):
            people[0]["open"] = True
    return rendered(
        "report.html",
        data=data,
        about=about,
        near=data.near,
        measured=data.measured,
        figures=data.measured.figures,
        searched=data.searched,
        debugged=data.debugged,
        repaired=data.repaired,
        certified=data.certified,
        stakes=_stakes(data),
        search_facts=words.search_facts(about, data.searched),
        people_real=real,
        people_found=found,
        pictures={
            name: Markup(svg)  # noqa: S704 - made by us
            for name, svg in (pictures_of(data) | period_pictures(data.proxies)).items()
        },
        contents=[(name, _title(name, data)) for name in sections(data)],
        foremost=foremost(data.debugged) if data.debugged is not None and data.debugged.units == "trees" else [],
        sentence=_sentence(data),
        verdict=_VERDICTS.get(data.debugged.verdict, data.debugged.verdict) if data.debugged else "",
        map_caption="One cell per twin, coloured by score; the number is its ε-class, 1 the lowest."
        + ("" if data.axes.threshold is None else " The line separates decisions."),
        threshold_caption="" if data.axes.threshold is None else " Dashed: the decision threshold.",
        limits=words.limits(about),
        indirect=[] if data.proxies is None else list(sentences(data.proxies)),
        carriers=[] if data.proxies is None else carriers(data.proxies),
        matches=[] if data.proxies is None else matches(data.proxies),
        what_a_bit_is=WHAT_A_BIT_IS,
    )


def sections(data: ReportData) -> list[str]:
    """Names of the sections that this report has, in order.

    Parameters
    ----------
    data
        The record of the report.

    Returns
    -------
    list[str]
        Names.
    """
    debugged = data.debugged
    there = {
        "people": bool(data.people),
        "indirect": data.proxies is not None,
        "drivers": debugged is not None and bool(debugged.shares),
        "harmed": bool(_stakes(data)),
        "network": debugged is not None and bool(debugged.layers),
        "origin": debugged is not None,
        "repairs": data.repaired is not None,
        "certified": bool(data.certified),
    }
    found = [name for name in _TITLES if there.get(name, True)]
    if "indirect" in found and data.about.blind:  # what was found leads, where twins cannot differ
        found.remove("indirect")
        found.insert(0, "indirect")
    return found


def _title(name: str, data: ReportData) -> str:
    if name == "network" and data.debugged is not None and data.debugged.units == "trees":
        return "Inside the trees"
    return _TITLES[name]


def _stakes(data: ReportData) -> list[tuple[Any, Any]]:
    rows = data.measured.stakes
    if not any(stake.lowest or stake.highest for stake in rows):
        return []
    return list(zip(rows, data.searched.stakes, strict=True))


def person_id(person: Portrait) -> str:
    """The anchor of a person on the page.

    Parameters
    ----------
    person
        The portrait.

    Returns
    -------
    str
        Such as "row-1".
    """
    return f"{'row' if person.real else 'case'}-{person.rank}"


def _view(person: Portrait) -> dict[str, Any]:
    view = {name: getattr(person, name) for name in Portrait.__slots__ if name not in ("scores", "classes")}
    return {**view, "id": person_id(person), "open": False}


def _sentence(data: ReportData) -> Markup:
    """The sentence with its figure marked."""
    figure = escape(f"{data.bits:.2f} of {data.about.bits_limit:.2f} bits")
    return Markup(str(escape(data.sentence)).replace(figure, f"<em>{figure}</em>", 1))  # noqa: S704 - escaped


__all__ = ["person_id", "render_html", "sections"]
