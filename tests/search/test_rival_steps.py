"""Each step of the rivals, on a planted model where that step alone decides what happens."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits import Network, Table
from fairbits.measure import Evaluator
from fairbits.search import Budget, Problem
from fairbits.search.strategies.adf import (
    Adf,
    BiasedNeurons,
    Maft,
    Momentum,
    SlopeGuide,
    biased_neurons,
    guessed_slopes,
    walk_from_start,
)
from fairbits.search.strategies.aequitas import Aequitas, DirectionGuide
from fairbits.search.strategies.expga import ExpGA, Grft, crossed, fitness, roulette
from fairbits.search.strategies.sg import LOCAL, Queue, Sg, constraints
from fairbits.search.strategies.themis import Rates, Themis
from fairbits.search.strategies.walks import Aimless, Start, WalkStep, approach, walk

from .steps import Remembering, by_twin, plant, schema_of


def start_of(oracle: Remembering, count: int) -> Start:
    people = np.repeat(oracle.problem.rows[:1], count, axis=0)
    return Start(people, people.copy())


def outcome(attribute, sign, hit) -> WalkStep:
    people = np.zeros((len(hit), 1))
    return WalkStep(np.array(attribute), np.array(sign), people, None, np.array(hit), np.array(hit))  # type: ignore[arg-type]


def flips_at(*values: float):
    """Decisions differ where a has one of these values."""
    return lambda t: np.where(np.isin(t["a"], values), by_twin(t, 0.2, 0.8), 0.2)


# The two halves that most of them share


@pytest.mark.parametrize(("forgiveness", "share"), [(np.exp(-1), 0.269), (0.0, 0.0), (1.0, 0.5)])
def test_a_step_that_loses_the_case_is_kept_with_a_chance(forgiveness: float, share: float) -> None:
    """Two people, one of them a case: how often the case is proposed is how often somebody had left it."""
    oracle = plant(flips_at(0), rows=[[0]], a=1)
    walk(oracle, start_of(oracle, 300), Aimless(300, 1), np.random.default_rng(0), steps=60, forgiveness=forgiveness)
    asked = np.concatenate(oracle.asked("local"))
    assert (asked[:, 1] == 0).mean() == pytest.approx(share, abs=0.03)


def test_forgiveness_is_metropolis_unless_said_otherwise() -> None:
    oracle = plant(flips_at(0), rows=[[0]], a=1)
    walk(oracle, start_of(oracle, 300), Aimless(300, 1), np.random.default_rng(0), steps=60)
    assert (np.concatenate(oracle.asked("local"))[:, 1] == 0).mean() == pytest.approx(0.269, abs=0.03)


def test_people_approach_until_decisions_differ_and_no_further() -> None:
    oracle = plant(flips_at(4, 5, 6), rows=[[1], [2], [8], [9]], a=9)
    arrived = approach(
        oracle,
        np.random.default_rng(0),
        seeds=40,
        moves=2,
        direction=lambda people, figures, who: np.where(people[:, 1:] < 5, 1.0, -1.0),
    )
    assert set(arrived.people[:, 1]) == {4, 6}  # from 2 up in two moves, from 8 down in two; 1 and 9 are too far
    assert [len(people) for people in oracle.asked("global")] == [40, 40]


def test_whoever_has_arrived_is_not_moved_or_asked_again() -> None:
    oracle = plant(flips_at(1, 3), rows=[[0]], a=9)
    arrived = approach(
        oracle, np.random.default_rng(0), seeds=5, moves=6, direction=lambda people, *_: np.ones((len(people), 1))
    )
    assert len(oracle.asked("global")) == 1
    assert (arrived.people[:, 1] == 1).all()


# adf


def adf_move(score, slopes, row, **free) -> np.ndarray:
    oracle = plant(score, slopes, rows=[row], **free)
    Adf(seeds=20, global_moves=1, local_moves=0).round(oracle, np.random.default_rng(0), 0)
    return oracle.asked("global")[0][:, 1:]


def test_adf_follows_the_signs_that_both_twins_share_towards_the_other_decision() -> None:
    slopes = {"a": 1.0, "b": lambda t: by_twin(t, 1.0, -1.0), "c": -1.0}
    low = adf_move(lambda t: by_twin(t, 0.1, 0.3), slopes, [5, 5, 5], a=9, b=9, c=9)
    high = adf_move(lambda t: by_twin(t, 0.7, 0.9), slopes, [5, 5, 5], a=9, b=9, c=9)
    assert (low == [6, 5, 4]).all()
    assert (high == [4, 5, 6]).all()


def test_adf_takes_the_two_twins_furthest_apart() -> None:
    """Twins 1 and 2 have the extreme scores; what the others' slopes say does not matter."""
    moved = plant(
        lambda t: by_twin(t, 0.2, 0.1, 0.4, 0.2),
        {"a": lambda t: by_twin(t, -1.0, 1.0, 1.0, -1.0)},
        twins=4,
        rows=[[5]],
        a=9,
    )
    Adf(seeds=20, global_moves=1, local_moves=0).round(moved, np.random.default_rng(0), 0)
    assert (moved.asked("global")[0][:, 1] == 6).all()


