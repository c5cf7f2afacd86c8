"""The model as its owner has it: values byte for byte, and figures that the owner's own calls give by brute force."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

from fairbits import Audit, load_subject
from fairbits.domain import RawTable
from fairbits.errors import MissingDependencyError, ModelError, SchemaError
from fairbits.models import Ensemble, Network, TreeModel
from fairbits.subject import table_of_subject

WORDS, NUMBERS, PROTECTED = ["sex", "race", "job"], ["age", "income"], ["sex", "race"]
COLUMNS = [*WORDS, *NUMBERS]
ASKED: dict[str, Any] = {"target": "hired", "protected": PROTECTED, "favourable": 1}


def people(n: int = 900) -> pd.DataFrame:
    """A table as adult.data is read without further thought: every label begins with a blank."""
    rng = np.random.default_rng(5)
    sex, race = rng.choice([" Male", " Female"], n), rng.choice([" White", " Black", " Other"], n, p=[0.7, 0.2, 0.1])
    job, age = rng.choice([" Sales", " Tech", " Care"], n), rng.integers(18, 80, n)
    income = np.round(rng.normal(40, 15, n), 2)
    pull = (age - 45) / 20 + (income - 40) / 20 + 0.8 * (sex == " Male") - 0.6 * (race == " Black")
    hired = (pull + rng.normal(0, 1, n) > 0).astype(int)
    return pd.DataFrame({"sex": sex, "race": race, "job": job, "age": age, "income": income, "hired": hired})


def encoders() -> Any:
    filled = make_pipeline(SimpleImputer(), StandardScaler())
    return make_column_transformer((OneHotEncoder(handle_unknown="ignore"), WORDS), (filled, NUMBERS))


def flips(score: Callable[[pd.DataFrame], Any], frame: pd.DataFrame, cut: float = 0.5) -> float:
    """By brute force: every combination of the values of the table, written into the owner's frame."""
    decided = []
    for values in itertools.product(*(frame[name].dropna().unique() for name in PROTECTED)):
        changed = frame[COLUMNS].copy()
        for name, value in zip(PROTECTED, values, strict=True):
            changed[name] = pd.Series([value] * len(frame), index=frame.index).astype(frame[name].dtype)
        decided.append(np.asarray(score(changed)).astype(np.float32) >= np.float32(cut))
    table = np.array(decided)
    return float((table.any(axis=0) & ~table.all(axis=0)).mean())


def agrees(model: Any, frame: pd.DataFrame, table: Any = None) -> Audit:
    audit = Audit.from_table(model, frame if table is None else table, **ASKED)
    trip = audit.subject.round_trip
    assert (trip.rows, trip.equal) == (len(frame), len(frame)), trip
    rate = audit.measure().flip_rate
    assert rate is not None
    assert rate.value == pytest.approx(flips(lambda rows: model.predict_proba(rows)[:, 1], frame), abs=1e-12)
    return audit


def categories(frame: pd.DataFrame) -> pd.DataFrame:
    turned = {name: pd.Categorical(frame[name], sorted(frame[name].unique(), reverse=True)) for name in WORDS}
    return frame.assign(**turned)


def with_none(frame: pd.DataFrame) -> pd.DataFrame:
    job = frame["job"].astype(object)
    job[np.random.default_rng(1).random(len(frame)) < 0.2] = None
    return frame.assign(job=job, sex=frame["sex"].astype(object))


def with_nullable(frame: pd.DataFrame) -> pd.DataFrame:
    age = frame["age"].astype("Int64")
    age[np.random.default_rng(1).random(len(frame)) < 0.1] = pd.NA
    return frame.assign(age=age, income=frame["income"].astype("Float64"))


