"""Logistic models over bins of real columns, with gaps: asked through scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, SplineTransformer, StandardScaler

import fairbits
from fairbits.measure import evaluator_of

pytestmark = pytest.mark.filterwarnings("ignore")
REAL, WORDS = ["income", "debt"], ["sex", "job"]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    n = 240
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 70, n),
            "sex": rng.choice(["f", "m"], n),
            "income": rng.lognormal(3, 1, n),
            "debt": rng.normal(0, 5, n),
            "job": rng.choice(["care", "farm", "tech"], n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "income"] = np.nan
    score = np.log(frame.income.fillna(9)) + 0.6 * (frame.sex == "m") + 0.01 * frame.age + rng.normal(0, 0.5, n)
    frame["paid"] = (score > 3.8).astype(int)
    return frame


def _bins(count: int = 5, **settings: Any) -> KBinsDiscretizer:
    return KBinsDiscretizer(count, quantile_method="averaged_inverted_cdf", **settings)


def _card(real: Any, final: Any = None, **more: Any) -> Any:
    encoders = [(make_pipeline(SimpleImputer(strategy="median"), real), REAL), (OneHotEncoder(drop="first"), WORDS)]
    encoders += [(step, [name]) for name, step in more.items()]
    return make_pipeline(make_column_transformer(*encoders), final or LogisticRegression())


CARDS = {
    "quantiles": lambda: _card(_bins()),
    "a value": lambda: _card(_bins(), Ridge()),
    "lines and bins": lambda: _card(_bins(), age=StandardScaler(), debt=StandardScaler()),
    "bent": lambda: _card(SplineTransformer(4)),
}


def _audit(model: Any, people: pd.DataFrame) -> fairbits.Audit:
    value = hasattr(model, "predict_proba")
    table = people if value else people.assign(paid=people.paid + 0.1 * people.debt)
    return fairbits.Audit.from_table(model, table, target="paid", protected=["sex", "age"])


@pytest.mark.parametrize("kind", CARDS)
def test_scores_of_all_twins_equal_the_library_s(kind: str, people: pd.DataFrame) -> None:
    model = CARDS[kind]().fit(people.drop(columns="paid"), people.paid)
    subject = _audit(model, people).subject
    assert type(subject.model).__name__ == "BlackBox"
    assert sum("only lines are read" in note for note in subject.notes) == 1
    evaluator = evaluator_of(subject)
    ours = evaluator.scores(subject.table.codes[:40])
    ask = (lambda rows: model.predict_proba(rows)[:, 1]) if hasattr(model, "predict_proba") else model.predict
    attributes = subject.schema.attributes
    protected = [attributes[i].name for i in evaluator.twins.columns]
    for place, values in enumerate(evaluator.twins.values):
        rows = people.drop(columns="paid").head(40).copy()
        for name, code in zip(protected, values, strict=True):
            rows[name] = subject.schema[name].labels[int(code)] if subject.schema[name].labels else code
        np.testing.assert_allclose(ours[:, place], ask(rows), atol=1e-6)


def test_splines_of_whole_numbers_are_tables(people: pd.DataFrame) -> None:
    encoders = make_column_transformer((SplineTransformer(4), ["age"]), (OneHotEncoder(), WORDS))
    model = make_pipeline(encoders, LogisticRegression()).fit(people[["age", *WORDS]], people.paid)
    subject = _audit(model, people).subject
    assert type(subject.model).__name__ == "Network"
    found = subject.model.scores(subject.encoding.encode(subject.table.codes))
    np.testing.assert_allclose(found, model.predict_proba(people)[:, 1], atol=1e-6)
