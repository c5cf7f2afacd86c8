"""What the rivals are made of, piece by piece."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from fairbits.errors import CapabilityError, OptionError
from fairbits.measure import Evaluator
from fairbits.search import STRATEGIES, Budget, Oracle, Problem, Settings, make_strategy, search_subject
from fairbits.search.strategies.adf import biased_neurons, guessed_slopes
from fairbits.search.strategies.aequitas import Aequitas, DirectionGuide
from fairbits.search.strategies.expga import crossed, explain, protected_rank, roulette
from fairbits.search.strategies.sg import constraints
from fairbits.search.strategies.themis import Rates
from fairbits.search.strategies.walks import WalkStep

from ..conftest import random_network, random_people
from .planted import planted_subject
from .test_strategies import SMALL


class Nowhere:
    def append(self, codes, figures, origin) -> None:
        pass


@pytest.fixture
def oracle() -> Oracle:
    subject = planted_subject()
    problem = Problem(Evaluator(subject.model, subject.schema), subject.table)
    return Oracle(problem, Budget(evaluations=10**9), Nowhere())


@pytest.mark.parametrize(
    ("strategy", "options", "words"),
    [
        ("aequitas", {"mode": "sideways"}, "mode 'sideways' is not known; choose from: random, semi, fully"),
        ("aequitas", {"unit": 2.0}, "unit is 2.0; it lies between 0 and 1"),
        ("adf", {"global_moves": 0}, "global_moves is 0"),
        ("eidig", {"momentum": 1.5}, "momentum"),
        ("maft", {"patience": 0}, "patience"),
        ("expga", {"crossover": 7}, "crossover is 7; it lies between 0 and 1"),
        ("grft", {"crowd": 1}, "crowd is 1; it must be 2 or more"),
        ("sg", {"confidence": -1}, "confidence is -1"),
        ("themis", {"least": 10, "most": 5}, "least = 10, most = 5"),
        ("dice", {"feedback": "loud"}, "feedback 'loud' is not known"),
        ("neuronfair", {"layers": 3}, "no option 'layers'"),
        ("dice", {"seeds": 2.5}, "option 'seeds' of strategy 'dice' is 2.5; it takes a whole number"),
        ("dice", {"seeds": True}, "is True; it takes a whole number"),
        ("climb", {"temperature": float("nan")}, "is nan; it takes a number"),
        ("climb", {"temperature": "warm"}, "is 'warm'; it takes a number"),
        ("aequitas", {"mode": 1}, "is 1; it takes a word"),
        ("sg", {"seeds": 0}, "seeds is 0; it must be 1 or more"),
        ("exhaustive", {"distance": 0.5}, "is 0.5; it takes a whole number"),
        ("exhaustive", {"seeds": 5}, "no option 'seeds'"),
    ],
)
def test_options_that_make_no_sense_are_refused(oracle, strategy: str, options: dict, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        make_strategy(strategy, options, oracle.problem)


def test_a_whole_number_may_have_a_point(oracle) -> None:
    assert make_strategy("dice", {"seeds": 3.0}, oracle.problem) == make_strategy("dice", {"seeds": 3}, oracle.problem)


def test_layers_are_asked_for_by_capability(tmp_path) -> None:
    subject = planted_subject()

    class Gradual:
        inputs = 5

        def scores(self, inputs):
            return subject.model.scores(inputs)

        def gradients(self, inputs, *, of="margin"):
            return subject.model.gradients(inputs, of=of)

    with pytest.raises(
        CapabilityError, match=r"'neuronfair' needs gradients of layer outputs.*climb, dice, random, adf"
    ):
        search_subject(
            replace(subject, model=Gradual()),
            Settings(budget=Budget(evaluations=10), strategy="neuronfair"),
            tmp_path / "r",
        )


@pytest.mark.parametrize("strategy", ["climb", "dice", "adf"])
def test_slopes_that_are_no_numbers_lead_nowhere(strategy: str, tmp_path) -> None:
    """Libraries give NaN where a model is saturated; people made from it would not exist."""
    subject = planted_subject()

    class Saturated:
        inputs = 5

        def scores(self, inputs):
            return subject.model.scores(inputs)

        def gradients(self, inputs, *, of="margin"):
            slopes = np.array(subject.model.gradients(inputs, of=of))
            slopes[::2] = np.nan
            slopes[1::4] = np.inf
            return slopes

    settings = Settings(budget=Budget(evaluations=2_000), strategy=strategy, threads=1)
    run = search_subject(replace(subject, model=Saturated()), settings, tmp_path / "r")
    assert run.summary["evaluations"] == 2_000


def test_aequitas_learns_towards_what_gave_a_case() -> None:
    learner = DirectionGuide(3, 2, Aequitas(mode="fully", unit=0.1))
    step = np.array([0, 0, 1]), np.array([-1.0, 1.0, 1.0])
    hit = np.array([True, False, True])
    learner.learn(WalkStep(*step, np.zeros((3, 5)), None, hit, hit))  # type: ignore[arg-type]
    np.testing.assert_allclose(learner._down, [0.7, 0.4])  # down worked, up did not; up worked
    np.testing.assert_allclose(learner._share, [0.5 / 1.1, 0.6 / 1.1])


@pytest.mark.parametrize("mode", ["random", "semi", "fully"])
def test_all_modes_of_aequitas_find_cases(mode: str, tmp_path) -> None:
    options = {"mode": mode, "draws": 50, "local_moves": 30}
    run = search_subject(
        planted_subject(),
        Settings(budget=Budget(evaluations=5_000), strategy="aequitas", options=options),
        tmp_path / "r",
    )
    assert run.summary["id_cases"] > 0
    assert run.summary["local_success_rate"] > 0


def test_guessed_slopes_are_differences_of_scores(oracle) -> None:
    people = oracle.problem.rows[:9]
    figures = oracle.again(people)
    low, high = guessed_slopes(oracle, people, figures)
    for slopes, twins in ((low, figures.low_twin), (high, figures.high_twin)):
        for i, person in enumerate(people):
            for j, column in enumerate(oracle.problem.free):
                step = 1.0 if person[column] < oracle.problem.high[j] else -1.0
                moved = person.copy()
                moved[column] += step
                pair = oracle.evaluator.scores(np.stack([person, moved]))[:, twins[i]].astype(np.float64)
                assert slopes[i, j] == pytest.approx(step * (pair[1] - pair[0]), abs=1e-6)
    assert oracle.tally.queries == 2 * 9 * 3


def test_themis_counts_as_brute_force_does(oracle, rng) -> None:
    """Age matters for a + b = 18; sex as well; each alone less often than both together."""
    problem = oracle.problem
    rates = Rates(oracle)
    people = problem.rows[rng.integers(0, len(problem.rows), 600)].copy()
    people[:, problem.free] = problem.uniform(rng, 600)
    people[:300, [1, 3]] = 9.0
    rates.add(oracle.scores(people), rng)
    found = {tuple(entry["attributes"]): entry for entry in rates.found(threshold=1.0)}
    assert set(found) == {("age",), ("sex",), ("age", "sex")}
    both = oracle.again(people).flips.mean()
    assert found["age", "sex"]["causal"] == pytest.approx(both)
    assert found["sex",]["causal"] < found["age",]["causal"] <= both
    assert len(rates.found(threshold=0.4)) == 2  # age is a hit, and what contains it is not listed


def test_what_themis_found_is_in_the_summary(tmp_path) -> None:
    settings = Settings(budget=Budget(evaluations=60_000), strategy="themis", options={"least": 1_000, "margin": 0.02})
    summary = search_subject(planted_subject(), settings, tmp_path / "r").summary
    truth = 9 / 300  # a + b ≥ 17
    assert summary["findings"]["themis"][-1]["causal"] == pytest.approx(truth, abs=0.02)


def test_negated_constraints_lead_off_the_path(oracle, rng) -> None:
    from sklearn.tree import DecisionTreeClassifier

    problem = oracle.problem
    values = problem.uniform(rng, 400)
    tree = DecisionTreeClassifier(max_depth=5, random_state=0).fit(
        values, (values[:, 0] + values[:, 1] > 9).astype(int)
    )
    leaves = tree.apply(values)
    person, attribute, low, high, _ = constraints(tree, values, problem, whole=True)
    moved = values[person].copy()
    solvable = low <= high
    moved[np.arange(len(person)), attribute] = low
    assert solvable.any()
    assert (tree.apply(moved[solvable]) != leaves[person[solvable]]).all()
    outside = (moved[solvable] < problem.low) | (moved[solvable] > problem.high)
    assert not outside.any()


def test_genes_are_exchanged_not_made(rng) -> None:
    genes = rng.integers(0, 9, (10, 6)).astype(np.float64)
    children = crossed(genes, 1.0, rng)
    for i in range(0, 10, 2):
        np.testing.assert_array_equal(np.sort(children[i : i + 2], axis=0), np.sort(genes[i : i + 2], axis=0))
    np.testing.assert_array_equal(crossed(genes, 0.0, rng), genes)
    drawn = roulette(np.array([True, False, False, False]).repeat(1000), rng)
    assert (drawn < 1000).mean() == pytest.approx(0.5, abs=0.05)


def test_explanations_know_who_is_close_to_the_protected_ones(oracle, rng) -> None:
    """Where the planted neuron is awake, age moves the score; far away nothing does."""
    awake = np.tile([2.0, 9, 0, 9, 1], (20, 1))
    spread, slopes = explain(oracle, awake, 400, rng)
    influence = (np.abs(slopes) * spread).mean(axis=0)
    assert influence[0] > 5 * influence[4]
    assert protected_rank(oracle, awake, 400, rng).max() <= 2


def test_biased_neurons_are_those_that_differ(rng) -> None:
    one = (rng.random((50, 4)), rng.random((50, 6)), rng.random((50, 2)))
    other = (one[0].copy(), one[1].copy(), one[2].copy())
    other[1][:, [1, 3]] += 0.5
    other[1][:, 5] += 0.4
    layer, neurons = biased_neurons(one, other)
    assert layer == 1
    np.testing.assert_array_equal(neurons, [1, 3, 5])


def test_layer_gradients_are_slopes_of_layer_outputs(rng) -> None:
    network = random_network(rng, [5, 7, 4, 2], activation="tanh")
    inputs = rng.normal(size=(6, 5)).astype(np.float32)
    for layer, width in enumerate(network.widths[:-1]):
        weights = rng.normal(size=(6, width)).astype(np.float32)
        found = network.layer_gradients(inputs, layer, weights)
        for j in range(5):
            step = np.zeros(5, np.float32)
            step[j] = 1e-2
            ahead, behind = (network.activations(inputs + sign * step)[layer] for sign in (1, -1))
            np.testing.assert_allclose(found[:, j], ((ahead - behind) * weights).sum(axis=1) / 2e-2, atol=2e-3)
    with pytest.raises(OptionError, match="layer 3 is not in this network"):
        network.layer_gradients(inputs, 3, inputs)


def test_the_score_of_one_twin_is_that_of_all(people_schema, rng) -> None:
    network = random_network(rng, [9, 12, 2])
    people = random_people(rng, people_schema, 30)
    evaluator = Evaluator(network, people_schema)
    twins = rng.integers(0, evaluator.m, 30)
    whole = evaluator.scores(people)[np.arange(30), twins]
    np.testing.assert_allclose(evaluator.scores_at(people, twins), whole, atol=1e-6)

    class Box:
        inputs = 9

        def scores(self, inputs):
            return special.expit(network._margins(network.logits(inputs)))

    np.testing.assert_allclose(Evaluator(Box(), people_schema).scores_at(people, twins), whole, atol=1e-6)


@pytest.mark.parametrize("options", ["default", "small"])
@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_a_budget_of_queries_is_kept(strategy: str, options: str, tmp_path) -> None:
    """To the last question, gradients and explanations among them, and without leaving much of it unused."""
    chosen = SMALL.get(strategy, {}) if options == "small" else {}
    settings = Settings(budget=Budget(queries=20_000), strategy=strategy, options=chosen)
    run = search_subject(planted_subject(), settings, tmp_path / "r")
    assert (0.95 if options == "small" else 0.3) * 20_000 <= run.summary["queries"] <= 20_000
    if options == "small":
        assert run.summary["id_cases"] > 0
