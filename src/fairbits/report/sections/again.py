"""How to get every figure again, what kinds of figures there are, and their limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairbits.domain import joined, shortened
from fairbits.report import words
from fairbits.report.markup import table, text
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData

#: What the word beside a figure means.
KINDS = {
    "exact": "Everybody that the figure speaks of was asked, or it has reached its limit.",
    "proved": "It holds for everybody, asked or not: by the way the model is made, or by bounds over sets of people.",
    "statistical": "An estimate from a sample: it would move with other people drawn in the same way.",
    "lower bound": "What a search found: there may be more.",
}


def _markdown(data: ReportData) -> Iterator[str]:
    again, about = data.remaking, data.about
    yield "## How to get every figure again"
    yield ""
    for command in again.commands:
        yield f"    {shortened(command, 1000)}"
    yield ""
    pairs = [
        ("identity", again.identity),
        ("model", about.model),
        ("protected inputs", joined(list(about.protected)) or "none"),
        ("ε", f"{about.epsilon:g}"),
        ("partition", about.partition),
        ("seed", str(again.seed)),
        ("budget", again.budget),
        ("run", f"{again.created}, {again.status}"),
        *again.versions.items(),
    ]
    yield from table(["", ""], ([name, text(value)] for name, value in pairs))
    yield from ("", "Kinds of figures:", "")
    for name, meaning in KINDS.items():
        if not (about.blind and name == "lower bound"):
            yield f"- {name}: {meaning}"
    yield from ("", "Limits:", "")
    for line in words.limits(about):
        yield f"- {line}"
    yield ""
    yield f"Method: {words.CITATION} <https://doi.org/{words.DOI}>"


def _values(data: ReportData) -> dict[str, Any]:
    kinds = {name: meaning for name, meaning in KINDS.items() if not (data.about.blind and name == "lower bound")}
    return {"limits": words.limits(data.about), "kinds": kinds}


TEMPLATE = """
<section id="again" aria-labelledby="again-title">
<h2 id="again-title">How to get every figure again</h2>
<p class="lead">The same seed gives the same cases, whatever the number of threads. The search below is limited by people asked and not by seconds, so that a faster machine finds the same.</p>
<pre><code>{% for command in data.remaking.commands %}$ {{ command }}
{% endfor %}</code></pre>
<dl class="facts">
<div><dt>model</dt><dd>{{ about.model|short(200) }}</dd></div>
{% if about.target %}<div><dt>target{% if about.favourable %}, favourable value{% endif %}</dt><dd>{{ p.label(about.target, 60) }}{% if about.favourable %}: {{ p.label(about.favourable, 60) }}{% endif %}</dd></div>{% endif %}
<div><dt>protected inputs</dt><dd>{% for name in about.protected %}{% if not loop.first %}, {% endif %}{{ p.label(name, 60) }}{% else %}none{% endfor %}</dd></div>
<div><dt>tolerance ε</dt><dd>{{ "%g"|format(about.epsilon) }}</dd></div>
<div><dt>partition</dt><dd>{{ about.partition }}</dd></div>
<div><dt>seed</dt><dd>{{ data.remaking.seed }}</dd></div>
<div><dt>budget of the search</dt><dd>{{ data.remaking.budget }}</dd></div>
<div><dt>run</dt><dd>{{ data.remaking.status }}</dd></div>
{% for name, version in data.remaking.versions.items() %}<div><dt>{{ name }}</dt><dd>{{ version }}</dd></div>
{% endfor %}</dl>
<h3>Kinds of figures</h3>
<dl class="kinds">{% for name, meaning in kinds.items() %}<div><dt>{{ p.kind(name) }}</dt><dd>{{ meaning }}</dd></div>
{% endfor %}</dl>
<h3>Limits</h3>
<ul>{% for line in limits %}<li>{{ line }}</li>
{% endfor %}</ul>
<h3>The method</h3>
<p>{{ citation }} <a href="https://doi.org/{{ doi }}">doi:{{ doi }}</a>. Please cite that paper when you use the measure; fairbits is an independent implementation of it.</p>
</section>
"""

SECTION = Section("again", "Again, and limits", TEMPLATE, _markdown, values=_values)
