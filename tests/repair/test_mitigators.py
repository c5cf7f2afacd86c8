"""Each mitigator on a planted subject: it lowers what it promises, and says why where it has nothing to offer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbits import Attribute, Audit, Encoding, Network, Schema, Subject, Table
from fairbits.errors import CapabilityError, MissingDependencyError, OptionError, TableError
from fairbits.measure import evaluator_of
from fairbits.repair import Planner, Proposal, repair_run
from fairbits.repair.judgement import Judged, Setting, judge, split
from fairbits.repair.proposals.mitigators import (
    Adversarial,
    ExponentiatedGradients,
    PrejudiceRemover,
    Reweighing,
    ThresholdsByGroup,
    coding_of,
    fitted_thresholds,
    independent_weights,
    pooled,
    trainer_for,
)
from fairbits.repair.proposals.registry import proposers_of
from fairbits.repair.proposals.settings import Tuning
from fairbits.repair.proposals.weights import recentred
from fairbits.repair.writers import export
from fairbits.subject import make_subject
from tests.conftest import random_network
from tests.repair.planted import SCHEMA, estimator_subject, network, network_subject, searched, table

#: The planted model selects one group 20 points more often; a mitigator must end well below.
LESS = 0.75


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Planner:
    subject = network_subject()
    return planner_of(subject, tmp_path_factory.mktemp("mitigators") / "run")


def planner_of(subject: Subject, folder: Path) -> Planner:
    run = searched(subject, folder)
    setting = Setting(subject, run.manifest["epsilon"], run.manifest["partition"], 1)
    halves = split(run, subject, np.random.default_rng(0), rows_for_cases=True)
    return Planner(subject.model, halves, setting, 0.02, np.random.SeedSequence(3), lambda _: None)


def judged(planner: Planner, proposal: Proposal | None = None) -> Judged:
    if proposal is None:
        return judge(planner.network, planner.halves.held_out, planner.setting)
    return judge(proposal.network, planner.halves.held_out, planner.setting.about(proposal.fitted))


def gap(planner: Planner, proposal: Proposal | None = None) -> float:
    found = judged(planner, proposal).figures.selection_gap
    assert found is not None
    return found


def test_reweighing_lowers_the_gap(planner: Planner) -> None:
    (found,) = Reweighing().propose(planner)
    assert gap(planner, found) < LESS * gap(planner)
    assert found.coding == "groups of sex: 2"
    assert judged(planner, found).figures.accuracy > 0.8


def test_more_of_the_penalty_removes_more_prejudice(planner: Planner) -> None:
    mild, strong = PrejudiceRemover(weights=(0.3, 10.0), updates=800).propose(planner)
    assert gap(planner, strong) < LESS * gap(planner)
    assert gap(planner, strong) <= gap(planner, mild)
    assert [mild.name, strong.name] == ["prejudice-0.3", "prejudice-10"]


def test_exponentiated_gradient_lowers_the_gap_and_is_one_network(planner: Planner) -> None:
    parity, odds = ExponentiatedGradients(rounds=3).propose(planner)
    assert gap(planner, parity) < LESS * gap(planner)
    assert isinstance(parity.network, Network)
    assert isinstance(odds.network, Network)
    assert "average log-odds" in odds.words


def test_the_adversary_lowers_the_gap(planner: Planner) -> None:
    pytest.importorskip("torch", reason="the torch extra is not installed")
    import torch

    before = torch.random.get_rng_state()
    (found,) = Adversarial(pulls=(1.0,), updates=500).propose(planner)
    assert gap(planner, found) < LESS * gap(planner)
    assert torch.equal(before, torch.random.get_rng_state())  # nobody else's randomness moved
    assert isinstance(found.network, Network)
    assert found.network.widths == network().widths


def test_an_adversary_without_a_gradient_does_not_end_the_training(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fairlearn", reason="the mitigate extra is not installed")
    pytest.importorskip("torch", reason="torch is not installed")
    sure = network()
    sure = replace(sure, weights=tuple(w * 300 for w in sure.weights))  # every score is 0 or 1 in single precision
    (found,) = Adversarial(pulls=(1.0,), updates=20).propose(replace(planner, network=sure))
    assert isinstance(found.network, Network)
    assert all(np.isfinite(w).all() for w in found.network.weights)
    monkeypatch.setattr(Adversarial, "_trained", lambda *_: None)
    with pytest.raises(CapabilityError, match=r"pull 0\.1 and 1 did not settle"):
        list(Adversarial().propose(planner))


def test_thresholds_make_selection_alike_by_using_the_protected_value(planner: Planner) -> None:
    parity, opportunity = ThresholdsByGroup().propose(planner)
    training = planner.halves.training
    chosen = parity.network.people_scores(training.rows) >= 0.5  # type: ignore[attr-defined]
    rates = [chosen[training.rows[:, 1] == sex].mean() for sex in (0, 1)]
    assert abs(rates[0] - rates[1]) < 0.11  # scores come in steps of a skill, a tenth of the people each
    assert gap(planner, parity) < LESS * gap(planner)
    inputs = planner.setting.subject.encoding.encode(training.rows)
    assert np.allclose(parity.network.scores(inputs), parity.network.people_scores(training.rows))  # type: ignore[attr-defined]
    assert "uses protected values directly" in opportunity.words


def test_thresholds_use_the_protected_value_of_a_model_that_did_not(tmp_path: Path) -> None:
    """The hint stands in for sex: what thresholds take from the gap, they add to the direct bits."""
    proxy = Network.build([[[0.9], [0.0], [3.0]]], [[-5.55]], head="sigmoid")
    subject = make_subject("proxy", proxy, SCHEMA, table(), original=proxy)
    planner = planner_of(subject, tmp_path / "run")
    before = judged(planner).figures
    parity, _ = ThresholdsByGroup().propose(planner)
    after = judged(planner, parity).figures
    assert before.q_inf_mean_rows == 0
    assert after.q_inf_mean_rows > 0.2
    assert after.selection_gap < LESS * before.selection_gap  # type: ignore[operator]
    assert before.indirect_bits > 0.02  # type: ignore[operator]


@pytest.mark.parametrize(("head", "favourable"), [("sigmoid", 1), ("sigmoid", 0), ("softmax", 1), ("softmax", 0)])
@pytest.mark.parametrize("coded", [True, False])
def test_thresholds_of_a_network_go_out_as_a_graph(tmp_path: Path, head: str, favourable: int, coded: bool) -> None:
    """Two attributes, one of them in steps of ten years and one-hot, or in ranges; every runtime decides the same."""
    ages = {"ranges": (("20–26", 23), ("27–35", 31), ("36–59", 50))} if coded else {"step": 10}
    onnxruntime = pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    rng = np.random.default_rng(5)
    schema = Schema(
        attributes=(
            Attribute(name="skill", kind="integer", low=0, high=9),
            Attribute(name="town", kind="category", labels=("a", "b", "c"), protected=True),
            Attribute(name="age", kind="integer", low=20, high=59, protected=True, **ages),
        ),
        target="hired",
        classes=("no", "yes"),
        favourable=("no", "yes")[favourable],
    )
    encoding = Encoding.identity(schema) if coded else Encoding.one_hot(schema)
    outputs = 1 if head == "sigmoid" else 2
    weights = [rng.normal(size=(encoding.width, 5)), rng.normal(size=(5, outputs))]
    network = Network.build(weights, [rng.normal(size=5), np.zeros(outputs)], activation="tanh", head=head)
    codes = np.column_stack([rng.integers(0, 10, 300), rng.integers(0, 3, 300), rng.integers(20, 60, 300)])
    people = Table(codes.astype(np.float64), rng.integers(0, 2, 300).astype(np.float64))
    network = recentred(network.with_favourable(favourable), encoding.encode(people.codes), 0.5)
    subject = make_subject("graph", network, schema, people, encoding=encoding, original=network)
    evaluator = evaluator_of(subject)
    found = fitted_thresholds(evaluator, coding_of(schema, people.codes), people.codes, people.labels, alike="parity")
    assert np.ptp(found.shifts) > 0
    assert found.scores(encoding.encode(people.codes)) == pytest.approx(found.people_scores(people.codes), abs=1e-6)
    written = export(found, subject, tmp_path, people.codes)
    assert [path.name for path in written.files] == ["repaired.onnx", "repaired.py"], written.warnings
    session = onnxruntime.InferenceSession(tmp_path / "repaired.onnx")
    said, label = session.run(None, {"inputs": encoding.encode(people.codes)})
    score = said[:, favourable] if head == "softmax" else said[:, 0] if favourable == 1 else 1 - said[:, 0]
    assert score == pytest.approx(found.people_scores(people.codes), abs=1e-5)
    own = found.people_scores(people.codes)
    clear = np.abs(own - 0.5) > 1e-5  # thresholds lie between scores; rounding may decide about a tie
    assert clear.mean() > 0.2
    assert list(label[clear]) == [schema.classes[i] for i in schema.rule.decide(own[clear])]


def test_tuning_is_the_same_for_a_seed(planner: Planner) -> None:
    pytest.importorskip("optuna", reason="the mitigate extra is not installed")
    first, again = ([p.words for p in Tuning(trials=3).propose(planner)] for _ in range(2))
    assert first == again
    other = [p.words for p in Tuning(trials=3).propose(replace(planner, seed=np.random.SeedSequence(4)))]
    assert first != other
    with pytest.raises(OptionError, match="trials is 0"):
        list(Tuning(trials=0).propose(planner))


@pytest.fixture(scope="module")
def forest(tmp_path_factory: pytest.TempPathFactory) -> Planner:
    from sklearn.ensemble import RandomForestClassifier

    subject = estimator_subject(RandomForestClassifier(n_estimators=5, max_depth=4, random_state=0))
    return planner_of(subject, tmp_path_factory.mktemp("forest") / "run")


def test_estimators_are_fitted_anew(forest: Planner) -> None:
    (found,) = Reweighing().propose(forest)
    assert found.fitted is not None
    assert type(found.fitted.estimator).__name__ == "RandomForestClassifier"
    parity, _ = ExponentiatedGradients(rounds=3).propose(forest)
    assert gap(forest, parity) < LESS * gap(forest)
    (tuned,) = Tuning(trials=1).propose(forest)
    assert "max_depth" in tuned.words
    for proposer in (PrejudiceRemover(), Adversarial()):
        with pytest.raises(CapabilityError, match="reweigh and expgrad train any scikit-learn style model"):
            list(proposer.propose(forest))


def test_a_pipeline_of_columns_is_fitted_anew_on_what_it_was_trained_on(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas", reason="the pandas extra is not installed")
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    people = table(300)
    labels = np.array(SCHEMA.classes)[people.labels.astype(int)]  # type: ignore[union-attr]
    frame = pd.DataFrame(
        {
            "skill": people.codes[:, 0].astype(int),
            "sex": np.array(["a", "b"])[people.codes[:, 1].astype(int)],
            "hint": np.array(["no", "yes"])[people.codes[:, 2].astype(int)],
        }
    )
    columns = ColumnTransformer([("words", OneHotEncoder(), ["sex", "hint"]), ("numbers", StandardScaler(), ["skill"])])
    estimator = make_pipeline(columns, LogisticRegression()).fit(frame, labels)
    subject = Audit(estimator, people, SCHEMA).subject
    trainer = trainer_for(subject, own_parameters=True)
    again = trainer.learned(people.codes, people.labels, np.random.default_rng(0))  # type: ignore[arg-type]
    wanted = subject.model.scores(subject.encoding.encode(people.codes))
    assert np.abs(again.model.scores(again.encoding.encode(people.codes)) - wanted).max() < 1e-3


def test_a_black_box_is_told_what_remains(tmp_path: Path) -> None:
    def guess(frame):  # type: ignore[no-untyped-def]
        return 1 / (1 + np.exp(4.5 - np.asarray(frame["skill"], float) - (np.asarray(frame["sex"]) == "b")))

    subject = Audit(guess, table(240), SCHEMA).subject
    box = planner_of(subject, tmp_path / "run")
    with pytest.raises(CapabilityError, match="average, guard-K and thresholds need scores only"):
        list(Reweighing().propose(box))
    assert [p.name for p in ThresholdsByGroup().propose(box)] == ["thresholds-parity", "thresholds-opportunity"]


def test_tables_that_are_too_small(tmp_path: Path) -> None:
    small = planner_of(network_subject(60), tmp_path / "run")
    with pytest.raises(TableError, match="has 40 training rows, and training again needs 60; average"):
        list(Reweighing().propose(small))
    training = replace(small.halves.training, labels=np.ones(40))
    with pytest.raises(TableError):
        list(Tuning(trials=1).propose(replace(small, halves=replace(small.halves, training=training))))


def test_a_missing_extra_names_the_command(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    for package, proposer in (("fairlearn.reductions", ExponentiatedGradients()), ("optuna", Tuning(trials=1))):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingDependencyError, match=r"pip install 'fairlearn>=.* 'optuna>="):
            list(proposer.propose(planner))
    monkeypatch.setitem(sys.modules, "fairlearn.adversarial", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'fairlearn>=.* 'optuna>="):
        list(Adversarial().propose(planner))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=60))
def test_weighted_rows_are_independent(pairs: list[tuple[int, int]]) -> None:
    groups, labels = (np.array(part) for part in zip(*pairs, strict=True))
    weights = independent_weights(groups, labels.astype(float))
    assert weights.sum() == pytest.approx(len(pairs))
    table = np.zeros((4, 2))
    np.add.at(table, (groups, labels), weights)
    full = table[(table > 0).all(axis=1)]  # groups that have both labels
    assert np.allclose(full[:, 0] * full[:1, 1], full[:, 1] * full[:1, 0])


@pytest.mark.parametrize(("shape", "head"), [([3, 4, 2, 1], "sigmoid"), ([3, 4, 2], "softmax"), ([3, 1], "sigmoid")])
def test_a_pool_has_the_mean_log_odds(shape: list[int], head: str, rng: np.random.Generator) -> None:
    members = [random_network(rng, shape, head=head) for _ in range(3)]
    weights = np.array([0.5, 0.3, 0.2])
    rows = rng.normal(size=(40, 3)).astype(np.float32)
    odds = [np.log(s / (1 - s)) for s in (one.scores(rows).astype(float) for one in members)]
    mean = np.sum([w * o for w, o in zip(weights, odds, strict=True)], axis=0)
    assert np.allclose(pooled(members, weights).scores(rows), 1 / (1 + np.exp(-mean)), atol=1e-5)


def test_small_groups_are_joined_and_the_words_say_so() -> None:
    from fairbits import Attribute, Schema

    schema = Schema(
        attributes=(
            Attribute(name="race", kind="category", labels=("x", "y", "z"), protected=True),
            Attribute(name="age", kind="integer", low=20, high=59, protected=True),
        ),
        target="t",
        classes=("no", "yes"),
    )
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.choice(3, 400, p=[0.6, 0.38, 0.02]), rng.integers(20, 60, 400)]).astype(float)
    coarse = coding_of(schema, rows)
    assert coarse.words.startswith("groups of race × age, each attribute cut in two: 4")
    middle = int(np.median(rows[:, 1]))
    assert coarse.labels[0] == f"x, age ≤ {middle}"
    assert set(coarse.of(rows)) == {0, 1, 2, 3}
    fine = coding_of(schema.with_protected(["race"]), rows)
    assert fine.words == "groups of race: 3 (1 small joined as others)"
    with pytest.raises(CapabilityError, match="fall into one group of race"):
        coding_of(schema.with_protected(["race"]), rows[rows[:, 0] == 0])


class Halving:
    """A repair of somebody's own: half of what the last layer says."""

    name = "halving"

    def __init__(self, name: str = "halved"):
        self.made = name

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        network = planner.network
        assert isinstance(network, Network)
        last = network.weights[-1] / 2
        yield Proposal(self.made, "half of the logit", replace(network, weights=(*network.weights[:-1], last)))


