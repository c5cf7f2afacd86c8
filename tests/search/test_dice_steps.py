"""Each step of Algorithm 1, on a planted model where that step alone decides what happens."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits import Attribute
from fairbits.search.strategies.dice import Dice, agreed, draw, grew, hop_plan, inverse, loss_slopes, two_of_largest
from fairbits.search.strategies.walks import Start
from fairbits.search.strategy import metropolis

from .steps import Remembering, by_twin, plant

#: Everybody's twins score the same, unfavourably: one class, nothing to widen.
FLAT = 0.2


def moves_of(oracle: Remembering, seeds: int = 40, **options) -> np.ndarray:
    """Where one global move leads from the only row there is."""
    Dice(seeds=seeds, global_moves=2, **options).round(oracle, np.random.default_rng(1), 0)
    return oracle.asked("global")[0][:, 1:]


# The seed


def test_seeds_come_from_each_of_four_clusters_in_turn() -> None:
    """97 rows lie in one corner of b and c, one in each of the others; a varies, but little for its range."""
    rng = np.random.default_rng(0)
    corners = np.array([[0, 0]] * 97 + [[0, 1], [1, 0], [1, 1]])
    rows = np.column_stack([rng.integers(450, 550, 100), corners]).tolist()
    problem = plant(lambda t: FLAT + 0 * t["a"], rows=rows, a=1000, b=1, c=1).problem
    assert sorted(map(len, problem.partitions)) == [1, 1, 1, 97]
    picked = problem.pick_rows(np.random.default_rng(2), 12)
    found = problem.rows[picked][:, 2:]
    assert sorted(map(tuple, found)) == sorted([(0, 0), (0, 1), (1, 0), (1, 1)] * 3)
    np.testing.assert_array_equal(found[:4], found[4:8])  # one after the other, always in the same order


# The global phase


def test_only_signs_on_which_both_twins_agree_are_followed() -> None:
    slopes = {"a": 1.0, "b": lambda t: by_twin(t, 1.0, -1.0), "c": -2.0}
    oracle = plant(lambda t: FLAT + 0 * t["a"], slopes, rows=[[5, 5, 5]], a=9, b=9, c=9)
    assert (moves_of(oracle) == [6, 5, 4]).all()


def test_the_loss_is_that_of_the_label_that_is_given() -> None:
    """Favourable people move down the margin, which is up the loss."""
    oracle = plant(lambda t: 0.8 + 0 * t["a"], {"a": 1.0, "b": -3.0}, rows=[[5, 5]], a=9, b=9)
    assert (moves_of(oracle) == [4, 6]).all()


def test_each_twin_has_its_own_label() -> None:
    """A class across the threshold: slopes that agree are losses that do not, and the reverse."""
    slopes = {"a": 1.0, "b": lambda t: by_twin(t, 1.0, -1.0)}
    oracle = plant(lambda t: by_twin(t, 0.49, 0.51), slopes, rows=[[5, 5]], a=9, b=9)
    assert (moves_of(oracle) == [5, 6]).all()


def test_two_twins_of_the_largest_class_decide() -> None:
    """Three of four twins want a to rise. The fourth, alone in its class, would have it fall."""
    oracle = plant(
        lambda t: by_twin(t, 0.1, 0.1, 0.1, 0.4),
        {"a": lambda t: by_twin(t, 1.0, 1.0, 1.0, -1.0)},
        twins=4,
        rows=[[5]],
        a=9,
    )
    assert (moves_of(oracle, local_moves=0) == 6).all()


def test_the_two_twins_are_different_ones() -> None:
    """Of three twins two want b to rise and one to fall: over all pairs it stays wherever the one is drawn."""
    slopes = {"a": 1.0, "b": lambda t: by_twin(t, 1.0, 1.0, -1.0)}
    oracle = plant(lambda t: FLAT + 0 * t["a"], slopes, twins=3, rows=[[5, 5]], a=9, b=9)
    b = moves_of(oracle, seeds=300)[:, 1]
    assert set(b) == {5, 6}  # with one twin drawn twice, b could fall
    assert (b == 6).mean() == pytest.approx(1 / 3, abs=0.08)
    one, other = two_of_largest(np.zeros((200, 3), dtype=np.int64), np.random.default_rng(0))
    assert (one != other).all()


def test_whoever_has_no_direction_moves_one_attribute() -> None:
    oracle = plant(lambda t: FLAT + 0 * t["a"], {}, rows=[[5, 5, 5]], a=9, b=9, c=9)
    moved = moves_of(oracle, seeds=200) - 5
    assert (np.abs(moved).sum(axis=1) == 1).all()
    assert {tuple(row) for row in moved.astype(int)} == {
        tuple(sign * row) for sign in (-1, 1) for row in np.eye(3, dtype=int)
    }


def test_moves_are_clipped_into_the_domain_and_as_long_as_asked() -> None:
    oracle = plant(lambda t: FLAT + 0 * t["a"], {"a": 1.0, "b": 1.0}, rows=[[8, 2]], a=9, b=9)
    assert (moves_of(oracle, global_step=3.0) == [9, 5]).all()


# When there is a local phase


def climbing(score, **options) -> list[str]:
    """One seed walks up a from 0; says in which order the phases came. A local phase is one hop here."""
    oracle = plant(score, {"a": 1.0}, twins=3, rows=[[0, 0]], a=9, b=0)
    Dice(seeds=1, global_moves=5, local_moves=1, **options).round(oracle, np.random.default_rng(0), 0)
    return oracle.origins


def test_a_local_phase_begins_where_k_or_else_the_distance_grew() -> None:
    """k and distance by a: 2 and .1, 2 and .2 (wider), 2 and .15, 2 and .18 (below the best), 3 and .1 (more)."""
    second = np.array([0.1, 0.1, 0.1, 0.1, 0.15, 0.1, 0.1, 0.1, 0.1, 0.1])
    third = np.array([0.2, 0.3, 0.25, 0.28, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1])

    def score(table):
        a, z = table["a"].astype(int), table["z"]
        return np.where(z == 0, 0.1, np.where(z == 1, second[a], third[a]))

    expected = ["seed", "local", "global", "local", "global", "global", "global", "local"]
    assert climbing(score) == expected


def test_one_class_is_nothing_to_widen() -> None:
    """The span of the only class is no distance between classes: it grows here, and nothing comes of it."""
    assert climbing(lambda t: 0.1 + 0.001 * t["a"] * t["z"]) == ["seed"] + ["global"] * 4


def test_binary_feedback_knows_decisions_only() -> None:
    """k grows from 1 to 3 without a changed decision; then decisions differ, and keep doing so."""
    step = np.array([0.0, 0.1, 0.1, 0.3, 0.3, 0.3, 0, 0, 0, 0])

    def score(table):
        return 0.1 + table["z"] * step[table["a"].astype(int)]

    assert climbing(score, feedback="binary") == ["seed", "global", "global", "global", "local", "global"]
    assert climbing(score)[:3] == ["seed", "global", "local"]


def test_the_order_is_that_of_the_papers_objective() -> None:
    rng = np.random.default_rng(3)
    worth, best = (np.column_stack([rng.integers(1, 4, 500), rng.integers(0, 4, 500) / 4]) for _ in range(2))

    def objective(pairs):
        return pairs[:, 0] + (1 - np.exp(-0.1 * pairs[:, 1]))

    np.testing.assert_array_equal(grew(worth, best), objective(worth) > objective(best))


# The local phase


def hop_shares(score, feedback: str = "quantitative", partition: str = "constrained") -> float:
    """Chains on two people, a = 0 and a = 1, from the first: how often the first is proposed again."""
    oracle = plant(score, {}, twins=4, rows=[[0]], a=1, partition=partition)
    rows = np.zeros(200, dtype=np.int64)
    numbers, figures = oracle.open_seeds(rows)
    people = oracle.problem.rows[rows]
    dice = Dice(local_moves=60, feedback=feedback)
    dice._local(oracle, Start(people, people, numbers), figures, np.random.default_rng(4))
    return float(np.mean([(people[:, 1] == 0).mean() for people in oracle.asked("local")]))


def in_the_first_state(fall: float) -> float:
    """A chain that leaves its state with probability e^−fall and always comes back is away this share of the time."""
    return float(np.exp(-fall) / (1 + np.exp(-fall)))


def test_hops_are_accepted_by_metropolis_on_the_number_of_classes() -> None:
    """The second person has one class fewer, though its scores lie further apart: Δ falls from 3 to 2."""

    def score(table):
        return np.where(table["a"] == 0, by_twin(table, 0.1, 0.2, 0.3, 0.4), by_twin(table, 0.1, 0.1, 0.25, 0.45))

    assert hop_shares(score) == pytest.approx(in_the_first_state(1), abs=0.03)


def test_on_the_grid_the_difference_is_that_of_the_bins() -> None:
    """Both have four bins; on the grid the ends of the second are nearer by two: 4 → 20 instead of 4 → 22."""

    def score(table):
        return np.where(table["a"] == 0, by_twin(table, 0.11, 0.21, 0.31, 0.56), by_twin(table, 0.11, 0.21, 0.31, 0.51))

    assert hop_shares(score, partition="grid") == pytest.approx(in_the_first_state(2), abs=0.03)


def test_binary_hops_know_decisions_only() -> None:
    """The second person has more classes, and one decision."""

    def score(table):
        return np.where(table["a"] == 0, by_twin(table, 0.1, 0.1, 0.1, 0.9), by_twin(table, 0.1, 0.2, 0.3, 0.4))

    assert hop_shares(score, feedback="binary") == pytest.approx(in_the_first_state(1), abs=0.03)
    assert hop_shares(score) == pytest.approx(1 - in_the_first_state(2), abs=0.03)


def test_metropolis_keeps_gains_and_some_losses() -> None:
    rng = np.random.default_rng(5)
    assert metropolis(np.array([0.0, 0.1, 5.0]), rng).all()
    assert metropolis(np.full(4000, -1.0), rng).mean() == pytest.approx(np.exp(-1), abs=0.03)
    assert metropolis(np.full(4000, -1.0), rng, temperature=2.0).mean() == pytest.approx(np.exp(-0.5), abs=0.03)


def test_flat_attributes_hop_more_often() -> None:
    """Summed slopes 4, 2 and none, of opposite signs at the two ends: weights ¼, ½ and, for want of a slope, ½."""
    slopes = {"a": lambda t: by_twin(t, 2.0, -2.0), "b": 1.0}
    oracle = plant(lambda t: by_twin(t, 0.1, 0.4), slopes, rows=[[5, 5, 5]], a=9, b=9, c=9)
    rows = np.zeros(6000, dtype=np.int64)
    numbers, figures = oracle.open_seeds(rows)
    people = oracle.problem.rows[rows]
    Dice(local_moves=1)._local(oracle, Start(people, people, numbers), figures, np.random.default_rng(6))
    moved = oracle.asked("local")[0][:, 1:] - 5
    assert (np.abs(moved).sum(axis=1) == 1).all()
    np.testing.assert_allclose((moved != 0).mean(axis=0), [0.2, 0.4, 0.4], atol=0.03)
    assert moved.mean(axis=0) == pytest.approx([0, 0, 0], abs=0.03)  # either way


def test_weights_are_uniform_where_nothing_has_a_slope() -> None:
    np.testing.assert_array_equal(inverse(np.zeros((2, 3)), np.zeros((2, 3))), np.ones((2, 3)))
    tiny = inverse(np.array([[1e-30, 1.0]]), np.zeros((1, 2)))
    assert tiny[0, 0] == pytest.approx(1e30 * tiny[0, 1])  # no floor


def test_slopes_are_taken_at_the_lowest_and_the_highest_twin() -> None:
    oracle = plant(
        lambda t: by_twin(t, 0.3, 0.1, 0.9, 0.5),
        {"a": lambda t: by_twin(t, 9.0, 1.0, 2.0, 9.0), "b": lambda t: by_twin(t, 9.0, 1.0, 0.0, 9.0)},
        twins=4,
        rows=[[5, 5]],
        a=9,
        b=9,
    )
    weights, _ = hop_plan(oracle, oracle.problem.rows, oracle.again(oracle.problem.rows))
    np.testing.assert_allclose(weights, [[1 / 3, 1.0]])


def test_real_attributes_step_towards_a_wider_span_with_each_hop() -> None:
    real = Attribute(name="r", kind="real", low=0.0, high=1.0)
    slopes = {"r": lambda t: by_twin(t, 1.0, 3.0), "a": lambda t: by_twin(t, 1.0, 3.0)}
    oracle = plant(lambda t: by_twin(t, 0.1, 0.4), slopes, rows=[[0.5, 5]], r=real, a=9)
    _, wider = hop_plan(oracle, oracle.problem.rows, oracle.again(oracle.problem.rows))
    np.testing.assert_allclose(wider, [[oracle.problem.stride[0], 0.0]])


def test_attributes_are_drawn_by_their_weights() -> None:
    drawn = draw(np.tile([1.0, 0.0, 3.0], (4000, 1)), np.random.default_rng(7))
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 4000, [0.25, 0.0, 0.75], atol=0.03)


def test_signs_of_the_loss_and_of_two_twins() -> None:
    slopes = np.array([[1.0, -2.0], [1.0, -2.0]])
    np.testing.assert_array_equal(loss_slopes(slopes, np.array([True, False])), [[-1.0, 2.0], [1.0, -2.0]])
    np.testing.assert_array_equal(
        agreed(np.array([[2.0, -1.0, 3.0, 0.0]]), np.array([[1.0, -4.0, -3.0, 0.0]])), [[1.0, -1.0, 0.0, 0.0]]
    )
