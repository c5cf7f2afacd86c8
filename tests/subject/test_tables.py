"""Tables as they are: gaps, truth values, dates, identifiers and every library's own types, against the model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fairbits
from fairbits.audit import draft_subject
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
    asked = evaluator_of(subject).over_values.scores(subject.table.codes)
    assert asked.shape == (len(people), 2)  # no twin lacks a sex, but those of people who do
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
    assert frame.index.tolist() == people.index.tolist()
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


def test_postal_codes_keep_their_zeros(tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(5)
    n = 200
    frame = pd.DataFrame(
        {
            "zip": rng.choice(["02139", "00501", "60614", "94110"], n),
            "sex": rng.choice(["f", "m"], n),
            "debt": rng.integers(0, 90, n),
        }
    )
    frame["paid"] = ((frame.zip == "02139") ^ (frame.sex == "m") ^ (frame.debt > 70)).astype(int)
    frame.to_csv(tmp_path / "loans.csv", index=False)
    schema = fairbits.infer_schema(tmp_path / "loans.csv", target="paid", protected="sex")
    assert schema["zip"].labels == ("00501", "02139", "60614", "94110")
    assert any("'00501' begins with a zero" in note for note in schema.notes)
    asked: dict[str, Any] = {"target": "paid", "protected": "sex", "favourable": 1}

    def scored(model: Any, table: Any, rows: pd.DataFrame) -> None:
        audit = fairbits.Audit.from_table(model, table, **asked, as_is=True)
        theirs = np.column_stack([model.predict_proba(_sexed(rows, sex))[:, 1] for sex in ("f", "m")])
        np.testing.assert_allclose(
            evaluator_of(audit.subject).scores(audit.subject.table.codes), theirs, atol=1e-6, err_msg=str(audit)
        )

    def booster() -> Any:
        return lightgbm.LGBMClassifier(n_estimators=8, min_child_samples=5, verbose=-1, n_jobs=1)

    words = frame.assign(zip=frame.zip.astype("category"), sex=frame.sex.astype("category")).drop(columns="paid")
    lost = words.assign(zip=frame.zip.astype(int))  # as pandas reads the file
    text = booster().fit(words, frame.paid)
    number = booster().fit(lost, frame.paid)
    scored(text, tmp_path / "loans.csv", words)
    scored(text, frame.assign(zip=frame.zip.astype(int)), words)
    scored(number, tmp_path / "loans.csv", lost)
    scored(number, frame.assign(zip=frame.zip.astype(int)), lost)
    scores = make_pipeline(
        make_column_transformer((StandardScaler(), ["zip", "debt"]), (OneHotEncoder(), ["sex"])), LogisticRegression()
    )
    scored(scores.fit(lost, frame.paid), tmp_path / "loans.csv", lost)


def _sexed(rows: pd.DataFrame, sex: str) -> pd.DataFrame:
    return rows.assign(sex=pd.Categorical([sex] * len(rows), categories=["f", "m"]))


def test_numbers_that_are_names_take_no_other_values() -> None:
    frame = pd.DataFrame(
        {
            "ZipCode": [10001, 60614, 94110, 60614] * 10,
            "branch_id": [3, 8, 9, 40] * 10,
            "zip_distance": [1, 2, 3, 9] * 10,
            "sex": list("fmmf") * 10,
        }
    )
    schema = fairbits.infer_schema(frame, protected="sex")
    assert schema["ZipCode"].allowed == (10001, 60614, 94110)
    assert schema["branch_id"].allowed == (3, 8, 9, 40)
    assert schema["zip_distance"].allowed == ()
    assert sum("name something and are no amounts" in note for note in schema.notes) == 2


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["3 Jan 2022", "14 February 2022"], "dates"),
        (["Dec-2015", "Jan-2016"], "dates"),
        (["January 3, 2022", "May 14, 2022"], "dates"),
        (["01/02/2022", "28/02/2022"], "dates"),
        ([20220103, 20211231], "dates"),
        (["6:30", "14:30"], "times"),
        (["may", "march"], ""),
        ([20_000_000, 19_500_000], ""),
    ],
)
def test_dates_however_they_are_written(values: list[Any], reason: str) -> None:
    frame = pd.DataFrame({"when": values * 20, "sex": list("fm") * 20, "age": [30, 40] * 20})
    schema = fairbits.infer_schema(frame, protected="sex")
    assert ("when" in schema.names) == (reason == "")
    assert any(f"when ({reason})" in note for note in schema.notes) == bool(reason)


@pytest.mark.parametrize("first", [1, 5000])
def test_a_column_that_counts_rows_is_left_out(first: int) -> None:
    frame = pd.DataFrame({"X": range(first, first + 40), "sex": list("fm") * 20, "age": [30, 40] * 20})
    schema = fairbits.infer_schema(frame, protected="sex")
    assert schema.names == ("sex", "age")
    assert "it counts the rows" in schema.notes[0]


@pytest.mark.parametrize("said", [True, "True", "true"])
def test_truth_values_are_named_as_their_table_spells_them(said: object) -> None:
    frame = pd.DataFrame({"sex": list("fm") * 20, "age": [30, 40] * 20, "ok": [True, False, True, True] * 10})
    assert fairbits.infer_schema(frame, target="ok", protected="sex", favourable=said).favourable == "true"


@pytest.mark.parametrize("spelled", [("False", "True"), ("FALSE", "TRUE"), ("false", "true")])
def test_labels_spell_truth_values_as_their_file_does(spelled: tuple[str, str], tmp_path: Path) -> None:
    """Arrow and pandas make truths of all of them; the file and its description go on saying True."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"owner": rng.choice(spelled, 60), "age": rng.integers(1, 9, 60)})
    frame["ok"] = np.where(frame.age > 4, "yes", "no")
    frame.to_csv(tmp_path / "people.csv", index=False)
    owner = Attribute(name="owner", kind="category", labels=spelled, protected=True)
    schema = fairbits.Schema(
        (owner, Attribute(name="age", kind="integer", low=1, high=8)), "ok", ("no", "yes"), favourable="yes"
    )

    def score(rows: pd.DataFrame) -> Any:
        assert rows["owner"].dtype == bool
        return rows["age"] / 10 + 0.1 * rows["owner"]

    measured = fairbits.Audit(score, tmp_path / "people.csv", schema).measure()
    assert measured.evaluation.k.min() == measured.evaluation.k.max() == 2
    assert measured.schema["owner"].read(1) == spelled[1]