def test_adf_walks_along_flat_attributes_and_looks_again_where_it_goes() -> None:
    """Slopes 4 and 1 at the start, the other way round where b has moved."""
    steep = {"a": lambda t: np.where(t["b"] == 5, 2.0, 0.5), "b": lambda t: np.where(t["b"] == 5, 0.5, 2.0)}
    oracle = plant(lambda t: by_twin(t, 0.2, 0.8), steep, rows=[[5, 5]], a=9, b=9)
    people = np.repeat(oracle.problem.rows, 4000, axis=0)
    guide = SlopeGuide(oracle, people, oracle.again(people))
    attribute, sign = guide.choose(np.random.default_rng(1))
    assert attribute.mean() == pytest.approx(0.8, abs=0.03)
    assert sign.mean() == pytest.approx(0.0, abs=0.05)
    moved = people.copy()
    moved[:, 2] = 6
    kept = np.arange(4000) < 2000
    guide.learn(WalkStep(attribute, sign, moved, oracle.again(moved), kept, kept))
    attribute, _ = guide.choose(np.random.default_rng(2))
    assert attribute[:2000].mean() == pytest.approx(0.2, abs=0.03)
    assert attribute[2000:].mean() == pytest.approx(0.8, abs=0.03)


# eidig and maft


def momentum_signs(share: float, first: list[float], second: list[float]) -> np.ndarray:
    """Directions after two looks at the same slopes for both twins."""
    oracle = plant(lambda t: 0.2 + 0 * t["a"], {}, rows=[[5, 5]], a=9, b=9)
    answers = iter([first, second])

    def slopes(_oracle, people, _figures):
        found = np.tile(next(answers), (len(people), 1))
        return found, found.copy()

    momentum = Momentum(oracle, slopes, 3, share)
    people, who = np.repeat(oracle.problem.rows, 3, axis=0), np.arange(3)
    for _ in range(2):
        signs = momentum(people, oracle.again(people), who)
    return signs


def test_eidig_remembers_half_of_the_slopes_before() -> None:
    """−0.4 after 1 is still on the way up, −0.6 is not; without momentum neither would be."""
    assert (momentum_signs(0.5, [1.0, 1.0], [-0.4, -0.6]) == [1, -1]).all()
    assert (momentum_signs(0.0, [1.0, 1.0], [-0.4, -0.6]) == [-1, -1]).all()


def test_eidig_keeps_the_memory_of_each_seed_apart() -> None:
    oracle = plant(lambda t: 0.2 + 0 * t["a"], {}, rows=[[5]], a=9)
    turn = iter([np.array([[1.0], [-1.0]]), np.array([[-0.1]])])

    def slopes(_oracle, _people, _figures):
        found = next(turn)
        return found, found.copy()

    momentum = Momentum(oracle, slopes, 2, 0.5)
    people = np.repeat(oracle.problem.rows, 2, axis=0)
    momentum(people, oracle.again(people), np.array([0, 1]))
    assert momentum(people[:1], oracle.again(people[:1]), np.array([1])).item() == -1  # −0.5 − 0.1
    assert momentum._low[0].item() == 1.0


