"""Who is harmed, how often and by how much."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairbits.numerals import number, percent, signed
from fairbits.report.markup import table, text, value_text
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.measure import Harm, Stake
    from fairbits.report.record import ReportData


def rows(data: ReportData) -> list[tuple[Stake, Stake, Harm | None]]:
    """Per protected value: how often among rows and cases, and how much. Nothing where nobody is treated otherwise."""
    stakes = data.measured.stakes
    if not any(stake.lowest or stake.highest for stake in (*stakes, *data.searched.stakes)):
        return []
    harms = {(harm.attribute, harm.value): harm for harm in data.measured.harms}
    cases = data.searched.stakes
    return [(row, case, harms.get((row.attribute, row.value))) for row, case in zip(stakes, cases, strict=True)]


def _kind(data: ReportData) -> str:
    return "exact" if data.measured.harmed_people == data.measured.rows_total else "statistical"


def _markdown(data: ReportData) -> Iterator[str]:
    yield "## Who is harmed"
    yield ""
    yield (
        f"Mean gap and decisions lost: over {number(data.measured.harmed_people)} rows ({_kind(data)}); the score under "
        "this value minus the mean over all values, and the share who would get a favourable decision under another "
        "value but not under this one."
    )
    yield ""
    lines = (
        [
            f"{text(row.attribute)}: {value_text(row.value)}",
            "–" if harm is None else signed(harm.gap, 3),
            "–" if harm is None else percent(harm.lost),
            *(percent(x) for x in (row.lowest, row.highest, case.lowest, case.highest)),
        ]
        for row, case, harm in rows(data)
    )
    heads = ["value", "mean gap", "decisions lost", "lowest, rows", "highest, rows", "lowest, cases", "highest, cases"]
    yield from table(heads, lines, right=1)


def _values(data: ReportData) -> dict[str, Any]:
    found = rows(data)
    lost = any(harm is not None and harm.lost is not None for _, _, harm in found)
    widest = max((abs(harm.gap) for _, _, harm in found if harm is not None), default=0.0) or 1.0
    return {"stakes": found, "harm_kind": _kind(data), "harm_lost": lost, "harm_widest": widest}


TEMPLATE = """
<section id="harmed" aria-labelledby="harmed-title">
<h2 id="harmed-title">Who is harmed</h2>
<p class="lead">How much: over {{ number(measured.harmed_people) }} rows, the score under a protected value minus the mean over all values of that attribute{% if harm_lost %}; and the share of people who would get a favourable decision under another value, but lose it under this one{% endif %}. The other protected attributes take all their values. {{ p.kind(harm_kind) }}</p>
<div class="table"><table>
<thead><tr><th scope="col">protected value</th><th scope="col" class="n">mean score gap</th><th scope="col" class="gap"><span class="sr">gap as a bar</span></th>{% if harm_lost %}<th scope="col" class="n">decisions lost</th>{% endif %}<th scope="col" class="n">lowest twin</th><th scope="col" class="n">highest twin</th></tr></thead>
<tbody>{% for row, case, harm in stakes %}<tr><th scope="row">{{ p.label(row.attribute, 40) }}: {{ p.label(row.value, 60) }}</th>{% if harm %}<td class="n">{{ signed(harm.gap, 3) }}</td><td class="gap"><span class="zero"><i class="{{ "down" if harm.gap < 0 else "up" }}" style="width: {{ "%.0f"|format(50 * harm.gap|abs / harm_widest) }}%"></i></span></td>{% if harm_lost %}<td class="n">{{ percent(harm.lost) }}</td>{% endif %}{% else %}<td class="n">–</td><td class="gap"></td>{% if harm_lost %}<td class="n">–</td>{% endif %}{% endif %}<td class="n">{{ percent(row.lowest) }}</td><td class="n">{{ percent(row.highest) }}</td></tr>
{% endfor %}</tbody></table></div>
<p class="small">Lowest and highest twin: among the rows with more than one class, how often this value is part of the twin with the lowest score, and of the one with the highest.</p>
<details><summary>How often, as a picture, and among the cases of the search</summary>
{{ p.picture("stakes", "wide sideways") }}
<div class="table"><table>
<thead><tr><th scope="col">protected value</th><th scope="col" class="n">lowest, cases</th><th scope="col" class="n">highest, cases</th></tr></thead>
<tbody>{% for row, case, harm in stakes %}<tr><th scope="row">{{ p.label(row.attribute, 40) }}: {{ p.label(row.value, 60) }}</th><td class="n">{{ percent(case.lowest) }}</td><td class="n">{{ percent(case.highest) }}</td></tr>
{% endfor %}</tbody></table></div></details>
</section>
"""

SECTION = Section("harmed", "Who is harmed", TEMPLATE, _markdown, shown=lambda data: bool(rows(data)), values=_values)
