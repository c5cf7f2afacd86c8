"""Rivals' repairs: a planted set of neurons is found, figures are those of the judge, a seed says what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fairbits import Attribute, Network, Schema, Table
from fairbits.errors import CapabilityError
from fairbits.repair.choice import Planner, Proposer
from fairbits.repair.judgement import Setting, judge
from fairbits.repair.proposals.registry import PROPOSERS
from fairbits.repair.proposals.rivals import Care, EqualisedOdds, FairnessFinetune, NeuFair, Scales, causal_effects
from fairbits.repair.run import Study, study
from fairbits.subject import Subject, make_subject
from tests.repair import planted

CARRIERS = {(0, 1), (0, 4)}  # layer, neuron
SCHEMA = Schema(
    attributes=(
        Attribute(name="skill", kind="integer", low=0, high=9),
        Attribute(name="origin", kind="category", labels=tuple("abcdef"), protected=True),
        Attribute(name="hint", kind="category", labels=("no", "yes")),
    ),
    target="hired",
    classes=("no", "yes"),
)


def wired(rows: int = 2_400) -> Subject:
    """The logit is skill − 4.5 + 0.8·(origin − 2.5): the two carriers know the origin, the labels do not."""
    first = np.zeros((3, 8))
    first[0, 0] = 1.0
    first[1, [1, 4]] = 1.0, -1.0
    first[2, 2:4] = 1.0
    second = np.zeros((8, 1))
    second[[0, 1, 4], 0] = 1.0, 0.4, -0.4
    bias = np.zeros(8)
    bias[4:8] = 5.0, 1.0, 0.0, 0.0
    network = Network.build([first, second], [bias, [-4.5]], head="sigmoid")
    rng = np.random.default_rng(5)
    codes = np.column_stack([rng.integers(0, high, rows) for high in (10, 6, 2)]).astype(np.float64)
    table = Table(codes, (codes[:, 0] >= 5).astype(np.float64), np.arange(rows) % 3 == 0)
    return make_subject("wired", network, SCHEMA, table)


def studied(subject: Subject, folder: Path, proposers: Sequence[Proposer], seed: int = 0) -> Study:
    run = planted.searched(subject, folder / "run")
    return study(run, subject, proposers, quick=True, seed=seed, threads=1)


def test_both_walks_drop_the_carriers(tmp_path: Path) -> None:
    found = studied(wired(), tmp_path, [NeuFair(seconds=1e9, evaluations=400)])
    assert found.before[1].figures.k_mean > 3
    assert (found.before[1].figures.equalised_odds or 0) > 0.2
    names = [f"neufair-{way}-{cost}" for cost in ("odds", "k") for way in ("annealing", "walk")]
    assert [one.name for one in found.candidates] == names
    for one in found.candidates:
        gone = {(do.layer, do.neuron) for do in one.neurons}
        assert gone >= CARRIERS
        assert (one.held_out.k_mean, one.held_out.equalised_odds, one.held_out.f1) == (1, 0, 1)


def test_the_swarm_silences_the_carriers(tmp_path: Path) -> None:
    found = studied(wired(), tmp_path, [Care(seconds=1e9, evaluations=1_500)])
    before = found.before[1].figures
    odds, k = found.candidates
    assert odds.held_out.equalised_odds == 0
    assert k.held_out.k_mean < 0.5 * before.k_mean
    assert (k.held_out.f1 or 0) >= 0.98 * (before.f1 or 1)


@pytest.mark.parametrize("cost", ["odds", "k"])
def test_carriers_have_the_largest_causal_effects(tmp_path: Path, cost: str) -> None:
    subject = wired()
    found = studied(subject, tmp_path, [])
    planner = Planner(subject.model, found.halves, found.setting, 0.02, np.random.SeedSequence(0), lambda _: None)
    scales = Scales(planner, "this", cost)  # type: ignore[arg-type]
    effects = dict(zip(scales.places, causal_effects(scales), strict=True))
    without_skill = {place: effect for place, effect in effects.items() if place != (0, 0)}
    assert set(sorted(without_skill, key=lambda place: -without_skill[place])[:2]) == CARRIERS
    assert effects[0, 2] == effects[0, 7] == 0  # nothing hangs on them


def test_odds_are_those_of_the_judge(tmp_path: Path) -> None:
    subject = planted.network_subject()
    halves = studied(subject, tmp_path, []).halves
    setting = Setting(subject, 0.025, "constrained", 1)
    judged = judge(subject.model, halves.held_out, setting)
    right = judged.answers == judged.labels
    odds = EqualisedOdds(subject.schema, halves.held_out.rows, halves.held_out.labels)
    assert odds(lambda part: right[part].mean()) == pytest.approx(judged.figures.equalised_odds)
    positive = judged.answers == 1
    precision, recall = judged.labels[positive].mean(), positive[judged.labels == 1].mean()
    assert judged.figures.f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_a_fine_tune_lowers_k_of_held_out_rows(tmp_path: Path) -> None:
    found = studied(wired(), tmp_path, [FairnessFinetune(weights=(10.0,), seconds=1e9)])
    (one,) = found.candidates
    before = found.before[1].figures
    assert one.name == "finetune-10"
    assert one.held_out.k_mean_rows < 0.6 * before.k_mean_rows
    assert one.held_out.accuracy > before.accuracy - 0.05


def test_a_seed_says_what_comes_out(tmp_path: Path) -> None:
    proposers = [
        NeuFair(seconds=1e9, evaluations=25),
        Care(seconds=1e9, evaluations=60),
        FairnessFinetune(weights=(3.0,), seconds=1e9),
    ]
    subject = planted.network_subject()

    def weights(folder: str, seed: int) -> list[bytes]:
        made = studied(subject, tmp_path / folder, proposers, seed)
        return [b"".join(w.tobytes() for w in one.network.weights) for one in made.candidates]

    first = weights("one", 3)
    assert first == weights("two", 3)
    assert first != weights("three", 4)


def test_seconds_end_a_search(tmp_path: Path) -> None:
    found = studied(wired(), tmp_path, [FairnessFinetune(seconds=0), NeuFair(seconds=0), Care(seconds=0)])
    assert [one.family for one in found.candidates] == ["neufair"] * 4 + ["care"] * 2


@pytest.mark.parametrize("name", ["neufair", "care", "finetune"])
def test_other_models_get_a_reason(tmp_path: Path, name: str) -> None:
    from sklearn.tree import DecisionTreeClassifier

    subject = planted.estimator_subject(DecisionTreeClassifier(max_depth=3, random_state=0))
    run = planted.searched(subject, tmp_path / "run")
    with pytest.raises(CapabilityError, match="changes the weights of a network"):
        study(run, subject, [PROPOSERS[name]], wanted=frozenset({name}), rows_for_cases=True, threads=1)
