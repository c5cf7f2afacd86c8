"""The bits: the largest k by how real a person is, and what the rows of the table experience."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import Block, Columns, Paragraph, TableBlock, Tag, figure, label, shown
from fairbits.domain import MIN_ROWS, shortened
from fairbits.measure import Estimate
from fairbits.numerals import number, percent
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import Near, ReportData


BLIND = "the model never gets the protected attributes, or gives them no weight"


def _more(one: Near, data: ReportData) -> str:
    """What an exact figure adds where it has reached the limit."""
    full = one.exact and one.bits is not None and one.bits >= data.about.bits_limit and data.measured.noise is None
    return ": it cannot be more" if full else ""


def _blocks(data: ReportData) -> Iterator[Block]:
    about, measured, figures = data.about, data.measured, data.measured.figures
    if about.blind:
        yield Paragraph(f"{data.direct} That holds for everybody, examined or not: {BLIND}.", kind="proved")
        return
    yield Paragraph(
        "A person is asked about under every combination of protected values. The scores fall into k classes that "
        f"differ by more than ε = {about.epsilon:g}; log2 k is the bits of protected information that the decision "
        f"uses, at most {number(about.bits_limit, 2)} here.",
        tone="lead",
    )
    near = [(one.people, one.k, one.bits, (Tag(one.kind), _more(one, data))) for one in data.near]
    columns = [label("people"), figure("largest k"), figure("bits", 2), label("kind of figure")]
    means = [("mean k", measured.k_mean.value, measured.k_mean.low, measured.k_mean.high)]
    for name, key in (("mean bits, Q∞", "q_inf_mean"), ("mean bits, Q1", "q_1_mean")):
        means.append((name, figures[key], figures[f"{key}_low"], figures[f"{key}_high"]))
    rows = [(name, number(value, 2), f"{number(low, 2)} to {number(high, 2)}") for name, value, low, high in means]
    if measured.flip_rate is not None:  # otherwise the page opens with this share
        shares = [("more than one class", measured.split_rate)]
        supported = measured.flip_rate_supported
        if supported is not None and supported != measured.flip_rate:
            shares.append((f"decision flips among combinations of at least {MIN_ROWS} rows", supported))
        for name, value in figures.get("flip_rate_by", {}).items():
            ends = (figures[f"flip_rate_by_{end}"][name] for end in ("low", "high"))
            shares.append((f"decision flips if only {shortened(name, 40)} differs", Estimate(value, *ends)))
        for name, rate in shares:
            rows.append((name, percent(rate.value), f"{percent(rate.low)} to {percent(rate.high)}"))
    heads = [label("per row"), shown("value"), shown("95 % interval")]
    kind = measured.kind
    caption = (
        f"The {number(measured.rows)} rows examined: the value ",
        Tag(kind),
        ", the interval ",
        Tag("statistical"),
    )
    yield Columns(
        [[TableBlock(columns, near, "Largest k by distance to real rows")], [TableBlock(heads, rows, caption)]]
    )
    for limit in measured.limits:
        yield Paragraph(limit.text, tone="small")
    yield Paragraph(
        f"None of the {number(measured.rows)} rows exceeds {number(measured.bound_bits, 2)} bits; with "
        f"{percent(measured.bound_confidence, 0)} confidence, at most {percent(measured.bound_rate, 4)} of people "
        "drawn like them do.",
        kind="statistical",
        tone="small",
    )


SECTION = Section("headline", "The bits", _blocks)