def test_eidig_and_maft_turn_round_above_the_threshold() -> None:
    for score, expected in ((0.2, 6), (0.8, 4)):
        oracle = plant(lambda t, s=score: s + 0.01 * t["a"], rows=[[5]], a=9)
        Maft(seeds=10, global_moves=1, local_moves=0).round(oracle, np.random.default_rng(0), 0)
        assert (oracle.asked("global")[0][:, 1] == expected).all()


def test_eidig_goes_back_to_the_start_after_a_failure() -> None:
    """Cases at 4 and 5, start at 5: after a failure at 3 or 6, the next step is from 5 again."""
    oracle = plant(flips_at(4, 5), rows=[[5]], a=9)
    ones = lambda _oracle, people, _figures: (np.ones((len(people), 1)),) * 2  # noqa: E731
    walk_from_start(oracle, start_of(oracle, 200), np.random.default_rng(0), ones, steps=20, patience=5)
    asked = np.stack([people[:, 1] for people in oracle.asked("local")])
    assert set(asked.ravel()) == {3, 4, 5, 6}
    failed = ~np.isin(asked[:-1], (4, 5))
    assert np.isin(asked[1:][failed], (4, 6)).all()
    assert set(asked[1:][asked[:-1] == 4]) == {3, 5}  # a success is gone on from


def test_eidig_looks_at_slopes_again_after_some_successes_and_forgets_them_after_a_failure() -> None:
    calls: list[np.ndarray] = []

    def slopes(_oracle, people, _figures):
        calls.append(people[:, 1].copy())
        flat = np.where(people[:, 1:2] > 20, 1.0, 100.0)  # at the start: a is steep, so b moves
        return np.hstack([flat, 101.0 - flat]), np.zeros((len(people), 2))

    oracle = plant(lambda t: by_twin(t, 0.2, 0.8), rows=[[20, 50]], a=99, b=99)
    walk_from_start(oracle, start_of(oracle, 7), np.random.default_rng(0), slopes, steps=6, patience=3)
    assert [len(call) for call in calls] == [7, 0, 0, 7, 0, 0, 7]

    # Now b = 50 ± 1 are cases and nothing else: the third step in a row from 50 fails, or an earlier one does.
    calls.clear()
    oracle = plant(lambda t: np.where(np.abs(t["b"] - 50) <= 1, by_twin(t, 0.2, 0.8), 0.2), rows=[[20, 50]], a=99, b=99)
    walk_from_start(oracle, start_of(oracle, 400), np.random.default_rng(0), slopes, steps=3, patience=2)
    first, second, third = (people[:, 2] - 50 for people in oracle.asked("local"))
    assert (np.abs(first) == 1).mean() > 0.95
    twice = (np.abs(first) <= 1) & (np.abs(second) <= 1)
    assert sum(map(len, calls[1:3])) == twice.sum()  # two successes in a row, and only these
    assert third.size == 400


def test_eidig_has_the_slopes_of_the_start_again_after_a_failure() -> None:
    """From b = 50 it is b that moves, a success; from there it is a, a failure; then from the start b again."""

    def slopes(_oracle, people, _figures):
        at_start = people[:, 2:3] == 50
        steep = np.where(at_start, [[1e6, 1.0]], [[1.0, 1e6]])
        return steep, np.zeros_like(steep)

    near = lambda t: (np.abs(t["b"] - 50) <= 1) & (t["a"] == 20)  # noqa: E731
    oracle = plant(lambda t: np.where(near(t), by_twin(t, 0.2, 0.8), 0.2), rows=[[20, 50]], a=99, b=99)
    walk_from_start(oracle, start_of(oracle, 50), np.random.default_rng(0), slopes, steps=3, patience=1)
    moved = [(people[:, 1:] != [20, 50]).tolist() for people in oracle.asked("local")]
    assert moved == [[[False, True]] * 50, [[True, True]] * 50, [[False, True]] * 50]


def test_maft_looks_back_at_the_upper_bound() -> None:
    """The neighbour is the one below there, and the slope of a rising score is positive all the same."""
    oracle = plant(lambda t: 0.2 + 0.01 * t["a"] + 0.1 * t["z"], rows=[[9], [4]], a=9)
    people = oracle.problem.rows
    for slopes in guessed_slopes(oracle, people, oracle.again(people)):
        np.testing.assert_allclose(slopes, 0.01, atol=1e-6)


