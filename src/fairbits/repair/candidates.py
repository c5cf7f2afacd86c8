"""Candidates for a repair: have them proposed, judge them on evidence they have not seen, say what is proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairbits.domain import Codes
from fairbits.errors import CapabilityError, MissingDependencyError, OptionError, TableError
from fairbits.models import Model
from fairbits.repair.choice import keeps_budget, raised, undominated
from fairbits.repair.estimates import estimates_of
from fairbits.repair.evidence import Halves
from fairbits.repair.judgement import Judged, Setting, answers_of, front, judge, losses
from fairbits.repair.margins import TWO_SIDED
from fairbits.repair.proofs import contradicted, established
from fairbits.repair.proposals.proposer import Planner, Proposal, Proposer
from fairbits.repair.records import RepairCandidate

#: Held-out rows, and as many cases, whose scores written files must give back.
COMPARED = 5_000


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
    notes: list[str],
) -> list[tuple[RepairCandidate, Judged]]:
    """Every proposal as a candidate: its figures, what is proved of it, and whether another beats it.

    Each comes with its judgement on the held-out part.
    """
    found = [_judged(family, p, halves, setting, before, budget, notes) for family, p in proposals]
    candidates, judgements = [one for one, _ in found], [judged for _, judged in found]
    shown = front([_objectives(one, setting) for one in candidates])
    best = undominated(candidates, setting.measure)
    candidates = [
        replace(one, on_front=mine, dominated=not free) for one, mine, free in zip(candidates, shown, best, strict=True)
    ]
    return list(zip(candidates, judgements, strict=True))


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
        name=p.name,
        words=p.words,
        network=p.network,
        plan=plan.figures,
        held_out=held_out.figures,
        within_budget=keeps_budget(lost, lost_balanced, budget),
        proof=proof,
        estimates=estimates_of(held_out, setting, proof),
        neurons=p.neurons,
        shrink=p.shrink,
        retrained=p.retrained,
        yardstick=p.yardstick,
        raises=raised(before[0].figures, plan.figures),
        loss=lost.value,
        balanced_loss=None if lost_balanced is None else lost_balanced.value,
        loss_upper=lost.upper,
        balanced_loss_upper=None if lost_balanced is None else lost_balanced.upper,
        held_out_loss_low=unseen.lower,
        held_out_loss_high=unseen.upper,
        family=family,
        coding=p.coding,
        fidelity=alike,
        fidelity_apart=apart,
        source=p.source,
        fitted=p.fitted,
    )
    return candidate, held_out


def _objectives(one: RepairCandidate, setting: Setting) -> tuple[float, ...]:
    """What held-out evidence is compared by; larger is better, and what is not known says nothing for or against."""
    figures = one.held_out
    return (
        figures.accuracy,
        -figures.lowered(setting.measure),
        -(figures.id_rate or 0.0),
        figures.impact_ratio or 0.0,
        -(figures.indirect_bits or 0.0),
    )


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
