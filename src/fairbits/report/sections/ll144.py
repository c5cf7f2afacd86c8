"""Group figures as tables to file: New York City's Local Law 144, by attribute and intersection.

What each table must have (6 RCNY § 5-301): the number of people, the selection rate or, for scores, the share above the
full sample's median, the impact ratio within the table, and how many are of unknown category; beside them the date of
the audit, where the data come from and since when the tool is in use. See :mod:`fairbits.measure.groups`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fairbits.blocks import Block, Facts, Heading, Paragraph, Small, TableBlock, Text, label, shown
from fairbits.numerals import number, percent
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData

#: Rows of one table on the page; all are in proxies.json.
MAX_ROWS = 200
NOTE = (
    "The law asks for sex, race or ethnicity, and both together; tables of other attributes are here for whoever needs "
    "them. It sets no threshold for impact ratios: four fifths is a rule of thumb of other authorities, and no verdict."
)


def filing_facts(document: Mapping[str, Any], created: str) -> list[tuple[str, Text]]:
    """What must stand beside the tables."""
    stated = document.get("filing") or {}
    return [
        ("date of the audit", created[:10]),
        ("data source", str(stated.get("data_source") or document.get("subject") or "not given")),
        ("distribution date of the tool", str(stated.get("distributed") or "not given (--in-use-since)")),
    ]


def filing_tables(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry per table: its title, which rate it has, and its rows as text."""
    found = []
    for one in document["groups"]:
        decides = any(group["selection_rate"] is not None for group in one["groups"])
        rate, ratio = ("selection_rate", "impact_ratio") if decides else ("scoring_rate", "scoring_ratio")
        known = [group for group in one["groups"] if not group.get("missing")]
        rows = [
            [group["group"], _remark(group), number(group["people"]), percent(group[rate]), _ratio(group, ratio)]
            for group in known[:MAX_ROWS]
        ]
        rows.append(["unknown", "in no ratio", number(one["unknown"]), "–", "–"])
        kind = "selection rate" if decides else "scoring rate: share above the median of everybody"
        left = max(len(known) - MAX_ROWS, 0)
        found.append({"attribute": one["attribute"], "people": one["people"], "kind": kind, "rows": rows, "left": left})
    return found


def _ratio(group: Mapping[str, Any], name: str) -> Text:
    if group["small"] or group[name] is None:
        return "–"
    low, high = group.get(f"{name}_low"), group.get(f"{name}_high")
    if low is None or high is None:
        return number(group[name], 2)
    return number(group[name], 2), Small(f"{number(low, 2)} to {number(high, 2)}")


def _remark(group: Mapping[str, Any]) -> str:
    small = ["fewer than 30 people: no ratio"] if group["small"] else []
    few = ["under 2 % of the data"] if group["under_two_percent"] else []
    return "; ".join([*small, *few])


def filing_blocks(document: Mapping[str, Any], created: str) -> Iterator[Block]:
    """What the law asks for, and what must stand beside it."""
    yield Paragraph(f"New York City, Local Law 144 of 2021 (6 RCNY § 5-301). {NOTE}", tone="lead")
    yield Facts(filing_facts(document, created))
    for one in filing_tables(document):
        yield Heading(f"By {one['attribute']}: {number(one['people'])} people")
        columns = [label("category"), shown("people"), shown("rate"), shown("impact ratio")]
        rows = [((row[0], Small(row[1])) if row[1] else row[0], *row[2:]) for row in one["rows"]]
        yield TableBlock(columns, rows)
        more = f" {number(one['left'])} more categories are in proxies.json." if one["left"] else ""
        yield Paragraph(
            f"Rate: {one['kind']}. Impact ratio: the rate over the highest rate of this table.{more}", tone="small"
        )


def _blocks(data: ReportData) -> Iterator[Block]:
    return filing_blocks(data.proxies or {}, data.remaking.created)


SECTION = Section(
    "filing",
    "Tables to file",
    _blocks,
    shown=lambda data: data.proxies is not None and bool(data.proxies["groups"]),
)
