"""What is proposed, and which candidate is taken: a rule that a reviewer can follow, on evidence that none has seen.

A proposer gets the part of the evidence to learn from, and gives models to be judged. Whoever has a repair of their own
hands over an object with a ``name`` and a ``propose(planner)``.

**The budget, in one sentence**: a candidate keeps it if, with 90 % confidence by the rows it is chosen on, accuracy
falls by no more than the budget and balanced accuracy by no more than twice the budget.

Among candidates that lower mean k of cases, make no more people flip, keep the budget and are dominated by no other:
the lowest proved k first, of those the ones under which no decision can flip; where nothing is proved, the lowest mean
k. Equal ones: the smallest loss that these rows cannot rule out, and one score a decision before many. Where a
guarantee is asked for, whoever has such a proof will do, and of those the smallest loss comes first.

Flips count because k does not see them: scores that crowd at both ends have few classes, and more people between them.
So does the tail: where the worst one in a hundred get further apart, on the rows chosen on or on those judged on, the
candidate is marked and not taken.
Nobody signs a model under which the decision of more real people hangs on who they are.

What is proved about a model for everybody in the domain is told by looking at the model and at nothing that is said of
it. There are three checkers. A guard holds scores near the average over the twins: its arithmetic bounds k. A network,
trees or an encoding that give protected attributes no weight, no split or no input cannot tell twins apart. And neither
can a pipeline whose first step drops the protected columns. A proposal has no way to say that something is proved; and
a bound that nobody could exceed anyway is no promise, so it is none here.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from fairbits.errors import CapabilityError, FairbitsError, MissingDependencyError, OptionError, TableError, choose_from
from fairbits.measure import Estimate, Evaluator, Measure, symbol_of
from fairbits.models import Model, adapt, drops_protected
from fairbits.repair.judgement import (
    BALANCED_FACTOR,
    TWO_SIDED,
    Halves,
    Judged,
    Setting,
    answers_of,
    estimates_of,
    front,
    judge,
    losses,
)
from fairbits.repair.proposals.guard import Guard, proved_classes
from fairbits.repair.records import Figures, Proof, Proposal, RepairCandidate
from fairbits.text import percent, quality

Watch = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Planner:
    """What proposals are made from: one model and the part of the evidence that may be learned from.

    Attributes
    ----------
    network, setting
        The model to be repaired; the subject, and how its twins become classes.
    halves
        ``halves.training`` has the rows to fit to (codes and labels), ``halves.pool`` the found cases. What else is in
        it chooses and judges: whoever learns from that is judged on what it was taught.
    budget, guarantee
        The accuracy that may be lost, as a share, and the number of classes that nobody may exceed, where asked for.
    seed, watch
        Where randomness comes from (``rng`` gives a generator for each purpose), and the progress callback.
    suspect
        The hidden layer that debugging pointed at; None where it pointed at none.
    retrain, quick
        Whether training is wanted; whether what takes long is left out: distilling, sets of neurons, training.
    notes
        What could not be tried, and why; proposers may append to it.
    """

    network: Model
    halves: Halves
    setting: Setting
    budget: float
    seed: np.random.SeedSequence
    watch: Watch
    guarantee: int | None = None
    suspect: int | None = None
    retrain: bool = True
    quick: bool = False
    notes: list[str] = field(default_factory=list)

    def rng(self, name: str) -> np.random.Generator:
        """Randomness of a proposer's own, by what it is for: whoever else proposes changes nothing about it."""
        return self.leaf(zlib.crc32(name.encode()))

    def leaf(self, key: int) -> np.random.Generator:
        """Randomness by a number."""
        return np.random.default_rng(np.random.SeedSequence(self.seed.entropy, spawn_key=(*self.seed.spawn_key, key)))


@runtime_checkable
class Proposer(Protocol):
    """A family of repairs: proposes changed models, each with a name and words."""

    @property
    def name(self) -> str:
        """What ``--with`` and the files call it."""

    def propose(self, planner: Planner) -> Iterable[Proposal]:
        """Models that are worth judging.

        Parameters
        ----------
        planner
            The model, the evidence to learn from and the subject.

        Raises
        ------
        CapabilityError, TableError, MissingDependencyError
            If it has nothing for this model, this table or this installation, with the reason.
        """


