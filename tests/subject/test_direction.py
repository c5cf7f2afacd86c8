"""The right way round: frameworks × order of the classes × kind of output. The favoured group is right, or refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fairbits
from fairbits.errors import ModelError, SchemaError
from fairbits.subject.infer import infer_schema

from .frameworks import MAKERS, ROWS, Truth

#: Keras on PyTorch and NumPy have yet to agree on how arrays are copied.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

#: By name the favourable word comes first, or last, or is a number.
TRUTHS = [Truth("approved", "denied"), Truth("yes", "no"), Truth("1", "0"), Truth("0", "1")]
#: Words meet every kind of model; labels that are numbers meet one for every way to name classes, or not to.
NUMBERED = ("scikit-learn, words", "scikit-learn, 0 and 1", "PyTorch, one logit", "Keras, softmax", "ONNX, zipmap")
EVERY = [
    (kind, truth, trained)
    for kind in MAKERS
    for truth in (TRUTHS if kind in NUMBERED else TRUTHS[:2])
    for trained in ("favourable", "other")
]


def audit_of(model: Any, truth: Truth, *, order: tuple[str, ...] | None = None, **options: Any) -> fairbits.Audit:
    table = truth.table()
    schema = infer_schema(table, target="decided", protected=["sex"], favourable=truth.favourable)
    if order is not None:
        schema = replace(schema, classes=order, order_guessed=False)
    return fairbits.Audit(model, table, schema, **options)


def check_right(audit: fairbits.Audit, truth: Truth) -> None:
    """Men are favoured, the scores are the planted ones, and the figures say that the model is good."""
    measured = audit.measure(threads=1)
    highest = {stake.value: stake.highest for stake in measured.stakes()}
    assert highest["M"] > 0.99
    assert highest["F"] < 0.01
    sex, income, good = truth.columns()
    codes = np.column_stack([sex, income]).astype(float)
    scores = audit.subject.model.scores(audit.subject.encoding.encode(codes))
    planted = 1 / (1 + np.exp(-truth.logit(sex, income)))
    assert np.abs(scores - planted).max() < 0.2  # those of scikit-learn are fitted to the labels
    quality = audit.subject.quality
    assert quality is not None
    assert quality.rows == ROWS
    assert quality.auc > 0.8
    assert quality.accuracy == pytest.approx(((scores >= 0.5) == good).mean())
    assert quality.base_rate == pytest.approx(good.mean())
    assert quality.favourable_rate == pytest.approx((scores >= 0.5).mean())
    assert audit.subject.schema.favourable == truth.favourable


@pytest.mark.parametrize(
    ("kind", "truth", "trained"), EVERY, ids=lambda value: str(getattr(value, "favourable", value))
)
def test_the_favoured_group_is_right_or_the_model_is_refused(
    kind: str, truth: Truth, trained: str, tmp_path: Path
) -> None:
    model = MAKERS[kind](truth, getattr(truth, trained), tmp_path)
    try:
        audit = audit_of(model, truth)
    except ModelError as error:
        said = str(error)
    else:
        check_right(audit, truth)
        return
    assert re.search(r"its AUC for '\w+' is 0\.[012]\d\d \(95 % interval 0\.\d+ to 0\.[0123]\d+\)", said)
    assert "as_is=True" in said
    if "it names its classes itself" in said:  # it calls "0" what the table calls "1": nobody can know
        assert (truth.favourable in "01", kind.split(",", maxsplit=1)[0]) in {(True, "scikit-learn"), (True, "ONNX")}
        return
    # The sentence cures it: either word of it.
    named = re.search(r"in Python score_of='(\w+)'", said)
    ordered = re.search(r'classes = \["(\w+)", "(\w+)"\] under \[table\]', said)
    assert (named is None) != (ordered is None)
    if named is not None:
        check_right(audit_of(model, truth, score_of=named[1]), truth)
    else:
        check_right(audit_of(model, truth, order=(ordered[1], ordered[2])), truth)
    kept = audit_of(model, truth, as_is=True)
    assert kept.subject.quality.auc < 0.2
    assert any("decides against the labels" in note for note in kept.subject.notes)


@pytest.mark.parametrize("kind", [name for name in MAKERS if name != "scikit-learn, words"])
@pytest.mark.parametrize(
    ("truth", "trained"),
    [(TRUTHS[0], "favourable"), (TRUTHS[1], "other")],  # the first by name, and the first by name again
    ids=lambda value: str(getattr(value, "favourable", value)),
)
def test_score_of_ends_all_guessing(kind: str, truth: Truth, trained: str, tmp_path: Path) -> None:
    positive = getattr(truth, trained)
    audit = audit_of(MAKERS[kind](truth, positive, tmp_path), truth, score_of=positive)
    check_right(audit, truth)
    assert not any("score_of" in note and "logit" not in note for note in audit.subject.notes)


def test_what_was_guessed_is_said(tmp_path: Path) -> None:
    truth = TRUTHS[1]
    guessed = audit_of(MAKERS["PyTorch, sigmoid"](truth, "yes", tmp_path), truth)
    assert "it is read as 'yes', the last by name" in " ".join(guessed.subject.notes)
    pair = audit_of(MAKERS["PyTorch, two logits"](truth, "yes", tmp_path), truth)
    assert "its outputs are read in the order of the names, no, yes" in " ".join(pair.subject.notes)
    numbered = audit_of(MAKERS["scikit-learn, 0 and 1"](truth, "yes", tmp_path), truth)
    assert "the model calls its classes 0, 1, which are read as no, yes" in " ".join(numbered.subject.notes)
    trial = audit_of(MAKERS["PyTorch, no chain"](truth, "yes", tmp_path), truth)
    assert "so they are read as probabilities" in " ".join(trial.subject.notes)
    own = audit_of(MAKERS["scikit-learn, words"](truth, "yes", tmp_path), truth)
    assert _told(own) == []
    stated = audit_of(MAKERS["PyTorch, two logits"](truth, "yes", tmp_path), truth, order=("no", "yes"))
    assert _told(stated) == []


def _told(audit: Any) -> list[str]:
    """Notes on guesses, but for the order of the columns and rows that repeat."""
    return [note for note in audit.subject.notes if "by their order" not in note and "rows repeat" not in note]


def test_logits_of_functions_and_endpoints(tmp_path: Path) -> None:
    truth = TRUTHS[0]

    def logits(frame: Any) -> np.ndarray:
        return truth.logit(frame["sex"] == "M", frame["income"])

    with pytest.raises(
        ModelError, match=r'scores outside 0 to 1 .* output = "value" under \[model\] .* output = "logit" for log-odds'
    ):
        audit_of(logits, truth)
    check_right(audit_of(logits, truth, output="logit"), truth)
    check_right(
        audit_of(lambda frame: np.column_stack([logits(frame) / 2, -logits(frame) / 2]), truth, output="logit"),
        truth,
    )


def test_a_model_of_one_s_own_can_be_turned() -> None:
    truth = TRUTHS[0]

    class Own:
        inputs = 2

        def scores(self, rows: Any) -> np.ndarray:
            table = np.asarray(rows)
            return 1 / (1 + np.exp(truth.logit(table[:, 0], table[:, 1])))

    with pytest.raises(ModelError, match="decides against the labels"):
        audit_of(Own(), truth)
    check_right(audit_of(Own(), truth, score_of="denied"), truth)


def test_what_score_of_cannot_mean(tmp_path: Path) -> None:
    truth = TRUTHS[0]
    model = MAKERS["PyTorch, sigmoid"](truth, "approved", tmp_path)
    with pytest.raises(SchemaError, match=r"score_of is 'aproved', which is not a class .*Did you mean 'approved'"):
        audit_of(model, truth, score_of="aproved")
    named = MAKERS["scikit-learn, words"](truth, "approved", tmp_path)
    with pytest.raises(ModelError, match=r"the model names its own outputs approved, denied.*leave score_of out"):
        audit_of(named, truth, score_of="approved")
    check_right(audit_of(named, truth, score_of="denied"), truth)
    three = replace(
        infer_schema(truth.table(), target="decided", protected=["sex"]), classes=("approved", "denied", "later")
    )
    with pytest.raises(SchemaError, match="has 3 classes"):
        fairbits.Audit(lambda frame: frame["income"] / 9, truth.table(), three, score_of="denied")
    numbers = replace(infer_schema(truth.table(), target="decided"), classes=(), favourable=None)
    with pytest.raises(SchemaError, match="the target is a number; leave score_of out"):
        fairbits.Audit(lambda frame: frame["income"] / 9, truth.table(), numbers, score_of="denied")


def test_a_model_that_names_its_classes_is_not_told_to_turn_round(tmp_path: Path) -> None:
    truth = TRUTHS[0]
    liar = MAKERS["scikit-learn, words"](Truth("denied", "approved"), "approved", tmp_path)
    with pytest.raises(ModelError, match=r"names its classes itself \(approved, denied\): check that"):
        audit_of(liar, truth)


@pytest.mark.parametrize("scored", ["approved", "denied"])
@pytest.mark.parametrize("outputs", ["two", "one"])
def test_a_table_s_labels_say_which_way_round(scored: str, outputs: str) -> None:
    """Trained on 0 and 1 where the table has words: a guess by name that the labels contradict is not kept."""
    import pandas as pd
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"sex": rng.integers(0, 2, 200), "income": rng.normal(size=200)})
    words = np.where(frame.income + 0.4 * frame.sex + rng.normal(0, 0.3, 200) > 0.2, "approved", "denied")
    model = DecisionTreeClassifier(max_depth=3).fit(frame, words == scored)

    def one(rows: Any) -> Any:
        return model.predict_proba(rows[["sex", "income"]])[:, 1]

    asked: dict[str, Any] = {"target": "action", "protected": "sex", "favourable": "approved"}
    made = model if outputs == "two" else one
    audit = fairbits.Audit.from_table(made, frame.assign(action=words), **asked)
    wanted = model.predict_proba(frame)[:, 1 if scored == "approved" else 0]
    subject = audit.subject
    np.testing.assert_allclose(subject.model.scores(subject.encoding.encode(subject.table.codes)), wanted, atol=1e-6)
    assert (subject.quality.auc or 0) > 0.8
    kept = fairbits.Audit.from_table(made, frame.assign(action=words), **asked, as_is=True)
    turned = "because so its scores agree with the labels" in " ".join(subject.notes)
    assert turned == any("decides against the labels" in note for note in kept.subject.notes)


@pytest.mark.parametrize(
    ("classes", "favourable", "guessed"),
    [
        (("approved", "refused"), None, True),
        (("approved", "refused"), "approved", False),
        (("no", "yes"), None, False),
        (("0", "1"), None, False),
    ],
)
def test_who_is_favoured_is_no_silent_guess(classes: tuple[str, str], favourable: str | None, guessed: bool) -> None:
    table = pa.table({"sex": ["f", "m"] * 20, "income": [*range(40)], "decided": [*classes] * 20})
    schema = infer_schema(table, target="decided", protected=["sex"], favourable=favourable)
    assert schema.favourable == (favourable or classes[1])
    assert any("nobody said which class of decided is favourable" in note for note in schema.notes) is guessed
    assert len(replace(schema, threshold=0.4).notes) == len(schema.notes)  # said once