def test_repairs_may_be_objects(tmp_path: Path) -> None:
    subject = network_subject()
    run = searched(subject, tmp_path / "run")
    found = repair_run(run, subject=subject, proposals=[Halving(), "thresholds"], retrain=False, threads=1)
    assert found["halved"].family == "halving"
    assert found["halved"].held_out.k_mean <= found.before_held_out.k_mean
    assert found["thresholds-parity"].coding == "groups of sex: 2"
    assert found["average"].held_out.indirect_bits == pytest.approx(found.before_held_out.indirect_bits, abs=0.02)
    assert "ends direct use only" in found["average"].words
    with pytest.raises(OptionError, match="'halving' proposed 'average', which there is already"):
        repair_run(run, subject=subject, proposals=[Halving("average")], retrain=False, threads=1)


def test_what_is_no_proposal(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"there is no proposal 'rewiegh'.* Did you mean 'reweigh'"):
        proposers_of(["rewiegh"])
    with pytest.raises(OptionError, match="an object with a name and propose"):
        proposers_of([object()])  # type: ignore[list-item]
    with pytest.raises(OptionError, match="asked for twice"):
        proposers_of(["mitigators", "reweigh"])
    assert next(one.name for one in proposers_of(["mitigators"])) == "reweigh"


def test_three_classes_and_regressions_are_refused(tmp_path: Path) -> None:
    schema = replace(SCHEMA, classes=(), favourable=None)
    people = table(200)
    subject = make_subject("number", random_network(np.random.default_rng(0), [3, 4, 1], head="linear"), schema, people)
    setting = Setting(subject, 0.1, "constrained", 1)
    half = replace_half(people)
    planner = Planner(subject.model, half, setting, 0.02, np.random.SeedSequence(0), lambda _: None)
    with pytest.raises(CapabilityError, match="decisions between two classes, and this model predicts a number"):
        list(Reweighing().propose(planner))


def replace_half(people: Table):  # type: ignore[no-untyped-def]
    from fairbits.repair.judgement import Half, Halves
    from fairbits.repair.records import RepairEvidence

    half = Half(people.codes, people.codes, people.labels)
    return Halves(half, half, half, RepairEvidence(1, 1, 1, 1, True))
