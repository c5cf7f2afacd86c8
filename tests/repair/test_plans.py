"""Single neurons, sets, shrinking and blindness, on networks whose worst neuron is known."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits import Schema, Subject
from fairbits.domain import Encoding, Table, Twins
from fairbits.engine import Evaluation
from fairbits.measure import Evaluator, evaluator_of
from fairbits.models import Network
from fairbits.repair import shrunk
from fairbits.repair.judgement import Half, Setting, front
from fairbits.repair.proposals.distil import protected_inputs
from fairbits.repair.proposals.neurons import OFF, Bench, candidates, held_sets, singles
from fairbits.repair.proposals.weights import favourable_share, majority_labels, recentred
from fairbits.subject import make_subject
from tests.conftest import random_network, random_people
from tests.repair.conftest import CARRIER, SCHEMA


def _bench(subject: Subject) -> Bench:
    assert isinstance(subject.model, Network)
    table = subject.table
    half = Half(table.codes, table.codes, table.labels)  # type: ignore[arg-type]
    return Bench(subject.model, half, Setting(subject, 0.025, "constrained", 1))


def _figures(network: Network, schema: Schema, encoding: Encoding, codes: np.ndarray) -> Evaluation:
    return Evaluator(network, schema, encoding, threads=1).evaluate(codes)


@pytest.fixture
def random_subject(people_schema: Schema, rng: np.random.Generator) -> Subject:
    codes = random_people(rng, people_schema, 500)
    encoding = Encoding.one_hot(people_schema)
    network = random_network(rng, [encoding.width, 12, 8, 2])
    hours = 0.1 * (codes[:, 4] - 50)
    labels = (hours + rng.normal(size=500) > 0).astype(np.float64)
    first = network.weights[0].copy()
    first[-1] *= 0.05  # hours run to 99: let the protected inputs be heard
    small = Network.build([first, *network.weights[1:]], network.biases, head="softmax")
    return make_subject("random", small, people_schema, Table(codes, labels), encoding=encoding)


def test_the_carrier_is_found(subject: Subject) -> None:
    bench = _bench(subject)
    assert bench.start.k > 1.5
    found = singles(bench, bench.start.accuracy)
    for name in ("deactivate", "activate"):
        assert [(do.layer, do.neuron) for do in found[name].dos] == [CARRIER]
        assert found[name].k == 1
        assert found[name].accuracy == bench.start.accuracy == 1
    assert found["deactivate"].dos[0].value == 0
    assert found["activate"].dos[0].value > 0
    dearest = singles(bench, 2.0)  # nothing is that good: the one that loses least
    assert {name: held.accuracy for name, held in dearest.items()} == {"deactivate": 1.0, "activate": 1.0}
    sets = held_sets(bench, bench.start.accuracy)
    assert [(len(held.dos), held.k, held.accuracy) for held in sets] == [(1, 1.0, 1.0)]


def test_of_the_neurons_that_keep_the_accuracy_the_lowest_k_is_taken(random_subject: Subject) -> None:
    bench = _bench(random_subject)
    tried = candidates(bench.network, bench.inputs)
    ks, exact = bench.effects((), tried)
    for name, off in (("deactivate", True), ("activate", False)):
        useful = [k for do, k in zip(tried, ks, strict=True) if (abs(do.value) <= OFF) is off and k < bench.start.k]
        assert len(set(useful)) > 1  # there is a choice
        assert singles(bench, float(exact.min()))[name].k == min(useful)


def test_sets_are_at_least_as_good_as_one_neuron(random_subject: Subject) -> None:
    bench = _bench(random_subject)
    floor = bench.start.accuracy - 0.05
    best = min(held.k for held in singles(bench, floor).values())
    sets = held_sets(bench, floor)
    assert min(held.k for held in sets) < best
    for held in sets:
        assert bench.measured(held.dos).k == pytest.approx(held.k, abs=0.02)
        assert bench.measured(held.dos).accuracy == pytest.approx(held.accuracy, abs=0.005)
        assert held.accuracy >= floor
        assert len({(do.layer, do.neuron) for do in held.dos}) == len(held.dos)
    again = held_sets(_bench(random_subject), floor)
    assert again == sets


@pytest.mark.parametrize("activation", ["relu", "sigmoid", "tanh", "gelu", "elu"])
def test_candidates_can_be_written_into_a_bias(activation: str, rng: np.random.Generator) -> None:
    network = random_network(rng, [5, 6, 4, 2], activation=activation)
    inputs = rng.normal(size=(50, 5)).astype(np.float32)
    tried = candidates(network, inputs)
    assert len(tried) > 20
    for do in tried:
        held = network.with_interventions([do]).activations(inputs)[do.layer][:, do.neuron]
        np.testing.assert_allclose(held, do.value, atol=1e-5)


def test_blindness_is_exact(random_subject: Subject) -> None:
    subject, network = random_subject, random_subject.model
    assert isinstance(network, Network)
    schema, encoding, codes = subject.schema, subject.encoding, subject.table.codes
    assert _figures(network, schema, encoding, codes).k.mean() > 1.2
    blind = shrunk(network, schema, encoding, codes, 1.0)
    assert (blind.inputs, blind.widths) == (network.inputs, network.widths)
    found = _figures(blind, schema, encoding, codes)
    assert found.k.max() == 1
    assert not found.flips.any()
    inputs = encoding.encode(codes)
    held = inputs.copy()
    columns = protected_inputs(schema, encoding)
    held[:, columns] = inputs[:, columns].mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(blind.scores(inputs), network.scores(held), atol=2e-6)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8, 1.0])
def test_shrinking_moves_inputs_to_their_mean(share: float, random_subject: Subject) -> None:
    subject, network = random_subject, random_subject.model
    assert isinstance(network, Network)
    inputs = subject.encoding.encode(subject.table.codes)
    columns = protected_inputs(subject.schema, subject.encoding)
    moved = inputs.copy()
    moved[:, columns] += share * (inputs[:, columns].mean(axis=0, dtype=np.float64) - inputs[:, columns])
    shrink = shrunk(network, subject.schema, subject.encoding, subject.table.codes, share)
    np.testing.assert_allclose(shrink.scores(inputs), network.scores(moved), atol=2e-6)


def test_the_majority_of_twins(subject: Subject) -> None:
    network = subject.model
    assert isinstance(network, Network)
    twins = Twins(SCHEMA)
    codes = subject.table.codes[:50]
    found = majority_labels(network, evaluator_of(subject), codes)
    for person, label in zip(codes, found, strict=True):
        votes = network.labels(subject.encoding.encode(twins.expand(person[None])[0]))
        assert label == np.bincount(votes, minlength=2).argmax()


@pytest.mark.parametrize(("head", "outputs", "favourable"), [("softmax", 2, 1), ("softmax", 2, 0), ("sigmoid", 1, 0)])
def test_as_many_decisions_as_before(head: str, outputs: int, favourable: int, rng: np.random.Generator) -> None:
    network = random_network(rng, [4, 6, outputs], head=head, favourable=favourable)
    inputs = rng.normal(size=(400, 4)).astype(np.float32)
    moved = recentred(network, inputs, 0.3)
    assert favourable_share(moved, inputs) == pytest.approx(0.3, abs=0.006)
    assert all(a is b for a, b in zip(moved.weights, network.weights, strict=True))
    three = random_network(rng, [4, 6, 3])
    assert favourable_share(three, inputs) is None
    assert recentred(three, inputs, None) is three


def test_the_front() -> None:
    assert front([(1, 1), (2, 0), (0, 2), (1, 0), (2, 0)]) == [True, True, True, False, True]
