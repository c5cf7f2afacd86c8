"""What to do: every repair on held-out evidence, what the chosen one changes, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from fairbits.blocks import (
    Block,
    Code,
    Columns,
    Drawing,
    Fold,
    Inline,
    Paragraph,
    Small,
    Strong,
    TableBlock,
    TableColumn,
    Tag,
    figure,
    label,
    listed,
    paragraphs,
    share,
    shown,
    table_of,
)
from fairbits.measure import symbol_of
from fairbits.repair import Figures, RepairCandidate, RepairResult
from fairbits.text import number, percent, signed

#: Repairs and groups of people in tables; repairs.parquet and repair.json have all of them. Neurons of one repair.
MAX_REPAIRS, MAX_GROUPS, MAX_NEURONS = 40, 12, 4
#: Repairs that everybody sees; the others are folded.
MAX_FIRST = 8
_FIGURES = (
    ("id_rate_rows", "rows whose decision flips", "share"),
    ("accuracy", "{quality} on rows", "share"),
    ("balanced_accuracy", "balanced accuracy on rows", "share"),
    ("k_mean_rows", "mean k of rows", "number"),
    ("k_max_rows", "largest k of rows", "whole"),
    ("gap_tail", "gap that 99 % of rows stay below", "number"),
    ("gap_max", "largest gap of rows", "number"),
    ("id_rate", "cases whose decision flips", "share"),
    ("k_mean", "mean k of cases", "number"),
    ("k_max", "largest k of cases", "whole"),
    ("q_inf_mean", "mean bits (Q∞) of cases", "number"),
    ("indirect_bits", "indirect bits, through other attributes", "number"),
)
_ATTACK = (
    ("evaluations", "people asked, fresh search", "whole"),
    ("k_max", "largest k, fresh search", "whole"),
    ("k_mean", "mean k, fresh search", "number"),
    ("id_rate", "cases that flip, fresh search", "share"),
)


def repair_blocks(result: RepairResult) -> Iterator[Block]:
    """The recommendation and its files, all repairs as a table, before and after."""
    yield Paragraph(cost_words(result), tone="verdict" if result.chosen else "")
    if result.chosen is not None and result.chosen.proof is not None:
        proof = result.chosen.proof
        said = f" {proof.text.removeprefix('Proved ')} Attributes that stand in for protected ones stay."
        yield Paragraph((Strong(f"k ≤ {proof.bound}"), " ", Tag("proved"), said), tone="proved")
    if result.files:
        files = listed(Code(file.name) for file in result.files)
        yield Paragraph(("Written, loaded again and compared: ", *files, "."), tone="small")
    evidence = result.evidence
    if result.repairs:
        first, others = _apart(result)
        judged = f"{number(evidence.held_out_rows)} rows and {number(evidence.held_out_cases)} cases"
        yield _table(result, first, f"Judged on {judged} that no repair has seen; change in points")
        if others:
            yield Fold(f"{len(others)} more repairs", [_table(result, others)])
    seen = "" if evidence.rows_unseen_by_model else ", though the model may have been trained on them"
    yield Paragraph(
        f"Made from one part of the evidence, chosen on another and judged on a third: {number(evidence.held_out_cases)} "
        f"cases and {number(evidence.held_out_rows)} rows that no repair has seen{seen}. At most {percent(result.max_accuracy_loss, 1)} of "
        f"{result.quality} may be lost; a repair that may cost more by the rows it was chosen on is marked.",
        tone="small",
    )
    yield Drawing(
        "pareto",
        "All repairs where held-out evidence puts them; the diamond is the model as it is, the large dot the repair to "
        "take. Blue: no other is better in everything on the evidence that they were chosen on; grey: one is.",
        "wide sideways",
    )
    if result.chosen is not None:
        tables = [[_changes(result)], *([[_groups(result)]] if result.groups_before else [])]
        yield Fold("Before and after, figure by figure and between groups", [Columns(tables)], open=True)
    yield from paragraphs((*result.evidence.notes, *result.warnings), "warning")
    yield from paragraphs((f"Not tried: {name}: {reason}." for name, reason in result.left_out), "note")


def cost_words(result: RepairResult) -> str:
    """The repair to take and what it costs, or why there is none, in a sentence."""
    chosen = result.chosen
    if chosen is None:
        return f"None recommended: {result.reason.rstrip('.')}."
    before, after = result.before_held_out, chosen.held_out
    now = percent(before.id_rate_rows)
    flips = f"decisions flip for {percent(after.id_rate_rows)} of held-out rows (now {now}); "
    means = " to ".join(number(one.lowered(result.measure), 2) for one in (before, after))
    bits = f"mean {symbol_of(result.measure)} of cases goes from {means}"
    cost = f"{result.quality} changes by {signed(100 * (after.accuracy - before.accuracy), 1)} points"
    ends = f" (95 %: {points(chosen)})" if points(chosen) else ""
    said = f"{'' if before.id_rate_rows is None else flips}{bits}; {cost}{ends}."
    return f"Recommended: {chosen.name}. {said[:1].upper()}{said[1:]}"


def points(one: RepairCandidate) -> str:
    """The 95 % interval of the change in accuracy on held-out rows, in points."""
    low, high = one.held_out_loss_low, one.held_out_loss_high
    return "" if low is None or high is None else f"{signed(-100 * high, 1)} to {signed(-100 * low, 1)}"


def words_of(one: RepairCandidate) -> str:
    """What was done, layers counted from 1."""
    held = [f"neuron {do.neuron} of layer {do.layer + 1} at {do.value:.4g}" for do in one.neurons]
    parts = [f"protected inputs moved {percent(one.shrink, 0)} of the way to their mean"] if one.shrink else []
    if held:
        more = f" and {len(held) - MAX_NEURONS} more" if len(held) > MAX_NEURONS else ""
        parts.append(f"holds {', '.join(held[:MAX_NEURONS])}{more}")
    return "; ".join([*parts, *(["trained further"] if one.retrained else [])] if parts else [one.words])


def shown_repairs(result: RepairResult) -> list[RepairCandidate]:
    """Where there are too many, those that matter stay: the chosen one, the front, then the lowest mean k."""
    ranked, found = [], set()
    for one in sorted(result.repairs, key=lambda one: (one is not result.chosen, one.dominated, one.held_out.k_mean)):
        # Two ways may lead to the same model.
        same = (words_of(one), one.held_out.accuracy, one.held_out.k_mean, one.held_out.id_rate_rows)
        if same not in found:
            found.add(same)
            ranked.append(one)
    return sorted(ranked[:MAX_REPAIRS], key=lambda one: one.held_out.k_mean)


def _apart(result: RepairResult) -> tuple[list[RepairCandidate], list[RepairCandidate]]:
    """The repairs to look at first and the others: the one to take, the paper's own (one neuron held), the lowest k."""
    repairs = shown_repairs(result)
    own = next((one for one in repairs if len(one.neurons) == 1 and not one.shrink and not one.retrained), None)
    ranked = sorted(repairs, key=lambda one: (one is not result.chosen, one is not own))
    first = {id(one) for one in ranked[: MAX_FIRST if len(repairs) > MAX_FIRST + 2 else None]}
    return [one for one in repairs if id(one) in first], [one for one in repairs if id(one) not in first]


