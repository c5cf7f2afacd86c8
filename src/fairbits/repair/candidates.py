"""Candidates for a repair: have them proposed, judge them on both halves of the evidence, say what is proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairbits.domain import Codes
from fairbits.errors import CapabilityError, MissingDependencyError, OptionError, TableError
from fairbits.models import Model
from fairbits.repair.choice import raised, undominated
from fairbits.repair.evidence import Halves, split
from fairbits.repair.judgement import BALANCED_FACTOR, Judged, Setting, answers_of, front, judge, losses
from fairbits.repair.margins import TWO_SIDED
from fairbits.repair.proposals.guard import Guard
from fairbits.repair.proposals.proposer import Planner, Proposal, Proposer
from fairbits.repair.records import Repair
from fairbits.store import Run
from fairbits.subject import Subject

#: Rounding must not make a repair that costs exactly the budget too expensive.
SLACK = 1e-9
#: Standard errors by which a model must do better on its training rows to count as knowing them by heart.
MEMORISED = 1.645
#: Held-out rows, and as many cases, whose scores written files must give back.
COMPARED = 5_000


def memorised(halves: Halves, subject: Subject) -> bool:
    """Whether the model is right more often about its training rows than about others, beyond chance.

    Then the cost of a change on these rows says little: whatever forgets them looks expensive.
    """
    if not halves.evidence.rows_unseen_by_model or subject.schema.regression:
        return False
    halfs = (halves.training, halves.held_out)
    sizes = np.array([len(half.rows) for half in halfs])
    rates = np.array([(answers_of(subject.model, subject, half.rows) == half.labels).mean() for half in halfs])
    spread = np.sqrt((rates * (1 - rates) / sizes).sum())
    return bool(rates[0] - rates[1] > MEMORISED * max(spread, 1e-12))


def divided(run: Run, subject: Subject, splitting: np.random.SeedSequence, *, rows_for_cases: bool = False) -> Halves:
    """The evidence in two halves; where the model knows the plan's rows by heart, the plan gets others."""
    halves = split(run, subject, np.random.default_rng(splitting), rows_for_cases=rows_for_cases)
    if memorised(halves, subject):
        return halves.with_unseen_plan(np.random.default_rng(splitting.spawn(1)[0]))
    return halves


def compared_people(halves: Halves) -> Codes:
    """Held-out rows and cases whose scores written files must give back."""
    return np.concatenate([halves.held_out.rows[:COMPARED], halves.held_out.cases[:COMPARED]])


def proposed(
    planner: Planner, proposers: Sequence[Proposer], wanted: frozenset[str]
) -> tuple[list[tuple[str, Proposal]], tuple[tuple[str, str], ...]]:
    """Everything that proposers have to propose, each with its proposer's name; and who has nothing, with the
    reason.
    """
    found: list[tuple[str, Proposal]] = []
    left_out: list[tuple[str, str]] = []
    for one in proposers:
        mine: list[Proposal] = []
        try:
            for proposal in one.propose(planner):
                _check_proposal(one.name, proposal, [*found, *((one.name, p) for p in mine)])
                mine.append(proposal)
        except (CapabilityError, TableError, MissingDependencyError) as error:
            if one.name in wanted:
                raise
            left_out.append((one.name, str(error)))
        found += [(one.name, proposal) for proposal in mine]
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
) -> list[tuple[Repair, Judged]]:
    """The figures of every proposal on both halves, what is proved of it, and which of them nobody beats.

    Each comes with its judgement on the held-out half.
    """
    repairs, judgements = [], []
    for family, p in proposals:
        about = setting.about(p.fitted)
        plan, held_out = judge(p.network, halves.plan, about), judge(p.network, halves.held_out, about)
        lost, lost_balanced = losses(before[0], plan)
        unseen, _ = losses(before[1], held_out, confidence=TWO_SIDED)
        keeps = lost.upper <= budget + SLACK
        if lost_balanced is not None:
            keeps = keeps and lost_balanced.upper <= BALANCED_FACTOR * budget + SLACK
        alike, apart = _fidelity(p, held_out, halves, setting)
        bound, proof = (1, p.proof) if p.proof else proved(p.network, about)
        repairs.append(
            Repair(
                name=p.name,
                words=p.words,
                network=p.network,
                neurons=p.neurons,
                shrink=p.shrink,
                retrained=p.retrained,
                plan=plan.figures,
                held_out=held_out.figures,
                within_budget=keeps,
                yardstick=p.yardstick,
                k_max_proved=bound,
                proof=proof,
                raises=raised(before[0].figures, plan.figures),
                loss_upper=lost.upper,
                balanced_loss_upper=None if lost_balanced is None else lost_balanced.upper,
                held_out_loss_low=unseen.lower,
                held_out_loss_high=unseen.upper,
                source=p.source,
                family=family,
                coding=p.coding,
                fitted=p.fitted,
                fidelity=alike,
                fidelity_apart=apart,
            )
        )
        judgements.append(held_out)
    lowered = [r.held_out.lowered(setting.measure) for r in repairs]
    points = [
        (r.held_out.accuracy, -low, -(r.held_out.id_rate or 0.0)) for r, low in zip(repairs, lowered, strict=True)
    ]
    repairs = [replace(r, on_front=best) for r, best in zip(repairs, front(points), strict=True)]
    best_ones = undominated(repairs, setting.measure)
    repairs = [replace(r, dominated=not best) for r, best in zip(repairs, best_ones, strict=True)]
    return list(zip(repairs, judgements, strict=True))


def _fidelity(p: Proposal, judged: Judged, halves: Halves, setting: Setting) -> tuple[float | None, float | None]:
    """How close a distilled model keeps to its teacher on held-out rows: decisions alike, and the mean distance."""
    if p.teacher is None:
        return None, None
    subject, rows = setting.subject, halves.held_out.rows
    inputs = subject.encoding.encode(rows)
    scores = [np.asarray(model.scores(inputs), np.float64) for model in (p.network, p.teacher)]
    same = None
    if not subject.schema.regression:
        same = float((judged.answers == answers_of(p.teacher, subject, rows)).mean())
    return same, float(np.abs(scores[0] - scores[1]).mean())


def proved(model: Model, setting: Setting) -> tuple[int | None, str]:
    """The largest number of classes that anybody can have by the way a model is made, and why."""
    if isinstance(model, Guard):
        return model.k_max or None, model.proof
    if setting.evaluator(model).blind:
        return (
            1,
            "Proved for everybody: protected inputs have no weight, so all twins of a person get one score, k = 1.",
        )
    return None, ""
