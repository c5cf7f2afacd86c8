"""Trees and pipelines fitted again to the average over twins: no twin scores differently, and files come back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairbits import Attribute, Guard, Schema, Table
from fairbits.domain import Decoder
from fairbits.errors import CapabilityError
from fairbits.measure import evaluator_of
from fairbits.models import ModelOptions, load_model
from fairbits.repair.choice import established
from fairbits.repair.judgement import Setting
from fairbits.repair.proposals.distil import distilled_model
from fairbits.repair.writers import export
from fairbits.subject import Subject, make_subject
from tests.repair.bare import BareInterpreter

SCHEMA = Schema(
    (
        Attribute(name="age", kind="integer", low=18, high=60),
        Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
        Attribute(name="job", kind="category", labels=("clerk", "cook", "nurse")),
        Attribute(name="hours", kind="integer", low=0, high=50),
        Attribute(name="race", kind="category", labels=("x", "y", "z"), protected=True),
    ),
    target="ok",
    classes=("no", "yes"),
    favourable="yes",
)


def _table(n: int = 600) -> Table:
    rng = np.random.default_rng(3)
    codes = np.stack([rng.choice(a.domain_values(), n) for a in SCHEMA.attributes], axis=1)
    wish = 0.08 * (codes[:, 0] - 38) + codes[:, 1] - 0.8 * codes[:, 4] + 0.05 * (codes[:, 3] - 25) + 0.6 * codes[:, 2]
    return Table(codes, (wish + rng.normal(0, 0.7, n) > 0.2).astype(float))


def _estimator(kind: str) -> object:
    compose, ensemble, pipeline = (
        pytest.importorskip(f"sklearn.{name}") for name in ("compose", "ensemble", "pipeline")
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    table, decoder = _table(), Decoder(SCHEMA)
    frame = decoder.frame(table.codes)
    labels = np.where(np.asarray(table.labels) == 1, "yes", "no")
    text = ["sex", "job", "race"]
    if kind == "array":
        return ensemble.RandomForestClassifier(12, max_depth=5, random_state=0).fit(table.codes, labels)
    if kind == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        return lightgbm.LGBMClassifier(n_estimators=12, num_leaves=7, verbose=-1, n_jobs=1).fit(
            frame.assign(**{name: frame[name].astype("category") for name in text}), labels
        )
    coder = OrdinalEncoder() if kind == "trees" else OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    final = {
        "trees": ensemble.GradientBoostingClassifier(n_estimators=12, random_state=0),
        "bayes": GaussianNB(),
        "neighbours": KNeighborsClassifier(9),
        "scaled": pipeline.make_pipeline(StandardScaler(), LogisticRegression()),
    }[kind]
    coded = compose.ColumnTransformer([("coded", coder, text)], remainder="passthrough")
    return pipeline.Pipeline([("columns", coded), ("final", final)]).fit(frame, labels)


def _subject(kind: str) -> Subject:
    from fairbits.models import read_model

    estimator = _estimator(kind)
    loaded = read_model(estimator, SCHEMA, ModelOptions())
    return make_subject(kind, loaded, SCHEMA, _table(), original=estimator)


@pytest.mark.parametrize("kind", ["array", "lightgbm", "trees", "bayes", "neighbours"])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_a_pupil_is_blind_faithful_and_comes_back(kind: str, tmp_path: Path, bare: BareInterpreter) -> None:
    pytest.importorskip("skops")
    subject = _subject(kind)
    guard = Guard.of(subject, threads=1, refit=False)
    rows = subject.table.codes
    pupil = distilled_model(guard, rows, np.random.default_rng(0))
    twins = guard.subject_twins.expand(rows).reshape(-1, rows.shape[1])
    scores = pupil.network.scores(subject.encoding.encode(twins)).reshape(len(rows), guard.m)
    assert np.ptp(scores, axis=1).max() == 0
    proof = established(pupil.network, Setting(subject, 0.025, "constrained", 1), source=pupil.source)
    assert proof is not None
    assert (proof.bound, proof.property) == (1, "flips")
    if kind in ("array", "lightgbm", "trees"):
        assert evaluator_of(subject, model=pupil.network, threads=1).blind
        assert not evaluator_of(subject, threads=1).blind
    # It has learned the average: it is closer to it than a constant is, by far.
    average = guard.people_scores(rows)
    apart = np.abs(scores[:, 0] - average).mean()
    assert apart < 0.4 * np.abs(average - average.mean()).mean()
    written = export(pupil.network, subject, tmp_path, rows, source=pupil.source)
    assert any(path.suffix == ".skops" for path in written.files), written.warnings
    assert written.subject_file is not None
    if kind == "bayes":  # opened and asked without fairbits
        [found] = bare.scores([tmp_path / "repaired.skops"], Decoder(SCHEMA).frame(rows[:50]))
        np.testing.assert_allclose(found[:, 1], scores[:50, 0], atol=1e-6)
    if kind == "lightgbm":
        native = next(path for path in written.files if path.suffix == ".txt")
        again = load_model(native, schema=SCHEMA)
        np.testing.assert_allclose(again.scores(subject.encoding.encode(rows)), scores[:, 0], atol=1e-5)


def test_what_cannot_be_fitted_again_is_said() -> None:
    from fairbits.models import read_model

    loaded = read_model(lambda frame: np.full(len(frame), 0.5), SCHEMA, ModelOptions())
    subject = make_subject("function", loaded, SCHEMA, _table(), original=lambda frame: None)
    with pytest.raises(CapabilityError, match="cannot be cloned"):
        distilled_model(Guard.of(subject, threads=1, refit=False), subject.table.codes, np.random.default_rng(0))
