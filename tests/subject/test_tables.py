"""Tables as they are: gaps, truth values, dates, identifiers and every library's own types, against the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fairbits
from fairbits.domain.attribute import MISSING, Attribute
from fairbits.measure import evaluator_of

#: The forms that the same table comes in.
TABLES = {
    "polars": "polars (string views)",
    "arrow": "Arrow",
    "dictionary": "Arrow dictionaries and pandas categories",
    "enum": "polars enums and categoricals",
    "nullable": "pandas nullable types",
    "parquet": "Parquet with pandas' index",
}
SEEN = ["age", "income", "job", "sex", "owner"]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 240
    frame = pd.DataFrame(
        {
            "customer_id": np.arange(n) + 1000,
            "opened": pd.date_range("2020-01-01", periods=n),
            "age": rng.integers(20, 70, n).astype(float),
            "income": rng.normal(50, 10, n).round(1),
            "job": rng.choice(["a", "b", "c"], n),
            "sex": rng.choice(["m", "f"], n),
            "owner": rng.random(n) < 0.5,
            "same": 1,
            "zip": rng.choice(["01", "02"], n),
        }
    )
    favoured = (frame.income + 8 * (frame.sex == "m") + 5 * frame.owner - 0.1 * frame.age) > 52
    frame.loc[::7, "age"] = np.nan
    frame.loc[::5, "income"] = np.nan
    frame.loc[::9, "job"] = None
    frame.loc[::11, "sex"] = None
    frame["approved"] = np.where(favoured, "yes", "no")
    return frame.sample(frac=1, random_state=1)  # an index that is no column


def _inputs(frame: pd.DataFrame, *, categories: bool = False) -> pd.DataFrame:
    rows = frame[SEEN].copy()
    if categories:
        rows["job"], rows["sex"] = rows.job.astype("category"), rows.sex.astype("category")
    return rows


def _pipeline(final: Any) -> Any:
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return make_pipeline(
        make_column_transformer(
            (numbers, ["age", "income"]), (OneHotEncoder(), ["job", "sex"]), ("passthrough", ["owner"])
        ),
        final,
    )


def _lightgbm() -> Any:
    return pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1)


def _xgboost() -> Any:
    return pytest.importorskip("xgboost").XGBClassifier(n_estimators=10, enable_categorical=True, n_jobs=1)


MODELS = {
    "logistic": (lambda: _pipeline(LogisticRegression()), False),
    "forest": (lambda: _pipeline(RandomForestClassifier(10, random_state=0)), False),
    "boosting": (lambda: HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype"), True),
    "lightgbm": (_lightgbm, True),
    "xgboost": (_xgboost, True),
}


def _all_twins(model: Any, audit: fairbits.Audit, frame: pd.DataFrame, *, categories: bool) -> np.ndarray[Any, Any]:
    """What the library itself says of everybody as each sex, asked with its own frames."""
    columns = []
    for sex in audit.subject.schema["sex"].labels[:2]:
        rows = _inputs(frame.assign(sex=sex), categories=categories)
        if categories:
            rows["sex"] = pd.Categorical(rows.sex, categories=["f", "m"])
        columns.append(model.predict_proba(rows)[:, 1])
    return np.column_stack(columns)


@pytest.mark.parametrize("name", MODELS)
def test_gaps_reach_the_model_as_they_are(name: str, people: pd.DataFrame) -> None:
    make, categories = MODELS[name]
    frame = people.assign(approved=(people.approved == "yes").astype(int)) if name == "xgboost" else people
    model = make().fit(_inputs(people, categories=categories), frame.approved)
    audit = fairbits.Audit.from_table(
        model, frame, target="approved", protected="sex", favourable=1 if name == "xgboost" else "yes"
    )
    subject = audit.subject
    assert subject.schema.names == tuple(SEEN)
    assert subject.schema["age"].missing == subject.schema["income"].missing == "model"
    asked = evaluator_of(subject).scores(subject.table.codes)
    assert asked.shape == (len(people), 2)  # no twin lacks a sex
    assert np.abs(asked - _all_twins(model, audit, people, categories=categories)).max() < 1e-6
    told = " ".join(subject.notes)
    assert "customer_id (identifiers" in told
    assert "opened (dates)" in told
    assert "zip" in told
    assert "never sees" in told
    assert "sex may be missing" in told


@pytest.mark.parametrize("kind", TABLES)
def test_every_library_tells_the_same_table(kind: str, people: pd.DataFrame, tmp_path: Path) -> None:
    plain = fairbits.infer_schema(people, target="approved", protected=["sex"])
    table: Any = {
        "polars": lambda: pl.from_pandas(people),
        "arrow": lambda: pa.Table.from_pandas(people, preserve_index=False),
        "dictionary": lambda: pa.Table.from_pandas(
            people.assign(job=people.job.astype("category")), preserve_index=False
        ),
        "enum": lambda: pl.from_pandas(people).with_columns(
            pl.col("job").cast(pl.Enum(["a", "b", "c"])), pl.col("sex").cast(pl.Categorical)
        ),
        "nullable": people.convert_dtypes,
        "parquet": lambda: _parquet(people, tmp_path / "people.parquet"),
    }[kind]()
    assert fairbits.infer_schema(table, target="approved", protected=["sex"]) == plain


def _parquet(people: pd.DataFrame, file: Path) -> str:
    people.to_parquet(file)  # with the index, as pandas writes it
    return str(file)


def test_missing_is_a_twin_only_where_somebody_says_so() -> None:
    sex = Attribute(name="sex", kind="category", labels=("f", "m", MISSING), protected=True)
    assert sex.twin_values().tolist() == [0, 1]
    assert sex.twin_count == 2
    said = Attribute(name="sex", kind="category", labels=("f", "m"), protected=True, missing="value")
    assert said.twin_values().tolist() == [0, 1, 2]
    assert said.twin_count == 3
    age = Attribute(name="age", kind="integer", low=20, high=60, protected=True, missing="model")
    assert age.gap is not None
    assert age.gap < 20 - 40
    assert age.gap not in age.twin_values()
    assert age.read(age.gap) == MISSING
    assert age.code_of(MISSING) == age.gap
    assert age.valid(np.array([age.gap, 19, 20])).tolist() == [True, False, True]
    assert age.clip(np.array([age.gap, 1.0])).tolist() == [age.gap, 20]


def test_a_search_keeps_gaps_and_invents_none(people: pd.DataFrame, tmp_path: Path) -> None:
    model = HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype")
    model.fit(_inputs(people, categories=True), people.approved)
    holes = people.assign(age=people.age.fillna(40))
    audit = fairbits.Audit.from_table(model, holes, target="approved", protected=["sex"], favourable="yes")
    run = audit.search(budget=fairbits.Budget(evaluations=4000), out=tmp_path / "run", threads=1)
    schema = audit.subject.schema
    found = run.cases()
    assert schema["age"].gap is None
    assert found["age"].null_count == 0
    assert 0 < found["income"].null_count < len(found)
    assert len(run.cases(where="income is null")) == found["income"].null_count
    men, women = (len(run.cases(where=f"sex = '{sex}'")) for sex in "mf")
    nobody = len(run.cases(where="sex is null or sex = '(missing)'"))
    assert men > 0
    assert women > 0
    assert men + women + nobody == len(found)
    with pytest.raises(fairbits.FairbitsError, match="Did you mean 'sex'"):
        run.cases(where="sexx = 'm'")
    assert fairbits.plot.severity(run) is not None
    assert fairbits.plot.twins(run.worst(1)[0], run) is not None


def test_figures_of_everybody_as_a_frame(people: pd.DataFrame) -> None:
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    model.fit(_inputs(people, categories=True), people.approved)
    audit = fairbits.Audit.from_table(model, people, target="approved", protected=["sex"], favourable="yes")
    found = audit.measure(threads=1)
    frame = found.to_frame()
    assert list(frame.columns) == ["k", "q_inf", "q_1", "low", "high", "flips"]
    assert frame.index.name == "row"
    assert frame.index.tolist() == list(range(1, len(people) + 1))
    assert frame.k.mean() == pytest.approx(found.k_mean.value)
    assert (frame.low <= frame.high).all()
    short = [audit, audit.subject, audit.subject.schema, found, fairbits.Network.build([np.eye(2)], [np.zeros(2)])]
    assert all(len(repr(one)) < 200 and "\n" not in repr(one) for one in short)


def test_a_network_says_that_it_takes_no_gaps(people: pd.DataFrame) -> None:
    numbers = people[["age", "income"]].fillna(0)
    model = LogisticRegression().fit(numbers.to_numpy(), people.approved)
    with pytest.raises(fairbits.FairbitsError, match="'income' are missing in the table; fill them"):
        fairbits.Audit.from_table(
            model, people[["age", "income", "approved"]], target="approved", protected=["age"], favourable="yes"
        )


def test_a_model_that_takes_no_missing_category_says_so(people: pd.DataFrame) -> None:
    whole = people.dropna(subset=["job", "sex"])
    model = _pipeline(RandomForestClassifier(5, random_state=0)).fit(_inputs(whole), whole.approved)
    with pytest.raises(fairbits.FairbitsError, match=r"'\(missing\)' of 'job'|missing 'job'"):
        fairbits.Audit.from_table(model, people, target="approved", protected=["sex"], favourable="yes")


def test_a_model_that_takes_dates_gets_dates(people: pd.DataFrame) -> None:
    def decide(rows: pd.DataFrame) -> Any:
        return 0.5 + 0.01 * rows["opened"].dt.month + 0.1 * (rows["sex"] == "m")

    whole = people.dropna(subset=["sex"])
    audit = fairbits.Audit.from_table(decide, whole, target="approved", protected=["sex"], as_is=True)
    assert "opened" in audit.subject.schema.names
    scores = evaluator_of(audit.subject).scores(audit.subject.table.codes)
    assert np.allclose(scores[:, 1], 0.6 + 0.01 * whole.opened.dt.month.to_numpy(), atol=1e-6)


def test_text_that_looks_like_numbers_stays_text() -> None:
    frame = pd.DataFrame({"zone": ["1", "2", "1", "2"], "sure": ["true", "false", "true", "true"], "sex": list("mfmf")})
    schema = fairbits.infer_schema(frame, protected=["sex"])
    rows = fairbits.Decoder(schema).frame(np.array([[1.0, 1.0, 0.0]]))
    assert rows.zone[0] == "2"
    assert rows.sure[0] == "true"


def test_a_table_without_one_of_the_columns(people: pd.DataFrame) -> None:
    model = _pipeline(LogisticRegression()).fit(_inputs(people), people.approved)
    with pytest.raises(fairbits.FairbitsError, match=r"trained on the column 'income'.*Did you mean 'incomes'"):
        fairbits.Audit.from_table(
            model, people.rename(columns={"income": "incomes"}), target="approved", protected=["sex"]
        )


def test_subject_toml_leaves_gaps_to_the_model(people: pd.DataFrame, tmp_path: Path) -> None:
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    model.fit(_inputs(people, categories=True), people.approved)
    skops = pytest.importorskip("skops.io")
    skops.dump(model, tmp_path / "model.skops")
    people.to_csv(tmp_path / "people.csv", index=False)
    from tests.cli.calling import fairbits as shell

    done = shell(
        *("init", "people.csv", "--model", "model.skops", "--target", "approved", "--protected", "sex"),
        *("--favourable", "yes", "--yes"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "subject.toml").read_text()
    assert 'missing = "model"' in text
    assert "customer_id" in text
    assert "[attributes.zip]" not in text
    subject = fairbits.load_subject(tmp_path / "subject.toml")
    expected = model.predict_proba(_inputs(people, categories=True))[:, 1]
    assert np.abs(subject.model.scores(subject.encoding.encode(subject.table.codes)) - expected).max() < 1e-6