#: Rounding must not make a candidate that costs exactly the budget too expensive.
SLACK = 1e-9


def keeps_budget(lost: Estimate, lost_balanced: Estimate | None, budget: float) -> bool:
    """Whether the upper ends of both losses keep to the budget."""
    balanced = 0.0 if lost_balanced is None else lost_balanced.high
    return lost.high <= budget + SLACK and balanced <= BALANCED_FACTOR * budget + SLACK


def worst_loss(one: RepairCandidate) -> float:
    """The most of the accuracy budget that a candidate may cost, as far as the rows it is chosen on can tell."""
    balanced = one.balanced_loss_upper
    return one.loss_upper if balanced is None else max(one.loss_upper, balanced / BALANCED_FACTOR)


def undominated(candidates: Sequence[RepairCandidate], measure: Measure = "q_inf") -> list[bool]:
    """Which candidates no other beats on the evidence they are chosen on, in any figure that counts.

    The figures are accuracy, balanced accuracy, mean k, ID rate (of cases and of rows), what is proved, whether the
    budget is kept, and whether no more people flip.
    """
    return front(
        (
            r.plan.accuracy,
            r.plan.balanced_accuracy or 0.0,
            -r.plan.lowered(measure),
            -(r.plan.id_rate or 0.0),
            -(r.plan.id_rate_rows or 0.0),
            *(-rank for rank in _proved(r)),
            float(r.within_budget),
            float(not r.worse),
        )
        for r in candidates
    )


def raised(before: Figures, after: Figures, epsilon: float) -> str:
    """What there is more of after a repair, in words: people who flip (cases, rows), mean k of rows, or wide gaps."""
    rates = (("cases", before.id_rate, after.id_rate), ("rows", before.id_rate_rows, after.id_rate_rows))
    worse = [
        f"flips of {name} {percent(was)} → {percent(now)}"
        for name, was, now in rates
        if was is not None and now is not None and now > was
    ]
    if after.k_mean_rows > before.k_mean_rows:
        worse.append(f"mean k of rows {before.k_mean_rows:.3g} → {after.k_mean_rows:.3g}")
    return ", ".join([*worse, *worse_tail(before, after, epsilon)])


def worse_tail(before: Figures, after: Figures, epsilon: float) -> list[str]:
    """Whether the worst one in a hundred are further apart, by more than scores that count as the same."""
    if before.gap_tail is None or after.gap_tail is None or after.gap_tail <= before.gap_tail + epsilon:
        return []
    return [f"the gap of the worst 1 % of rows {before.gap_tail:.3g} → {after.gap_tail:.3g}"]


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
    best = [r for r in useful if r.within_budget and not r.worse and not r.dominated]
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
    kept = [r for r in useful if r.within_budget and r.worse]
    rest = [r for r in useful if not r.within_budget]
    nearest = _nearest(rest, budget, rows) if rest else ""
    more = "give more rows that the model has not seen"
    if kept:
        lowest = min(kept, key=lambda r: r.plan.lowered(measure))
        what = "raise mean k of rows" if before.id_rate_rows is None else "make more people flip"
        what = what if lowest.raises.startswith(("flips", "mean")) else "widen the largest gaps between twins"
        others = f"; of the others, {nearest}; {more}," if nearest else ";"
        return (
            f"the only repairs{asked} that keep {by} {what}: {lowest.name}, the one with the lowest mean {k}, has "
            f"{lowest.worse}{others} raise --max-accuracy-loss, or take one with --choose."
        )
    return (
        f"no repair{asked} is sure to keep {by} within a loss of {budget:g}: {nearest}; raise --max-accuracy-loss, "
        f"{more}, or take one with --choose."
    )