def test_eidig_starts_counting_again_after_a_failure() -> None:
    """One success, one failure, one success: not two in a row, whatever the patience of two says."""
    calls: list[int] = []

    def slopes(_oracle, people, _figures):
        calls.append(len(people))
        return np.ones((len(people), 1)), np.ones((len(people), 1))

    oracle = plant(flips_at(0, 2, 3), rows=[[3]], a=3)  # from 3 only 2, from 2 to 1 (a failure) or 3
    walk_from_start(oracle, start_of(oracle, 300), np.random.default_rng(0), slopes, steps=3, patience=2)
    asked = np.stack([people[:, 1] for people in oracle.asked("local")])
    hit = np.isin(asked, (0, 2, 3))
    assert calls == [300, 0, (hit[0] & hit[1]).sum(), (hit[1] & hit[2] & ~(hit[0] & hit[1])).sum()]


# aequitas


def test_aequitas_learns_directions_always_and_attributes_when_fully_directed() -> None:
    for mode, shares in (("semi", [0.5, 0.5]), ("fully", [0.6 / 1.0, 0.4 / 1.0])):
        learner = DirectionGuide(2, 2, Aequitas(mode=mode, unit=0.1))
        learner.learn(outcome([0, 1], [-1.0, 1.0], [True, False]))
        np.testing.assert_allclose(learner._down, [0.6, 0.6])
        np.testing.assert_allclose(learner._share, shares)


def test_aequitas_steps_as_it_has_learned() -> None:
    learner = DirectionGuide(4000, 2, Aequitas())
    learner._down, learner._share = np.array([1.0, 0.25]), np.array([0.2, 0.8])
    attribute, sign = learner.choose(np.random.default_rng(0))
    assert attribute.mean() == pytest.approx(0.8, abs=0.03)
    assert (sign[attribute == 0] == -1).all()
    assert (sign[attribute == 1] == -1).mean() == pytest.approx(0.25, abs=0.03)


def test_probabilities_of_aequitas_stay_probabilities() -> None:
    learner = DirectionGuide(30, 2, Aequitas(unit=0.1))
    learner.learn(outcome([0] * 30, [-1.0] * 30, [False] * 30))
    np.testing.assert_allclose(learner._down, [0.0, 0.5])
    np.testing.assert_allclose(learner._share, [0.0, 1.0])


def test_aequitas_walks_from_its_cases_only() -> None:
    oracle = plant(flips_at(7), rows=[[0]], a=9)
    Aequitas(mode="random", draws=100, local_moves=1).round(oracle, np.random.default_rng(0), 0)
    assert set(np.concatenate(oracle.asked("local"))[:, 1]) == {6, 8}
    assert len(oracle.asked("global")) == 3  # about ten of a hundred: until there are a quarter of a batch


# sg


def tree_of(values: np.ndarray, labels: np.ndarray):
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(random_state=0).fit(values, labels)


def test_sg_negates_one_constraint_and_honours_the_others() -> None:
    """The path of (2, 8): a ≤ 4.5, then b > 6.5, over a tree that is known."""
    problem = plant(lambda t: 0.2 + 0 * t["a"], rows=[[0, 0]], a=9, b=9).problem
    grid = np.array([[a, b] for a in range(10) for b in range(10)], dtype=float)
    tree = tree_of(grid, ((grid[:, 0] > 4) | (grid[:, 1] > 6)).astype(int))
    top = tree.tree_.feature[0]
    person, attribute, low, high, sure = constraints(tree, np.array([[2.0, 8.0]]), problem, whole=True)
    found = {int(a): (lo, hi) for a, lo, hi in zip(attribute, low, high, strict=True)}
    assert (person == 0).all()
    other = {0: (5.0, 9.0), 1: (0.0, 6.0)}
    assert found.items() <= other.items()
    assert int(top) in found
    root = np.flatnonzero(attribute == top)[0]
    assert sure[root] == pytest.approx(0.65)  # of all hundred, 65 get the decision of (2, 8)


