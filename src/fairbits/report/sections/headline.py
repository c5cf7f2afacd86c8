"""The bits: the largest k by how real a person is, and what the rows of the table experience."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.numerals import number, percent
from fairbits.report.markup import table
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import Near, ReportData


BLIND = "the model never gets the protected attributes, or gives them no weight"


def _more(one: Near, data: ReportData) -> str:
    """What an exact figure adds where it has reached the limit."""
    full = one.exact and one.bits is not None and one.bits >= data.about.bits_limit and data.measured.noise is None
    return ": it cannot be more" if full else ""


def _markdown(data: ReportData) -> Iterator[str]:
    yield "## The bits"
    yield ""
    if data.about.blind:
        yield f"{data.direct} That holds for everybody, examined or not (proved): {BLIND}."
        return
    rows = ([one.people, number(one.k), number(one.bits, 2), one.kind + _more(one, data)] for one in data.near)
    yield from table(["people", "largest k", "bits", "kind of figure"], rows)
    yield ""
    measured, figures = data.measured, data.measured.figures
    pairs = [
        ("mean k", number(measured.k_mean.value, 2), measured.k_mean.low, measured.k_mean.high, 2),
        ("mean bits, Q∞", number(figures["q_inf_mean"], 2), figures["q_inf_mean_low"], figures["q_inf_mean_high"], 2),
        ("mean bits, Q1", number(figures["q_1_mean"], 2), figures["q_1_mean_low"], figures["q_1_mean_high"], 2),
    ]
    rows2 = [[name, value, f"{low:.{d}f} to {high:.{d}f}"] for name, value, low, high, d in pairs]
    for name, rate in (("more than one class", measured.split_rate), ("decision flips (ID)", measured.flip_rate)):
        if rate is not None:
            rows2.append([name, percent(rate.value), f"{percent(rate.low)} to {percent(rate.high)}"])
    yield from table([f"of {measured.rows:,} rows", "value", "95 % interval (statistical)"], rows2, right=1)


TEMPLATE = """
<section id="headline" aria-labelledby="headline-title">
<h2 id="headline-title">The bits{% if about.blind %} used directly {{ p.kind("proved") }}{% endif %}</h2>
{% if about.blind %}<p>{{ data.direct }} That holds for everybody, examined or not: {{ BLIND }}.</p>
{% else %}<p class="lead">A person is asked about under every combination of protected values. The scores fall into <em>k</em> classes that differ by more than ε = {{ "%g"|format(about.epsilon) }}; log<sub>2</sub> <em>k</em> is the bits of protected information that the decision uses, at most {{ number(about.bits_limit, 2) }} here.</p>
<div class="two">
<div class="table"><table>
<caption class="small">Largest k by distance to real rows</caption>
<thead><tr><th scope="col">people</th><th scope="col" class="n">largest k</th><th scope="col" class="n">bits</th><th scope="col">kind of figure</th></tr></thead>
<tbody>{% for one in near %}<tr><th scope="row">{{ one.people }}</th><td class="n">{{ number(one.k) }}</td><td class="n">{{ number(one.bits, 2) }}</td><td>{{ p.kind(one.kind) }}{{ more(one, data) }}</td></tr>
{% endfor %}</tbody></table></div>
<div class="table"><table>
<caption class="small">The {{ number(measured.rows) }} rows examined: the value {{ p.kind(rows_kind) }}, the interval {{ p.kind("statistical") }}</caption>
<thead><tr><th scope="col">per row</th><th scope="col" class="n">value</th><th scope="col" class="n">95 % interval</th></tr></thead>
<tbody>
<tr><th scope="row">mean k</th><td class="n">{{ number(measured.k_mean.value, 2) }}</td><td class="n">{{ number(measured.k_mean.low, 2) }} to {{ number(measured.k_mean.high, 2) }}</td></tr>
<tr><th scope="row">mean bits, Q∞</th><td class="n">{{ number(figures.q_inf_mean, 2) }}</td><td class="n">{{ number(figures.q_inf_mean_low, 2) }} to {{ number(figures.q_inf_mean_high, 2) }}</td></tr>
<tr><th scope="row">mean bits, Q1</th><td class="n">{{ number(figures.q_1_mean, 2) }}</td><td class="n">{{ number(figures.q_1_mean_low, 2) }} to {{ number(figures.q_1_mean_high, 2) }}</td></tr>
{% if measured.flip_rate %}<tr><th scope="row">more than one class</th><td class="n">{{ percent(measured.split_rate.value) }}</td><td class="n">{{ percent(measured.split_rate.low) }} to {{ percent(measured.split_rate.high) }}</td></tr>{% endif %}
</tbody></table></div>
</div>
<p class="small">None of the {{ number(measured.rows) }} rows exceeds {{ number(measured.bound_bits, 2) }} bits; with {{ percent(measured.bound_confidence, 0) }} confidence, at most {{ percent(measured.bound_rate, 4) }} of people drawn like them do. {{ p.kind("statistical") }}</p>
{% endif %}</section>
"""

SECTION = Section("headline", "The bits", TEMPLATE, _markdown, values=lambda _: {"BLIND": BLIND, "more": _more})
