"""How many people, how severe, and what the search did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import Block, Columns, Drawing, Facts, Fold, Heading, TableBlock, figure
from fairbits.numerals import number
from fairbits.report.section import Section, twins_differ
from fairbits.report.words import search_facts

if TYPE_CHECKING:
    from fairbits.report.record import ReportData


def _blocks(data: ReportData) -> Iterator[Block]:
    about, figures, decides = data.about, data.searched.figures, not data.about.regression
    kind = data.measured.kind
    rows = f"How many of the {number(data.measured.rows)} rows have k classes."
    cases = (
        f"How many of the {number(figures['cases'])} distinct people found have k classes. A search looks for large "
        "k, so this says nothing about how common they are."
    )
    flips = [("orange", "decision flips between twins"), ("grey", "it does not")]
    parts: list[list[Block]] = [[Heading("Rows of the table", kind), Drawing("severity-rows", rows)]]
    if data.searched.histogram:
        key = flips if decides and figures["id_cases"] else []
        parts.append([Heading("Cases of the search", "lower bound"), Drawing("severity-cases", cases, key=key)])
    if len(data.searched.progress) > 2:
        curve = Drawing("progress", "A curve that still rises at the end asks for a longer search.")
        parts.append([Heading("The search over time"), curve])
    parts.append([Heading("What the search did"), Facts(search_facts(about, data.searched))])
    yield Columns(parts)
    measured, found = dict(data.measured.histogram), {k: (count, ids) for k, count, ids in data.searched.histogram}
    columns = [figure("k"), figure("rows"), figure("cases of the search"), figure("of them flip")]
    lines = [(k, measured.get(k, 0), *found.get(k, (0, 0))) for k in sorted({*measured, *found}, reverse=True)]
    kept = 4 if decides else 3
    yield Fold("As a table", [TableBlock(columns[:kept], [line[:kept] for line in lines])])


SECTION = Section("severity", "How many, how severe", _blocks, shown=twins_differ)