def _nearest(candidates: Sequence[RepairCandidate], budget: float, rows: int) -> str:
    """The candidate that comes nearest to the budget: what it loses, and what so many rows cannot rule out."""
    nearest = min(candidates, key=worst_loss)
    loss, upper = nearest.balanced_loss, nearest.balanced_loss_upper
    parts = [("explained variance" if loss is None else "accuracy", nearest.loss, nearest.loss_upper, budget)]
    if loss is not None and upper is not None:
        parts.append(("balanced accuracy", loss, upper, BALANCED_FACTOR * budget))
    name, loss, upper, allowed = max(parts, key=lambda part: part[2] / part[3] if part[3] else part[2])
    return (
        f"{nearest.name}, the nearest, {'gains' if loss < 0 else 'loses'} {100 * abs(loss):.2f} points of {name} on "
        f"the {rows:,} rows it was chosen on, and may lose up to {100 * upper:.2f} where {100 * allowed:.2f} are "
        f"allowed"
    )


#: Rows on which an estimator must score as the model that is judged, for what it shows to count.
LIKE_SOURCE = 200
_ONE_SCORE = "so all twins of a person get one score, k = 1, and no decision depends on a protected value."


def established(model: Model, setting: Setting, *, source: Any = None) -> Proof | None:
    """What holds for everybody by the way a model is made; ``source`` is the estimator that it asks, if it asks one."""
    evaluator = setting.evaluator(model)
    if type(model) is Guard:
        return _of_guard(model, evaluator)
    why = "nothing protected has a weight in it" if evaluator.blind else ""
    if not why and source is not None and _drops_protected(source, model, setting):
        why = "its first step drops the protected columns"
    ours = type(model).__module__.partition(".")[0] == "fairbits"
    return Proof(1, "flips", f"Proved for everybody: {why}, {_ONE_SCORE}") if ours and why else None


def contradicted(proof: Proof, *seen: Figures) -> str:
    """What figures say against a proof, in words; "" where nothing does. It can only be an error of ours."""
    largest = max(k for one in seen for k in (one.k_max, one.k_max_rows))
    flips = max(rate or 0.0 for one in seen for rate in (one.id_rate, one.id_rate_rows))
    if largest > proof.bound:
        return f"somebody has k = {largest}, above the {proof.bound} that was proved"
    if proof.property == "flips" and flips > 0:
        return f"{percent(flips, 2)} of decisions flip, where it was proved that none does"
    return ""


def _of_guard(guard: Guard, evaluator: Evaluator) -> Proof | None:
    if guard.varies or not guard.fits(evaluator):
        return None
    bound = proved_classes(guard.tau, evaluator.epsilon, evaluator.partition, vector=evaluator.by_vector)
    most = round(2**evaluator.bits_limit)  # nobody can have more, guarded or not
    flips = guard.tau == 0
    return Proof(bound, "flips" if flips else "k", guard.proof) if flips or 0 < bound < most else None


def _drops_protected(estimator: Any, model: Model, setting: Setting) -> bool:
    """Whether a fitted estimator drops the protected columns first, and is what the model asks."""
    subject = setting.subject
    if not drops_protected(estimator, subject.schema, subject.options):
        return False
    rows = subject.encoding.encode(subject.table.codes[:LIKE_SOURCE])
    try:
        asked = adapt(estimator, subject.schema, subject.options).model
        return asked.inputs == model.inputs and np.array_equal(asked.scores(rows), model.scores(rows), equal_nan=True)
    except FairbitsError:
        return False


def proposed(
    planner: Planner, proposers: Sequence[Proposer], wanted: frozenset[str]
) -> tuple[list[tuple[str, Proposal]], tuple[tuple[str, str], ...]]:
    """Everything that proposers have to propose, each with its proposer's name; and who has nothing, with the
    reason.
    """
    found: list[tuple[str, Proposal]] = []
    left_out: list[tuple[str, str]] = []
    for one in proposers:
        try:
            for proposal in one.propose(planner):
                _check_proposal(one.name, proposal, found)
                found.append((one.name, proposal))
        except (CapabilityError, TableError, MissingDependencyError) as error:
            if one.name in wanted:
                raise
            left_out.append((one.name, str(error)))
    return found, tuple(left_out)


