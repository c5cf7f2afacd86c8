"""Categories spread over columns: a model that names or encodes its columns is asked in its own way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairbits import load_subject
from fairbits.repair.writers.files import subject_text
from fairbits.subject import encoding_word

pd = pytest.importorskip("pandas", reason="pandas is not installed")
ORDERS = {
    "as in the table": ["age", "job_Sales", "job_Tech", "sex", "years"],
    "another order": ["years", "sex", "job_Tech", "job_Sales", "age"],
    "some of them": ["years", "job_Tech", "age"],
    "none of the category": ["years", "age"],
}
SUBJECT = """
[model]
path = "{model}"
{more}
[table]
path = "people.csv"
target = "hired"
classes = ["no", "yes"]
favourable = "yes"
[attributes.age]
kind = "integer"
low = 18
high = 80
protected = true
[attributes.job]
kind = "category"
labels = ["Sales", "Tech"]
columns = ["job_Sales", "job_Tech"]
[attributes.sex]
kind = "integer"
low = 0
high = 1
[attributes.years]
kind = "integer"
low = 0
high = 30
"""


@pytest.fixture
def frame(tmp_path: Path) -> Any:
    rng = np.random.default_rng(3)
    tech = rng.integers(0, 2, 200)
    made = {"age": rng.integers(18, 80, 200), "job_Sales": 1 - tech, "job_Tech": tech, "sex": rng.integers(0, 2, 200)}
    made["years"] = rng.integers(0, 30, 200)
    chance = made["age"] + 20 * tech + rng.normal(0, 10, 200)
    found = pd.DataFrame(made).assign(hired=np.where(chance > np.median(chance), "yes", "no"))
    found.to_csv(tmp_path / "people.csv", index=False)
    return found


def _estimator(kind: str) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if kind == "forest":
        return RandomForestClassifier(5, random_state=0)
    return (
        make_pipeline(StandardScaler(), LogisticRegression()) if kind == "scaled" else LogisticRegression(max_iter=500)
    )


@pytest.mark.parametrize("more", ["", 'encoding = "columns"', 'encoding = "codes"'])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["scaled", "bare", "forest"])
def test_scores_are_the_estimator_s_own(kind: str, order: str, more: str, frame: Any, tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    taken = frame[ORDERS[order]]
    fitted = _estimator(kind).fit(taken, frame["hired"])
    io.dump(fitted, tmp_path / "model.skops")
    (tmp_path / "subject.toml").write_text(SUBJECT.format(model="model.skops", more=more))
    subject = load_subject(tmp_path / "subject.toml")
    scores = subject.model.scores(subject.encoding.encode(subject.table.codes))
    np.testing.assert_allclose(scores, fitted.predict_proba(taken)[:, 1], atol=2e-6)
    assert any("is not used" in note for note in subject.notes) == ("codes" in more)


@pytest.mark.parametrize("kind", ["scaled", "bare"])
def test_a_subject_file_about_a_repaired_network_says_an_encoding_only_where_it_is_one(
    kind: str, frame: Any, tmp_path: Path
) -> None:
    """A network behind a scaler takes scaled rows, which no word of a subject file says."""
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    columns = ORDERS["as in the table"]
    io.dump(_estimator(kind).fit(frame[columns], frame["hired"]), tmp_path / "model.skops")
    (tmp_path / "subject.toml").write_text(SUBJECT.format(model="model.skops", more='encoding = "columns"'))
    subject = load_subject(tmp_path / "subject.toml")
    assert (encoding_word(subject) is not None) == (kind == "bare")
    assert ("encoding = " in subject_text(subject, "repaired.onnx", tmp_path)) == (kind == "bare")
