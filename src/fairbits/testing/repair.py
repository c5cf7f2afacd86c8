"""Does a repair propose models that can be judged?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits import measure, repair, search
from fairbits import subject as subjects
from fairbits.errors import OptionError
from fairbits.testing.model import TOLERANCE, ConformanceError, expect, score_rules
from fairbits.testing.strategy import small_subject

#: Rows of the small subject: enough for both halves of the evidence.
ROWS = 400
#: People at whom models are compared, and as many made-up ones to whom a proof must apply.
COMPARED = 200
#: The accuracy that may be lost, as ``fairbits repair`` has it by default.
BUDGET = 0.02


def check_repair(
    proposer: repair.Proposer, *, subject: subjects.Subject | None = None, evaluations: int = 500, seed: int = 0
) -> tuple[str, ...]:
    """Check that a repair keeps what judging relies on, and that its models can be judged.

    Rules: every proposal has a name of its own and a model with scores (``proposal``, ``scores``); the model under
    repair and the evidence stay as they are (``original``, ``evidence``); the same seed gives the same models
    (``seed``); nothing is learned from what candidates are chosen and judged on (``held_out``); and all of them go
    through the judgement of ``fairbits repair`` (``judged``).

    Parameters
    ----------
    proposer
        An object with a ``name`` and a ``propose(planner)``.
    subject
        Whose model is repaired, with labels; a small network of ours by default.
    evaluations
        People that the short search asks about whose cases repairs are planned by.
    seed
        Seed of the search, and of the proposals.

    Returns
    -------
    tuple of str
        The rules that were checked.

    Raises
    ------
    ConformanceError
        At the first rule that is broken.
    FairbitsError
        What the repair itself raises, with its reason, where it has nothing to propose for this subject.
    """

    about = subject or small_subject(rows=ROWS)
    try:
        (one,) = repair.proposers_of([proposer])
    except OptionError as error:
        raise ConformanceError(f"proposal: {error}") from None
    with tempfile.TemporaryDirectory() as place:
        run = search.search_subject(
            about,
            search.Settings(budget=search.Budget(evaluations=evaluations), seed=seed, threads=1),
            Path(place) / "run",
        )
        plan = _planner_maker(run, about, seed)
        planner = plan()
        kept = _evidence(planner.halves)
        inputs = about.encoding.encode(_people(about, seed))
        before = np.asarray(about.model.scores(inputs)).copy()
        made = _proposals(one, planner)
        same = np.array_equal(before, np.asarray(about.model.scores(inputs)))
        expect(same, "original", "proposing changed the scores of the model under repair; return a new model")
        for name, was in kept.items():
            same = np.array_equal(was, _evidence(planner.halves)[name])
            expect(same, "evidence", f"proposing wrote into {name} of the evidence; work on a copy")
        scores = [_checked(proposal, about, seed) for proposal in made]
        again = _proposals(one, plan())
        words = "the same seed proposed other models; take every random number from planner.rng(name)"
        expect(_equal(made, scores, again, about, seed), "seed", words)
        blind = _proposals(one, plan(_scrambled))
        words = "other held-out people and labels made other models; learn from halves.training and halves.pool alone"
        expect(_equal(made, scores, blind, about, seed), "held_out", words)
        found = repair.study(run, about, [one], quick=True, rows_for_cases=True, seed=seed, threads=1)
        missing = [proposal.name for proposal in made if all(proposal.name != each.name for each in found.candidates)]
        expect(not missing, "judged", f"{', '.join(missing)} cannot be found among what was judged")
    return ("proposal", "original", "evidence", "scores", "seed", "held_out", "judged")


def _planner_maker(run: Any, subject: subjects.Subject, seed: int) -> Callable[..., repair.Planner]:
    """Makes planners that differ in nothing, each with evidence of its own."""

    def plan(change: Callable[[repair.Halves], repair.Halves] = lambda halves: halves) -> repair.Planner:
        root = np.random.SeedSequence(seed)
        splitting, planning = root.spawn(2)
        halves = change(repair.split(run, subject, np.random.default_rng(splitting), rows_for_cases=True))
        setting = repair.Setting(subject, run.manifest["epsilon"], run.manifest["partition"], threads=1)
        return repair.Planner(subject.model, halves, setting, BUDGET, planning, lambda _: None, quick=True)

    return plan


def _proposals(proposer: repair.Proposer, planner: repair.Planner) -> list[repair.Proposal]:

    try:
        found, _ = repair.proposed(planner, (proposer,), frozenset({proposer.name}))
    except OptionError as error:
        raise ConformanceError(f"proposal: {error}") from None
    made = [proposal for _, proposal in found]
    expect(bool(made), "proposal", f"{proposer.name!r} proposed nothing; raise CapabilityError with the reason")
    for proposal in made:
        named = isinstance(proposal.name, str) and bool(proposal.name.strip()) and isinstance(proposal.words, str)
        expect(named, "proposal", f"a proposal is called {proposal.name!r}; it needs a name and words")
    return made


def _asked(proposal: repair.Proposal, subject: subjects.Subject) -> subjects.Subject:
    """The subject with the proposed model in place of its own."""
    if proposal.fitted is not None:
        return replace(subject, model=proposal.network, encoding=proposal.fitted.encoding)
    return replace(subject, model=proposal.network)


def _checked(proposal: repair.Proposal, subject: subjects.Subject, seed: int) -> npt.NDArray[Any]:
    """Scores of some people, with all that scores have to keep."""
    about = _asked(proposal, subject)
    width = about.encoding.width
    words = f"{proposal.name!r} takes {proposal.network.inputs} inputs, the people make {width}; see Proposal.fitted"
    expect(int(proposal.network.inputs) == width, "scores", words)
    people = _people(subject, seed)
    inputs = about.encoding.encode(people)
    try:
        list(score_rules(about, inputs))
    except ConformanceError as error:
        raise ConformanceError(f"scores: of {proposal.name!r}, {error}") from None
    return np.asarray(about.model.scores(inputs))


def _equal(
    made: Sequence[repair.Proposal],
    scores: Sequence[npt.NDArray[Any]],
    again: Sequence[repair.Proposal],
    subject: subjects.Subject,
    seed: int,
) -> bool:
    if [one.name for one in made] != [one.name for one in again]:
        return False
    people = _people(subject, seed)
    asked = (_asked(one, subject) for one in again)
    found = (np.asarray(about.model.scores(about.encoding.encode(people))) for about in asked)
    return all(np.allclose(was, now, atol=TOLERANCE) for was, now in zip(scores, found, strict=True))


def _people(subject: subjects.Subject, seed: int) -> npt.NDArray[np.float64]:
    """Rows of the table, and people drawn from the whole domain around them."""

    problem = search.Problem(measure.evaluator_of(subject, threads=1), subject.table)
    rows = subject.table.codes[:COMPARED]
    drawn = rows.copy()
    drawn[:, problem.free] = problem.uniform(np.random.default_rng(seed), len(rows))
    return np.concatenate([rows, drawn])


def _evidence(halves: repair.Halves) -> dict[str, npt.NDArray[Any]]:
    """Copies of everything that a proposer can write to."""
    found: dict[str, npt.NDArray[Any]] = {}
    for name in ("plan", "training", "held_out"):
        half = getattr(halves, name)
        found |= {f"{name}.{part}": getattr(half, part).copy() for part in ("cases", "rows", "labels")}
    return found


def _scrambled(halves: repair.Halves) -> repair.Halves:
    """The same evidence, but for whom and what judges."""

    def other(half: repair.Half) -> repair.Half:
        labels = half.labels.max(initial=0.0) + half.labels.min(initial=0.0) - half.labels  # every one another
        return replace(half, cases=half.cases[::-1].copy(), rows=half.rows[::-1].copy(), labels=labels)

    return replace(halves, plan=other(halves.plan), held_out=other(halves.held_out))
