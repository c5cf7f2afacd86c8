"""Cells of trees against the library's own answers: at thresholds, beside them, and between float32 and float64."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits import Audit
from fairbits.certify.cells import prove_cells
from fairbits.certify.exact import everybody
from fairbits.domain import Attribute, Schema, Table
from fairbits.engine.tree_bounds import tree_boxes
from fairbits.engine.trees import goes_left
from fairbits.measure import evaluator_of
from fairbits.models import ModelOptions, read_model
from fairbits.models.trees.ensemble import Ensemble, Tree, TreeModel
from fairbits.subject import make_subject


def _lightgbm(seed):
    module = pytest.importorskip("lightgbm")
    return module.LGBMClassifier(
        n_estimators=6, num_leaves=6, min_child_samples=3, random_state=seed, verbose=-1, n_jobs=1
    )


def _xgboost(seed):
    module = pytest.importorskip("xgboost")
    return module.XGBClassifier(n_estimators=6, max_depth=3, random_state=seed, n_jobs=1)


def _sklearn(name):
    def make(seed):
        module = pytest.importorskip("sklearn.ensemble")
        few = {"max_iter": 6} if name.startswith("Hist") else {"n_estimators": 6}
        return getattr(module, name)(max_depth=3, random_state=seed, **few)

    return make


LIBRARIES = {
    "lightgbm": _lightgbm,
    "xgboost": _xgboost,
    **{name: _sklearn(f"{name}Classifier") for name in ("RandomForest", "GradientBoosting", "HistGradientBoosting")},
}


def _subject(make, seed):
    rng = np.random.default_rng(seed)
    low = float(rng.choice([-3.0, 0.0, 1e6, -1e-3]))
    width = float(rng.choice([1e-3, 1.0, 100.0]))
    attributes = (
        Attribute(name="pay", kind="real", low=low, high=low + width),
        Attribute(name="sex", kind="integer", low=0, high=int(rng.integers(1, 4)), protected=True),
        Attribute(name="age", kind="integer", low=18, high=40),
    )
    schema = Schema(attributes, target="ok", classes=("no", "yes"))
    codes = np.column_stack(
        [
            low + width * rng.integers(0, 101, 400) / 100,  # values that repeat: thresholds lie between two of them
            rng.integers(0, attributes[1].high + 1, 400),
            rng.integers(18, 41, 400),
        ]
    ).astype(float)
    labels = ((codes[:, 0] - low) / width + 0.2 * codes[:, 1] + rng.normal(0, 0.2, 400) > 0.7).astype(int)
    model = make(seed).fit(codes, labels)
    table = Table(codes, labels.astype(float))
    return model, make_subject("trees", read_model(model, schema, ModelOptions()), schema, table), codes


def _around(values, low, high):
    """Values, their neighbours in both precisions, and what lies between the two."""
    single = values.astype(np.float32)
    up, down = (np.nextafter(single, np.float32(side)).astype(float) for side in (np.inf, -np.inf))
    near = [values, single.astype(float), up, down, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)]
    near += [(values + up) / 2, (values + down) / 2]
    found = np.unique(np.concatenate([*near, [low, high]]))
    return found[(found >= low) & (found <= high)]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("seed", range(4))
def test_cells_are_what_the_library_answers(library, seed):
    model, subject, _ = _subject(LIBRARIES[library], seed)
    schema, evaluator = subject.schema, evaluator_of(subject, threads=1)
    boxes = tree_boxes(subject.model, schema, subject.encoding, evaluator.twins)
    place = [int(c) for c in boxes.columns].index(0)
    pay, ensemble = schema.attributes[0], subject.model.ensemble
    nodes = np.flatnonzero(ensemble.feature == subject.encoding.parts[0].columns[0])
    values = _around(np.unique(ensemble.threshold[nodes]), pay.low, pay.high)
    # Every value goes the way of the one that stands for its cell, at every split: none lies between two cells.
    own = goes_left(ensemble, subject.encoding, 0, nodes, values)
    cells = goes_left(ensemble, subject.encoding, 0, nodes, boxes.codes[place])
    same = (own[:, :, None] == cells[:, None, :]).all(axis=0)
    assert (same.sum(axis=1) == 1).all()
    # And the library answers about both alike, for every twin.
    stands = boxes.codes[place][same.argmax(axis=1)]
    flips = np.zeros(len(values), bool)
    for age in (18.0, 29.0, 40.0):
        decided = []
        for sex in range(int(schema.attributes[1].upper) + 1):
            asked = [np.column_stack([v, np.full(len(v), float(sex)), np.full(len(v), age)]) for v in (values, stands)]
            scores = [np.asarray(model.predict_proba(one))[:, 1] for one in asked]
            np.testing.assert_array_equal(*scores)
            decided.append(scores[0] >= 0.5)
        flips |= np.any(decided, axis=0) & ~np.all(decided, axis=0)
    found = prove_cells(boxes, evaluator, seconds=60)
    assert found.open == 0
    assert not (flips.any() and found.falsified == 0)
    # By volume, as often as among people drawn.
    rng = np.random.default_rng(seed)
    drawn = np.column_stack([rng.uniform(pay.low, pay.high, 4000), np.zeros(4000), rng.integers(18, 41, 4000)])
    decided = []
    for sex in range(int(schema.attributes[1].upper) + 1):
        drawn[:, 1] = sex
        decided.append(np.asarray(model.predict_proba(drawn))[:, 1] >= 0.5)
    share = (np.any(decided, axis=0) & ~np.all(decided, axis=0)).mean()
    assert found.falsified / found.people == pytest.approx(share, abs=0.04)


def _several(library, seed):
    """Trees of three classes over a domain whose people can all be asked."""
    rng = np.random.default_rng(seed)
    sizes, names = (6, 5, 4, 3), ("a", "b", "c", "p")
    attributes = tuple(
        Attribute(name=n, kind="integer", low=0, high=s - 1, protected=n == "p")
        for n, s in zip(names, sizes, strict=True)
    )
    schema = Schema(attributes, target="y", classes=("low", "middle", "high"))
    codes = np.column_stack([rng.integers(0, s, 500) for s in sizes]).astype(float)
    noisy = codes[:, 0] - codes[:, 1] + 1.2 * codes[:, 3] * (codes[:, 2] > 1) + rng.normal(0, 0.7, 500)
    labels = np.digitize(noisy, [-0.5, 1.5])
    model = LIBRARIES[library](seed).fit(codes, labels)
    read = read_model(model, schema, ModelOptions())
    return make_subject("three", read, schema, Table(codes, labels.astype(float)))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("seed", range(2))
def test_cells_of_several_classes_are_what_everybody_answers(library, seed):
    subject = _several(library, seed)
    evaluator = evaluator_of(subject, threads=1)
    everyone = next(everybody(subject.schema))
    asked = evaluator.evaluate(everyone)
    flips, about = int(asked.flips.sum()), (subject.model, subject.schema, subject.encoding, evaluator.twins)
    assert flips > 0
    boxes = tree_boxes(*about, scored=False)
    for most in (1, 5, 20, 60):
        early = prove_cells(boxes, evaluator, seconds=60, max_boxes=most)
        assert early.falsified <= flips <= early.people - early.certified
    done = prove_cells(boxes, evaluator, seconds=60)
    assert (done.falsified, done.open) == (flips, 0)
    scored = tree_boxes(*about)
    largest = prove_cells(scored, evaluator, about="largest", seconds=60)
    assert largest.k_low == largest.k_high == asked.k.max()
    for k in (1, 2):
        early = prove_cells(scored, evaluator, about="k", k=k, seconds=60, max_boxes=20)
        assert early.falsified <= (asked.k > k).sum() <= early.people - early.certified


def _planted(rng, count, size):
    """Trees of three levels over small attributes, some of whose splits are on the protected one."""
    made = []
    for _ in range(count):
        feature = np.array([*rng.integers(0, 4, 7), *[-1] * 8])
        threshold = np.array([*(rng.integers(0, 4, 7) + rng.choice([0.0, 0.5], 7)), *[0.0] * 8])  # also on a value
        inner = np.arange(7)
        left, right = (np.concatenate([2 * inner + side, np.zeros(8, np.int64)]) for side in (1, 2))
        values = np.concatenate([np.zeros(7), size * rng.normal(0, 1, 8) ** 3])[:, None]
        made.append(Tree(feature, threshold, left, right, np.full(15, 2, np.int8), np.zeros(15, np.bool_), values))
    return made


@pytest.mark.parametrize("adds", ["float32", "float64"])
def test_bounds_of_boxes_hold_at_every_moment(adds):
    """Random ensembles, asked in full: at every moment what is certified or falsified is so."""
    attributes = tuple(Attribute(name=n, kind="integer", low=0, high=4, protected=n == "p") for n in "abcp")
    schema, partly = Schema(attributes, target="y", classes=("0", "1")), 0
    everyone = next(everybody(schema))
    for seed in range(60):
        rng = np.random.default_rng(seed)
        base = [float(rng.choice([0.0, 0.5, 3.0, -3.0]))]
        trees = _planted(rng, int(rng.integers(1, 30)), float(rng.choice([0.01, 0.3, 1.0])))
        ensemble = Ensemble.build(trees, features=4, base=base, link="logistic", adds=adds)
        codes = rng.integers(0, 5, (40, 4)).astype(float)
        model = TreeModel(ensemble, classes=2, favourable=int(rng.integers(0, 2)))
        subject = make_subject("planted", model, schema, Table(codes, rng.integers(0, 2, 40).astype(float)))
        evaluator = evaluator_of(subject, threads=1)
        flips = int(evaluator.evaluate(everyone).flips.sum())
        boxes = tree_boxes(subject.model, schema, subject.encoding, evaluator.twins)
        for most in (1, 3, 9, 27):
            found = prove_cells(boxes, evaluator, seconds=60, max_boxes=most)
            assert found.falsified <= flips <= found.people - found.certified
            partly += 0 < found.certified + found.falsified < found.people
    assert partly > 20


def test_no_more_classes_are_said_than_there_can_be():
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    rng = np.random.default_rng(0)
    group = Attribute(name="group", kind="integer", low=0, high=59, protected=True)
    others = (Attribute(name=f"a{i}", kind="integer", low=0, high=20) for i in range(6))
    schema = Schema((group, *others), classes=("no", "maybe", "yes"), favourable="yes")
    codes = np.column_stack([rng.integers(0, 60, 3000), rng.integers(0, 21, (3000, 6))]).astype(np.float64)
    labels = np.digitize(codes[:, 0] / 30 + codes[:, 1] / 20 + rng.normal(0, 0.2, 3000), [0.8, 1.6])
    model = lightgbm.LGBMClassifier(n_estimators=150, learning_rate=0.4, random_state=0, verbose=-1)
    audit = Audit(model.fit(codes, labels), Table(codes, labels.astype(np.float64)), schema)
    said = " ".join(audit.certify(budget="1s").notes)
    assert "and 40 (nobody exceeds it)" in said  # rounding made it 41, and ε = 0.025 has room for 40