RACES = {" White": 1, " Black": 2, " Other": 9}
TABLES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "blanks": lambda frame: frame,
    "None": with_none,
    "nullable": with_nullable,
    "categories": categories,
    "whole numbers and truths": lambda f: f.assign(race=f["race"].map(RACES), sex=f["sex"] == " Male"),
    "digits as text": lambda f: f.assign(race=f["race"].map(RACES).astype(str)),
    "floats": lambda f: f.assign(race=f["race"].map(RACES).astype(float)),
    "numbers as objects": lambda f: f.assign(race=f["race"].map(RACES).astype(object), age=f["age"].astype(object)),
    "objects with gaps": lambda f: f.assign(race=f["race"].map(RACES).astype(object).where(f["age"] > 30, None)),
    "a category of numbers": lambda f: f.assign(race=f["race"].map(RACES).astype("category")),
    "small types": lambda f: f.assign(income=f["income"].astype("float32"), age=f["age"].astype("int8")),
    "empty texts": lambda f: f.assign(job=f["job"].where(f["age"] > 30, "")),
    "an index": lambda f: f.set_index(pd.Index([f"p{i}" for i in range(len(f))])),
}


@pytest.mark.parametrize(
    ("kind", "final"),
    [
        *((kind, LogisticRegression()) for kind in TABLES),
        *((kind, RandomForestClassifier(8, max_depth=5, random_state=0)) for kind in ("None", "nullable", "floats")),
    ],
)
def test_values_reach_a_pipeline_as_the_table_has_them(kind: str, final: Any) -> None:
    frame = TABLES[kind](people())
    agrees(make_pipeline(encoders(), final).fit(frame[COLUMNS], frame["hired"]), frame)


@pytest.mark.parametrize(
    "model",
    [
        lightgbm.LGBMClassifier(n_estimators=8, verbose=-1),
        xgboost.XGBClassifier(n_estimators=8, enable_categorical=True),
        HistGradientBoostingClassifier(max_iter=8, categorical_features="from_dtype"),
    ],
)
def test_pandas_categories_keep_their_order(model: Any) -> None:
    frame = categories(people())
    agrees(model.fit(frame[COLUMNS], frame["hired"]), frame)


def test_files_hold_what_their_owner_reads(tmp_path: Path) -> None:
    """Of a CSV file pandas makes its own: "NA" is missing, dates and times are text, a postal code a number."""
    rng = np.random.default_rng(3)
    frame = people().assign(
        race=lambda f: f["race"].map(RACES),
        country=rng.choice(["US", "NA", "None", "DE"], 900),
        since=rng.choice(["2023-04-01", "2021-12-31"], 900),
        shift=rng.choice(["06:30", "14:30"], 900),
        zip=rng.choice(["02139", "94110", "10001"], 900),
        age=lambda f: np.where(rng.random(900) < 0.1, "NA", f["age"].astype(str)),
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    words = [*WORDS, "country", "since", "shift", "zip"]
    found = {}
    for reads, kinds in (({}, 4), ({"dtype": {"zip": str}}, 2)):
        read = pd.read_csv(tmp_path / "people.csv", **reads)
        read.to_parquet(tmp_path / "people.parquet")
        filled = make_pipeline(SimpleImputer(), StandardScaler())
        steps = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), words), (filled, NUMBERS))
        model = make_pipeline(steps, LogisticRegression()).fit(read[[*words, *NUMBERS]], read["hired"])
        tables = (read, tmp_path / "people.csv", tmp_path / "people.parquet", pa.Table.from_pandas(read))
        for table in tables[:kinds]:
            audit = Audit.from_table(model, table, **ASKED)
            assert audit.subject.round_trip.equal == audit.subject.round_trip.rows == 900
            figures = audit.measure()
            assert audit.subject.schema["race"].allowed == (1, 2, 9)
            found[type(table).__name__ + str(reads)] = (figures.evaluation.k.sum(), figures.evaluation.flips.sum())
        assert len(set(found.values())) == 1
        found.clear()


@pytest.mark.parametrize("gap", ["", "nan"])
def test_truth_values_with_gaps_are_what_pandas_reads(gap: str, tmp_path: Path) -> None:
    """True, False and NaN: neither text, nor None in place of NaN, which an encoder tells apart."""
    job = np.random.default_rng(3).choice(["True", "False", gap], 900)
    people().assign(job=job).to_csv(tmp_path / "people.csv", index=False)
    frame = pd.read_csv(tmp_path / "people.csv")
    assert set(frame["job"].dropna()) == {True, False}
    agrees(
        make_pipeline(encoders(), LogisticRegression()).fit(frame[COLUMNS], frame["hired"]),
        frame,
        tmp_path / "people.csv",
    )


