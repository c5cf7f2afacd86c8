"""How many people, how severe, and what the search did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairbits.numerals import number
from fairbits.report.markup import table, value_text
from fairbits.report.section import Section, twins_differ
from fairbits.report.words import search_facts

if TYPE_CHECKING:
    from fairbits.report.record import ReportData


def _markdown(data: ReportData) -> Iterator[str]:
    yield "## How many, how severe"
    yield ""
    rows = dict(data.measured.histogram)
    shown = 1 if data.about.regression else 2  # in a regression nothing flips
    cases = {k: (count, ids)[:shown] for k, count, ids in data.searched.histogram}
    lines = (
        [str(k), number(rows.get(k, 0)), *map(number, cases.get(k, (0, 0)[:shown]))]
        for k in sorted({*rows, *cases}, reverse=True)
    )
    yield from table(["k", "rows", *("cases of the search", "of them flip")[:shown]], lines, right=0)
    yield ""
    facts = search_facts(data.about, data.searched)
    yield from table(["the search", ""], ([name, value_text(value)] for name, value in facts))


def _values(data: ReportData) -> dict[str, Any]:
    return {"search_facts": search_facts(data.about, data.searched)}


TEMPLATE = """
<section id="severity" aria-labelledby="severity-title">
<h2 id="severity-title">How many, how severe</h2>
<div class="two">
<div><h3>Rows of the table {{ p.kind(rows_kind) }}</h3>
{{ p.picture("severity-rows", "half", "How many of the " ~ number(measured.rows) ~ " rows have k classes.") }}</div>
{% if "severity-cases" in pictures %}<div><h3>Cases of the search {{ p.kind("exact" if about.blind else "lower bound") }}</h3>
{{ p.picture("severity-cases", "half", "How many of the " ~ number(searched.figures.cases) ~ " distinct people found have k classes. A search looks for large k, so this says nothing about how common they are.") }}
{% if not about.regression and searched.figures.id_cases %}<p class="key"><span><i style="background:var(--orange)"></i>decision flips between twins</span><span><i style="background:var(--grey)"></i>it does not</span></p>{% endif %}</div>{% endif %}
{% if "progress" in pictures %}<div><h3>The search over time</h3>
{{ p.picture("progress", "half", "A curve that still rises at the end asks for a longer search.") }}</div>
<div><h3>What the search did</h3>
<dl class="facts">
{% for name, value in search_facts %}<div><dt>{{ name }}</dt><dd>{{ value }}</dd></div>
{% endfor %}</dl></div>{% endif %}
</div>
</section>
"""

SECTION = Section("severity", "How many, how severe", TEMPLATE, _markdown, shown=twins_differ, values=_values)