def test_sg_prefixes_leave_later_constraints_alone() -> None:
    """a > 2.5 first and a ≤ 6.5 after it: negated alone, the first gives 0 to 2 and the second 7 to 9."""
    problem = plant(lambda t: 0.2 + 0 * t["a"], rows=[[0]], a=9).problem
    values = np.arange(10.0)[:, None]
    weights = np.where(values[:, 0] < 3, 10.0, 1.0)
    from sklearn.tree import DecisionTreeClassifier

    labels = ((values[:, 0] > 2) & (values[:, 0] < 7)).astype(int)
    tree = DecisionTreeClassifier(random_state=0).fit(values, labels, sample_weight=weights)
    assert tree.tree_.threshold[0] == 2.5
    for whole, expected in ((True, {(0.0, 2.0), (7.0, 9.0)}), (False, {(0.0, 2.0), (7.0, 9.0)})):
        _, _, low, high, _ = constraints(tree, np.array([[4.0]]), problem, whole=whole)
        assert set(zip(low, high, strict=True)) == expected
    # Of the path of 9 (a > 2.5, a > 6.5) the first cannot fail as long as the second holds.
    _, _, low, high, _ = constraints(tree, np.array([[9.0]]), problem, whole=True)
    assert low[0] > high[0]
    assert (low[1], high[1]) == (3.0, 6.0)
    _, _, low, high, _ = constraints(tree, np.array([[9.0]]), problem, whole=False)
    assert (low[0], high[0]) == (0.0, 2.0)
    assert (low[1], high[1]) == (3.0, 6.0)


def test_sg_bends_paths_where_the_tree_is_sure_enough() -> None:
    oracle = plant(lambda t: np.where(t["a"] > 4, 0.8, 0.2), rows=[[2, 2]], a=9, b=9)
    grid = np.array([[a, b] for a in range(10) for b in range(10)], dtype=float)
    tree = tree_of(grid, (grid[:, 0] > 4).astype(int))
    start = start_of(oracle, 50)
    rng = np.random.default_rng(0)
    for confidence, count in ((0.4, 50), (0.6, 0)):  # half of all neighbours are decided as (2, 2) is
        bent, ranks = Sg(confidence=confidence)._bent(oracle, tree, start, rng, local=False)
        assert len(bent) == count
        assert (ranks < LOCAL).all()
    bent, ranks = Sg(confidence=0.6)._bent(oracle, tree, start, rng, local=True)  # cases are bent in any case
    assert set(bent.people[:, 1]) == {5, 6, 7, 8, 9}
    assert (bent.people[:, 2] == 2).all()
    assert (ranks >= LOCAL).all()


def test_sg_takes_the_best_rank_first_and_nobody_twice() -> None:
    problem = plant(lambda t: 0.2 + 0 * t["a"], rows=[[0], [1]], a=9).problem

    def some(*values: float) -> Start:
        people = np.column_stack([np.zeros(len(values)), values])
        return Start(people, people, np.arange(len(values)))

    queue = Queue(some(0, 1), problem)
    queue.add(some(2, 3, 0), np.array([0.4, 0.9, 2.5]))  # 0 is a seed: it was here already
    queue.add(some(4, 3), np.array([2.3, 2.9]))
    taken, ranks = queue.take(2)
    np.testing.assert_array_equal(taken.people[:, 1], [4, 3])
    np.testing.assert_array_equal(ranks, [2.3, 0.9])
    np.testing.assert_array_equal(queue.take(5)[0].people[:, 1], [2])


# expga


def test_expga_starts_where_the_protected_attribute_explains_most() -> None:
    """z matters where a is 5 or more, and nowhere else; b always does."""
    oracle = plant(lambda t: 0.2 + 0.5 * t["z"] * (t["a"] >= 5) + 0.02 * t["b"], rows=[[0, 0]], a=9, b=9)
    ExpGA(crowd=60, generations=1, samples=100).round(oracle, np.random.default_rng(0), 0)
    assert (oracle.asked("global")[0][:, 1] >= 5).mean() > 0.75


