"""Distances in layers whose outputs are known, and the vote."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits import Encoding, Network, Twins
from fairbits.debug.neurons import (
    SMALL,
    amplification,
    ballots_of,
    influence_of,
    layer_distances,
    layer_effects,
    vote_of,
)
from fairbits.engine.interventions import widest
from fairbits.errors import CapabilityError
from fairbits.measure import Estimate, Evaluator
from tests.conftest import random_network, random_people
from tests.debug.conftest import SCHEMA


@pytest.mark.parametrize("shape", [(7, 2, 3), (5, 90, 16), (3, 41, 1), (2, 1, 4), (0, 4, 4)])
def test_the_widest_pair(rng: np.random.Generator, shape: tuple[int, int, int]) -> None:
    outputs = np.maximum(rng.normal(size=shape), 0).astype(np.float32)
    pairs = np.abs(outputs[:, :, None].astype(np.float64) - outputs[:, None]).sum(axis=-1)
    expected = pairs.max(axis=(1, 2), initial=0.0)
    assert widest(outputs, threads=2) == pytest.approx(expected, rel=1e-5)


def test_known_distances() -> None:
    """Sex enters as 0 or 1; the first layer triples it, the second halves that, the output is a sigmoid."""
    network = Network.build(
        [np.array([[3.0, 3.0], [0, 0], [0, 0]]), np.array([[0.5], [0.0]]), np.array([[2.0]])],
        [np.zeros(2), np.zeros(1), np.zeros(1)],
        head="sigmoid",
    )
    people = np.array([[0.0, 1, 2], [0.0, 5, 5]])
    delta, widths = layer_distances(Evaluator(network, SCHEMA, Encoding.identity(SCHEMA)), people)
    assert widths == (1, 2, 1, 1)
    score = 1 / (1 + np.exp(-3.0)) - 0.5
    assert delta == pytest.approx(np.tile([1, 3, 1.5, score], (2, 1)), rel=1e-6)
    rho = amplification(delta)
    assert rho[0] == pytest.approx([2 / (1 + SMALL), -1.5 / 3, (score - 3) / 3], rel=1e-6)
    layers = layer_effects(delta, rho, widths)
    assert ballots_of(rho).tolist() == [1, 1]
    assert [one.votes for one in layers] == [0, 2, 0, 0]
    assert layers[0].rho is None
    assert layers[1].rho == pytest.approx(2, rel=1e-6)
    assert layers[1].rho_quantiles == pytest.approx([2] * 5, rel=1e-6)
    vote = vote_of(rho, np.random.default_rng(0))
    assert vote.suspect == 1
    assert vote.certainty == 1.0
    assert vote.influence is not None
    assert vote.influence.value == pytest.approx(2, rel=1e-6)


def test_a_network_without_hidden_layers_has_no_suspect(rng: np.random.Generator) -> None:
    network = random_network(rng, [3, 2])
    delta, widths = layer_distances(Evaluator(network, SCHEMA), random_people(rng, SCHEMA, 9))
    rho = amplification(delta)
    assert [one.votes for one in layer_effects(delta, rho, widths)] == [0, 0]
    assert vote_of(rho, rng).suspect is None
    with pytest.raises(CapabilityError, match="needs two of them; this model has 0"):
        amplification(delta, rule="code")


def test_batches_change_nothing(rng, people_schema, monkeypatch) -> None:
    encoding, twins = Encoding.one_hot(people_schema), Twins(people_schema)
    network = random_network(rng, [encoding.width, 5, 4, 2])
    people = random_people(rng, people_schema, 50)
    whole, _ = layer_distances(Evaluator(network, people_schema, encoding, threads=1), people)
    monkeypatch.setattr("fairbits.debug.neurons.LAYER_ROWS", 40)
    pieces, _ = layer_distances(Evaluator(network, people_schema, encoding, threads=2), people)
    assert pieces == pytest.approx(whole, rel=1e-5)
    inputs = encoding.encode_twins(people, twins)
    protected = np.concatenate([encoding.parts[i].columns for i in twins.columns])
    mine = inputs[0][:, protected]
    assert whole[0, 0] == pytest.approx(np.abs(mine[:, None] - mine[None]).sum(axis=-1).max() / len(protected))


def test_the_share_of_votes_has_a_width_where_all_agree() -> None:
    """Votes of one mind are the same when drawn again: where 95 % vote for a layer, 20 people often all do."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(150):
        chosen = rng.random(20) < 0.95
        rho = np.zeros((20, 4))
        rho[np.arange(20), np.where(chosen, 1, 2)] = 1.0
        found = vote_of(rho, rng)
        held += found.share.low <= 0.95 <= found.share.high
    assert held >= 132  # Wilson's interval holds 92 % of the time here; drawing the votes again 64 %


def test_the_influence_is_covered() -> None:
    rng, held = np.random.default_rng(0), 0
    for _ in range(100):
        rho = np.zeros((60, 3))
        rho[:, 1] = rng.exponential(2.0, 60)
        held += covers(influence_of(rho, rng), 2.0)
    assert held >= 86  # a bootstrap of 60 skewed people holds a little less than 95 %


def covers(found: Estimate, truth: float) -> bool:
    return found.low <= truth <= found.high
