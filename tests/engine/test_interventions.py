"""Many interventions at once against surgery on one network after the other."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits import Encoding, Schema, Twins
from fairbits.engine import accuracies, evaluate, masked, plan_of, scores, study
from fairbits.errors import ModelError, OptionError, TableError
from fairbits.models import Do, Network
from tests.conftest import random_network, random_people, with_inputs_scaled

EPSILON = 0.025


def values_of(network: Network, layer: int, inputs: np.ndarray) -> list[Do]:
    """Every neuron of a layer at values that it does put out."""
    outputs = network.activations(inputs)[layer]
    found = np.quantile(outputs, [0.1, 0.5, 0.9], axis=0)
    return [Do(layer, j, float(value)) for j in range(outputs.shape[1]) for value in found[:, j]]


def calm_network(rng: np.random.Generator, encoding: Encoding, widths: list[int], **options) -> Network:
    """Random, with weights on the hours (0 to 99) that leave the scores away from 0 and 1."""
    network = random_network(rng, [encoding.width, *widths], **options)
    network = with_inputs_scaled(network, -1, 1 / 50)
    return network


def near_a_boundary(table: np.ndarray, partition: str) -> np.ndarray:
    """Whose classes, or decisions, a rounding of the scores (people × twins) may change."""
    bins, gaps = table / EPSILON, np.abs(table[:, :, None] - table[:, None, :])
    grid = (np.abs(bins - np.rint(bins)) < 1e-4) & (table > 1e-3) & (table < 1 - 1e-3)
    close = grid.any(axis=1) if partition == "grid" else (np.abs(gaps - EPSILON) < 2e-6).any(axis=(1, 2))
    return close | (np.abs(table - 0.5) < 1e-6).any(axis=1)


@pytest.mark.parametrize(
    ("activation", "head", "outputs", "favourable"),
    [
        ("relu", "softmax", 2, 1),
        ("relu", "softmax", 2, 0),
        ("leaky_relu", "softmax", 4, 2),
        ("tanh", "sigmoid", 1, 0),
        ("sigmoid", "sigmoid", 1, 1),
        ("elu", "linear", 1, None),
        ("gelu", "softmax", 3, 0),
        ("gelu_tanh", "softmax", 2, 1),
        ("identity", "softmax", 2, 1),
    ],
)
@pytest.mark.parametrize("partition", ["constrained", "grid"])
def test_as_surgery_does(rng, people_schema, activation, head, outputs, favourable, partition) -> None:
    encoding, twins = Encoding.one_hot(people_schema), Twins(people_schema)
    network = calm_network(rng, encoding, [9, 6, 5, outputs], activation=activation, head=head, favourable=favourable)
    people = random_people(rng, people_schema, 61)
    inputs = encoding.encode(people)
    dos = [do for layer in (2, 0, 1) for do in values_of(network, layer, inputs)]
    found = study(network, encoding, twins, people, dos, epsilon=EPSILON, partition=partition, bits=True, threads=2)
    plain = study(network, encoding, twins, people, dos, epsilon=EPSILON, partition=partition, threads=1)
    assert plain.q_1 is None
    assert np.array_equal(plain.k, found.k)
    assert np.array_equal(plain.flips, found.flips)
    labels = rng.integers(0, max(network.classes, 2), len(people)).astype(float)
    right = None if head == "linear" else accuracies(network, encoding, people, labels, dos, threads=2)
    for number, do in enumerate(dos):
        changed = network.with_interventions([do])
        plan = plan_of(changed, encoding, twins)
        expected = evaluate(plan, people, epsilon=EPSILON, partition=partition, threads=1)
        sure = ~near_a_boundary(scores(plan, people, threads=1).astype(np.float64), partition)
        assert sure.mean() > 0.9
        assert np.array_equal(found.k[number][sure], expected.k[sure])
        assert np.array_equal(found.flips[number][sure], expected.flips[sure])
        assert np.allclose(found.q_1[number][sure], expected.q_1[sure], atol=1e-5)
        if right is not None:
            assert right[number] == (changed.labels(inputs) == labels).mean()


def test_blocks_and_chunks_change_nothing(rng, people_schema, monkeypatch) -> None:
    encoding, twins = Encoding.one_hot(people_schema), Twins(people_schema)
    network = random_network(rng, [encoding.width, 8, 6, 2])
    people = random_people(rng, people_schema, 500)
    dos = values_of(network, 0, encoding.encode(people))
    options = {"epsilon": EPSILON, "partition": "constrained"}
    whole = study(network, encoding, twins, people, dos, threads=1, **options)
    monkeypatch.setattr("fairbits.engine.interventions.BLOCK_BYTES", 1)
    monkeypatch.setattr("fairbits.engine.interventions.MIN_BLOCK", 1)
    monkeypatch.setattr("fairbits.engine.threads.CHUNK", 1)
    pieces = study(network, encoding, twins, people, dos, threads=3, **options)
    assert np.array_equal(whole.k, pieces.k)
    assert np.array_equal(whole.flips, pieces.flips)
    labels = np.zeros(500)
    one = accuracies(network, encoding, people, labels, dos, threads=1)
    assert np.array_equal(one, accuracies(network, encoding, people, labels, dos, threads=3))


def test_ties_are_decided_as_the_network_decides_them(rng, people_schema) -> None:
    encoding = Encoding.one_hot(people_schema)
    people = random_people(rng, people_schema, 30)
    inputs = encoding.encode(people)
    for head, outputs in (("softmax", 3), ("sigmoid", 1)):
        for favourable in (0, 1):
            network = Network.build(
                [np.zeros((encoding.width, 2)), np.zeros((2, outputs))],
                [np.zeros(2), np.zeros(outputs)],
                head=head,
                favourable=favourable,
            )
            labels = network.labels(inputs).astype(float)
            assert accuracies(network, encoding, people, labels, [Do(0, 1, 2.0)]).tolist() == [1.0]


def test_nothing_to_do(rng, people_schema: Schema) -> None:
    encoding, twins = Encoding.one_hot(people_schema), Twins(people_schema)
    network = random_network(rng, [encoding.width, 4, 2])
    people = random_people(rng, people_schema, 3)
    assert study(network, encoding, twins, people, [], epsilon=EPSILON, partition="grid").k.shape == (0, 3)
    found = study(network, encoding, twins, people[:0], [Do(0, 0, 1.0)], epsilon=EPSILON, partition="grid")
    assert found.k.shape == (1, 0)


@pytest.mark.parametrize(
    ("activation", "do", "error", "message"),
    [
        ("relu", Do(0, 1, -1.0), ModelError, "a relu neuron can never put out -1"),
        ("tanh", Do(0, 1, 1.5), ModelError, "a tanh neuron can never put out 1.5"),
        ("relu", Do(1, 0, 1.0), OptionError, "layer 1 is not a hidden layer"),
        ("relu", Do(0, 4, 1.0), OptionError, "neuron 4 is not in layer 0"),
    ],
)
def test_what_surgery_refuses(rng, people_schema, activation, do, error, message) -> None:
    encoding, twins = Encoding.one_hot(people_schema), Twins(people_schema)
    network = random_network(rng, [encoding.width, 4, 2], activation=activation)
    people = random_people(rng, people_schema, 3)
    with pytest.raises(error, match=message):
        network.with_interventions([do])
    with pytest.raises(error, match=message):
        study(network, encoding, twins, people, [do], epsilon=EPSILON, partition="grid")
    with pytest.raises(error, match=message):
        accuracies(network, encoding, people, np.zeros(3), [do])


def test_bad_input(rng, people_schema: Schema) -> None:
    encoding, twins = Encoding.one_hot(people_schema), Twins(people_schema)
    network = random_network(rng, [encoding.width, 4, 2])
    people = random_people(rng, people_schema, 30)
    people[27, 1] = 9
    with pytest.raises(TableError, match=r"column 2 must be whole numbers within 0\.\.3, but row 28 holds 9"):
        study(network, encoding, twins, people, [Do(0, 0, 1.0)], epsilon=EPSILON, partition="grid")
    with pytest.raises(TableError, match=r"row 28 holds 9"):
        accuracies(network, encoding, people, np.zeros(30), [Do(0, 0, 1.0)])
    with pytest.raises(TableError, match="one label for each"):
        accuracies(network, encoding, people, np.zeros(29), [Do(0, 0, 1.0)])
    regression = random_network(rng, [encoding.width, 4, 1], head="linear")
    with pytest.raises(ModelError, match="no accuracy"):
        accuracies(regression, encoding, people, np.zeros(30), [Do(0, 0, 1.0)])


@pytest.mark.parametrize("head", ["softmax", "sigmoid", "linear"])
@pytest.mark.parametrize("partition", ["constrained", "grid"])
def test_twins_that_cannot_exist_count_nowhere(rng, people_schema, head, partition, monkeypatch) -> None:
    monkeypatch.setattr("fairbits.engine.threads.CHUNK", 1)
    encoding, twins = Encoding.one_hot(people_schema), Twins(people_schema)
    outputs = 3 if head == "softmax" else 1
    network = calm_network(rng, encoding, [9, 5, outputs], head=head, favourable=0 if head == "linear" else 1)
    people = random_people(rng, people_schema, 61)
    valid = rng.random((61, twins.m)) < 0.6
    valid[:, 2] |= ~valid.any(axis=1)
    dos = values_of(network, 0, encoding.encode(people))
    options = {"epsilon": EPSILON, "partition": partition, "threads": 2}
    found = study(network, encoding, twins, people, dos, valid=valid, **options)
    everyone = study(network, encoding, twins, people, dos, valid=np.ones_like(valid), **options)
    plain = study(network, encoding, twins, people, dos, **options)
    assert np.array_equal(everyone.k, plain.k)
    assert np.array_equal(everyone.flips, plain.flips)
    for count in (1, 2, 5, 12, 13, 29):  # few people fill a tile with several of their twins
        for there, whole in ((valid[:count], found), (None, plain)):
            few = study(network, encoding, twins, people[:count], dos, valid=there, **options)
            assert np.array_equal(few.k, whole.k[:, :count])
            assert np.array_equal(few.flips, whole.flips[:, :count])
    assert (found.k < plain.k).any()
    for number, do in enumerate(dos):
        table = scores(plan_of(network.with_interventions([do]), encoding, twins), people, threads=1)
        decides, bounded = head != "linear", head != "linear"
        expected = masked(table, valid, epsilon=EPSILON, partition=partition, bounded=bounded, decides=decides)
        sure = ~near_a_boundary(table.astype(np.float64), partition)
        assert np.array_equal(found.k[number][sure], expected.k[sure])
        if head == "sigmoid":
            assert np.array_equal(found.flips[number][sure], expected.flips[sure])
        if head == "softmax":  # the most likely class is the decision, not the half
            held = network.with_interventions([do])
            rows = encoding.encode_twins(people, twins).reshape(-1, encoding.width)
            favoured = (held.labels(rows) == 1).reshape(61, -1)
            flips = [len(set(own[there])) > 1 for own, there in zip(favoured, valid, strict=True)]
            assert np.array_equal(found.flips[number], flips)
