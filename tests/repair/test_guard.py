"""The guard: its bound under any scores, for every kind of model, and by both ways of asking."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fairbits
from fairbits import Attribute, Guard, Network, Schema, Subject, Table
from fairbits.errors import CapabilityError, ModelError, OptionError
from fairbits.measure import Evaluator, evaluator_of
from fairbits.repair.judgement import balanced_loss
from fairbits.repair.proposals.guard import averaged, half_width, moved
from fairbits.repair.writers.standalone import clipped
from fairbits.search import Budget, Settings, search_subject
from fairbits.subject import make_subject
from tests.conftest import random_network
from tests.repair.conftest import SCHEMA, people, wired


@settings(max_examples=60, deadline=None)
@given(
    scores=hnp.arrays(np.float32, (4, 7), elements=st.floats(0, 1, width=32)),
    weights=hnp.arrays(np.float64, 7, elements=st.floats(1e-6, 1)),
    guarantee=st.integers(1, 9),
    epsilon=st.sampled_from([0.025, 0.05, 1 / 3, 0.0123]),
    partition=st.sampled_from(["constrained", "grid"]),
    shift=st.sampled_from([0.0, 0.7, -2.0]),
)
def test_nobody_has_more_classes_than_promised(
    scores: npt.NDArray[np.float32],
    weights: npt.NDArray[np.float64],
    guarantee: int,
    epsilon: float,
    partition: str,
    shift: float,
) -> None:
    tau = half_width(guarantee, epsilon, partition)
    centre = moved(averaged(scores, weights / weights.sum(), None), shift, regression=False)
    guarded = clipped(moved(scores, shift, regression=False)[..., None], centre[:, None, None], tau)[..., 0].astype(
        np.float32
    )
    assert guarded.min() >= 0
    assert guarded.max() <= 1
    assert fairbits.qid(guarded, epsilon=epsilon, partition=partition, bounded=True).k.max() <= guarantee


@settings(max_examples=40, deadline=None)
@given(
    scores=hnp.arrays(np.float32, (3, 5), elements=st.floats(-1e6, 1e6, width=32)),
    guarantee=st.integers(1, 5),
    epsilon=st.sampled_from([1.0, 250.0, 0.01]),
)
def test_values_of_any_size_keep_the_bound(scores: npt.NDArray[np.float32], guarantee: int, epsilon: float) -> None:
    centre = averaged(scores, np.full(5, 0.2), None)
    tau = half_width(guarantee, epsilon, "constrained")
    guarded = clipped(scores.astype(np.float64)[..., None], centre[:, None, None], tau)[..., 0]
    assert fairbits.qid(guarded.astype(np.float32), epsilon=epsilon).k.max() <= guarantee


def test_room_for_rounding_grows_with_tau() -> None:
    """The average is next to 0, but scores are as large as tau: a float32 there has steps of 0.002."""
    epsilon, centre = 16071.019007845744, 0.0018458025256429288
    tau = half_width(3, epsilon, "constrained")
    own = np.array([-1e6, 1e6, *(centre + np.linspace(-tau, tau, 4))])
    guarded = clipped(own[:, None], np.array([[centre]]), tau)[:, 0].astype(np.float32)
    assert fairbits.qid(guarded[None], epsilon=epsilon).k.max() <= 3


def _wide() -> Network:
    """As ``wired``, but the sex decides more: k is large."""
    first = wired()
    weights = (first.weights[0], np.array([[0, 1.0], [0, 3.0], [0, 0.0]], np.float32))
    return replace(first, weights=weights)


def _subject(model: object = None, **changes: object) -> Subject:
    return make_subject("wide", model or _wide(), replace(SCHEMA, **changes), people())  # type: ignore[arg-type]


@pytest.mark.parametrize("guarantee", [1, 2])
def test_everybody_in_the_domain(guarantee: int) -> None:
    subject = _subject()
    guard = Guard.of(subject, guarantee=guarantee, threads=1)
    evaluator = evaluator_of(subject, model=guard, threads=1)
    grid = np.stack(np.meshgrid(np.arange(10), [0], np.arange(41), indexing="ij"), axis=-1).reshape(-1, 3) * 1.0
    found = evaluator.evaluate(grid)
    assert evaluator_of(subject, threads=1).evaluate(grid).k.max() == 3
    assert found.k.max() <= guarantee == guard.k_max
    assert "Proved for everybody" in guard.proof
    if guarantee == 1:
        assert evaluator.blind
        assert not found.flips.any()
    # The same scores whether people come as codes, as encoded rows, or all twins at once.
    rows = people().codes
    asked = guard.scores(subject.encoding.encode(rows))
    np.testing.assert_allclose(asked, guard.people_scores(rows), atol=1e-6)
    twin = evaluator.twins.index_of(rows)
    np.testing.assert_allclose(asked, guard.twin_scores(rows)[np.arange(len(rows)), twin], atol=1e-6)


def test_a_fresh_search_finds_nobody_above_the_bound(tmp_path) -> None:  # type: ignore[no-untyped-def]
    subject = _subject()
    guarded = replace(subject, model=Guard.of(subject, guarantee=2, threads=1))
    run = search_subject(guarded, Settings(budget=Budget(evaluations=3000), threads=1), tmp_path / "run")
    assert (run.summary or {})["k_max"] == 2


class _Function:
    """A function of the codes that nothing is known about."""

    inputs = 3

    def scores(self, inputs: npt.ArrayLike) -> npt.NDArray[np.float32]:
        rows = np.asarray(inputs, np.float64)
        return (np.abs(np.sin(rows[:, 0] * 3 + rows[:, 1] * 11 + rows[:, 2])) % 1).astype(np.float32)


def test_a_function() -> None:
    subject = _subject(_Function())
    guard = Guard.of(subject, guarantee=2, threads=1)
    assert evaluator_of(subject, model=guard, threads=1).evaluate(people().codes).k.max() <= 2
    # An evaluator of other twins asks about each of them: still within the bound for these.
    other = Evaluator(guard, SCHEMA.with_protected(["shoe"]), subject.encoding, threads=1)
    assert other.m == 41


def test_trees() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    table = people()
    rng = np.random.default_rng(0)
    noisy = ((table.codes[:, 0] + 4 * table.codes[:, 1] + rng.normal(size=len(table))) > 8).astype(int)
    forest = ensemble.RandomForestClassifier(10, random_state=0).fit(table.codes, noisy)
    guard = Guard(forest, Table(table.codes, noisy.astype(float)), SCHEMA, guarantee=2, threads=1)
    found = evaluator_of(guard.subject, model=guard, threads=1)
    before = evaluator_of(guard.subject, threads=1).evaluate(table.codes).k.max()
    assert before > 2 >= found.evaluate(table.codes).k.max()
    assert guard.class_scores(table.codes[:5]).sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("compared", ["favourable", "vector"])
def test_three_classes(compared: str, rng: np.random.Generator) -> None:
    schema = replace(SCHEMA, classes=("no", "maybe", "yes"), favourable="yes", scores=compared)
    table = Table(people().codes, people().codes[:, 0] % 3)
    subject = make_subject("three", random_network(rng, [3, 8, 3]), schema, table)
    for guarantee in (1, 2):  # a person has three twins
        guard = Guard.of(subject, guarantee=guarantee, threads=1)
        evaluator = evaluator_of(subject, model=guard, threads=1)
        found = evaluator.evaluate(table.codes)
        assert found.k.max() <= guard.k_max <= guarantee
        sums = guard.twin_class_scores(table.codes).sum(axis=2)
        np.testing.assert_allclose(sums, 1, atol=1e-5)
        inputs = subject.encoding.encode(table.codes)
        np.testing.assert_allclose(guard.class_scores(inputs), guard.people_class_scores(table.codes), atol=1e-6)


def test_a_regression_keeps_its_mean() -> None:
    schema = replace(SCHEMA, classes=(), favourable=None)
    first = _wide()
    network = Network.build(
        (*first.weights[:1], first.weights[1][:, 1:]), (first.biases[0], first.biases[1][1:]), head="linear"
    )
    table = Table(people().codes, people().codes[:, 0] * 1000.0)
    subject = make_subject("pay", network, schema, table)
    guard = Guard.of(subject, guarantee=2, epsilon=0.5, threads=1)
    assert guard.with_guarantee(1).scores(subject.encoding.encode(table.codes)).mean() == pytest.approx(
        table.labels.mean(), rel=1e-4
    )
    found = evaluator_of(subject, model=guard, epsilon=0.5, threads=1).evaluate(table.codes)
    assert found.k.max() <= 2


def test_rules_leave_some_twins_out() -> None:
    subject = _subject(rules=('skill >= 5 -> sex != "c"',))
    guard = Guard.of(subject, refit=False, threads=1)
    rows = people().codes
    # By the rule alone, also for real people who break it: files without the table must decide as the guard does.
    evaluator = evaluator_of(subject, threads=1)
    valid = np.ones((len(rows), 3), np.bool_)
    valid[rows[:, 0] >= 5, 2] = False
    wanted = averaged(evaluator.scores(rows), guard.weights, valid)
    np.testing.assert_allclose(guard.people_scores(rows), wanted, atol=1e-6)
    np.testing.assert_allclose(guard.scores(subject.encoding.encode(rows)), wanted, atol=1e-6)


def test_weights_are_shares_smoothed() -> None:
    guard = Guard.of(_subject(), threads=1)
    assert guard.weights.sum() == pytest.approx(1)
    counts = np.bincount(people().codes[:, 1].astype(int), minlength=3)
    np.testing.assert_allclose(guard.weights, (counts + 1 / 3) / 401)


def test_refusals() -> None:
    with pytest.raises(OptionError, match="guarantee is 0; give the most classes"):
        Guard.of(_subject(), guarantee=0)
    with pytest.raises(OptionError, match=r"guarantee is 2 and tau is 0\.1; give one"):
        Guard.of(_subject(), guarantee=2, tau=0.1)
    with pytest.raises(OptionError, match="tau is -1; give the distance"):
        Guard.of(_subject(), tau=-1)
    schema = Schema(
        attributes=(
            Attribute(name="a", kind="integer", high=3, protected=True),
            Attribute(name="b", kind="integer", high=9),
        ),
        target="t",
        classes=("x", "y", "z"),
    )

    class Lone:
        inputs = 2

        def scores(self, inputs: npt.ArrayLike) -> npt.NDArray[np.float32]:
            return np.zeros(len(np.asarray(inputs)), np.float32)

    subject = make_subject("lone", Lone(), schema, Table(np.zeros((4, 2))))
    with pytest.raises(CapabilityError, match="3 classes, and 'Lone' gives the score of one"):
        Guard.of(subject)


def test_few_rows_promise_little() -> None:
    right, alike = np.ones(74, np.bool_), np.zeros(74)
    assert balanced_loss(right, right, alike).value == 0
    assert 0.016 < balanced_loss(right, right, alike).high < 0.018
    many, alike = np.ones(5000, np.bool_), np.zeros(5000)
    assert balanced_loss(many, many, alike).high < 0.001
    labels = (np.arange(5000) < 50).astype(float)
    rare = np.where(labels == 1, False, True)
    assert balanced_loss(many, rare, labels).value == pytest.approx(0.5)
    assert balanced_loss(many, rare, alike).value == pytest.approx(0.01)


def test_a_model_that_varies_proves_nothing() -> None:
    noise = np.random.default_rng(0)
    guard = Guard(lambda frame: noise.random(len(frame)), people(), SCHEMA, guarantee=2, threads=1, refit=False)
    assert guard.varies
    assert guard.k_max == 0
    assert guard.with_guarantee(1).k_max == 0
    assert guard.proof.startswith("Nothing is proved")
    steady = Guard(lambda frame: np.full(len(frame), 0.25), people(), SCHEMA, guarantee=2, threads=1, refit=False)
    assert not steady.varies
    assert steady.k_max == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"guarantee": 0}, "guarantee is 0"),
        ({"guarantee": 10**400}, "1 to 1,000,000,000"),
        ({"guarantee": 2, "tau": 0.1}, "give one of them"),
        ({"tau": float("nan")}, "tau is nan"),
        ({"tau": -0.1}, r"tau is -0\.1"),
        ({"tau": 1e308}, r"at most 1e\+38"),
    ],
)
def test_another_bound_is_checked_as_the_first_one_is(given, words):
    guard = _small_guard(lambda frame: np.asarray(frame["age"]) / 10)
    with pytest.raises(OptionError, match=words):
        guard.with_guarantee(**given)


def test_no_score_of_a_guard_is_nan():
    """Twins stand for ranges of ages here: somebody's own age is none of theirs, and the model has no number for it."""
    guard = _small_guard(lambda frame: np.where(np.asarray(frame["age"]) == 3, np.nan, 0.5))
    rows = np.array([[1.0, 3.0], [1.0, 1.0]])
    with pytest.raises(ModelError, match="not finite"):
        guard.scores(rows)
    with pytest.raises(ModelError, match="not finite"):
        guard.people_scores(rows)


def _small_guard(model):
    attributes = (
        Attribute(name="pay", kind="integer", low=0, high=5),
        Attribute(name="age", kind="integer", low=0, high=9, protected=True, ranges=(("young", 1), ("old", 8))),
    )
    schema = Schema(attributes, target="ok", classes=("no", "yes"))
    codes = np.column_stack([np.arange(40) % 6, np.arange(40) % 2 * 7 + 1]).astype(float)
    return Guard(model, Table(codes, np.arange(40.0) % 2), schema, guarantee=2, threads=1)