def test_numbers_that_name_people_are_no_attribute() -> None:
    numbered = np.random.default_rng(0).permutation(40) * 3
    frame = pd.DataFrame({"person": numbered, "sex": list("fm") * 20, "age": [30, 40] * 20})
    assert fairbits.infer_schema(frame, protected="sex").names == ("sex", "age")


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ("{:,.2f}", r"numbers written as text, such as 1,000\.50; write them as 1234\.56"),
        ("$ {:.0f}", "numbers written as text"),
        ("{:010.0f}", "identifiers"),
        ("AP-{:.0f}", "identifiers"),
    ],
)
def test_numbers_written_as_text_are_told_from_identifiers(form: str, reason: str) -> None:
    frame = pd.DataFrame({"pay": [form.format(1000.5 + 7 * i) for i in range(40)], "sex": list("fm") * 20})
    schema = fairbits.infer_schema(frame, protected="sex")
    assert schema.names == ("sex",)
    assert re.search(rf"pay \({reason}", schema.notes[0])


def test_a_schema_of_numbers_still_reads_cells_with_zeros(tmp_path: Path) -> None:
    (tmp_path / "months.csv").write_text("month,sex,zone\n01,f,1\n12,m,02\n07,f,1\n")
    schema = fairbits.Schema(
        (
            Attribute(name="month", kind="integer", low=1, high=12),
            Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
            Attribute(name="zone", kind="category", labels=("1", "2")),
        )
    )
    from fairbits.domain import read_arrow, table_from_arrow

    found = table_from_arrow(read_arrow(tmp_path / "months.csv"), schema)
    assert found.codes.tolist() == [[1, 0, 0], [12, 1, 1], [7, 0, 0]]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("final", ["linear", "neighbours", "network"])
