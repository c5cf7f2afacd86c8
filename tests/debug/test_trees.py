"""Debugging tree ensembles: hand-made trees of which it is known who tells twins apart, and real boosters."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from fairbits import Attribute, Schema, Table
from fairbits.debug import debug_run
from fairbits.debug.trees import ALL_TREES, WHOLE_TREE, split_words, tree_effects
from fairbits.engine import LEFT, OTHER_WAY, RIGHT, held_sums, leaves_of, walks_of
from fairbits.measure import Evaluator, evaluator_of
from fairbits.models import Ensemble, TreeModel
from fairbits.models.trees.ensemble import NAN, ZERO, Tree
from fairbits.search import Budget, Settings, search_subject
from fairbits.store import Run
from fairbits.subject import Subject, make_subject
from tests.debug.conftest import SCHEMA


def tree(feature: list[int], threshold: list[float], children: list[int], values: list[float]) -> Tree:
    """A tree by nodes; the two children of a split stand side by side."""
    n = len(feature)
    left = np.array(children)
    return Tree(
        np.array(feature),
        np.array(threshold, float),
        left,
        left + 1,
        np.full(n, NAN, np.int8),
        np.zeros(n, np.bool_),
        np.array(values, float)[:, None],
    )


#: Sex alone; skill alone; sex, but only for those with luck.
TREES = (
    tree([0, -1, -1], [0.5, 0, 0], [1, 0, 0], [0, -1.5, 1.5]),
    tree([1, -1, -1], [4.5, 0, 0], [1, 0, 0], [0, -2, 2]),
    tree([2, -1, 0, -1, -1], [7.5, 0, 0.5, 0, 0], [1, 0, 3, 0, 0], [0, 0, 0, -0.3, 0.3]),
)


@pytest.fixture
def planted(rng: np.random.Generator) -> Subject:
    model = TreeModel(Ensemble.build(TREES, features=3, base=[0.0], link="logistic"), 2)
    codes = np.column_stack([rng.integers(0, 2, 600), rng.integers(0, 10, (600, 2))]).astype(np.float64)
    return make_subject("planted", model, SCHEMA, Table(codes, model.scores(codes) >= 0.5))


def run_of(subject: Subject, folder: Path) -> Run:
    settings = Settings(budget=Budget(evaluations=80), strategy="random", threads=1)
    return search_subject(subject, settings, folder)


def test_the_tree_and_the_split_that_do_it(planted: Subject, tmp_path: Path) -> None:
    run = run_of(planted, tmp_path / "run")
    found = debug_run(run, subject=planted, samples=50, threads=1)
    assert found.units == "trees"
    assert found.suspect == 1
    assert [one.layer for one in found.layers] == [1, 2, 3]
    assert found.layers[0].delta == pytest.approx(3.0)
    assert found.layers[1].delta == 0
    lucky = found.cases[:, 2] > 7.5
    assert found.layers[2].delta == pytest.approx(0.6 * lucky.mean())
    names = {(one.layer, one.neuron): one for one in found.neurons}
    assert set(names) == {(1, WHOLE_TREE), (3, WHOLE_TREE), (ALL_TREES, 0), (1, 0), (3, 2)}
    # The same question is asked twice; decided one way in all trees, nobody is told apart any more.
    assert names[ALL_TREES, 0].label.endswith("(2 splits)")
    assert names[ALL_TREES, 0].candidates[0].k_mean == 1
    assert names[ALL_TREES, 0].candidates[0].id_rate == 0
    assert names[1, 0].label == "sex = 0"
    left, right, other = names[1, 0].candidates
    assert (left.statistic, right.statistic, other.statistic) == ("always left", "always right", "the other way")
    # Held, only those with luck are told apart; decided the other way, as many as before, but for those with luck.
    model, twins = planted.model, evaluator_of(planted).twins
    for way, candidate in ((0, left), (1, right)):
        held = held_scores(found.cases, way, twins.values)
        assert candidate.k_mean == pytest.approx(1 + (np.abs(held[:, 1] - held[:, 0]) > 0.025).mean())
    assert other.k_mean == pytest.approx(2.0)
    assert names[1, WHOLE_TREE].candidates[0].k_mean < found.k_mean
    assert found.best(count=1)[0].layer == ALL_TREES
    assert found.top(-1, layer=1)[0].layer == 1  # as it is, the split raises k
    assert isinstance(model, TreeModel)


def held_scores(cases: np.ndarray, way: int, twins: np.ndarray) -> np.ndarray:
    """The planted ensemble by hand, the first split held."""
    skill = np.where(cases[:, 1] <= 4.5, -2.0, 2.0)[:, None]
    luck = np.where(cases[:, [2]] > 7.5, np.where(twins[:, 0] > 0.5, 0.3, -0.3)[None, :], 0.0)
    return np.asarray(1 / (1 + np.exp(-((-1.5, 1.5)[way] + skill + luck))))


def test_files(planted: Subject, tmp_path: Path) -> None:
    run = run_of(planted, tmp_path / "run")
    result = debug_run(run, subject=planted, samples=40, threads=1, trainings=0)
    layers, splits = (pq.read_table(run.folder / f"{name}.parquet") for name in ("layers", "neurons"))
    assert layers.column_names[:4] == ["layer", "delta", "rho", "votes"]
    assert layers["layer"].to_pylist() == [1, 2, 3]
    assert splits.column_names[:7] == ["layer", "neuron", "statistic", "value", "accuracy", "k_mean", "acd"]
    assert "label" in splits.column_names
    assert set(splits["statistic"].to_pylist()) == {"left out", "always left", "always right", "the other way"}
    cases = pq.read_table(run.folder / "debug_cases.parquet")
    assert "suspect_layer" in cases.column_names
    assert "delta_1" not in cases.column_names
    document = json.loads((run.folder / "debug.json").read_text())
    assert document["units"] == "trees"
    assert document["suspect_layer"] == 1
    assert document["attribution"]["subsets"][-1]["attributes"] == ["sex"]
    assert result.summary()["best"][0]["label"]


def test_threads_and_batches_change_nothing(planted: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = planted.table.codes[:33]
    whole = tree_effects(evaluator_of(planted, threads=1), planted, cases, rng=np.random.default_rng(0))
    monkeypatch.setattr("fairbits.debug.trees.TWINS", 8)
    parts = tree_effects(evaluator_of(planted, threads=2), planted, cases, rng=np.random.default_rng(0))
    assert whole.neurons == parts.neurons
    np.testing.assert_array_equal(whole.rho, parts.rho)


def test_unheld_figures_are_the_evaluators(planted: Subject) -> None:
    from fairbits.debug.trees import _Study

    evaluator = evaluator_of(planted, threads=1)
    study = _Study(evaluator, planted, planted.table.codes[:50], np.random.default_rng(0), lambda _: None)
    for part in study._parts():
        ours = study._figures(part.sums, part.valid)
        theirs = evaluator.evaluate(planted.table.codes[:50][part.cases])
        np.testing.assert_array_equal(ours.k, theirs.k)
        np.testing.assert_array_equal(ours.flips, theirs.flips)


def test_walks_go_where_the_ensemble_goes(rng: np.random.Generator) -> None:
    """Comparisons, zeros and gaps as missing, and sets of categories with known and unknown members."""
    trees = []
    for rule in (NAN, ZERO, 0):
        made = tree([0, 1, -1, -1, -1], [0.5, 0.0, 0, 0, 0], [1, 3, 0, 0, 0], [0, 0, 1, 2, 3])
        made = Tree(*(getattr(made, n) for n in ("feature", "threshold", "left", "right")),
                    np.full(5, rule, np.int8), np.array([True, False] * 2 + [True]), made.values,
                    0, {1: np.array([0, 3])}, {1: np.array([0, 1, 3])} if rule == NAN else None)  # fmt: skip
        trees.append(made)
    ensemble = Ensemble.build(trees[:1], features=2, base=[0.0])
    for chosen in (ensemble, Ensemble.build(trees[1:], features=2, base=[0.0])):
        rows = rng.choice([np.nan, 0.0, -0.5, 0.5, 1.0, 3.0, 7.0, 1e-40, 1e12], (400, 2))
        walks = walks_of(chosen)
        np.testing.assert_array_equal(leaves_of(chosen, walks, rows, threads=1), chosen.leaves(rows))
        root, leaves, sums = int(chosen.roots[0]), chosen.leaves(rows), chosen.sums(chosen.leaves(rows))
        flags = np.arange(len(chosen.feature)) == root
        held = {
            way: held_sums(chosen, walks, rows, leaves, sums, trees=[0], held=flags, way=way) - sums
            for way in (LEFT, RIGHT, OTHER_WAY)
        }
        went_right = (leaves[:, 0] == chosen.right[root])[:, None]
        assert (held[LEFT][~went_right] == 0).all()
        assert (held[RIGHT][went_right] == 0).all()
        assert (held[LEFT][went_right] != 0).any()
        np.testing.assert_array_equal(held[OTHER_WAY], np.where(went_right, held[LEFT], held[RIGHT]))


@pytest.mark.parametrize("kind", ["forest", "boosting", "three classes"])
def test_libraries(kind: str, rng: np.random.Generator, tmp_path: Path) -> None:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

    from fairbits import Audit

    codes = np.column_stack([rng.integers(0, 2, 300), rng.integers(0, 10, (300, 2))]).astype(np.float64)
    labels = (codes[:, 1] + codes[:, 0] + rng.normal(size=300) > 5).astype(int)
    schema = SCHEMA
    if kind == "three classes":
        labels = labels + (codes[:, 2] + 4 * codes[:, 0] > 7)
        schema = Schema(SCHEMA.attributes, target="level", classes=("0", "1", "2"))
    made = {"forest": RandomForestClassifier(15, random_state=0, max_depth=6)}.get(
        kind, GradientBoostingClassifier(n_estimators=10, random_state=0)
    )
    if kind != "three classes":
        schema = Schema(SCHEMA.attributes, target="hired", classes=("0", "1"))
    made.fit(codes, labels)
    audit = Audit(made, Table(codes, labels.astype(float)), schema)
    run = audit.search(budget=Budget(evaluations=60), strategy="random", out=tmp_path / "run", threads=1)
    found = run.debug(samples=30)
    assert found.units == "trees"
    assert found.suspect is not None
    together = [one for one in found.neurons if one.layer == ALL_TREES]
    assert min(way.k_mean for one in together for way in one.candidates) < found.k_mean


def test_words() -> None:
    age = Attribute(name="age", kind="integer", low=1, high=4)
    race = Attribute(name="race", kind="category", labels=("a", "b", "c", "d"))
    values = np.arange(1.0, 5)
    assert split_words(age, values, values <= 2) == "age ≤ 2"
    assert split_words(age, values, values > 2) == "age ≥ 3"
    assert split_words(race, values - 1, np.array([False, True, False, False])) == "race is b"
    assert split_words(race, values - 1, np.array([True, True, False, True])) == "race is not c"
    assert split_words(race, values - 1, np.ones(4, np.bool_)) == "race: everybody"


def test_a_blind_ensemble_has_nothing_to_hold(planted: Subject) -> None:
    model = TreeModel(Ensemble.build(TREES[1:2], features=3, base=[0.0], link="logistic"), 2)
    subject = make_subject("blind", model, SCHEMA, planted.table)
    evaluator = Evaluator(model, subject.schema, subject.encoding, threads=1)
    found = tree_effects(evaluator, subject, planted.table.codes[:9], rng=np.random.default_rng(0))
    assert found.suspect is None
    assert found.neurons == ()
    assert any("No tree splits on a protected attribute" in note for note in found.notes)