def test_a_subject_file_may_leave_out_blanks(tmp_path: Path) -> None:
    frame = people()
    model = make_pipeline(encoders(), LogisticRegression()).fit(frame[COLUMNS], frame["hired"])
    from fairbits.models import save_estimator

    save_estimator(model, tmp_path / "model.skops")
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "subject.toml").write_text(
        """rules = ['sex == "Male" or sex == "Female"']
        [model]\npath = "model.skops"\n[table]\npath = "people.csv"\ntarget = "hired"\nfavourable = 1
        [attributes]
        sex = {kind = "category", labels = ["Male", "Female"], protected = true}
        race = {kind = "category", labels = ["White", "Black", "Other"], protected = true}
        job = {kind = "category", labels = ["Sales", "Tech", "Care"]}
        age = {kind = "integer", low = 18, high = 79}
        income = {kind = "real", low = -20, high = 100}\n"""
    )
    audit = Audit.of(tmp_path / "subject.toml")
    assert audit.subject.round_trip.equal == 900
    assert audit.subject.schema["sex"].read(0) == "Male"
    assert audit.subject.schema["sex"].code_of("Female") == 1
    rate = audit.measure().flip_rate
    assert rate is not None
    assert rate.value == flips(lambda rows: model.predict_proba(rows)[:, 1], frame)


def test_polars_keeps_its_none() -> None:
    frame = with_none(people())
    table = pl.from_pandas(frame)
    model = make_pipeline(encoders(), RandomForestClassifier(8, max_depth=5)).fit(table[COLUMNS], frame["hired"])
    audit = Audit.from_table(model, table, **ASKED)
    assert audit.subject.round_trip.equal == 900


def test_what_codes_cannot_hold_is_refused_with_row_column_and_value() -> None:
    """None and NaN in one column are one missing value here; a model that tells them apart is not audited as if not."""
    job = people()["job"].astype(object)
    job[::5], job[1::5] = None, np.nan
    frame = people().assign(job=job)

    def score(rows: pd.DataFrame) -> Any:
        missing = np.array([0.3 if value is None else 0.0 for value in rows["job"]])
        return np.clip(np.asarray(rows["age"]) / 100 + missing, 0, 1)

    with pytest.raises(ModelError, match=r"180 of 900 rows otherwise .* row \d+ .*column 'job' is (nan|None) in"):
        Audit.from_table(score, frame, **ASKED)


def test_a_model_whose_answers_vary_is_not_called_different() -> None:
    rng = np.random.default_rng(0)

    def score(rows: pd.DataFrame) -> Any:
        return np.clip(np.asarray(rows["age"]) / 100 + rng.normal(0, 0.01, len(rows)), 0, 1)

    trip = Audit.from_table(score, people(), **ASKED).subject.round_trip
    assert trip.rows == 900
    assert trip.tolerance > 0.005


