"""Checks for models, strategies and repairs of others: each runs the real thing and names the first broken rule.

For trying them there is a small subject whose worst people are known.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits import domain, measure, models, repair, search, store
from fairbits import subject as subjects
from fairbits.errors import OptionError


class ConformanceError(AssertionError):
    """A rule that the object under test does not keep: the sentence says which, and with what values."""


def expect(holds: bool, rule: str, words: str) -> None:
    """Raise where a rule is broken.

    Parameters
    ----------
    holds
        Whether it is kept.
    rule
        The name of the rule.
    words
        What was found, without a full stop.

    Raises
    ------
    ConformanceError
        If the rule is not kept.
    """
    if not holds:
        raise ConformanceError(f"{rule}: {words}.")


#: Scores that should be equal may differ by float32 rounding.
TOLERANCE = 1e-5
#: The share of a finite difference by which a slope may miss it, in the median over people and inputs.
SLOPE_TOLERANCE = 0.05


def check_model(
    model: Any,
    schema: domain.Schema,
    rows: npt.ArrayLike,
    *,
    encoding: domain.Encoding | None = None,
) -> tuple[str, ...]:
    """Check that a model can be measured and searched.

    Parameters
    ----------
    model
        Anything that ``fairbits.Audit`` takes: an object with ``scores`` or ``predict_proba``, a function, a network.
    schema
        What its people are made of.
    rows
        Some people as codes, one column for each attribute of the schema.
    encoding
        How codes become the model's inputs, where that cannot be guessed.

    Returns
    -------
    tuple of str
        The checks that were made: those on gradients, classes and interventions only where the model offers them.

    Raises
    ------
    ConformanceError
        At the first rule that is broken.
    FairbitsError
        If the model does not fit the schema at all.
    """

    people = np.asarray(rows, dtype=np.float64)
    subject = subjects.make_subject("model under test", model, schema, domain.Table(people), encoding=encoding)
    evaluator = measure.Evaluator(subject.model, subject.schema, encoding=subject.encoding, threads=1)
    inputs = subject.encoding.encode(people)
    done = [*score_rules(subject, inputs)]
    twins = evaluator.scores(people)
    for number, person in enumerate(people):
        alone = np.asarray(subject.model.scores(subject.encoding.encode(evaluator.twins.expand(person[None])[0])))
        same = np.allclose(twins[number, : evaluator.twins.m], alone, atol=TOLERANCE)
        expect(same, "twins", f"the twins of row {number + 1} score otherwise when they are asked about alone")
    done.append("twins")
    if isinstance(subject.model, models.HasClassScores) and len(subject.schema.classes) > 2:
        _classes(subject, inputs)
        done.append("classes")
    if isinstance(subject.model, models.HasGradients):
        _gradients(subject.model, inputs)
        done.append("gradients")
    if isinstance(subject.model, models.HasInterventions):
        _interventions(subject.model, inputs)
        done.append("interventions")
    return tuple(done)


def score_rules(subject: subjects.Subject, inputs: npt.NDArray[Any]) -> Iterator[str]:
    """Check the shape and the range of scores, and that they depend on nothing but the row."""
    model = subject.model
    given = inputs.copy()
    found = np.asarray(model.scores(given))
    expect(found.shape == (len(inputs),), "shape", f"{len(inputs)} rows have scores of shape {found.shape}")
    expect(bool(np.isfinite(found).all()), "shape", f"some scores are not finite: {found[~np.isfinite(found)][:3]}")
    yield "shape"
    if not subject.schema.regression:
        inside = (found >= -TOLERANCE).all() and (found <= 1 + TOLERANCE).all()
        expect(bool(inside), "range", f"scores reach from {found.min():g} to {found.max():g}; they are probabilities")
        yield "range"
    expect(bool((given == inputs).all()), "input", "the model wrote into the rows that it was given")
    yield "input"
    same = np.allclose(found, np.asarray(model.scores(inputs.copy())), atol=TOLERANCE)
    expect(same, "repeat", "the same rows got other scores the second time")
    yield "repeat"
    single = np.concatenate([np.asarray(model.scores(inputs[i : i + 1].copy())) for i in range(len(inputs))])
    expect(np.allclose(found, single, atol=TOLERANCE), "batch", "a row alone scores otherwise than among others")
    yield "batch"


def _classes(subject: subjects.Subject, inputs: npt.NDArray[Any]) -> None:
    found = np.asarray(subject.model.class_scores(inputs))  # type: ignore[attr-defined]  # asked for above
    wanted = (len(inputs), len(subject.schema.classes))
    expect(found.shape == wanted, "classes", f"class scores have shape {found.shape}, not {wanted}")
    expect(np.allclose(found.sum(axis=1), 1, atol=1e-4), "classes", "class scores do not add up to 1")


def _gradients(model: Any, inputs: npt.NDArray[Any]) -> None:
    """Slopes of the score against differences of it: in the median, because a network may bend anywhere."""
    slopes = np.asarray(model.gradients(inputs, of="score"), dtype=np.float64)
    expect(slopes.shape == inputs.shape, "gradients", f"slopes have shape {slopes.shape}, not {inputs.shape}")
    misses = []
    for column in range(inputs.shape[1]):
        step = 1e-2 * max(1.0, float(np.abs(inputs[:, column]).max()))
        ahead, behind = inputs.copy(), inputs.copy()
        ahead[:, column] += step
        behind[:, column] -= step
        rise = (np.asarray(model.scores(ahead), np.float64) - np.asarray(model.scores(behind), np.float64)) / (2 * step)
        misses.append(np.abs(slopes[:, column] - rise) / (np.abs(rise) + TOLERANCE / step))
    middle = float(np.median(np.concatenate(misses)))
    expect(middle <= SLOPE_TOLERANCE, "gradients", f"slopes miss differences of scores by {middle:.0%} in the median")


def _interventions(model: Any, inputs: npt.NDArray[Any]) -> None:

    before = np.asarray(model.scores(inputs))
    other = model.with_interventions([models.Do(0, 0, 0.5)]) is not model
    expect(other, "interventions", "with_interventions changed the model itself; give a new one")
    same = np.array_equal(before, np.asarray(model.scores(inputs)))
    expect(same, "interventions", "holding a neuron in a new model changed the scores of the old one")


def small_subject(*, rows: int = 40, seed: int = 0) -> subjects.Subject:
    """A subject for tests: a small network whose worst people, those with a + b = 18, have six classes.

    Parameters
    ----------
    rows
        How many people its table has, all of them far from the worst.
    seed
        Where they are drawn from.

    Returns
    -------
    Subject
        With protected age (three values) and sex (two).
    """

    schema = domain.Schema(
        (
            domain.Integer(name="age", low=1, high=3, protected=True),
            domain.Integer(name="a", high=9),
            domain.Category(name="sex", labels=("F", "M"), protected=True),
            domain.Integer(name="b", high=9),
            domain.Category(name="c", labels=("x", "y", "z")),
        ),
        target="hired",
        classes=("no", "yes"),
    )
    # relu(2·age + sex + 1.5·(a + b − 18)) is 2·age + sex − 1 steps up for the worst people and 0 for most others.
    first, later = np.array([[2.0], [1.5], [1.0], [1.5], [0.0]]), np.array([[-0.15, 0.15]])
    network = models.Network.build([first, later], [np.array([-27.0]), np.array([0.7, -0.7])])
    rng = np.random.default_rng(seed)
    limits = ((1, 4), (0, 9), (0, 2), (0, 8), (0, 3))
    people = np.column_stack([rng.integers(*ends, rows) for ends in limits]).astype(np.float64)
    return subjects.make_subject("small", network, schema, domain.Table(people, (people[:, 1] > 4).astype(np.float64)))


def check_strategy(
    strategy: search.Strategy, *, subject: subjects.Subject | None = None, evaluations: int = 2_000, seed: int = 0
) -> tuple[str, ...]:
    """Check that a strategy keeps what runs promise: budgets, repeatability, resuming, and people who can exist.

    Parameters
    ----------
    strategy
        An object of a class made from ``fairbits.search.Strategy``.
    subject
        Where it searches; a small network with known worst people by default.
    evaluations
        How many people it may ask about in each of several short searches.
    seed
        The seed of these searches.

    Returns
    -------
    tuple of str
        The checks that were made.

    Raises
    ------
    ConformanceError
        At the first rule that is broken.
    """

    about = subject or small_subject()
    with tempfile.TemporaryDirectory() as place:

        def searched(name: str, count: int, *, within: int | None = None, resume: bool = False) -> store.Run:
            budget = search.Budget(evaluations=count)
            settings = search.Settings(budget=budget, seed=seed, threads=1, within=within).with_strategy(strategy)
            return search.search_subject(about, settings, Path(place) / name, resume=resume)

        one = searched("one", evaluations)
        asked = (one.summary or {})["evaluations"]
        expect(asked <= evaluations, "budget", f"{asked} people were asked about, {evaluations} were allowed")
        if strategy.rounds is None:
            expect(asked == evaluations, "budget", f"it stopped after {asked} of {evaluations} people by itself")
        same = searched("two", evaluations).content(anew=True) == one.content(anew=True)
        expect(same, "seed", "the same seed found other people; take every random number from the generator given")
        searched("half", evaluations // 2)
        same = searched("half", evaluations, resume=True).content(anew=True) == one.content(anew=True)
        expect(same, "resume", "a search that went on found other people; keep nothing from one round for the next")
        near = searched("near", evaluations, within=1)
        figures = near.summary or {}
        far = figures["k_max_within_1"] != figures["k_max"]
        expect(not far or not len(near), "within", "people lie further than within = 1")
        _inside(one, about.schema)
    return ("budget", "seed", "resume", "within", "domain")


def _inside(run: store.Run, schema: domain.Schema) -> None:
    """Everybody kept lies in the domain."""
    for codes in run.codes():
        for attribute, column in zip(schema.attributes, codes.T, strict=True):
            valid = attribute.valid(column)
            wrong: Sequence[float] = column[~valid][:1].tolist()
            expect(bool(valid.all()), "domain", f"{attribute.name} is {wrong} for somebody, outside of its domain")


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
        planner = _planner(run, about, seed)
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
        again = _proposals(one, _planner(run, about, seed))
        words = "the same seed proposed other models; take every random number from planner.rng(name)"
        expect(_equal(made, scores, again, about, seed), "seed", words)
        blind = _proposals(one, _planner(run, about, seed, _scrambled))
        words = "other held-out people and labels made other models; learn from halves.training and halves.pool alone"
        expect(_equal(made, scores, blind, about, seed), "held_out", words)
        found = repair.study(run, about, [one], quick=True, rows_for_cases=True, seed=seed, threads=1)
        missing = [proposal.name for proposal in made if all(proposal.name != each.name for each in found.candidates)]
        expect(not missing, "judged", f"{', '.join(missing)} cannot be found among what was judged")
    return ("proposal", "original", "evidence", "scores", "seed", "held_out", "judged")


def _planner(
    run: store.Run,
    subject: subjects.Subject,
    seed: int,
    change: Callable[[repair.Halves], repair.Halves] = lambda halves: halves,
) -> repair.Planner:
    """A planner with evidence of its own: two of them differ in nothing."""
    splitting, planning = np.random.SeedSequence(seed).spawn(2)
    halves = change(repair.split(run, subject, np.random.default_rng(splitting), rows_for_cases=True))
    setting = repair.Setting(subject, run.manifest["epsilon"], run.manifest["partition"], threads=1)
    return repair.Planner(subject.model, halves, setting, BUDGET, planning, lambda _: None, quick=True)


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
    encoding = subject.encoding if proposal.fitted is None else proposal.fitted.encoding
    return replace(subject, model=proposal.network, encoding=encoding)


def _checked(proposal: repair.Proposal, subject: subjects.Subject, seed: int) -> npt.NDArray[Any]:
    """Scores of some people, with all that scores have to keep."""
    about = _asked(proposal, subject)
    width = about.encoding.width
    words = f"{proposal.name!r} takes {proposal.network.inputs} inputs, the people make {width}; see Proposal.fitted"
    expect(int(proposal.network.inputs) == width, "scores", words)
    inputs = about.encoding.encode(_people(subject, seed))
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
    pairs = itertools.product(("plan", "training", "held_out"), ("cases", "rows", "labels"))
    return {f"{name}.{part}": getattr(getattr(halves, name), part).copy() for name, part in pairs}


def _scrambled(halves: repair.Halves) -> repair.Halves:
    """The same evidence, but for whom and what judges."""

    def other(half: repair.Half) -> repair.Half:
        labels = half.labels.max(initial=0.0) + half.labels.min(initial=0.0) - half.labels  # every one another
        return replace(half, cases=half.cases[::-1].copy(), rows=half.rows[::-1].copy(), labels=labels)

    return replace(halves, plan=other(halves.plan), held_out=other(halves.held_out))