def _table(result: RepairResult, repairs: Sequence[RepairCandidate], caption: str = "") -> Block:
    k, compared = symbol_of(result.measure), bool(result.options.get("also"))
    columns: tuple[TableColumn | None, ...] = (
        *(label("repair"), share(result.quality), shown("change, 95 %")),
        *(None if result.regression else share("rows that flip"), figure(f"mean {k}", 2), shown("proved")),
        *(figure(head, 2) if compared else None for head in ("impact ratio", "indirect bits")),
        label("what was done"),
    )
    rows = [("as it is", *_row(result.before_held_out, "", "", result), "")]
    for one in repairs:
        done: tuple[Inline, ...] = (
            words_of(one),
            *(() if one.within_budget else (" ", Tag("may cost more than allowed"))),
            *((" ", Tag("for comparison only")) if one.yardstick else ()),
            *((Small(f"where it was chosen, it raises {one.worse}"),) if one.worse else ()),
        )
        proved = "" if one.proof is None else f"k ≤ {one.proof.bound}"
        rows.append((one.name, *_row(one.held_out, points(one), proved, result), done))
    return table_of(
        columns,
        rows,
        caption,
        marked=frozenset(i + 1 for i, one in enumerate(repairs) if one is result.chosen),
    )


def _row(one: Figures, ends: str, proved: str, result: RepairResult) -> tuple[Any, ...]:
    return (
        *(one.accuracy, ends, one.id_rate_rows, one.lowered(result.measure), proved),
        one.impact_ratio,
        one.indirect_bits,
    )


def _changes(result: RepairResult) -> Block:
    show: dict[str, Callable[[Any], str]] = {"share": percent, "whole": number, "number": partial(number, digits=2)}
    rows = [(one["name"], *(show[one["kind"]](one[when]) for when in ("before", "after"))) for one in changes(result)]
    return TableBlock([label("figure"), shown("before"), shown("after")], rows, "Before and after, held-out evidence")


def changes(result: RepairResult) -> list[dict[str, Any]]:
    """Each figure before and after the chosen repair; nothing where none was chosen."""
    if result.chosen is None:
        return []
    pairs: tuple[tuple[Sequence[tuple[str, str, str]], Any, Any], ...] = (
        (_FIGURES, result.before_held_out, result.chosen.held_out),
        (_ATTACK, result.attack_before, result.attack_after),
    )
    return [
        {
            "name": words.format(quality=result.quality),
            "before": getattr(before, name),
            "after": getattr(after, name),
            "kind": kind,
        }
        for figures, before, after in pairs
        if before and after
        for name, words, kind in figures
        if getattr(before, name) is not None
    ]


def _groups(result: RepairResult) -> Block:
    names, rows = ("selection", "equal_opportunity", "average_odds"), []
    for before, after in zip(result.groups_before[:MAX_GROUPS], result.groups_after, strict=False):
        pairs = [(getattr(before, name), getattr(after, name)) for name in names]
        if any(one is not None for pair in pairs for one in pair):  # groups may all be too small
            rows.append((" × ".join(before.attributes), *(f"{number(a, 2)} → {number(b, 2)}" for a, b in pairs)))
    columns = [label("groups of"), shown("selection"), shown("equal opport."), shown("average odds")]
    return TableBlock(columns, rows, "Between groups: largest rate minus smallest, before → after")
