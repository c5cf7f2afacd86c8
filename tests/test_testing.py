"""The checks for extenders: they pass what keeps the rules, and name the rule that something breaks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import fairbits
from fairbits.errors import OptionError
from fairbits.repair import Planner, Proposal
from fairbits.search import STRATEGIES, Oracle, Strategy
from fairbits.testing import ConformanceError, check_model, check_repair, check_strategy, small_subject

SCHEMA = fairbits.Schema(
    (
        fairbits.Category(name="sex", labels=("F", "M"), protected=True),
        fairbits.Integer(name="age", low=18, high=90),
        fairbits.Real(name="income", high=9.0),
    ),
    target="hired",
    classes=("no", "yes"),
)
ROWS = np.array([[0, 30, 1.5], [1, 60, 2.5], [0, 18, 8.0], [1, 90, 0.0]])


def linear(rows) -> np.ndarray:
    return 0.1 + 0.005 * rows["age"] + 0.03 * rows["income"] + 0.1 * (rows["sex"] == "M")


def test_models_that_keep_the_rules() -> None:
    assert check_model(linear, SCHEMA, ROWS) == ("shape", "range", "input", "repeat", "batch", "twins")
    subject = small_subject()
    done = check_model(subject.model, subject.schema, subject.table.codes[:8])
    assert {"gradients", "interventions"} <= set(done)


class Counting:
    """Answers that depend on how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, rows) -> np.ndarray:
        self.calls += 1
        return np.full(len(rows), 0.5) + 0.001 * self.calls


def beside(rows) -> np.ndarray:
    return linear(rows) + 0.001 * rows["age"].mean()


@pytest.mark.parametrize(("model", "rule"), [(Counting(), "repeat"), (beside, "batch")])
def test_models_that_break_a_rule(model, rule) -> None:
    with pytest.raises(ConformanceError, match=rf"^{rule}: "):
        check_model(model, SCHEMA, ROWS)


class WrongSlopes:
    """A linear model whose slopes point elsewhere."""

    inputs = 3

    def scores(self, inputs) -> np.ndarray:
        return (0.1 + np.asarray(inputs, np.float32) @ np.array([0.1, 0.005, 0.03], np.float32)).astype(np.float32)

    def gradients(self, inputs, *, of="margin") -> np.ndarray:
        return np.full(np.shape(inputs), -1.0, np.float32)


def test_slopes_that_are_none() -> None:
    with pytest.raises(ConformanceError, match="slopes miss differences"):
        check_model(WrongSlopes(), SCHEMA, ROWS)


@dataclass(frozen=True)
class Corners(Strategy):
    """Asks about people at random, all of them at the ends of their domains."""

    count: int = 50

    name: ClassVar[str] = "corners"

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:
        problem = oracle.problem
        rows = problem.pick_rows(rng, self.count)
        seeds, _ = oracle.open_seeds(rows)
        people = problem.rows[rows].copy()
        people[:, problem.free] = np.where(rng.random((self.count, len(problem.free))) < 0.5, problem.low, problem.high)
        people = problem.limit(people, problem.rows[rows], rng, current=problem.rows[rows])
        oracle.ask(people, seeds=seeds, origin="global")


class Forgetful(Corners):
    """Its rounds share a number that no generator gave."""

    name: ClassVar[str] = "forgetful"

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:
        super().round(oracle, np.random.default_rng(), number)


class Outside(Corners):
    name: ClassVar[str] = "lazy"

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:
        people = oracle.problem.rows[:10].copy()
        people[:, oracle.problem.free[0]] = 12 + number
        oracle.ask(people, origin="global")


def test_a_strategy_of_ones_own() -> None:
    assert check_strategy(Corners(), evaluations=300) == ("budget", "seed", "resume", "within", "domain")


@pytest.mark.parametrize("name", ["climb", "random"])
def test_our_own_strategies_keep_the_rules(name) -> None:
    check_strategy(Renamed(STRATEGIES[name]()), evaluations=400)


class Renamed(Strategy):
    """A built-in strategy under another name, as an object."""

    name: ClassVar[str] = "renamed"

    def __init__(self, inner: Strategy):
        self.inner = inner

    def prepare(self, problem) -> None:
        self.inner.prepare(problem)

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:
        self.inner.round(oracle, rng, number)


