"""The sentences of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairbits.domain import joined, shortened
from fairbits.measure import people_headline
from fairbits.numerals import number, percent, power

if TYPE_CHECKING:
    from fairbits.blocks import Text
    from fairbits.measure import Noise
    from fairbits.report.record import About, Measured, Searched

DOI = "10.1109/ICSE48619.2023.00136"
CITATION = (
    "Verya Monjezi, Ashutosh Trivedi, Gang Tan, Saeid Tizpaz-Niari: Information-Theoretic Testing and Debugging of "
    "Fairness Defects in Deep Neural Networks. ICSE 2023."
)
_SEARCH = (
    "A search finds what it finds: its largest k is a lower bound, unless it has reached its limit. Only figures "
    "called exact rest on everybody they speak of."
)
LIMITS = (
    "Twins are the same person with other protected values. Some of them may be people who could not exist; the "
    "further a person is from a real row, the likelier that is.",
    _SEARCH,
    "Bits count the direct use of protected attributes. A decision that uses none of them may still use attributes "
    "that stand in for them (proxies).",
    "Scores closer than ε count as the same. A smaller ε gives more classes, a larger one fewer; compare figures only "
    "at the same ε and partition.",
    "Intervals say how much a figure would move with other rows drawn like these. They do not cover a table that "
    "misses some people altogether.",
    "Equal scores for all twins do not make a decision right, lawful or just; they say that these attributes did not "
    "move it.",
)


def limits(about: About) -> tuple[str, ...]:
    """Sentences on what the figures cannot say; those of a model that is blind to protected attributes are exact."""
    return tuple(line for line in LIMITS if not (about.blind and line is _SEARCH))


def sentence(about: About, bits: float, noise: Noise | None = None) -> str:
    """The report in one sentence; a second one where the model's answers vary by themselves."""
    names = joined([shortened(name, 60) for name in about.protected])
    if not about.protected:
        return "The model takes no protected attribute: direct bits are exactly 0, and nobody has a twin."
    if about.blind:
        return (
            f"This model uses exactly 0 of {about.bits_limit:.2f} bits of {names} directly: by the way it is made, no "
            f"twin can score differently."
        )
    if bits == 0:
        return f"No use of {names} was found: 0.00 of {about.bits_limit:.2f} bits."
    found = f"This model uses up to {bits:.2f} of {about.bits_limit:.2f} bits of {names}."
    if noise is None:
        return found
    return f"{found} Its answers vary: one and the same twin shows up to {noise.null_q_inf_max:.2f} bits."


def people_sentence(about: About, measured: Measured) -> str:
    """What happens to people, in one sentence: how many of them would be decided otherwise as somebody else."""
    return people_headline(
        about.protected,
        measured.rows,
        measured.split_rate,
        measured.flip_rate,
        epsilon=about.epsilon,
        complete=measured.complete,
        supported=measured.flip_rate_supported,
        bounded=measured.bounded,
    )


def people_kind(about: About, measured: Measured) -> str:
    """What kind of figure the first sentence gives."""
    if about.blind:
        return "proved"
    return measured.kind


def examined(about: About, measured: Measured, searched: Searched) -> tuple[str, ...]:
    """Sentences on what the figures rest on."""
    sizes = " × ".join(f"{shortened(n, 40)} {s}" for n, s in zip(about.protected, about.sizes, strict=True))
    rows = f"all {measured.rows:,}" if measured.complete else f"{measured.rows:,} of {measured.rows_total:,}"
    twins = (
        f", each under all {about.m:,} combinations of protected values ({sizes})" if about.protected else " as it is"
    )
    found = [f"Examined: {rows} rows of the table{twins}."]
    removed = measured.figures.get("twins_removed")
    if removed:
        found.append(f"Left out: {removed:,} twins of these rows that cannot exist under the rules.")
    figures = searched.figures
    if figures.get("strategy") != "exhaustive":
        asked, seconds = figures.get("evaluations"), figures.get("seconds")
        how = f"strategy {figures['strategy']}, seed {figures['seed']}" + (f", {seconds:.0f} s" if seconds else "")
        within = f" within {figures['within']} changed attributes of a real row" if figures.get("within") else ""
        found.append(f"Searched: {number(asked)} people{within} ({how}); {figures['cases']:,} distinct ones were kept.")
    elif figures.get("exact") and not about.blind:
        found.append(f"Enumerated: {figures['cases']:,} distinct people on or next to the rows of the table.")
    return tuple(found)


def not_examined(about: About, searched: Searched, *, proxies: bool = False) -> tuple[str, ...]:
    """Sentences on what the figures say nothing about."""
    asked = searched.figures.get("evaluations") or 0
    everybody = "" if math.isinf(about.domain) else f" (the domain has about {power(about.domain)} different people)"
    left = f"Not examined: people that the search did not reach{everybody}"
    if asked >= about.domain or about.blind:
        left = "Not examined: values outside the stated domains"
    stand_ins = "" if proxies else "; attributes that stand in for protected ones"
    return (f"{left}{stand_ins}; whether the labels are right.",)


def search_facts(about: About, searched: Searched) -> list[tuple[str, Text]]:
    """Facts about the search as pairs of name and value; a regression has no decision that could flip."""
    figures = searched.figures

    def seconds(name: str) -> str:
        return "–" if figures.get(name) is None else f"{figures[name]:.2f} s"

    flips = [
        ("cases whose decision flips", number(figures["id_cases"])),
        ("until the first flip", seconds("seconds_to_first_id")),
        ("until 1,000 flips", seconds("seconds_to_1000_id")),
    ]
    return [
        ("strategy", str(figures.get("strategy"))),
        ("people asked about", number(figures.get("evaluations"))),
        ("scores computed", number(figures.get("queries"))),
        ("distinct cases kept", number(figures["cases"])),
        *([] if about.regression else flips[:1]),
        (
            f"mean k where {seeds_in_words(figures)} began, ended",
            f"{number(figures.get('k_initial'), 1)}, {number(figures.get('k_final'), 1)}",
        ),
        *([] if about.regression else flips[1:]),
    ]


def seeds_in_words(figures: Mapping[str, Any]) -> str:
    """Whom K_I and K_F are about."""
    finished = figures.get("seeds_finished")
    return "seeds" if not finished else f"{finished:,} seeds that had their full share of moves"


def budget(limits: Mapping[str, Any]) -> str:
    """A budget in words."""
    units = {"seconds": "s", "evaluations": "people asked", "cases": "cases"}
    parts = [f"{limits[name]:,.15g} {unit}" for name, unit in units.items() if limits.get(name) is not None]
    return "none" if limits.get("seconds") == 1e9 else " or ".join(parts) or "none"


def by_kind(value: float | None, kind: str) -> str:
    """A figure as text, by its kind."""
    if kind == "share":
        return percent(value)
    return number(value, 0 if kind == "whole" else 2)
