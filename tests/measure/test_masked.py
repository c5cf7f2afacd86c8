"""Twins that cannot exist, and whole vectors of scores, against the readable definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fairbits import Schema
from fairbits.engine import masked, vectors
from fairbits.errors import CapabilityError, OptionError
from fairbits.measure import Evaluator, qid

from ..conftest import random_network, random_people

scores_of = hnp.arrays(
    np.float32, st.tuples(st.integers(1, 6), st.integers(1, 12)), elements=st.integers(0, 128).map(lambda i: i / 128)
)


@given(scores_of, st.sampled_from(["constrained", "grid"]), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_a_masked_person_is_the_valid_twins_alone(scores, partition, seed) -> None:
    valid = np.random.default_rng(seed).random(scores.shape) < 0.6
    found = masked(scores, valid, epsilon=0.0625, partition=partition)
    for i, (row, mask) in enumerate(zip(scores, valid, strict=True)):
        assert found.twins[i] == mask.sum()
        if not mask.any():
            assert (found.k[i], found.q_1[i], found.span[i], found.flips[i]) == (1, 0, 0, False)
            continue
        alone = qid(row[mask][None], epsilon=0.0625, partition=partition)
        assert found.k[i] == alone.k[0]
        assert found.q_1[i] == pytest.approx(alone.q_1[0], abs=1e-6)
        assert (found.low[i], found.high[i]) == (alone.low[0], alone.high[0])
        assert mask[found.low_twin[i]]
        assert row[found.high_twin[i]] == found.high[i]
        assert found.flips[i] == (len(set(row[mask] >= 0.5)) == 2)
    everyone = masked(scores, np.ones_like(valid), epsilon=0.0625, partition=partition)
    np.testing.assert_array_equal(everyone.k, qid(scores, epsilon=0.0625, partition=partition).k)


@given(scores_of, st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_two_classes_as_vectors_are_the_scores(scores, seed) -> None:
    valid = np.random.default_rng(seed).random(scores.shape) < 0.7
    both = np.stack([1 - scores, scores], axis=2)
    vector = vectors(both, valid, epsilon=0.0625, favourable=1)
    scalar = masked(scores, valid, epsilon=0.0625, partition="constrained")
    for name in ("k", "q_1", "low", "high", "low_twin", "high_twin", "favourable", "twins", "flips"):
        np.testing.assert_array_equal(getattr(vector, name), getattr(scalar, name), err_msg=name)


@given(hnp.arrays(np.float32, (3, 9, 3), elements=st.integers(0, 64).map(lambda i: i / 64)))
@settings(deadline=None)
def test_vectors_are_linked_completely(table) -> None:
    """Slow reader: a class takes whoever is within ε of all its members, in the order of the favourable score."""
    found = vectors(table, epsilon=0.125, favourable=2)
    for person, k in zip(table, found.k, strict=True):
        rest, count = [person[i] for i in np.argsort(person[:, 2], kind="stable")], 0
        while rest:
            members, left = [rest[0]], []
            for one in rest[1:]:
                near = all(np.abs(one - member).max() <= np.float32(0.125) for member in members)
                (members if near else left).append(one)
            rest, count = left, count + 1
        assert k == count
    np.testing.assert_array_equal(found.low, table[:, :, 2].min(axis=1))


def three_classes(schema: Schema, **more) -> Schema:
    return replace(schema, classes=("a", "b", "c"), favourable="b", **more)


def test_a_network_of_three_classes_through_the_evaluator(people_schema: Schema, rng) -> None:
    network = random_network(rng, [9, 12, 3], favourable=1)
    schema, people = three_classes(people_schema), random_people(rng, people_schema, 200)
    plain = Evaluator(network, schema).evaluate(people)
    vector = Evaluator(network, replace(schema, scores="vector"))
    found = vector.evaluate(people)
    assert (found.k >= plain.k).all()  # whoever differs in one probability differs
    for name in ("low_twin", "high_twin", "favourable"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
    labels = network.labels(vector.encoding.encode(vector.twins.expand(people).reshape(-1, 5))).reshape(200, -1)
    assert found.flips.tolist() == [len(set(row)) > 1 for row in labels]
    assert (found.flips >= plain.flips).all()
    ruled = replace(schema, rules=('age = "young" -> job != "Tech"',))
    masked_figures = Evaluator(network, ruled).evaluate(people)
    valid = Evaluator(network, ruled).valid_twins(people)
    np.testing.assert_array_equal(masked_figures.favourable, ((labels == 1) & valid).sum(axis=1))


def test_what_vectors_need(people_schema: Schema, rng) -> None:
    schema = three_classes(people_schema, scores="vector")
    network = random_network(rng, [9, 12, 3], favourable=1)
    with pytest.raises(OptionError, match="whole vectors have no grid"):
        Evaluator(network, schema, partition="grid")

    class Box:
        inputs = 9

        def scores(self, inputs):
            return network.scores(inputs)

    with pytest.raises(CapabilityError, match="needs the probabilities of all classes"):
        Evaluator(Box(), schema)

    class Whole(Box):
        def class_scores(self, inputs):
            return network.class_scores(inputs)

    people = random_people(rng, schema, 50)
    np.testing.assert_array_equal(
        Evaluator(Whole(), schema).evaluate(people).k, Evaluator(network, schema).evaluate(people).k
    )


@pytest.mark.parametrize("head", ["softmax", "linear"])
def test_rules_that_leave_out_no_twin_change_nothing(people_schema: Schema, rng, head: str) -> None:
    schema = people_schema if head == "softmax" else replace(people_schema, classes=(), favourable=None)
    network = random_network(rng, [9, 12, 2 if head == "softmax" else 1], head=head)
    people = random_people(rng, schema, 300)
    plain = Evaluator(network, schema).evaluate(people)
    ruled = Evaluator(network, replace(schema, rules=("age >= 1 and hours >= 0",))).evaluate(people)
    for name in ("k", "q_1", "low", "high", "low_twin", "high_twin", "favourable"):
        np.testing.assert_allclose(getattr(ruled, name), getattr(plain, name), rtol=1e-6, err_msg=name)
    assert (ruled.twins == 6).all()
