"""Group figures as tables to file: New York City's Local Law 144, by attribute and intersection.

What each table must have (6 RCNY § 5-301): the number of people, the selection rate or, for scores, the share above the
full sample's median, the impact ratio within the table, and how many are of unknown category; beside them the date of
the audit, where the data come from and since when the tool is in use. See :mod:`fairbits.measure.local_law`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fairbits.numerals import number, percent
from fairbits.report.markup import table, text
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData

#: Rows of one table on the page; all are in proxies.json.
MAX_ROWS = 200
NOTE = (
    "The law asks for sex, race or ethnicity, and both together; tables of other attributes are here for whoever needs "
    "them. It sets no threshold for impact ratios: four fifths is a rule of thumb of other authorities, and no verdict."
)
_HEADS = ("category", "people", "rate", "impact ratio")


def filing_facts(document: Mapping[str, Any], created: str) -> list[tuple[str, str]]:
    """What must stand beside the tables."""
    stated = document.get("filing") or {}
    return [
        ("date of the audit", created[:10]),
        ("data source", str(stated.get("data_source") or document.get("subject") or "not given")),
        ("distribution date of the tool", str(stated.get("distributed") or "not given (--distributed)")),
    ]


def filing_tables(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry per table: its title, which rate it has, and its rows as text."""
    found = []
    for one in document["groups"]:
        decides = any(group["selection_rate"] is not None for group in one["groups"])
        rate, ratio = ("selection_rate", "impact_ratio") if decides else ("scoring_rate", "scoring_ratio")
        rows = [
            [group["group"], _remark(group), number(group["people"]), percent(group[rate]), _ratio(group, ratio)]
            for group in one["groups"][:MAX_ROWS]
        ]
        rows.append(["unknown", "in no ratio", number(one["unknown"]), "–", "–"])
        kind = "selection rate" if decides else "scoring rate: share above the median of everybody"
        left = max(len(one["groups"]) - MAX_ROWS, 0)
        found.append({"attribute": one["attribute"], "people": one["people"], "kind": kind, "rows": rows, "left": left})
    return found


def _ratio(group: Mapping[str, Any], name: str) -> str:
    return "–" if group["small"] or group[name] is None else number(group[name], 2)


def _remark(group: Mapping[str, Any]) -> str:
    small = ["fewer than 30 people: no ratio"] if group["small"] else []
    few = ["under 2 % of the data"] if group["under_two_percent"] else []
    return "; ".join([*small, *few])


def filing_text(document: Mapping[str, Any], created: str) -> Iterator[str]:
    """The section in Markdown, a line at a time."""
    yield "## Appendix: tables to file (New York City, Local Law 144)"
    yield ""
    yield NOTE
    yield ""
    yield from table(["", ""], ([name, text(value, 200)] for name, value in filing_facts(document, created)))
    for one in filing_tables(document):
        yield ""
        yield f"By {text(one['attribute'])}: {number(one['people'])} people, {one['kind']}."
        yield ""
        yield from table(
            list(_HEADS),
            ([text(row[0]) + (f" ({row[1]})" if row[1] else ""), *row[2:]] for row in one["rows"]),
            right=1,
        )


def _markdown(data: ReportData) -> Iterator[str]:
    assert data.proxies is not None  # noqa: S101 - asked by `shown`
    return filing_text(data.proxies, data.remaking.created)


def filing_values(document: Mapping[str, Any], created: str) -> dict[str, Any]:
    """What the template needs."""
    return {
        "filing_facts": filing_facts(document, created),
        "filing_tables": filing_tables(document),
        "filing_note": NOTE,
        "filing_heads": _HEADS,
    }


TEMPLATE = """
<section id="filing" aria-labelledby="filing-title">
<h2 id="filing-title">Appendix: tables to file</h2>
<p class="lead">New York City, Local Law 144 of 2021 (6 RCNY § 5-301). {{ filing_note }}</p>
<dl class="facts">{% for name, value in filing_facts %}<div><dt>{{ name }}</dt><dd>{{ p.label(value, 200) }}</dd></div>
{% endfor %}</dl>
{% for one in filing_tables %}<h3>By {{ p.label(one.attribute, 80) }}: {{ number(one.people) }} people</h3>
<div class="table"><table class="filing">
<thead><tr>{% for head in filing_heads %}<th scope="col"{% if not loop.first %} class="n"{% endif %}>{{ head }}</th>{% endfor %}</tr></thead>
<tbody>{% for name, remark, people, rate, ratio in one.rows %}<tr><th scope="row">{{ p.label(name, 80) }}{% if remark %}<br><small>{{ remark }}</small>{% endif %}</th><td class="n">{{ people }}</td><td class="n">{{ rate }}</td><td class="n">{{ ratio }}</td></tr>
{% endfor %}</tbody></table></div>
<p class="small">Rate: {{ one.kind }}. Impact ratio: the rate over the highest rate of this table.{% if one.left %} {{ number(one.left) }} more categories are in proxies.json.{% endif %}</p>
{% endfor %}
</section>
"""

SECTION = Section(
    "filing",
    "Tables to file",
    TEMPLATE,
    _markdown,
    shown=lambda data: data.proxies is not None and bool(data.proxies["groups"]),
    values=lambda data: filing_values(data.proxies or {}, data.remaking.created),
)