def test_parents_are_drawn_by_their_fitness() -> None:
    """Cases have fitness 3 and others 1, wherever they stand in the crowd."""
    hit = np.zeros(3000, dtype=np.bool_)
    hit[2000:] = True
    drawn = roulette(hit, np.random.default_rng(0))
    assert (drawn >= 2000).mean() == pytest.approx(3 / 5, abs=0.03)
    assert len(np.unique(drawn)) > 1000


def test_a_slice_is_exchanged_with_its_chance() -> None:
    genes = np.tile([[0.0] * 6, [1.0] * 6], (3000, 1))
    children = crossed(genes, 0.9, np.random.default_rng(0))
    # Two cuts among seven places: one in seven slices is empty.
    assert (children[0::2] == 1).any(axis=1).mean() == pytest.approx(0.9 * 6 / 7, abs=0.03)
    changes = (np.diff(children[0::2], axis=1) != 0).sum(axis=1)
    assert changes.max() == 2  # one slice, not genes here and there
    np.testing.assert_array_equal(children[0::2] + children[1::2], np.ones((3000, 6)))


@pytest.mark.parametrize(("mutation", "expected"), [(0.0, 0.0), (0.05, 0.05), (1.0, 1.0)])
def test_genes_mutate_with_their_chance(mutation: float, expected: float) -> None:
    """Without crossover a child is its parent, but for genes drawn anew from very many values."""
    oracle = plant(lambda t: 0.2 + 0 * t["a"], rows=[[0] * 5], **dict.fromkeys("abcde", 10**6))
    ExpGA(crowd=300, generations=1, samples=2, crossover=0.0, mutation=mutation).round(
        oracle, np.random.default_rng(0), 0
    )
    parents, children = oracle.asked("global")[0][:, 1:], oracle.asked("local")[0][:, 1:]
    same = (children[:, None, :] == parents[None, :, :]).sum(axis=2).max(axis=1)
    assert 1 - same.mean() / 5 == pytest.approx(expected, abs=0.02)


# neuronfair


def test_neuronfair_compares_layers_by_their_own_size() -> None:
    """The first layer's outputs differ by more, but are a hundred times as large."""
    one = (np.full((5, 2), 100.0), np.full((5, 4), 1.0), np.zeros((5, 1)))
    other = (one[0] + 2.0, one[1] + np.array([0.0, 0.5, 0.1, 0.9]), one[2] + 99.0)
    layer, neurons = biased_neurons(one, other)  # type: ignore[arg-type]
    assert layer == 1  # and not the output either
    np.testing.assert_array_equal(neurons, [1, 3])


def neuron_oracle() -> Remembering:
    """Four neurons. The first wakes for z = 1 only and rises with a, the second for z = 0 only and rises with c."""
    schema = schema_of(2, {"a": 9, "b": 9, "c": 9})
    first = np.array([[4.0, -4.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 0.0]])
    later = np.array([[-0.1, 0.1], [0.1, -0.1], [0.0, 0.0], [0.0, 0.0]])
    network = Network.build([first, later], [np.array([-6.0, -4.0, 0.0, 0.0]), np.zeros(2)])
    rows = np.tile([0.0, 5.0, 5.0, 5.0], (4, 1))
    return Remembering(Problem(Evaluator(network, schema, threads=1), Table(rows)), Budget(evaluations=10**9))


def test_neuronfair_moves_so_that_biased_neurons_part() -> None:
    """a lifts one of the biased neurons for one twin, c the other for the other; b lifts what both twins share."""
    oracle = neuron_oracle()
    people = oracle.problem.rows
    direction = BiasedNeurons(oracle, len(people), np.random.default_rng(0))
    signs = direction(people, oracle.again(people), np.arange(len(people)))
    assert direction._chosen is not None
    assert (direction._chosen[0], direction._chosen[1].tolist()) == (0, [0, 1])
    assert (signs == [1, 0, 1]).all()


def test_neuronfair_kicks_whoever_would_repeat_a_direction() -> None:
    oracle = neuron_oracle()
    people = np.repeat(oracle.problem.rows, 100, axis=0)
    direction = BiasedNeurons(oracle, len(people), np.random.default_rng(0))
    figures, who = oracle.again(people), np.arange(len(people))
    first, second = direction(people, figures, who), direction(people, figures, who)
    differing = (first != second).sum(axis=1)
    assert differing.max() == 1
    assert (differing == 1).mean() == pytest.approx(2 / 3, abs=0.08)  # b always differs, a and c every other time


