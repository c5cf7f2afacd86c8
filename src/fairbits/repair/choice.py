"""Which candidate is taken: a rule that a reviewer can follow, on rows and cases that no candidate has seen.

**The budget, in one sentence**: a candidate keeps it if, with 90 % confidence by the rows it is chosen on, accuracy
falls by no more than the budget and balanced accuracy by no more than twice the budget.

Among candidates that lower mean k of cases, make no more people flip, keep the budget and are dominated by no other:
the lowest proved k first, of those the ones under which no decision can flip; where nothing is proved, the lowest mean
k. Equal ones: the smallest loss that these rows cannot rule out, and one score a decision before many. Where a
guarantee is asked for, whoever has such a proof will do, and of those the smallest loss comes first.

Flips count because k does not see them: scores that crowd at both ends have few classes, and more people between them.
Nobody signs a model under which the decision of more real people hangs on who they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairbits.domain import quality
from fairbits.errors import OptionError, choose_from
from fairbits.measure import Measure, symbol_of
from fairbits.repair.judgement import BALANCED_FACTOR, front
from fairbits.repair.margins import Loss
from fairbits.repair.proposals.guard import Guard
from fairbits.repair.records import Figures, RepairCandidate

#: Rounding must not make a candidate that costs exactly the budget too expensive.
SLACK = 1e-9


def keeps_budget(lost: Loss, lost_balanced: Loss | None, budget: float) -> bool:
    """Whether the upper ends of both losses keep to the budget."""
    balanced = 0.0 if lost_balanced is None else lost_balanced.upper
    return lost.upper <= budget + SLACK and balanced <= BALANCED_FACTOR * budget + SLACK


def worst_loss(one: RepairCandidate) -> float:
    """The most of the accuracy budget that a candidate may cost, as far as the rows it is chosen on can tell."""
    balanced = one.balanced_loss_upper
    return one.loss_upper if balanced is None else max(one.loss_upper, balanced / BALANCED_FACTOR)


def undominated(candidates: Sequence[RepairCandidate], measure: Measure = "q_inf") -> list[bool]:
    """Which candidates no other beats on the evidence they are chosen on, in any figure that counts.

    The figures are accuracy, balanced accuracy, mean k, ID rate (of cases and of rows), what is proved, whether the
    budget is kept, and whether no more people flip.
    """
    points = [
        (
            r.plan.accuracy,
            r.plan.balanced_accuracy or 0.0,
            -r.plan.lowered(measure),
            -(r.plan.id_rate or 0.0),
            -(r.plan.id_rate_rows or 0.0),
            *(-rank for rank in _proved(r)),
            float(r.within_budget),
            float(not r.raises),
        )
        for r in candidates
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
    candidates: Sequence[RepairCandidate],
    before: Figures,
    budget: float,
    *,
    choose: str | None = None,
    guarantee: int | None = None,
    rows: int = 0,
    measure: Measure = "q_inf",
) -> tuple[RepairCandidate | None, str]:
    """The candidate that is taken, or None and the reason in a sentence, with what helps."""
    if choose is not None:
        named = next((r for r in candidates if r.name == choose), None)
        if named is None:
            raise OptionError(
                f"there is no repair {choose!r} here; {choose_from(choose, [r.name for r in candidates])}"
            )
        return named, ""
    if guarantee is None:
        useful = [r for r in candidates if r.plan.lowered(measure) < before.lowered(measure)]
    else:
        useful = [r for r in candidates if r.proof is not None and r.proof.bound <= guarantee]
    best = [r for r in useful if r.within_budget and not r.raises and not r.dominated]
    if not best:
        return None, _why(candidates, useful, before, budget, guarantee, rows, measure)

    def order(one: RepairCandidate) -> tuple[float, ...]:
        ranks = (*_proved(one), one.plan.lowered(measure), worst_loss(one), float(isinstance(one.network, Guard)))
        return ranks if guarantee is None else (worst_loss(one), *ranks)

    return min(best, key=order), ""


def _proved(one: RepairCandidate) -> tuple[float, float]:
    """The proved k and whether decisions may flip under it; smaller is better."""
    return (float("inf"), 1.0) if one.proof is None else (float(one.proof.bound), float(one.proof.property != "flips"))


def _why(
    candidates: Sequence[RepairCandidate],
    useful: Sequence[RepairCandidate],
    before: Figures,
    budget: float,
    guarantee: int | None,
    rows: int,
    measure: Measure,
) -> str:
    k, asked = symbol_of(measure), "" if guarantee is None else f" with a proof of k ≤ {guarantee}"
    if not candidates:
        return (
            "nothing could be tried on this model; what was left out is named with its reason, and mitigators or a "
            "proposal of your own may be tried with --with."
        )
    if not useful:
        if guarantee is not None:
            return f"no candidate has a proof of k ≤ {guarantee}; raise --guarantee, or leave it out."
        return (
            f"no candidate lowers mean {k} of the cases that they are chosen on; search longer, try mitigators with "
            f"--with, or take one of the table with --choose."
        )
    by = quality(regression=before.balanced_accuracy is None)
    kept = [r for r in useful if r.within_budget and r.raises]
    rest = [r for r in useful if not r.within_budget]
    nearest = _nearest(rest, budget, rows) if rest else ""
    more = "give more rows that the model has not seen"
    if kept:
        lowest = min(kept, key=lambda r: r.plan.lowered(measure))
        what = "raise mean k of rows" if before.id_rate_rows is None else "make more people flip"
        others = f"; of the others, {nearest}; {more}," if nearest else ";"
        return (
            f"the only repairs{asked} that keep {by} {what}: {lowest.name}, the one with the lowest mean {k}, has "
            f"{lowest.raises}{others} raise --max-accuracy-loss, or take one with --choose."
        )
    return (
        f"no repair{asked} is sure to keep {by} within a loss of {budget:g}: {nearest}; raise --max-accuracy-loss, "
        f"{more}, or take one with --choose."
    )


def _nearest(candidates: Sequence[RepairCandidate], budget: float, rows: int) -> str:
    """The candidate that comes nearest to the budget: what it loses, and what so many rows cannot rule out."""
    nearest = min(candidates, key=worst_loss)
    parts = [("accuracy", nearest.loss, nearest.loss_upper, budget)]
    if nearest.balanced_loss is not None and nearest.balanced_loss_upper is not None:
        parts.append(
            ("balanced accuracy", nearest.balanced_loss, nearest.balanced_loss_upper, BALANCED_FACTOR * budget)
        )
    else:
        parts = [("explained variance", nearest.loss, nearest.loss_upper, budget)]
    name, loss, upper, allowed = max(parts, key=lambda part: part[2] / part[3] if part[3] else part[2])
    return (
        f"{nearest.name}, the nearest, {'gains' if loss < 0 else 'loses'} {100 * abs(loss):.2f} points of {name} on "
        f"the {rows:,} rows that were looked at, and may lose up to {100 * upper:.2f} where {100 * allowed:.2f} are "
        f"allowed"
    )