def spread(rows: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    return pd.get_dummies(rows).reindex(columns=like.columns, fill_value=0).astype(float)


@pytest.mark.parametrize("named", [True, False])
def test_dummies_in_the_order_of_pandas(named: bool) -> None:
    frame = people()
    wide = pd.get_dummies(frame[COLUMNS]).astype(float)
    rows = wide if named else wide.to_numpy()
    model = LogisticRegression(max_iter=1000).fit(rows, frame["hired"])
    audit = Audit.from_table(model, frame, **ASKED)

    def score(changed: pd.DataFrame) -> Any:
        made = spread(changed, wide)
        return model.predict_proba(made if named else made.to_numpy())[:, 1]

    rate = audit.measure().flip_rate
    assert rate is not None
    assert rate.value == flips(score, frame)
    assert any("numbers first" in note for note in audit.subject.notes) is not named


def test_numbers_that_were_standardised_elsewhere_are_noticed() -> None:
    frame = people()
    scaled = frame.assign(**(frame[NUMBERS] - frame[NUMBERS].mean()) / frame[NUMBERS].std(ddof=0))
    steps = make_column_transformer((OneHotEncoder(), WORDS), remainder="passthrough")
    model = make_pipeline(steps, LogisticRegression(max_iter=500)).fit(scaled[COLUMNS], frame["hired"])
    with pytest.raises(ModelError, match="when the table's numbers are standardised"):
        Audit.from_table(model, frame, **ASKED)
    assert any("standardised" in note for note in Audit.from_table(model, frame, **ASKED, as_is=True).subject.notes)
    agrees(model, scaled)


@pytest.mark.parametrize("shift", [40.0, 0.0])
def test_layers_alone_that_want_other_numbers_get_a_note(shift: float) -> None:
    frame = people()[["sex", "income", "hired"]]
    given = frame.assign(income=frame["income"] - shift)
    network = Network.build([np.array([[0.0], [0.2 if shift else 3.0]])], [np.zeros(1)])
    audit = Audit.from_table(network, given, target="hired", protected="sex", favourable=1)
    assert any("probably trained on" in note for note in audit.subject.notes) is (shift == 0)
    assert len(audit.subject.checked().notes) == len(audit.subject.notes)


def test_a_regression_in_another_unit_is_refused() -> None:
    frame = people().assign(wage=lambda f: np.exp(f["income"] / 30 + np.random.default_rng(1).normal(0, 0.3, 900)))
    model = make_pipeline(encoders(), LinearRegression()).fit(frame[COLUMNS], np.log(frame["wage"]))
    asked = {"target": "wage", "protected": PROTECTED}
    with pytest.raises(ModelError, match=r"ranks people as the target does .* far off in amount .* table's own unit"):
        Audit.from_table(model, frame, **asked, ignored=["hired"])
    with pytest.raises(ModelError, match="goes against the target"):
        Audit.from_table(lambda rows: -np.asarray(rows["income"]), frame, **asked, ignored=["hired"])
    good = make_pipeline(encoders(), LinearRegression()).fit(frame[COLUMNS], frame["wage"])
    assert Audit.from_table(good, frame, **asked, ignored=["hired"]).subject.quality.r2 > 0


@pytest.mark.parametrize("favourable", [0, 1])
def test_a_model_s_own_threshold_decides(favourable: int) -> None:
    frame = people()
    tuned = TunedThresholdClassifierCV(LogisticRegression(), scoring="f1", cv=3)
    model = make_pipeline(encoders(), tuned).fit(frame[COLUMNS], frame["hired"])
    audit = Audit.from_table(model, frame, **ASKED | {"favourable": favourable})
    decided = np.asarray(model.predict(frame[COLUMNS]) == favourable)
    assert audit.subject.quality.favourable_rate == pytest.approx(decided.mean(), abs=1e-12)
    assert any("its own threshold" in note for note in audit.subject.notes)
    own = flips(lambda rows: model.predict(rows) == favourable, frame)
    assert audit.measure().flip_rate.value == pytest.approx(own, abs=1e-12)


@pytest.mark.parametrize("favourable", [0, 1])
def test_catboost_s_own_threshold_decides(favourable: int, tmp_path: Path) -> None:
    frame = people()[[*NUMBERS, "hired"]]
    model = catboost.CatBoostClassifier(iterations=20, verbose=0, thread_count=1, allow_writing_files=False)
    model.fit(frame[NUMBERS], frame["hired"]).set_probability_threshold(0.3)
    model.save_model(str(tmp_path / "model.cbm"))
    decided = np.asarray(model.predict(frame[NUMBERS]) == favourable)
    for decider in (model, tmp_path / "model.cbm"):
        audit = Audit.from_table(decider, frame, target="hired", protected=["age"], favourable=favourable)
        assert audit.subject.quality.favourable_rate == pytest.approx(decided.mean(), abs=1e-12)
        assert any("its own threshold" in note for note in audit.subject.notes)


@pytest.mark.parametrize("turned", [False, True])
def test_points_and_hazards_have_their_own_threshold(turned: bool) -> None:
    frame = people()
    base = make_pipeline(encoders(), LogisticRegression()).fit(frame[COLUMNS], frame["hired"])

    def points(rows: pd.DataFrame) -> Any:
        return 575 + 60 * (1 if not turned else -1) * base.decision_function(rows)

    asked = ASKED | ({"score_of": "0"} if turned else {})
    with pytest.raises(ModelError, match=r'outside 0 to 1 .*; say what it puts out: output = "value" under'):
        Audit.from_table(points, frame, **asked)
    with pytest.raises(SchemaError, match="say from which on a decision is favourable"):
        Audit.from_table(points, frame, **asked, output="value")
    audit = Audit.from_table(points, frame, **asked, threshold=600)
    found = audit.measure()
    assert found.flip_rate.value == flips(lambda rows: (points(rows) >= 600) ^ turned, frame)
    assert 2 < found.k_mean.value < 6
    assert audit.subject.quality.auc > 0.8
    with pytest.raises(SchemaError, match="all scores lie between 0 and 1"):
        Audit.from_table(lambda rows: base.predict_proba(rows)[:, 1], frame, **ASKED, threshold=60)


def test_fresh_answers_of_a_service_are_read_like_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant service whose answers are logits of the other class varies in nothing."""
    from fairbits import Category, Integer, Schema
    from fairbits.models import answers_vary, load_with_encoding

    monkeypatch.setattr("fairbits.models.http.Endpoint.ask_all", lambda _self, rows: np.full(len(rows), 1.5))
    schema = Schema(
        (Category(name="sex", labels=("f", "m"), protected=True), Integer(name="age", high=9)),
        target="y",
        classes=("no", "yes"),
    )
    model, encoding = load_with_encoding("http://localhost:1/", schema, output="logit", score_of="no")
    rows = encoding.encode(np.array([[0.0, 3.0], [1.0, 4.0]]))
    np.testing.assert_allclose(model.scores(rows), 1 - 1 / (1 + np.exp(-1.5)), rtol=1e-6)
    np.testing.assert_array_equal(model.fresh_scores(rows), model.scores(rows))  # type: ignore[attr-defined]
    assert not answers_vary(model, rows)


@pytest.mark.parametrize("seed", [0, 7])  # by the second, all log-odds lie within 0 and 1
@pytest.mark.parametrize("ending", [nn.Sigmoid(), nn.Identity()])
def test_a_module_is_held_against_pytorch_on_real_rows(ending: Any, seed: int) -> None:
    torch.manual_seed(seed)
    frame = people()[["age", "income", "hired"]].assign(sex=lambda f: f["age"] % 2)
    module = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1), ending).eval()
    asked = ASKED | {"protected": ["sex"], "as_is": True}
    trip = Audit.from_table(module, frame[["sex", "age", "income", "hired"]], **asked).subject.round_trip
    assert (trip.rows, trip.equal) == (900, 900)
    assert trip.compared == "the encoded rows, by the library and as read"
    assert 0 < trip.tolerance < 1e-4


def test_a_module_that_is_sure_of_everybody_is_no_other_model() -> None:
    """Of the other class PyTorch says 1 - p, which is 0 here, and in float64 it is 1e-13."""
    frame = people()[["age", "hired"]].assign(sex=lambda f: f["age"] % 2)
    module = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid()).eval()
    nn.init.constant_(module[0].weight, 1e-3)
    nn.init.constant_(module[0].bias, 30.0)
    asked = ASKED | {"protected": ["sex"], "as_is": True, "favourable": 0}
    trip = Audit.from_table(module, frame[["sex", "age", "hired"]], **asked).subject.round_trip
    assert (trip.rows, trip.equal) == (900, 900)


def booster_file(kind: str, frame: pd.DataFrame, folder: Path) -> Path:
    """A booster's own file, trained on pandas categories, or by CatBoost on their texts."""
    rows, file = categories(frame)[COLUMNS], folder / f"model.{kind}"
    if kind == "cbm":  # of numbers alone: with categories it is asked and not read
        model = catboost.CatBoostClassifier(iterations=20, verbose=0, thread_count=1, allow_writing_files=False)
        model.fit(frame[NUMBERS], frame["hired"]).save_model(str(file))
    elif kind == "txt":
        model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1).fit(rows, frame["hired"])
        model.booster_.save_model(file)
    else:
        model = xgboost.XGBClassifier(n_estimators=20, enable_categorical=True, n_jobs=1, early_stopping_rounds=3)
        held = [(rows[:200], frame["hired"][:200])]
        model.fit(rows[200:], frame["hired"][200:], eval_set=held, verbose=False).save_model(file)
    return file


