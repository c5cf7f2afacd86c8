"""The sentences of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairbits.measure import people_headline
from fairbits.text import joined, number, power, shortened

if TYPE_CHECKING:
    from fairbits.measure import Noise
    from fairbits.report.record import About, Measured, Searched


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


def people_sentence(measured: Measured, persons: int | None = None) -> str:
    """What happens to people, in one sentence: how many of them would get a different decision."""
    return people_headline(
        tuple(measured.figures["protected"]),
        measured.rows,
        measured.split_rate,
        measured.flip_rate,
        epsilon=measured.figures["epsilon"],
        complete=measured.complete,
        plausible=measured.flip_rate_plausible,
        bounded=measured.bounded,
        persons=persons,
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
        why = "cannot exist under the rules" if measured.figures["rules"] else "are not in the table"
        found.append(f"Left out: {removed:,} twins of these rows that {why}.")
    plausible = measured.figures.get("plausible")
    if plausible:
        found.append(f"Plausible twins also keep: {'; '.join(shortened(rule, 120) for rule in plausible)}.")
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


def budget(limits: Mapping[str, Any]) -> str:
    """A budget in words."""
    units = {"seconds": "s", "evaluations": "people asked", "cases": "cases"}
    parts = [f"{limits[name]:,.15g} {unit}" for name, unit in units.items() if limits.get(name) is not None]
    return "none" if limits.get("seconds") == 1e9 else " or ".join(parts) or "none"
