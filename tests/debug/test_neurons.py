"""Neurons wired to carry, to let through and to drown the protected attribute: found, with the right sign."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairbits import Network, Table
from fairbits.debug import Candidate, NeuronEffect, debug_run
from fairbits.debug.neurons import NAMES, neuron_effects
from fairbits.measure import Evaluator
from fairbits.subject import make_subject
from tests.debug.conftest import SCHEMA, Maker, table_of


def effects(rng: np.random.Generator, network: Network, table: Table | None = None) -> list[NeuronEffect]:
    subject = make_subject("wired", network, SCHEMA, table or table_of(rng, network, rows=2000))
    evaluator = Evaluator(subject.model, SCHEMA, subject.encoding, threads=1)
    found, _ = neuron_effects(evaluator, subject, subject.table.codes, [1], rng=rng)
    return list(found)


def test_the_only_carrier_is_found_and_its_do_brings_k_to_1(make_run: Maker, carrier: Network) -> None:
    result = debug_run(make_run(carrier), threads=1, trainings=0)
    assert result.suspect == 1
    assert result.k_mean > 1.5
    best = result.best()[0]
    assert best.neuron == 1
    assert best.best is not None
    assert best.best.k_mean == 1.0
    mended = carrier.with_interventions([best.do(best.best)])
    evaluator = Evaluator(mended, SCHEMA, threads=1)
    assert evaluator.evaluate(result.cases).k.max() == 1


def test_what_is_chosen_on_one_half_is_reported_on_the_other(make_run: Maker, carrier: Network) -> None:
    result = debug_run(make_run(carrier), samples=61, threads=1, trainings=0, sets=False)
    choosing, reporting = result.cases[::2], result.cases[1::2]
    assert result.k_reported == pytest.approx(Evaluator(carrier, SCHEMA, threads=1).evaluate(reporting).k.mean())
    for neuron in result.neurons:
        for one in neuron.candidates:
            held = Evaluator(carrier.with_interventions([neuron.do(one)]), SCHEMA, threads=1)
            assert one.k_choosing == pytest.approx(held.evaluate(choosing).k.mean(), abs=0.05)
            assert one.k_reported == pytest.approx(held.evaluate(reporting).k.mean(), abs=0.05)
        kept = [one for one in neuron.candidates if one.kept]
        assert neuron.best is min(kept, key=lambda one: one.k_choosing)
        if neuron.acd is not None:
            assert neuron.active is not None
            assert neuron.inactive is not None
            assert (neuron.active.statistic, neuron.inactive.statistic) == ("mean", "min")
            change = neuron.active.k_reported - neuron.inactive.k_reported
            assert neuron.acd == pytest.approx(change / result.k_reported)
            assert neuron.acd_low is not None
            assert neuron.acd_high is not None
            assert neuron.acd_low <= neuron.acd <= neuron.acd_high


def candidate(value: float, choosing: float, reported: float) -> Candidate:
    mean = (choosing + reported) / 2
    return Candidate("mean", value, 0.9, True, mean, 0.5, choosing, reported, None, choosing, reported)


def test_luck_on_the_choosing_half_is_not_reported_as_an_effect() -> None:
    """A hundred neurons that do nothing: the luckiest looks good where it was chosen, and as it is elsewhere."""
    rng = np.random.default_rng(0)
    effects = [
        NeuronEffect(
            1, number, 0.0, None, None, tuple(candidate(v, *(3 + 0.3 * rng.normal(size=2))) for v in range(10))
        )
        for number in range(100)
    ]
    chosen = [one.best for one in effects if one.best is not None]
    assert np.mean([one.k_choosing for one in chosen]) < 2.65
    assert np.mean([one.k_reported for one in chosen]) == pytest.approx(3.0, abs=0.1)


def gate(weight_of_gate: float, shift: float) -> Network:
    """Two hidden layers: neuron 1 of the first (luck) lets sex through the second, or drowns it."""
    first = np.array([[1.0, 0, 0], [0, 0, 1], [0, 1, 0]])  # neurons: sex, luck, skill
    second = np.array([[4.0, 0], [weight_of_gate, 0], [0, 1]])
    return Network.build(
        [first, second, np.array([[0.61], [0.53]])],
        [np.zeros(3), np.array([shift, 0]), np.array([-3.07])],
        head="sigmoid",
    )


@pytest.mark.parametrize(("network", "sign"), [(gate(1.0, -6.0), +1), (gate(-1.0, 0.0), -1)])
def test_signs(rng: np.random.Generator, network: Network, sign: int) -> None:
    luck = next(one for one in effects(rng, network) if one.neuron == 1)
    assert luck.acd is not None
    assert luck.acd * sign > 0.02
    assert luck.active is not None
    assert luck.inactive is not None
    assert luck.inactive.value == 0.0
    assert luck.remedy is (luck.inactive if sign > 0 else luck.active)
    assert list(luck.curve) == sorted(luck.candidates, key=lambda one: one.value)


def test_candidates(rng: np.random.Generator, carrier: Network) -> None:
    table = table_of(rng, carrier, rows=300, labels="own")
    outputs = carrier.activations(table.codes)[0]
    for one in effects(rng, carrier, table):
        values = {candidate.statistic: candidate.value for candidate in one.candidates}
        mine = outputs[:, one.neuron].astype(np.float64)
        assert set(values) <= set(NAMES)
        assert values["max"] == mine.max()
        assert values["mean+2sd"] == pytest.approx(mine.mean() + 2 * mine.std(), rel=1e-5)
        assert values["q75"] == np.quantile(mine, 0.75)
        assert min(values.values()) >= 0  # a ReLU puts out nothing below
        for candidate in one.candidates:
            changed = carrier.with_interventions([one.do(candidate)])
            accuracy = (changed.labels(table.codes) == table.labels).mean()
            assert candidate.accuracy == pytest.approx(accuracy)
            assert candidate.kept == (accuracy >= 1.0 - 0.05)  # the labels are the network's own
            k = Evaluator(changed, SCHEMA, threads=1).evaluate(table.codes).k
            assert candidate.k_mean == pytest.approx(k.mean(), abs=0.01)


def test_a_value_that_decides_the_same_for_everybody_is_not_kept(rng: np.random.Generator, carrier: Network) -> None:
    """With 96 % of one class, switching the network off costs less than 5 % of accuracy."""
    shifted = replace(carrier, biases=(carrier.biases[0], np.array([-5.8], np.float32)))
    table = table_of(rng, shifted, rows=1000, labels="own")
    assert table.labels is not None
    majority = 1 - table.labels.mean()
    assert 0.95 < majority < 1
    skill = next(one for one in effects(rng, shifted, table) if one.neuron == 0)
    off = next(one for one in skill.candidates if one.statistic == "zero")
    assert off.accuracy == majority
    assert not off.kept


@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "elu", "gelu"])
def test_values_that_the_activation_cannot_put_out_are_left_out(rng: np.random.Generator, activation: str) -> None:
    weights = [rng.normal(0, 0.4, (3, 4)), rng.normal(0, 1, (4, 1))]
    network = Network.build(weights, [rng.normal(size=4), np.zeros(1)], activation=activation, head="sigmoid")
    found = effects(rng, network)
    assert len(found) == 4
    for one in found:
        assert one.candidates
        network.with_interventions([one.do(candidate) for candidate in one.candidates[:1]])


class Foreign:
    """A network behind the protocols only."""

    def __init__(self, network: Network):
        self.network, self.inputs = network, network.inputs

    def scores(self, inputs):
        return self.network.scores(inputs)

    def activations(self, inputs):
        return self.network.activations(inputs)

    def with_interventions(self, interventions):
        return Foreign(self.network.with_interventions(interventions))


def test_a_foreign_model_gives_the_same(rng: np.random.Generator) -> None:
    network = gate(1.0, -6.0)
    table = table_of(rng, network, rows=200)
    found = []
    for model in (network, Foreign(network)):
        subject = make_subject("wired", model, SCHEMA, table)
        evaluator = Evaluator(subject.model, SCHEMA, subject.encoding, threads=1)
        neurons, accuracy = neuron_effects(evaluator, subject, table.codes[:50], [2], rng=rng)
        values = [{c.statistic: (c.value, c.accuracy, c.k_mean) for c in one.candidates} for one in neurons]
        found.append((accuracy, values))
    (native, natives), (foreign, foreigns) = found
    assert native == foreign
    for mine, theirs in zip(natives, foreigns, strict=True):
        assert theirs.items() <= mine.items()  # of a foreign model, only values that were seen are tried
        assert len(theirs) >= 8


def test_acd_intervals_take_a_chain_for_one() -> None:
    """Ten cases of each of thirty rows: taken one by one, 95 % held three times in four."""
    from fairbits.measure import clustered_ratio

    held = {"chains": 0, "cases": 0}
    worlds = 200
    for seed in range(worlds):
        rng = np.random.default_rng([seed, 12])
        chains = np.repeat(np.arange(30), 10)
        effect = 0.3 + 0.5 * rng.normal(size=30)[chains] + 0.5 * rng.normal(size=300)
        before = 3.0 + rng.random(30)[chains]
        for name, whose in (("chains", chains), ("cases", np.arange(300))):
            found = clustered_ratio(effect, before, whose)
            held[name] += found.low <= 0.3 / 3.5 <= found.high
    assert held["cases"] < 0.75 * worlds < 0.93 * worlds <= held["chains"]