@pytest.mark.parametrize("kind", ["txt", "json", "ubj", "cbm"])
def test_a_booster_s_file_is_held_against_its_library_on_real_rows(kind: str, tmp_path: Path) -> None:
    frame = people(400)
    subject = Audit.from_table(booster_file(kind, frame, tmp_path), frame, **ASKED).subject
    assert isinstance(subject.model, TreeModel)
    assert (subject.round_trip.rows, subject.round_trip.equal) == (400, 400), subject.round_trip


def test_a_booster_s_file_that_is_read_wrongly_gives_way_to_its_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = people(400)
    numbers = frame[NUMBERS].assign(sex=(frame["sex"] == " Male").astype(int), hired=frame["hired"])
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1).fit(
        numbers[[*NUMBERS, "sex"]], frame["hired"]
    )
    model.booster_.save_model(tmp_path / "model.txt")
    monkeypatch.setattr(Ensemble, "rounded", lambda _, values: np.asarray(values, np.float64) + 1.0)
    subject = Audit.from_table(tmp_path / "model.txt", numbers, target="hired", protected=["sex"], favourable=1).subject
    assert not isinstance(subject.model, TreeModel)
    assert any("asked through its own library" in note and "score somebody" in note for note in subject.notes)
    assert subject.round_trip.equal == subject.round_trip.rows == 400


