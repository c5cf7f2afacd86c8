"""What repairs cost and buy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import (
    Block,
    Code,
    Columns,
    Drawing,
    Fold,
    Inline,
    Paragraph,
    Strong,
    TableBlock,
    TableColumn,
    Tag,
    figure,
    label,
    paragraphs,
    share,
    shown,
)
from fairbits.numerals import number
from fairbits.report.section import Section
from fairbits.report.words import by_kind

if TYPE_CHECKING:
    from fairbits.report.record import ReportData
    from fairbits.report.repaired import Mend, Repaired

#: Groups of people in the table; repair.json has all of them.
MAX_GROUPS = 12


def _blocks(data: ReportData) -> Iterator[Block]:
    repaired = data.repaired
    assert repaired is not None  # noqa: S101 - asked by `shown`
    seen = "" if repaired.rows_unseen else ", though the model may have been trained on them"
    lead: list[Inline] = [
        f"{len(repaired.repairs)} repairs, made from one part of the evidence, chosen on another and judged on a third: "
        f"{number(repaired.held_out_cases)} cases and {number(repaired.held_out_rows)} rows that no repair has "
        f"seen{seen}. "
    ]
    if repaired.chosen:
        lead += ["Chosen: ", Strong(repaired.chosen), f" ({repaired.words})."]
    else:
        lead += [Strong("None was chosen"), f": {repaired.words}"]
    yield Paragraph(tuple(lead), tone="lead")
    if repaired.proof:
        bound = Strong(f"k ≤ {repaired.k_max_proved} ")
        rest = f" {repaired.proof} Attributes that stand in for protected ones stay."
        yield Paragraph((bound, Tag("proved"), rest), tone="proved")
    by = "mean k and proved k" if repaired.regression else "balanced accuracy, mean k, ID rate and proved k"
    yield Drawing(
        "pareto",
        "The line joins the repairs that no other beats on the evidence that they were chosen on "
        f"({repaired.quality}, {by}); all are drawn where held-out evidence puts them. Diamond: the model as it is.",
        "wide sideways",
    )
    yield Columns([[_changes(repaired)], *([[_groups(repaired)]] if repaired.groups else [])])
    yield from paragraphs(repaired.warnings, "warning")
    if repaired.files:
        named: list[Inline] = ["Beside this report: "]
        for i, file in enumerate(repaired.files):
            named += [", "] * bool(i) + [Code(file)]
        yield Paragraph((*named, ", written, loaded again and compared."), tone="small")
    yield Fold("All repairs as a table", [_table(repaired)])


def _changes(repaired: Repaired) -> Block:
    rows = [(one.name, by_kind(one.before, one.kind), by_kind(one.after, one.kind)) for one in repaired.changes]
    columns = [label("figure"), shown("before"), shown("after")]
    return TableBlock(columns, rows, "Before and after, held-out evidence")


def _groups(repaired: Repaired) -> Block:
    rows = [
        (
            " × ".join(one.attributes),
            *(
                f"{number(pair[0], 2)} → {number(pair[1], 2)}"
                for pair in (one.selection, one.equal_opportunity, one.average_odds)
            ),
        )
        for one in repaired.groups[:MAX_GROUPS]
    ]
    columns = [label("groups of"), shown("selection"), shown("equal opport."), shown("average odds")]
    return TableBlock(columns, rows, "Between groups: largest rate minus smallest, before → after")


def _table(repaired: Repaired) -> Block:
    columns: list[TableColumn] = [label("repair"), share(repaired.quality), shown("change, 95 %"), figure("mean k", 2)]
    columns += [shown("proved"), share("ID rate"), label("what was done")]
    first = ("as it is", repaired.accuracy_before, "", repaired.k_mean_before, "", None, "")
    rows = [first, *(_row(one) for one in repaired.repairs)]
    kept = [i for i, column in enumerate(columns) if not (repaired.regression and column.head == "ID rate")]
    chosen = frozenset(i + 1 for i, one in enumerate(repaired.repairs) if one.chosen)
    return TableBlock([columns[i] for i in kept], [[row[i] for i in kept] for row in rows], marked=chosen)


def _row(one: Mend) -> tuple[object, ...]:
    known = one.change_low is not None and one.change_high is not None
    ends = f"{100 * (one.change_low or 0):+.1f} to {100 * (one.change_high or 0):+.1f}" if known else ""
    done: list[Inline] = [one.words]
    if not one.within_budget:
        done += [" ", Tag("not sure to keep the budget")]
    if one.raises:
        done += [" ", Tag(f"raises {one.raises}")]
    if one.yardstick:
        done += [" ", Tag("yardstick")]
    proved = "" if one.k_max_proved is None else f"k ≤ {one.k_max_proved}"
    return one.name, one.accuracy, ends, one.k_mean, proved, one.id_rate, tuple(done)


SECTION = Section(
    "repairs",
    "What to do: repairs",
    _blocks,
    shown=lambda data: data.repaired is not None,
    kind=lambda _: "statistical",
)
