"""Which protected attribute the bits come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.report.markup import table, text
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData


def _markdown(data: ReportData) -> Iterator[str]:
    debugged = data.debugged
    assert debugged is not None  # noqa: S101 - asked by `shown`
    yield "## Which attribute drives it"
    yield ""
    rows = ([text(s.attribute), f"{s.alone:.2f}", f"{s.shapley:.2f}", f"{s.share:.0%}"] for s in debugged.shares)
    yield from table(["attribute", "bits alone", "Shapley bits", "share"], rows, right=1)
    if debugged.together:
        yield ""
        rows = (
            [" + ".join(text(name) for name in one.attributes), f"{one.q_inf:.2f}", f"{one.q_1:.2f}"]
            for one in debugged.together
        )
        yield from table(["just these vary", "Q∞", "Q1"], rows, right=1)


TEMPLATE = """
<section id="drivers" aria-labelledby="drivers-title">
<h2 id="drivers-title">Which attribute drives it</h2>
<p class="lead">Over {{ number(debugged.samples) }} cases ({{ number(debugged.samples_worst) }} of them the worst, the others drawn at random), decisions use {{ number(debugged.q_inf, 2) }} bits on average. Shapley shares split them among the protected attributes. {{ p.kind("exact") }} <span class="small">for these cases</span></p>
<div class="two">
{{ p.picture("shapley", "half", "Bar: the Shapley share. Mark: the bits when this attribute alone varies.") }}
{% if debugged.together %}<div class="table"><table>
<caption class="small">Bits when just these vary</caption>
<thead><tr><th scope="col">attributes</th><th scope="col" class="n">Q∞</th><th scope="col" class="n">Q1</th></tr></thead>
<tbody>{% for one in debugged.together[:12] %}<tr><th scope="row">{% for name in one.attributes %}{% if not loop.first %} + {% endif %}{{ p.label(name, 40) }}{% endfor %}</th><td class="n">{{ number(one.q_inf, 2) }}</td><td class="n">{{ number(one.q_1, 2) }}</td></tr>
{% endfor %}</tbody></table></div>{% endif %}
</div>
</section>
"""

SECTION = Section(
    "drivers",
    "Which attribute",
    TEMPLATE,
    _markdown,
    shown=lambda data: data.debugged is not None and bool(data.debugged.shares),
)