def test_a_model_of_dummies_takes_the_table_as_it_is(final: str, people: pd.DataFrame) -> None:
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier

    whole = people.dropna(subset=["age", "income", "job", "sex"])
    rows = pd.get_dummies(whole[SEEN], columns=["job", "sex"], drop_first=final == "linear")
    model = {
        "linear": LogisticRegression(max_iter=2000),
        "neighbours": KNeighborsClassifier(7),
        "network": MLPClassifier((5,), max_iter=30, random_state=0),
    }[final]
    model.fit(rows.astype(float), whole.approved)
    audit = fairbits.Audit.from_table(model, whole, target="approved", protected="sex", favourable="yes", as_is=True)
    subject = audit.subject
    sexed = [pd.get_dummies(_sexed(whole[SEEN], sex), columns=["job", "sex"]) for sex in ("f", "m")]
    theirs = [model.predict_proba(one[rows.columns].astype(float))[:, 1] for one in sexed]
    found = evaluator_of(subject).scores(subject.table.codes)
    np.testing.assert_allclose(found, np.column_stack(theirs), atol=1e-6)
    assert any("as pandas.get_dummies does" in note for note in subject.notes) == (final == "neighbours")


def test_a_bundle_with_a_model_inside_says_where_it_is(people: pd.DataFrame) -> None:
    bundle = {"columns": SEEN, "clf": LogisticRegression()}
    with pytest.raises(
        fairbits.FairbitsError, match="a 'dict' is no model, but its 'clf' is one; hand over or save tha"
    ):
        fairbits.Audit.from_table(bundle, people, target="approved", protected="sex")


def test_columns_that_are_kept_for_the_model_are_said() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "customer_id": [f"C{i:05d}" for i in range(80)],
            "zip": [f"0{i}" for i in rng.integers(1000, 1040, 80)],
            "sex": rng.choice(["f", "m"], 80),
            "income": rng.normal(3, 1, 80),
        }
    )
    frame["paid"] = (frame.income > 3).astype(int)

    def wants_everything(rows: pd.DataFrame) -> np.ndarray:
        assert rows.customer_id.str.startswith("C").all()
        return 1 / (1 + np.exp(3 - rows.income))

    def wants_numbers(rows: pd.DataFrame) -> np.ndarray:
        return 1 / (1 + np.exp(3 - rows.income - 0 * rows.zip.astype("int64").where(rows.zip < 2000)))

    def wants_little(rows: pd.DataFrame) -> np.ndarray:
        return 1 / (1 + np.exp(3 - rows.income))

    told = {
        function: " ".join(fairbits.Audit.from_table(function, frame, target="paid", protected="sex").subject.notes)
        for function in (wants_everything, wants_numbers, wants_little)
    }
    assert "because the model does not take people without: customer_id." in told[wants_everything]
    assert "texts of digits are taken as numbers" in told[wants_numbers]
    assert "left out of the schema: customer_id" in told[wants_little]