def test_strategies_that_break_a_rule() -> None:
    with pytest.raises(ConformanceError, match=r"^seed: the same seed found other people"):
        check_strategy(Forgetful(), evaluations=300)
    with pytest.raises(ConformanceError, match=r"^(domain|within): "):
        check_strategy(Outside(), evaluations=100)


def test_a_strategy_as_an_object(tmp_path) -> None:
    audit = fairbits.Audit.of(small_subject())
    run = audit.search(strategy=Corners(count=20), budget=fairbits.Budget(evaluations=200), out=tmp_path / "own")
    assert (run.manifest["strategy"], run.manifest["options"], run.summary["evaluations"]) == (
        "corners",
        {"count": 20},
        200,
    )
    shared = audit.search(
        strategy=Corners(count=20), budget=fairbits.Budget(evaluations=200), out=tmp_path / "shared", workers=2
    )
    assert shared.summary["evaluations"] == 200
    page = run.report()
    assert "'corners' was an object" in page.read_text().replace("&#39;", "'")
    with pytest.raises(OptionError, match="give a name or an object"):
        audit.search(strategy=3, budget="1s")
    with pytest.raises(OptionError, match="leave them out"):
        audit.search(strategy=Corners(), budget="1s", seeds=3)


class Softer:
    """A model of one's own in place of the network: everybody's score comes closer to one half."""

    name = "softer"

    def propose(self, planner: Planner):
        yield Proposal("softer", "half way to one half", Scored(planner.network))


class Scored:
    """Has what a model needs, and nothing else."""

    def __init__(self, network, score=lambda scores: 0.5 * scores + 0.25, *, inputs=None):
        self.network, self.score = network, score
        self.inputs = network.inputs if inputs is None else inputs

    def scores(self, inputs) -> np.ndarray:
        return self.score(np.asarray(self.network.scores(inputs)))


def proposing(*, model=lambda planner: Scored(planner.network), before=None, name: str = "own"):
    """A repair that does one thing, which may break a rule."""

    class Own:
        def __init__(self) -> None:
            self.name = "own"

        def propose(self, planner: Planner):
            if before is not None:
                before(planner)
            yield Proposal(name, "one's own", model(planner))

    return Own()


def constant(value: float):
    return lambda planner: Scored(planner.network, lambda scores: np.full_like(scores, value))


def drawn(planner: Planner) -> Scored:
    return constant(np.random.default_rng().random())(planner)


def peeking(planner: Planner) -> Scored:
    return constant(float(planner.halves.held_out.labels[:7].mean()))(planner)


def overwrite(planner: Planner) -> None:
    planner.halves.training.rows[:, 1] = 0


def test_repairs_that_keep_the_rules() -> None:
    rules = ("proposal", "original", "evidence", "scores", "seed", "held_out", "judged")
    assert check_repair(Softer(), evaluations=300) == rules


@pytest.mark.parametrize(
    ("repair", "words"),
    [
        (object(), "^proposal: a proposal is a name or an object"),
        (proposing(name=" "), "^proposal: a proposal is called ' '"),
        (proposing(model=lambda _: 3), "^proposal: 'own' proposed a 'int'"),
        (proposing(model=constant(np.nan)), "^scores: of 'own', shape: some scores are not finite"),
        (proposing(model=constant(1.5)), "^scores: of 'own', range: "),
        (proposing(model=lambda p: Scored(p.network, inputs=9)), "^scores: 'own' takes 9 inputs, the people make 5"),
        (proposing(model=drawn), "^seed: the same seed proposed other models"),
        (proposing(model=peeking), "^held_out: other held-out people and labels made other models"),
        (proposing(before=overwrite), "^evidence: proposing wrote into "),
    ],
)
def test_repairs_that_break_a_rule(repair, words) -> None:
    with pytest.raises(ConformanceError, match=words):
        check_repair(repair, evaluations=200)


def test_a_repair_that_changes_the_model_under_repair() -> None:
    subject = small_subject(rows=60)
    model = Scored(subject.model)

    def spoil(_: Planner) -> None:
        model.score = lambda scores: 0.9 * scores

    with pytest.raises(ConformanceError, match=r"^original: proposing changed the scores"):
        check_repair(proposing(before=spoil), subject=replace(subject, model=model), evaluations=200)
