"""Cells of trees against the library's own answers: at thresholds, beside them, and between float32 and float64."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits.certify.cells import prove_cells
from fairbits.domain import Attribute, Schema, Table
from fairbits.engine.tree_bounds import _goes_left, tree_boxes
from fairbits.measure import evaluator_of
from fairbits.models import ModelOptions, read_model
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
    own = _goes_left(ensemble, subject.encoding, 0, nodes, values)
    cells = _goes_left(ensemble, subject.encoding, 0, nodes, boxes.codes[place])
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