@pytest.mark.parametrize("saved", [False, True])
def test_xgboost_is_asked_where_its_file_cuts_names_that_are_not_ascii(saved: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({"sex": rng.choice(["f", "m"], 300), "job": rng.choice(["Büro", "Care", "Öl, Gas"], 300)})
    rows = rows.astype("category")
    paid = ((rows.job == "Öl, Gas") ^ (rows.sex == "m") ^ (rng.random(300) < 0.1)).astype(int)
    model = _xgboost().fit(rows, paid)
    model.save_model(tmp_path / "model.json")
    source, people = tmp_path / "model.json" if saved else model, rows.assign(paid=paid)
    audit = fairbits.Audit.from_table(source, people, target="paid", protected="sex", favourable=1)
    found = audit.measure(threads=1).to_frame()
    twins = [model.predict_proba(rows.assign(sex=pd.Categorical([sex] * 300, ["f", "m"])))[:, 1] for sex in "fm"]
    np.testing.assert_allclose(found["low"], np.min(twins, axis=0), atol=1e-6)
    np.testing.assert_allclose(found["high"], np.max(twins, axis=0), atol=1e-6)


def test_numbers_of_billions_of_values_are_numbers_like_others(tmp_path: Path) -> None:
    """Cents: nobody lists their values, neither for proposed rules, nor for ranges, nor for the size of the domain."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, 10**10, 120) for name in ("debt", "worth")})
    frame["sex"] = rng.choice(["m", "f"], 120)
    frame["ok"] = np.where(frame.worth > frame.debt, "yes", "no")

    def score(rows: pd.DataFrame) -> Any:
        return 1 / (1 + np.exp(-(rows.worth - rows.debt) / 5e9 - 0.2 * (rows.sex == "m")))

    audit = fairbits.Audit.from_table(score, frame, target="ok", protected=["sex", "worth"], favourable="yes")
    assert len(audit.subject.schema["worth"].ranges) == 6
    run = audit.search(budget=fairbits.Budget(evaluations=300), out=tmp_path / "run")
    assert run.report().is_file()
    frame.to_csv(tmp_path / "people.csv", index=False)
    draft_subject(tmp_path / "people.csv", target="ok", protected=["sex"], out=tmp_path / "subject.toml")
    assert "[attributes.worth]" in (tmp_path / "subject.toml").read_text()


@pytest.mark.parametrize("kind", ["cut", "intervals", "periods"])
def test_spans_of_pandas_are_categories_and_reach_the_model_as_they_are(kind: str) -> None:
    rng = np.random.default_rng(0)
    age, sex = rng.integers(0, 100, 200), rng.choice(["f", "m"], 200)
    banded = pd.Series(pd.cut(age, [-1, 30, 60, 100]))
    if kind != "cut":
        banded = pd.Series(banded.array.astype(banded.cat.categories.dtype))
    if kind == "periods":
        banded = pd.Series(pd.PeriodIndex.from_fields(year=2000 + age // 34 * 30, month=np.ones_like(age), freq="M"))
    people = pd.DataFrame({"band": banded, "sex": sex, "y": ((age > 40) | (sex == "m")).astype(int)})

    def score(rows: pd.DataFrame) -> Any:
        assert rows.band.dtype == banded.dtype
        start = rows.band.dt.year - 1990 if kind == "periods" else pd.arrays.IntervalArray(rows.band).left
        return np.clip(np.asarray(start, float) / 100 + 0.25 * (rows.sex == "m"), 0, 1)

    audit = fairbits.Audit.from_table(score, people, target="y", protected=["band", "sex"], favourable=1)
    assert audit.measure().evaluator.m == 6
    assert (audit.measure().to_frame().k == 6).all()


@pytest.mark.parametrize("wide", [np.arange(60) % 7 + 10**17, (np.arange(60) % 7 + 9) * 1e17])
def test_numbers_beyond_what_codes_tell_apart_keep_nobody_from_an_audit(wide: Any) -> None:
    people = pd.DataFrame({"sex": ["f", "m"] * 30, "account": wide, "y": [0, 1] * 30})
    asked: dict[str, Any] = {"target": "y", "favourable": 1}
    audit = fairbits.Audit.from_table(lambda rows: rows.sex == "m", people, protected=["sex"], **asked)
    assert audit.measure().summary()["flip_rate"] == 1
    kept = "account" in audit.subject.schema.names
    assert kept == (wide.dtype == np.float64)
    assert kept or "account (whole numbers beyond 1e15, which are not exact)" in audit.subject.notes[0]
    if not kept:
        with pytest.raises(fairbits.FairbitsError, match="'account' has bounds beyond 1e15"):
            fairbits.Audit.from_table(lambda rows: rows.sex == "m", people, protected=["account"], **asked)


def test_a_regressor_of_few_whole_numbers_predicts_amounts_and_no_classes() -> None:
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"sex": rng.integers(0, 2, 120), "hours": rng.integers(0, 9, 120)})
    people["grade"] = people.hours + 3 * people.sex + rng.integers(0, 2, 120)
    seen = people[["sex", "hours"]]
    for model in (LinearRegression(), make_pipeline(StandardScaler(), RandomForestRegressor(5, random_state=0))):
        audit = fairbits.Audit.from_table(model.fit(seen, people.grade), people, target="grade", protected=["sex"])
        assert audit.subject.schema.regression
        assert any("grade is taken for an amount" in note for note in audit.subject.notes)
        found = audit.measure().to_frame()
        for sex, place in ((0, "low"), (1, "high")):
            assert found[place].to_numpy() == pytest.approx(model.predict(seen.assign(sex=sex)), rel=1e-5, abs=1e-5)
    classifier = LogisticRegression(max_iter=999).fit(seen, people.grade)
    assert not fairbits.Audit.from_table(
        classifier, people, target="grade", protected=["sex"]
    ).subject.schema.regression
