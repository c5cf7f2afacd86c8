"""The layer that matters: a planted bottleneck is found in every layer and depth, and the three rules side by side."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits import Network
from fairbits.debug import debug_run, read_debug
from fairbits.debug.neurons import (
    amplification,
    check_rule,
    layer_holds,
    neuron_effects,
    neuron_sets,
    text_effects,
)
from fairbits.debug.run import suspect_of
from fairbits.measure import Evaluator
from fairbits.subject import make_subject
from tests.conftest import random_network, random_people
from tests.debug.conftest import SCHEMA, Maker, table_of

COPIES = 8
DEPTHS = [(depth, layer) for depth in range(1, 6) for layer in range(1, depth + 1)]


def bottleneck(depth: int, layer: int, carriers: int = 1) -> Network:
    """Skill goes its own way; sex goes through eight neurons of every layer, and through so many of this layer."""
    weights: list[np.ndarray] = []
    inputs = 3
    for place in range(1, depth + 1):
        width = 2 + (carriers if place == layer else COPIES)
        now = np.zeros((inputs, width))
        if place == 1:
            now[1, 0], now[0, 2:] = 1.0, 1.0
        else:
            now[0, 0] = 1.0
            now[2:, 2:] = 1.0 / (inputs - 2)
        weights.append(now)
        inputs = width
    last = np.zeros((inputs, 1))
    last[0], last[2:] = 0.3, 2.0 / (inputs - 2)
    biases = [np.zeros(one.shape[1]) for one in weights]
    return Network.build([*weights, last], [*biases, np.array([-2.0])], head="sigmoid")


@pytest.mark.parametrize(("depth", "layer"), DEPTHS)
def test_a_planted_layer_is_found(depth: int, layer: int, rng: np.random.Generator) -> None:
    network = bottleneck(depth, layer)
    subject = make_subject("planted", network, SCHEMA, table_of(rng, network, rows=500))
    held = layer_holds(
        Evaluator(network, SCHEMA, threads=1), subject, random_people(rng, SCHEMA, 60), measure="q_inf", rng=rng
    )
    assert max(held, key=lambda one: held[one].explained.value) == layer
    assert held[layer].explained.value == 1.0
    assert [(do.layer + 1, do.neuron) for do in held[layer].neurons] == [(layer, 2)]
    assert all(one.explained.value < 0.6 for place, one in held.items() if place != layer)


@pytest.mark.parametrize("carriers", [2, 3])
@pytest.mark.parametrize(("depth", "layer"), DEPTHS)
def test_a_layer_of_several_carriers_is_found(depth: int, layer: int, carriers: int, rng: np.random.Generator) -> None:
    """Twins of two values are told apart as long as one carrier is left: alone, none of them takes bits away."""
    network = bottleneck(depth, layer, carriers)
    subject = make_subject("planted", network, SCHEMA, table_of(rng, network, rows=500))
    about = Evaluator(network, SCHEMA, threads=1), subject, random_people(rng, SCHEMA, 60)
    held = layer_holds(*about, measure="q_inf", rng=rng)
    assert max(held, key=lambda one: held[one].explained.value) == layer
    assert held[layer].explained.value == 1.0
    assert sorted((do.layer + 1, do.neuron) for do in held[layer].neurons) == [
        (layer, 2 + one) for one in range(carriers)
    ]
    minimal = neuron_sets(*about, measure="q_inf", rng=rng).minimal
    assert minimal is not None
    assert {do.layer + 1 for do in minimal.neurons} == {layer}


def test_the_suspect_of_a_debugging_with_votes_beside(make_run: Maker) -> None:
    run = make_run(bottleneck(3, 2))
    found = debug_run(run, samples=60, threads=1, trainings=0)
    assert (found.suspect, found.rule) == (2, "ours")
    assert found.layers[2].explained is not None
    assert found.layers[2].explained.value == 1.0
    assert [one.votes_code is None for one in found.layers] == [True, False, False, False, True]
    assert sum(one.votes_code or 0 for one in found.layers) == len(found.cases)
    again = read_debug(run.folder)
    assert again is not None
    assert again.layers == found.layers
    assert suspect_of(again.layers, again.vote) == 2
    assert again.rule == "ours"
    assert (check_rule("paper"), check_rule("spread"), check_rule("text")) == ("code", "ours", "text")


def test_algorithm_2_to_the_letter(rng: np.random.Generator) -> None:
    """δ is the largest over cases, ρ is taken of that, and δ_0 is 0: the first layer it is."""
    delta = np.array([[9.0, 2.0, 5.0, 1.0, 0.5], [9.0, 3.0, 1.0, 7.0, 0.5]])
    layers, vote = text_effects(delta, (1, 4, 4, 4, 2), rng)
    assert [one.delta for one in layers] == [9.0, 3.0, 5.0, 7.0, 0.5]
    expected = [3 / 1e-7, 2 / (3 + 1e-7), 2 / (5 + 1e-7), (0.5 - 7) / (7 + 1e-7)]
    assert [one.rho for one in layers[1:]] == pytest.approx(expected)
    assert (vote.suspect, vote.certainty) == (1, 1.0)
    assert amplification(delta, rule="text")[0, 0] == pytest.approx(2 / 1e-7)


def test_neurons_by_the_text(rng: np.random.Generator) -> None:
    """Values are chosen among those that keep the accuracy on both sides, and the ACD is of bits."""
    network = random_network(rng, [3, 6, 5, 2])
    subject = make_subject("random", network, SCHEMA, table_of(rng, network, rows=400))
    people, evaluator = random_people(rng, SCHEMA, 40), Evaluator(network, SCHEMA, threads=1)
    found, accuracy = neuron_effects(evaluator, subject, people, [2], rng=rng, rule="text")
    assert accuracy is not None
    for one in found:
        assert all(c.kept == (c.accuracy is not None and abs(c.accuracy - accuracy) <= 0.05) for c in one.candidates)
        kept = [c for c in one.candidates if c.kept]
        if one.inactive is not None:
            assert abs(one.inactive.value) == min(abs(c.value) for c in kept)
        if one.active is not None:
            assert one.active.value > 0
        if one.acd is not None and one.active is not None and one.inactive is not None:
            bits = float(evaluator.evaluate(people).q_inf.mean())
            by_hand = []
            for held in (one.active, one.inactive):
                changed = evaluator.with_model(network.with_interventions([one.do(held)]))
                by_hand.append(float(changed.evaluate(people).q_inf.mean()))
            assert one.acd == pytest.approx((by_hand[0] - by_hand[1]) / bits, abs=1e-6)
    assert any(one.acd for one in found)


def test_a_debugging_by_the_text(make_run: Maker) -> None:
    found = debug_run(make_run(bottleneck(3, 3)), samples=60, threads=1, trainings=0, rule="text")
    assert (found.suspect, found.rule) == (1, "text")
    assert found.layers[0].rho is None
    assert found.rho is not None
    assert found.layers[1].delta == pytest.approx(float(found.delta[:, 1].max()))  # type: ignore[index]
