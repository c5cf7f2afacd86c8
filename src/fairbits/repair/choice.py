"""Which repair is taken: a rule that a reviewer can follow, on the plan's half of the evidence alone.

Among repairs that lower mean k of cases, make no more people flip, keep the budget (with a margin for the number of
rows) and are dominated by no other: the lowest proved k first; where nothing is proved, the lowest mean k. Equal ones:
the smaller cost, and one score a decision before many.

Flips count because k does not see them: scores that crowd at both ends have few classes, and more people between them.
Nobody signs a model under which the decision of more real people hangs on who they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairbits.domain import quality
from fairbits.errors import OptionError, choose_from
from fairbits.measure import Measure, symbol_of
from fairbits.repair.judgement import BALANCED_FACTOR, cost, front
from fairbits.repair.proposals.guard import Guard
from fairbits.repair.records import Figures, Repair


def undominated(repairs: Sequence[Repair], measure: Measure = "q_inf") -> list[bool]:
    """Which repairs no other beats on the plan's half of the evidence, in any figure that counts.

    The figures are accuracy, balanced accuracy, mean k, ID rate (of cases and of rows), proved k, whether the budget is
    kept, and whether no more people flip.
    """
    points = [
        (
            r.plan.accuracy,
            r.plan.balanced_accuracy or 0.0,
            -r.plan.lowered(measure),
            -(r.plan.id_rate or 0.0),
            -(r.plan.id_rate_rows or 0.0),
            -float("inf") if r.k_max_proved is None else -float(r.k_max_proved),
            float(r.within_budget),
            float(not r.raises),
        )
        for r in repairs
    ]
    return front(points)


def raised(before: Figures, after: Figures) -> str:
    """What there is more of after a repair, in words: people who flip (cases, rows), or mean k of rows."""
    worse = []
    for name, was, now in (
        ("cases", before.id_rate, after.id_rate),
        ("rows", before.id_rate_rows, after.id_rate_rows),
    ):
        if was is not None and now is not None and now > was:
            worse.append(f"flips of {name} {was:.1%} → {now:.1%}")
    if after.k_mean_rows > before.k_mean_rows:
        worse.append(f"mean k of rows {before.k_mean_rows:.3g} → {after.k_mean_rows:.3g}")
    return ", ".join(worse)


def pick(
    repairs: Sequence[Repair],
    before: Figures,
    budget: float,
    *,
    choose: str | None = None,
    costs_count: bool = False,
    rows: int = 0,
    measure: Measure = "q_inf",
) -> tuple[Repair | None, str]:
    """The repair that is taken, or None and the reason in a sentence."""
    if choose is not None:
        named = next((r for r in repairs if r.name == choose), None)
        if named is None:
            raise OptionError(f"there is no repair {choose!r} here; {choose_from(choose, [r.name for r in repairs])}")
        return (
            (None, _why([named], before, budget, rows, measure))
            if costs_count and not named.within_budget
            else (named, "")
        )
    useful = [r for r in repairs if r.plan.lowered(measure) < before.lowered(measure)]
    best = [r for r in useful if r.within_budget and not r.raises and not r.dominated]
    if not best:
        return None, _why(useful, before, budget, rows, measure)

    def order(one: Repair) -> tuple[float, float, float, bool]:
        return _bound(one), one.plan.lowered(measure), cost(before, one.plan), isinstance(one.network, Guard)

    return min(best, key=order), ""


def _bound(repair: Repair) -> float:
    return float("inf") if repair.k_max_proved is None else float(repair.k_max_proved)


def _why(useful: Sequence[Repair], before: Figures, budget: float, rows: int, measure: Measure) -> str:
    k = symbol_of(measure)
    if not useful:
        return f"no repair lowers mean {k} here."
    by = quality(regression=before.balanced_accuracy is None)
    kept = [r for r in useful if r.within_budget and r.raises]
    rest = [r for r in useful if not r.within_budget]
    nearest = _nearest(rest, before, rows) if rest else ""
    more = "give more rows that the model has not seen"
    if kept:
        lowest = min(kept, key=lambda r: r.plan.lowered(measure))
        what = "raise mean k of rows" if before.id_rate_rows is None else "make more people flip"
        others = f"; of the others, {nearest}; {more}," if nearest else ";"
        return (
            f"the only repairs that keep {by} {what}: {lowest.name}, the one with the lowest mean {k}, has "
            f"{lowest.raises}{others} raise --max-accuracy-loss, or take one with --choose."
        )
    return f"no repair keeps {by} within a loss of {budget:g}: {nearest}; raise --max-accuracy-loss, or {more}."


def _nearest(repairs: Sequence[Repair], before: Figures, rows: int) -> str:
    """The repair that comes nearest to the budget, and the margin that so many rows leave it."""

    def upper(one: Repair) -> float:
        balanced = one.balanced_loss_upper
        return one.loss_upper if balanced is None else max(one.loss_upper, balanced / BALANCED_FACTOR)

    cheapest = min(repairs, key=upper)
    loss = cost(before, cheapest.plan)
    return (
        f"the cheapest, {cheapest.name}, {'gains' if loss < 0 else 'loses'} {abs(loss):.4f} on the {rows:,} rows that "
        f"were looked at, and may lose up to {upper(cheapest):.4f}"
    )
