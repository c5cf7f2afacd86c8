"""What is certain: exact, proved and statistical statements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairbits.report.markup import table, text
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.certify import Statement
    from fairbits.report.record import ReportData


def _markdown(data: ReportData) -> Iterator[str]:
    yield "## What is certain"
    yield ""
    rows = ([text(one.model), one.kind, text(one.population, 200), text(one.sentence(), 300)] for one in _shown(data))
    yield from table(["model", "kind", "population", "statement"], rows)


def _values(data: ReportData) -> dict[str, Any]:
    return {"certified": _shown(data)}


def _shown(data: ReportData) -> list[Statement]:
    """What is certain of somebody: what is withdrawn, or open for everybody, is not."""
    return [one for one in data.certified if one.is_certain()]


TEMPLATE = """
<section id="certified" aria-labelledby="certified-title">
<h2 id="certified-title">What is certain</h2>
<p class="lead">Exact: everybody was asked. Proved: bounds over sets of people, whatever order the model's library adds up in. Statistical: people drawn at random from the population named.</p>
<div class="table stacked"><table>
<thead><tr><th scope="col">model</th><th scope="col">kind</th><th scope="col">population</th><th scope="col">statement</th></tr></thead>
<tbody>{% for one in certified %}<tr><td class="word">{{ one.model|short(40) }}</td><td>{{ p.kind(one.kind) }}</td><td>{{ one.population|short(200) }}</td><td>{{ one.sentence() }} <span class="small">{{ one.reason|short(200) }}</span></td></tr>
{% endfor %}</tbody></table></div>
</section>
"""

SECTION = Section(
    "certified",
    "What is certain",
    TEMPLATE,
    _markdown,
    shown=lambda data: bool(_shown(data)),
    values=_values,
)
