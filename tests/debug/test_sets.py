"""Sets of neurons over several layers: a planted one is found, whole and no larger."""

from __future__ import annotations

import numpy as np

from fairbits import Attribute, Network, Schema, Table
from fairbits.debug.neurons import neuron_sets
from fairbits.measure import Evaluator
from fairbits.subject import make_subject

SCHEMA = Schema(
    attributes=(
        Attribute(name="age", kind="integer", low=0, high=9, protected=True),
        Attribute(name="skill", kind="integer", low=0, high=9),
        Attribute(name="luck", kind="integer", low=0, high=9),
    ),
    target="hired",
    classes=("no", "yes"),
)


def table_of(rng: np.random.Generator, rows: int) -> Table:
    """People whose labels are by lot: accuracy keeps no set out."""
    return Table(rng.integers(0, 10, (rows, 3)).astype(np.float64), rng.permutation(np.arange(rows) % 2).astype(float))


def planted() -> Network:
    """Age goes two ways: neuron 0 of layer 1 feeds two neurons of layer 2; neurons 1 and 2 feed neuron 2 alone.

    So the smallest set that stops it is neuron 0 of layer 1 and neuron 2 of layer 2.
    """
    first = np.array([[1.0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])  # age, age, age, skill
    second = np.zeros((4, 4))
    second[0, 0], second[0, 1] = 1.0, 1.0
    second[1, 2], second[2, 2] = 1.0, 1.0
    second[3, 3] = 1.0
    last = np.array([[0.1], [0.1], [0.1], [0.41]])
    return Network.build([first, second, last], [np.zeros(4), np.zeros(4), np.array([-2.2])], head="sigmoid")


def test_a_planted_set_across_two_layers(rng: np.random.Generator) -> None:
    network = planted()
    subject = make_subject("wired", network, SCHEMA, table_of(rng, 600))
    evaluator = Evaluator(subject.model, SCHEMA, subject.encoding, epsilon=0.01, threads=1)
    for measure in ("q_inf", "q_1"):
        found = neuron_sets(evaluator, subject, subject.table.codes[:200], measure=measure, rng=rng)
        best = next(one for one in found.curve if one.explained.value > 0.999)
        assert {(do.layer + 1, do.neuron) for do in best.neurons} == {(1, 0), (2, 2)}
        # A hundred cases that all agree leave a few in a hundred open: no interval of theirs is a single point.
        assert 0.95 < best.explained.low < 0.99
        assert [len(one.neurons) for one in found.curve] == list(range(1, len(found.curve) + 1))
        assert found.minimal is not None
        assert found.minimal.explained.value > found.most


def test_nobody_shows_any_bits(rng: np.random.Generator) -> None:
    network = planted()
    blind = Network.build(
        [network.weights[0] * np.array([[0], [1], [1]]), *network.weights[1:]], network.biases, head="sigmoid"
    )
    subject = make_subject("wired", blind, SCHEMA, table_of(rng, 200))
    evaluator = Evaluator(subject.model, SCHEMA, subject.encoding, threads=1)
    found = neuron_sets(evaluator, subject, subject.table.codes[:50], measure="q_inf", rng=rng)
    assert found.curve == ()
    assert found.minimal is None