def _check_proposal(proposer: str, proposal: Any, before: Sequence[tuple[str, Proposal]]) -> None:
    """Refuse what cannot be judged: people may bring proposers of their own."""
    if not isinstance(proposal, Proposal) or not isinstance(proposal.network, Model):
        what = type(proposal.network if isinstance(proposal, Proposal) else proposal).__name__
        raise OptionError(
            f"{proposer!r} proposed a {what!r}; a proposal is a Proposal(name, words, model) whose model has inputs "
            f"and scores."
        )
    if any(proposal.name == other.name for _, other in before):
        raise OptionError(f"{proposer!r} proposed {proposal.name!r}, which there is already; choose another name.")


def judged_all(
    proposals: Sequence[tuple[str, Proposal]],
    halves: Halves,
    setting: Setting,
    before: tuple[Judged, Judged],
    budget: float,
    notes: list[str],
) -> list[tuple[RepairCandidate, Judged]]:
    """Every proposal as a candidate: its figures, what is proved of it, and whether another beats it.

    Each comes with its judgement on the held-out part.
    """
    found = [_judged(family, p, halves, setting, before, budget, notes) for family, p in proposals]
    candidates = [one for one, _ in found]
    shown = front(  # larger is better, and what is not known says nothing for or against
        (
            one.accuracy,
            -one.lowered(setting.measure),
            -(one.id_rate or 0.0),
            one.impact_ratio or 0.0,
            -(one.indirect_bits or 0.0),
        )
        for one in (candidate.held_out for candidate in candidates)
    )
    best = undominated(candidates, setting.measure)
    return [
        (replace(one, on_front=mine, dominated=not free), judged)
        for (one, judged), mine, free in zip(found, shown, best, strict=True)
    ]


def _judged(
    family: str,
    p: Proposal,
    halves: Halves,
    setting: Setting,
    before: tuple[Judged, Judged],
    budget: float,
    notes: list[str],
) -> tuple[RepairCandidate, Judged]:
    about = setting.about(p.fitted)
    plan, held_out = judge(p.network, halves.plan, about), judge(p.network, halves.held_out, about)
    lost, lost_balanced = losses(before[0], plan)
    unseen, _ = losses(before[1], held_out, confidence=TWO_SIDED)
    alike, apart = _fidelity(p, held_out, halves, setting)
    proof = established(p.network, about, source=p.source)
    if proof is not None and (against := contradicted(proof, plan.figures, held_out.figures)):
        notes.append(f"an error inside fairbits: of {p.name}, {against}; the proof is withdrawn. Please report it.")
        proof = None
    candidate = RepairCandidate(
        **{one.name: getattr(p, one.name) for one in fields(Proposal)},
        plan=plan.figures,
        held_out=held_out.figures,
        within_budget=keeps_budget(lost, lost_balanced, budget),
        proof=proof,
        estimates=estimates_of(held_out, setting, proof),
        raises=raised(before[0].figures, plan.figures, setting.epsilon),
        worse_tail=", ".join(worse_tail(before[1].figures, held_out.figures, setting.epsilon)),
        loss=lost.value,
        balanced_loss=None if lost_balanced is None else lost_balanced.value,
        loss_upper=lost.high,
        balanced_loss_upper=None if lost_balanced is None else lost_balanced.high,
        held_out_loss_low=unseen.low,
        held_out_loss_high=unseen.high,
        family=family,
        fidelity=alike,
        fidelity_apart=apart,
    )
    return candidate, held_out


def _fidelity(p: Proposal, judged: Judged, halves: Halves, setting: Setting) -> tuple[float | None, float | None]:
    """How close a distilled model keeps to its teacher on held-out rows: decisions alike, and the mean distance."""
    if p.teacher is None:
        return None, None
    subject, rows = setting.subject, halves.held_out.rows
    inputs = subject.encoding.encode(rows)
    own, taught = (np.asarray(model.scores(inputs), np.float64) for model in (p.network, p.teacher))
    same = None if subject.schema.regression else judged.answers == answers_of(p.teacher, subject, rows)
    return None if same is None else float(same.mean()), float(np.abs(own - taught).mean())
