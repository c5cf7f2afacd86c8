"""Bits of subsets by their definition; Shapley shares that add up, and are equal where attributes are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairbits import Attribute, Network, Schema, qid
from fairbits.debug.origin import attribute_bits
from fairbits.measure import Evaluator
from fairbits.report.compute import stakes_of
from fairbits.report.sections.people import axes_of
from tests.conftest import random_network, random_people

SCHEMA = Schema(
    attributes=(
        Attribute(name="a", kind="integer", low=0, high=2, protected=True),
        Attribute(name="x", kind="integer", low=0, high=9),
        Attribute(name="b", kind="integer", low=0, high=2, protected=True),
        Attribute(name="c", kind="integer", low=0, high=1, protected=True),
    ),
    target="y",
    classes=("0", "1"),
)


def linear(weights: list[float]) -> Evaluator:
    network = Network.build([np.array(weights)[:, None]], [np.array([-1.0])], head="sigmoid")
    return Evaluator(network, SCHEMA, threads=1)


def test_shares_add_up(rng: np.random.Generator) -> None:
    evaluator = Evaluator(random_network(rng, [4, 8, 2]), SCHEMA, threads=1)
    people = random_people(rng, SCHEMA, 40)
    found = attribute_bits(evaluator, people)
    evaluation = evaluator.evaluate(people)
    assert found.case_q_inf.sum(axis=1) == pytest.approx(evaluation.q_inf, abs=1e-6)
    assert found.case_q_1.sum(axis=1) == pytest.approx(evaluation.q_1, abs=1e-5)
    assert sum(found.q_inf.values()) == pytest.approx(evaluation.q_inf.mean(), abs=1e-6)
    assert [len(subset.attributes) for subset in found.subsets] == [0, 1, 1, 1, 2, 2, 2, 3]
    assert found.subsets[0].q_inf == 0
    assert found.subsets[-1].q_1 == pytest.approx(evaluation.q_1.mean(), abs=1e-5)


def test_ranges_are_the_values_that_count(rng: np.random.Generator) -> None:
    """A protected number with ranges has as many twins as ranges, in the shares and on the axes of the report."""
    ages = replace(SCHEMA.attributes[0], high=90, ranges=(("young", 20), ("old", 70)))
    schema = replace(SCHEMA, attributes=(ages, *SCHEMA.attributes[1:]))
    evaluator = Evaluator(random_network(rng, [4, 8, 2]), schema, threads=1).over_values
    people = random_people(rng, schema, 20)
    assert evaluator.m == 12
    found = attribute_bits(evaluator, people)
    assert found.case_q_inf.sum(axis=1) == pytest.approx(evaluator.evaluate(people).q_inf, abs=1e-6)
    assert axes_of(evaluator).values[0] == ("young", "old")
    stakes = list(stakes_of(evaluator.twins, {0: 1.0}, {11: 1.0}))
    assert [(s.value, s.lowest) for s in stakes[:2]] == [("young", 1.0), ("old", 0.0)]


def test_subsets_by_their_definition(rng: np.random.Generator) -> None:
    evaluator = Evaluator(random_network(rng, [4, 8, 2]), SCHEMA, threads=1)
    people = random_people(rng, SCHEMA, 20)
    table = evaluator.scores(people).reshape(20, 3, 3, 2)
    found = {subset.attributes: subset for subset in attribute_bits(evaluator, people).subsets}
    only_b = [qid(table[:, a, :, c]).q_1 for a in range(3) for c in range(2)]
    assert found["b",].q_1 == pytest.approx(np.mean(only_b), abs=1e-5)
    a_and_c = [qid(table[:, :, b, :].reshape(20, 6)).q_inf for b in range(3)]
    assert found["a", "c"].q_inf == pytest.approx(np.mean(a_and_c), abs=1e-6)


def test_equal_attributes_share_equally(rng: np.random.Generator) -> None:
    found = attribute_bits(linear([0.7, 0.1, 0.7, 0.0]), random_people(rng, SCHEMA, 30))
    assert found.q_inf["a"] == pytest.approx(found.q_inf["b"])
    assert found.q_inf["c"] == 0
    assert found.q_1["a"] > 0.2


def test_an_attribute_that_is_not_used_gets_nothing(rng: np.random.Generator) -> None:
    found = attribute_bits(linear([0.9, 0.1, 0.0, 0.0]), random_people(rng, SCHEMA, 30))
    alone = next(subset for subset in found.subsets if subset.attributes == ("a",))
    assert found.q_inf == {"a": pytest.approx(alone.q_inf), "b": 0.0, "c": 0.0}
