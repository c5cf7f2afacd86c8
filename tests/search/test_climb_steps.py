"""Each step of `climb`, on a planted model where that step alone decides what happens."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fairbits.errors import OptionError
from fairbits.search import Budget, Settings, search_subject
from fairbits.search.settings import fitted, problem_of
from fairbits.search.strategies.climb import FLIP, LOOKERS, ROOM, Climb, Members, height, look_around
from fairbits.search.strategy import people_in

from .planted import planted_subject
from .steps import Remembering, by_twin, plant


def members_of(oracle: Remembering, rows: np.ndarray) -> tuple[Members, np.ndarray]:
    numbers, figures = oracle.open_seeds(rows)
    return Members(oracle, oracle.problem.rows[rows].copy(), figures), numbers


# What is climbed


def test_a_class_more_is_worth_more_than_any_span_and_bits() -> None:
    """k of 2 with everything between two values of k against k of 3 with next to nothing of it."""
    oracle = plant(
        lambda t: np.where(t["a"] == 0, by_twin(t, 0.51, 0.51, 0.99, 0.99), by_twin(t, 0.51, 0.51, 0.54, 0.57)),
        twins=4,
        rows=[[0], [1]],
        a=1,
    )
    low, high = height(oracle.again(oracle.problem.rows))
    assert 2 < low < 3 <= high < 4


def test_between_two_values_of_k_span_and_bits_decide() -> None:
    oracle = plant(
        lambda t: np.choose(
            t["a"].astype(int),
            [by_twin(t, 0.1, 0.1, 0.1, 0.3), by_twin(t, 0.1, 0.1, 0.1, 0.4), by_twin(t, 0.1, 0.1, 0.3, 0.3)],
        ),
        twins=4,
        rows=[[0], [1], [2]],
        a=2,
    )
    plain, wider, evener = height(oracle.again(oracle.problem.rows))
    assert plain < wider
    assert plain < evener


def test_decisions_that_differ_have_a_bonus_that_grows_with_the_room() -> None:
    oracle = plant(
        lambda t: np.choose(t["a"].astype(int), [by_twin(t, 0.1, 0.4), by_twin(t, 0.35, 0.65), by_twin(t, 0.45, 0.75)]),
        rows=[[0], [1], [2]],
        a=2,
    )
    agreed, middle, edge = height(oracle.again(oracle.problem.rows))
    assert middle - agreed == pytest.approx(FLIP + ROOM * 0.15, abs=1e-5)
    assert middle - edge == pytest.approx(ROOM * 0.1, abs=1e-5)


def climbing(score, *, temperature: float = 1.0) -> float:
    """Members on two people, a = 0 and a = 1, from the first: how often the second is proposed."""
    oracle = plant(score, twins=4, rows=[[0]], a=1)
    Climb(seeds=100, generations=30, temperature=temperature).round(oracle, np.random.default_rng(0), 0)
    asked = [people[:, 1] for people in oracle.asked("climb")[:30] if len(people) == 100]
    return float(np.mean([(people == 1).mean() for people in asked[5:]]))


def test_the_bonus_outweighs_a_class() -> None:
    """Decisions differ at a = 0 and k is 2; at a = 1 they agree and k is 4. Members stay at the first."""

    def score(table):
        return np.where(table["a"] == 0, by_twin(table, 0.3, 0.3, 0.3, 0.7), by_twin(table, 0.1, 0.2, 0.3, 0.4))

    assert climbing(score) > 0.8  # the second is proposed to whoever is at the first


def test_changes_are_kept_by_metropolis() -> None:
    """k falls from 3 to 2, and decisions differ in both: about one in e is kept; all would give 0.5, none 1."""

    def score(table):
        return np.where(table["a"] == 0, by_twin(table, 0.3, 0.4, 0.6, 0.6), by_twin(table, 0.3, 0.3, 0.6, 0.6))

    falls = height_fall(score)
    assert climbing(score) == pytest.approx(1 / (1 + np.exp(-falls)), abs=0.05)
    assert climbing(score, temperature=0.25) == pytest.approx(1 / (1 + np.exp(-4 * falls)), abs=0.05)


def height_fall(score) -> float:
    oracle = plant(score, twins=4, rows=[[0], [1]], a=1)
    first, second = height(oracle.again(oracle.problem.rows))
    return float(first - second)


# How members move


def test_members_whose_twins_score_alike_step_to_the_boundary() -> None:
    """Below the threshold up the slope, above it down; about half of them, as far as a small move goes."""
    oracle = plant(
        lambda t: np.where(t["c"] == 0, 0.2, 0.8),
        {"a": 1.0, "b": -2.0},
        rows=[[50, 50, 0], [50, 50, 1]],
        a=99,
        b=99,
        c=1,
    )
    members, _ = members_of(oracle, np.arange(1000) % 2)
    proposed = members.people.copy()
    members.step_to_boundary(proposed, np.random.default_rng(1))
    moved = proposed - members.people
    for side, sign in ((0, 1.0), (1, -1.0)):
        mine = moved[side::2]
        stepped = mine[mine.any(axis=1)]
        assert len(stepped) == pytest.approx(250, abs=40)
        np.testing.assert_array_equal(np.sign(stepped[:, 1:]), np.tile([sign, -sign, 0.0], (len(stepped), 1)))
        assert (np.abs(stepped[:, 1]) == 1).mean() == pytest.approx(0.4, abs=0.1)


def test_members_with_classes_do_not() -> None:
    oracle = plant(lambda t: by_twin(t, 0.1, 0.4), {"a": 1.0}, rows=[[50]], a=99)
    members, _ = members_of(oracle, np.zeros(100, dtype=np.int64))
    proposed = members.people.copy()
    members.step_to_boundary(proposed, np.random.default_rng(1))
    np.testing.assert_array_equal(proposed, members.people)


@pytest.mark.parametrize(("top", "chance"), [(0.4, 0.5), (0.6, 0.03)])
def test_some_mix_with_a_better_member(top: float, chance: float) -> None:
    """One half has many classes and is 40 to 49 everywhere, the other few and 0 to 9: who takes from whom is seen.

    As long as decisions agree, half of the proposals are mixes; where they differ, three in a hundred.
    """
    names = [f"f{i}" for i in range(8)]
    rows = [[5.0] * 8, [45.0] * 8]

    def score(table):
        return np.where(table["f0"] > 20, by_twin(table, 0.1, 0.2, 0.3, top), by_twin(table, 0.1, 0.1, 0.1, top))

    oracle = plant(score, twins=4, rows=rows, **dict.fromkeys(names, 49))
    members, _ = members_of(oracle, np.arange(4000) % 2)
    proposed = members.propose(np.random.default_rng(2))
    worse = proposed[0::2, 1:]
    foreign = (np.abs(worse - 45) < 0.5).sum(axis=1)  # values that only the better half has
    # Of those who mix, ¾ meet a better member, and ⅞ of these take something (a share drawn at random, of eight).
    assert (foreign >= 2).mean() == pytest.approx(chance * 0.75 * 0.78, abs=0.04 if chance > 0.1 else 0.012)
    better = proposed[1::2, 1:]
    from_worse = ((np.abs(better - 5) < 0.5).sum(axis=1) >= 2).mean()
    assert from_worse == pytest.approx(chance * 0.25 * 0.78, abs=0.04 if chance > 0.1 else 0.012)


def test_the_best_members_look_at_all_their_neighbours() -> None:
    """Three members have classes, and b = 7 gives them a wider span; a fourth looker is the first of the others, who
    finds classes by one change of a. Nobody else looks.
    """

    def score(table):
        return 0.1 + 0.03 * table["z"] * (table["a"] >= 5) + 0.03 * (table["z"] == 3) * (table["b"] == 7)

    oracle = plant(score, twins=4, rows=[[a, 0] for a in range(8)], a=9, b=9)
    members, numbers = members_of(oracle, np.arange(8))
    looked: set[bytes] = set()
    before = members.heights.copy()
    look_around(oracle, members, numbers, looked)
    neighbours = oracle.asked("climb")[0]
    assert len(neighbours) == (9 + 9) * LOOKERS
    assert len(looked) == LOOKERS
    np.testing.assert_array_equal(np.flatnonzero(members.heights > before), [0, 5, 6, 7])
    assert (members.people[5:, 2] == 7).all()
    look_around(oracle, members, numbers, looked)  # those who moved look from where they are now
    assert len(looked) > LOOKERS


def test_members_of_one_seed_start_from_it_and_count_for_it() -> None:
    oracle = plant(lambda t: by_twin(t, 0.1, 0.3) + 0 * t["a"], rows=[[3, 3], [8, 8]], a=9, b=9)
    Climb(seeds=2, chains=3, generations=1).round(oracle, np.random.default_rng(0), 0)
    assert [len(people) for people in oracle.asked("seed")] == [2]
    assert [len(people) for people in oracle.asked("climb")] == [6]
    oracle.close_round(finished=True)
    assert oracle.tally.seeds == 2
    assert oracle.tally.evaluations == 8


# How many there are


@pytest.mark.parametrize(
    ("budget", "m", "native", "expected"),
    [
        (Budget(seconds=5), 16, True, (256, 8)),
        (Budget(seconds=60), 16, True, (512, 4)),
        (Budget(seconds=60), 90, True, (512, 4)),
        (Budget(seconds=60), 12, False, (512, 4)),
        (Budget(seconds=5), 12, False, (64, 8)),
        (Budget(evaluations=250_000), 16, True, (64, 15)),
        (Budget(evaluations=10_000_000), 400, True, (512, 2)),
        (Budget(evaluations=10_000), 2, True, (64, 4)),
        (Budget(evaluations=100), 2, True, (64, 1)),
        (Budget(seconds=3600, evaluations=20_000), 2, True, (64, 8)),
        (Budget(seconds=1), 16, True, (64, 9)),
        (Budget(queries=16_000_000), 16, True, (256, 8)),
    ],
)
def test_seeds_and_chains_follow_from_the_budget(budget: Budget, m: int, native: bool, expected: tuple) -> None:
    options = Climb.fitted({}, people=people_in(budget, m=m, native=native), m=m)
    assert (options["seeds"], options["chains"]) == expected


def test_options_that_are_given_stay() -> None:
    people = 1_000_000
    assert Climb.fitted({"seeds": 1000}, people=people, m=2) == {"seeds": 1000, "chains": 1}
    assert Climb.fitted({"chains": 3}, people=people, m=2) == {"seeds": 256, "chains": 3}
    assert Climb.fitted({"generations": 7}, people=people, m=2)["generations"] == 7
    with pytest.raises(OptionError, match="chains is 0; it must be 1 or more"):
        Climb(chains=0)


def test_run_json_keeps_what_was_fitted_and_makes_the_same_run(tmp_path) -> None:
    """A run that the clock ended is made again by its evaluations and the options that it kept."""
    subject, ticks = planted_subject(), iter(range(10**9))
    timed = search_subject(
        subject, Settings(budget=Budget(seconds=50.0), seed=3), tmp_path / "timed", clock=lambda: float(next(ticks))
    )
    options = json.loads((tmp_path / "timed" / "run.json").read_text())["options"]
    assert options == {"seeds": 512, "chains": 4}
    again = search_subject(
        subject,
        Settings(budget=Budget(evaluations=timed.summary["evaluations"]), options=options, seed=3),
        tmp_path / "again",
    )
    one, other = (np.concatenate(list(run.codes())) for run in (timed, again))
    np.testing.assert_array_equal(one, other)


def test_a_run_that_goes_on_keeps_its_population(tmp_path) -> None:
    """A longer budget alone would have more seeds; what was begun with 64 goes on with 64."""
    subject, settings = planted_subject(), Settings(budget=Budget(evaluations=3_000))
    begun = search_subject(subject, settings, tmp_path / "run")
    assert begun.manifest["options"] == {"seeds": 64, "chains": 1}
    longer = replace(settings, budget=Budget(evaluations=300_000, cases=len(begun) + 50))
    assert Climb.fitted({}, people=300_000, m=6)["seeds"] > 64
    problem, _ = problem_of(subject, longer)
    assert fitted(longer, problem, Budget(evaluations=300_000), begun)[0].options == {"seeds": 64, "chains": 1}
    assert fitted(longer, problem, Budget(evaluations=300_000))[0].options["seeds"] > 64
    gone_on = search_subject(subject, longer, tmp_path / "run", resume=True)
    assert gone_on.manifest["options"] == {"seeds": 64, "chains": 1}
    assert len(gone_on) >= len(begun)
    with pytest.raises(OptionError, match="seeds"):
        search_subject(subject, replace(longer, options={"seeds": 65}), tmp_path / "run", resume=True)


# Who is asked about again


def test_somebody_met_again_is_counted_but_the_model_is_not_asked(monkeypatch) -> None:
    oracle = plant(lambda t: by_twin(t, 0.1, 0.2) + 0.1 * t["a"], rows=[[0], [1], [2], [1]], a=2)
    asked = []
    evaluate = oracle.evaluator.evaluate
    monkeypatch.setattr(oracle.evaluator, "evaluate", lambda people: [asked.append(len(people)), evaluate(people)][1])
    people = oracle.problem.rows
    expected = evaluate(people)
    for some, fresh in (([0, 1], 2), ([1, 2, 3], 1), ([0, 1, 2], None)):
        before = len(asked)
        found = oracle.ask(people[some], origin="climb")
        assert asked[before:] == ([] if fresh is None else [fresh])
        assert found.high.tolist() == expected.high[some].tolist()
    assert oracle.tally.evaluations == 8
    assert oracle.tally.cases == 3
    oracle.close_round(finished=True)
    oracle.ask(people, origin="climb")
    assert asked[-1] == 4  # every round begins with an empty memory, so that it can be repeated
