"""Which repair is taken: a rule that a reviewer can follow, on the plan's half of the evidence alone.

Among repairs that lower mean k, keep the budget (with a margin for the number of rows) and are dominated by no other:
the lowest proved k first; where nothing is proved, the lowest mean k. Equal ones: the smaller
cost, and one score a decision before many.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairbits.domain import quality
from fairbits.errors import OptionError, choose_from
from fairbits.repair.judgement import cost, front
from fairbits.repair.proposals.guard import Guard
from fairbits.repair.records import Figures, Repair


def undominated(repairs: Sequence[Repair]) -> list[bool]:
    """Which repairs no other beats on the plan's half of the evidence, in any figure that counts.

    The figures are accuracy, balanced accuracy, mean k, ID rate, proved k, and whether the budget is kept.

    Parameters
    ----------
    repairs
        All repairs.

    Returns
    -------
    list[bool]
        True where no other is better.
    """
    points = [
        (
            r.plan.accuracy,
            r.plan.balanced_accuracy or 0.0,
            -r.plan.k_mean,
            -(r.plan.id_rate or 0.0),
            -float("inf") if r.k_max_proved is None else -float(r.k_max_proved),
            float(r.within_budget),
        )
        for r in repairs
    ]
    return front(points)


def pick(
    repairs: Sequence[Repair],
    before: Figures,
    budget: float,
    *,
    choose: str | None = None,
    costs_count: bool = False,
    rows: int = 0,
) -> tuple[Repair | None, str]:
    """The repair that is taken, or None and the reason in a sentence.

    Parameters
    ----------
    repairs
        All that were judged.
    before
        The model as it is, on the plan's half.
    budget
        The accuracy that may be lost.
    choose
        A name to take.
    costs_count
        Whether a named one must keep the budget too.
    rows
        Rows of the plan, for the reason.
    """
    if choose is not None:
        named = next((r for r in repairs if r.name == choose), None)
        if named is None:
            raise OptionError(f"there is no repair {choose!r} here; {choose_from(choose, [r.name for r in repairs])}")
        return (None, _why([named], before, budget, rows)) if costs_count and not named.within_budget else (named, "")
    useful = [r for r in repairs if r.plan.k_mean < before.k_mean]
    allowed = [r for r in useful if r.within_budget]
    best = [r for r in allowed if not r.dominated]
    if not best:
        return None, _why(useful, before, budget, rows)
    return min(best, key=lambda r: (_bound(r), r.plan.k_mean, cost(before, r.plan), isinstance(r.network, Guard))), ""


def _bound(repair: Repair) -> float:
    return float("inf") if repair.k_max_proved is None else float(repair.k_max_proved)


def _why(useful: Sequence[Repair], before: Figures, budget: float, rows: int) -> str:
    if not useful:
        return "no repair lowers mean k here."
    cheapest = min(useful, key=lambda r: r.loss_upper)
    by = quality(regression=before.balanced_accuracy is None)
    return (
        f"no repair keeps {by} within a loss of {budget:g}: the cheapest, {cheapest.name}, loses "
        f"{cost(before, cheapest.plan):.4f} on the {rows:,} rows that were looked at, and may lose up to "
        f"{cheapest.loss_upper:.4f}; raise --max-accuracy-loss, or give more rows that the model has not seen."
    )