# grft


def test_grft_breeds_from_the_better_of_two() -> None:
    """In each crowd one member is the fittest: it is a parent of whoever draws it, and of nobody in another crowd."""
    problem = plant(lambda t: 0.2 + 0 * t["a"], rows=[[0]], a=9999).problem
    people = np.column_stack([np.zeros(4000), np.arange(4000.0)])
    heights = np.tile(np.arange(2000.0) / 20, 2)
    _, parents = Grft(crowd=2000)._children(problem, people, heights, np.random.default_rng(0))
    places = parents[:, 1].astype(int)
    assert (places[:2000] < 2000).all()
    assert (places[2000:] >= 2000).all()
    assert heights[places].mean() == pytest.approx(66.7, abs=2)  # the better of two; any one: 50, the worse: 33


def test_fitness_of_grft_sums_all_pairs() -> None:
    scores = np.random.default_rng(0).random((6, 5)).astype(np.float32)
    plain = np.abs(scores[:, :, None] - scores[:, None, :]).sum(axis=(1, 2)) / 2
    np.testing.assert_allclose(fitness(scores), plain, rtol=1e-5)


def test_grft_steps_back_from_whoever_is_no_case() -> None:
    """Cases at 4, 5 and 6 only: nobody further away than 3 and 7 is ever asked about on the walk."""
    oracle = plant(flips_at(4, 5, 6), rows=[[5]], a=9)
    Grft(seeds=2, crowd=10, generations=0, local_moves=40).round(oracle, np.random.default_rng(0), 0)
    assert set(np.concatenate(oracle.asked("local"))[:, 1]) == {3, 4, 5, 6, 7}


def test_a_crowd_of_grft_stops_breeding_at_its_first_case() -> None:
    always = plant(lambda t: by_twin(t, 0.2, 0.8), rows=[[5]], a=9)
    Grft(seeds=2, crowd=10, generations=5, local_moves=0).round(always, np.random.default_rng(0), 0)
    assert len(always.asked("global")) == 1
    never = plant(lambda t: 0.2 + 0 * t["a"], rows=[[5]], a=9)
    Grft(seeds=2, crowd=10, generations=5, local_moves=0).round(never, np.random.default_rng(0), 0)
    assert len(never.asked("global")) == 6


# themis


def test_themis_stops_when_every_rate_is_known_well_enough() -> None:
    """Nobody, or everybody, is known after the least; a rate of a half takes longer; the most ends it."""
    none = plant(lambda t: 0.2 + 0 * t["a"], rows=[[0]], a=9)
    Themis(least=1, most=10**6).round(none, np.random.default_rng(0), 0)
    assert len(none.log) == 1
    half = plant(lambda t: np.where(t["a"] >= 5, by_twin(t, 0.2, 0.8), 0.2), rows=[[0]], a=9)
    Themis(least=1, margin=0.01).round(half, np.random.default_rng(0), 0)
    assert len(half.log) == 3  # 1.96·√(¼/n) < 0.01 from n = 9,604 on, and a batch is 4,096
    Themis(least=1, margin=1e-6, most=5_000).round(half, np.random.default_rng(0), 0)
    assert len(half.log) == 5
    causal = half.findings["themis"][0]
    assert causal["causal"] == pytest.approx(0.5, abs=0.03)
    assert causal["group"] == pytest.approx(0.5, abs=0.03)  # all of one value against half of the other's


def test_the_interval_of_themis_is_that_of_a_proportion() -> None:
    oracle = plant(lambda t: 0.2 + 0 * t["a"], rows=[[0]], a=9)
    rates = Rates(oracle)
    rates.add(np.array([[0.2, 0.8]] * 20 + [[0.2, 0.2]] * 80, dtype=np.float32), np.random.default_rng(0))
    assert rates.widest() == pytest.approx(1.96 * np.sqrt(0.2 * 0.8 / 100))
    found = rates.found(0.2)[0]
    assert (found["causal"], found["group"], found["draws"]) == (pytest.approx(0.2), pytest.approx(0.2), 100)
