"""Who is affected: which protected values cost a score or a decision, how often and by how much; and rules that tell
whose decision flips, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import (
    Bar,
    Block,
    Code,
    Fold,
    Paragraph,
    TableBlock,
    between,
    change,
    figure,
    label,
    share,
    whole_percent,
)
from fairbits.text import number, percent

if TYPE_CHECKING:
    from fairbits.debug import Description
    from fairbits.measure import Harm, Stake
    from fairbits.report.record import ReportData


def stakes_and_harms(data: ReportData) -> list[tuple[Stake, Stake, Harm | None]]:
    """Per protected value: how often among rows and cases, and how much. Nothing where nobody is treated otherwise."""
    stakes = data.measured.stakes
    if not any(stake.lowest or stake.highest for stake in (*stakes, *data.searched.stakes)):
        return []
    harms = {(harm.attribute, harm.value): harm for harm in data.measured.harms}
    cases = data.searched.stakes
    return [(row, case, harms.get((row.attribute, row.value))) for row, case in zip(stakes, cases, strict=True)]


def affected_blocks(data: ReportData) -> Iterator[Block]:
    """How much each protected value costs, how often, and the rows by the number of their classes."""
    found = stakes_and_harms(data)
    if not found:
        yield Paragraph("Nobody examined is treated differently.", tone="lead")
        return
    decides = any(harm is not None and harm.lost is not None for _, _, harm in found)
    widest = max((abs(harm.gap) for _, _, harm in found if harm is not None), default=0.0) or 1.0
    lost = (
        "; and the share of people who would get a favourable decision under another value, but lose it under this one"
    )
    yield Paragraph(
        f"How much: over {number(data.measured.harmed_people)} rows, the score under a protected value minus the mean "
        f"over all values of that attribute{lost if decides else ''}. The other protected attributes take all their "
        "values.",
        kind="exact" if data.measured.harmed_people == data.measured.rows_total else "statistical",
        tone="lead",
    )
    columns = [label("protected value"), change("mean score gap", 3), label(""), share("decisions lost")]
    columns += [share("lowest twin"), share("highest twin")]
    lines = [
        (
            f"{row.attribute}: {row.value}",
            None if harm is None else harm.gap,
            None if harm is None else Bar(harm.gap / widest, middle=True),
            None if harm is None else harm.lost,
            row.lowest,
            row.highest,
        )
        for row, _, harm in found
    ]
    kept = [0, 1, 2, *([3] if decides else []), 4, 5]
    yield TableBlock([columns[i] for i in kept], [[line[i] for i in kept] for line in lines])
    yield Paragraph(
        "Lowest and highest twin: among the rows with more than one class, how often this value is part of the twin "
        "with the lowest score, and of the one with the highest.",
        tone="small",
    )
    cases = [
        (
            f"{case.attribute}: {case.value}",
            case.lowest,
            Bar(case.lowest),
            case.highest,
            Bar(case.highest),
        )
        for _, case, _ in found
    ]
    heads = [label("protected value"), share("lowest"), label(""), share("highest"), label("")]
    yield Fold("How often, among the cases of the search", [TableBlock(heads, cases)])


def who_blocks(found: Description | None) -> Iterator[Block]:
    """The rules as a table, beside the base rate, and the command that restricts a search to the first of them."""
    if found is None:
        return
    yield Paragraph(found.words, kind="statistical" if found.base is not None else "")
    if not found.rules or found.base is None or found.together is None:
        return
    lines = [*found.rules, *([found.together] if len(found.rules) > 1 else [])]
    rows = [
        (
            one.text if place < len(found.rules) else "any of these",
            one.people,
            one.share.value,
            one.precision.value,
            (one.precision.low, one.precision.high),
            one.coverage.value,
            (one.coverage.low, one.coverage.high),
        )
        for place, one in enumerate(lines)
    ]
    such = "flip" if found.target == "flips" else f"k above {found.above}"
    columns = [
        label("people with"),
        figure("rows"),
        share("of all", 0),
        share(f"{such}", 0),
        between("95 %", whole_percent),
    ]
    columns += [share("coverage", 0), between("95 %", whole_percent)]
    caption = (
        f"Learned on {number(found.learned)} rows, judged on {number(found.judged)} others, of whom "
        f"{percent(found.base.value, 0)} are people {found.what}; coverage is the share of these"
    )
    yield TableBlock(columns, rows, caption)
    command = found.command("search", found.rules[0])
    if command is not None:
        yield Paragraph(
            (Code(command), " looks at the first of them alone; so do measure, certify and repair."), tone="small"
        )