def test_a_booster_s_file_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = people(400)
    file = booster_file("txt", frame, tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"'lightgbm', which is not installed"):
        Audit.from_table(file, frame, **ASKED)


def test_a_table_goes_out_as_it_came_in(tmp_path: Path) -> None:
    """Observed attributes are in it, cells without a value have none, and codes with gaps are no other ones."""
    frame = people().assign(
        race=lambda f: f["race"].map(RACES),
        religion=lambda f: np.where(f["age"] % 7 == 0, np.nan, f["age"] % 3),
        age=lambda f: f["age"].astype("Int64").where(f["age"] > 20),
    )
    frame.to_parquet(tmp_path / "people.parquet")
    (tmp_path / "subject.toml").write_text(
        """[table]\npath = "people.parquet"\nscore = "score"\n[attributes]
        race = {kind = "integer", low = 1, high = 9, values = [1, 2, 9], protected = true}
        religion = {kind = "integer", low = 0, high = 2, protected = "observed"}
        age = {kind = "integer", low = 21, high = 79, missing = "model"}\n"""
    )
    frame.assign(score=0.5).to_parquet(tmp_path / "people.parquet")
    out = table_of_subject(load_subject(tmp_path / "subject.toml")).to_pandas()
    assert set(out["race"]) == {1, 2, 9}
    assert out["religion"].isna().sum() == frame["religion"].isna().sum()
    assert out["age"].isna().sum() == frame["age"].isna().sum() > 0
    assert out["age"].min() == 21


def test_rows_keep_their_own_names() -> None:
    frame = people().set_index(pd.Index([f"p{i}" for i in range(900)]))
    model = make_pipeline(encoders(), LogisticRegression()).fit(frame[COLUMNS], frame["hired"])
    table = Audit.from_table(model, frame, **ASKED).subject.table
    assert list(table.rows(np.array([7, 3])).names()) == ["p7", "p3"]
    assert RawTable(people(), pa.Table.from_pandas(people())).index is None
