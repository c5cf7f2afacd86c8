"""Pipelines of every make: exact tables where encoders look at one column, else a black box, or a clear refusal."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from fairbits import Attribute, Audit, Decoder, Encoding, Network, Schema, qid
from fairbits.domain import Twins, Unseen
from fairbits.domain.attribute import MISSING
from fairbits.errors import ModelError
from fairbits.measure import Evaluator
from fairbits.models import load_with_encoding

from ..conftest import random_people
from .zoo import SCHEMA, fit, perceptron, preprocessing, table

pd = pytest.importorskip("pandas", reason="pandas is not installed")


def agree(model, schema: Schema, estimator, decode, *, native: bool = True) -> Encoding:
    found, encoding = model
    assert isinstance(found, Network) == native
    codes = random_people(np.random.default_rng(1), schema, 200)
    theirs = estimator.predict_proba(decode(codes))[:, list(estimator.classes_).index("yes")]
    np.testing.assert_allclose(found.scores(encoding.encode(codes)), theirs, atol=1e-5)
    twins = Evaluator(found, schema, encoding).scores(codes)
    assert np.abs(twins[np.arange(200), Evaluator(found, schema, encoding).twins.index_of(codes)] - theirs).max() < 1e-5
    return encoding


def _variants():
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import (
        FunctionTransformer,
        KBinsDiscretizer,
        OneHotEncoder,
        OrdinalEncoder,
        StandardScaler,
    )

    text = ["job", "sex"]
    dense = {"sparse_output": False}
    return {
        "plain": preprocessing(),
        "drop first": preprocessing(drop="first"),
        "drop if binary": preprocessing(drop="if_binary"),
        "ignore unknown": preprocessing(handle_unknown="ignore"),
        "infrequent": preprocessing(min_frequency=0.26, handle_unknown="infrequent_if_exist"),
        "ordinal": ColumnTransformer([("o", OrdinalEncoder(), text)], remainder="passthrough"),
        "dropped columns": ColumnTransformer([("o", OrdinalEncoder(), ["job"]), ("p", "passthrough", ["income"])]),
        "by position": ColumnTransformer([("h", OneHotEncoder(), [1, 3]), ("s", StandardScaler(), [0, 2, 4])]),
        "nested": make_pipeline(
            ColumnTransformer([("h", OneHotEncoder(**dense), text)], remainder=StandardScaler()),
            FunctionTransformer(None),
            StandardScaler(),
        ),
        "binned": ColumnTransformer(
            [
                ("h", OneHotEncoder(), text),
                ("b", KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), ["hours", "age"]),
            ],
            remainder="passthrough",
        ),
    }


@pytest.mark.parametrize("name", _variants())
def test_encoders_become_exact_tables(name: str) -> None:
    from sklearn.pipeline import make_pipeline

    frame, _, target = table()
    model = fit(make_pipeline(_variants()[name], perceptron()), frame, target)
    agree(load_with_encoding(model, SCHEMA), SCHEMA, model, Decoder(SCHEMA).frame)


def test_arrays_of_objects_and_of_numbers() -> None:
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    _, codes, target = table()
    columns = ColumnTransformer([("h", OneHotEncoder(), [1, 3]), ("m", MinMaxScaler(), [0, 2, 4])])
    mixed = fit(make_pipeline(columns, perceptron()), Decoder(SCHEMA).array(codes), target)
    agree(load_with_encoding(mixed, SCHEMA), SCHEMA, mixed, Decoder(SCHEMA).array)
    bare = fit(perceptron(), codes, target)
    agree(load_with_encoding(bare, SCHEMA), SCHEMA, bare, lambda codes: codes)


def test_what_several_columns_make_together_is_left_to_scikit_learn() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, Normalizer, PolynomialFeatures

    frame, _, target = table()
    for step in (PolynomialFeatures(2), Normalizer(), FunctionTransformer(np.sqrt)):
        columns = preprocessing(sparse_output=False)
        made = make_pipeline(columns, FunctionTransformer(np.abs), step, perceptron())
        model = fit(made, frame, target)
        agree(load_with_encoding(model, SCHEMA), SCHEMA, model, Decoder(SCHEMA).frame, native=False)


def test_a_clipped_scaler_is_not_taken_for_a_straight_line() -> None:
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OrdinalEncoder

    frame, _, target = table()
    narrow = frame[(frame.income > 0) & (frame.income < 2)]
    columns = ColumnTransformer(
        [("m", MinMaxScaler(clip=True), ["income"]), ("o", OrdinalEncoder(), ["job", "sex"])], remainder="passthrough"
    )
    model = fit(make_pipeline(columns, perceptron()), narrow, target[narrow.index])
    agree(load_with_encoding(model, SCHEMA), SCHEMA, model, Decoder(SCHEMA).frame, native=False)


def test_classes_in_another_order_than_the_schema_s() -> None:
    from sklearn.pipeline import make_pipeline

    frame, codes, target = table()
    model = fit(make_pipeline(preprocessing(), perceptron()), frame, target)
    schema = Schema(SCHEMA.attributes, "hired", classes=("yes", "no"), favourable="yes")
    audit = Audit(model, frame.assign(hired=target), schema)
    assert audit.subject.schema.classes == ("no", "yes")
    network, encoding, people = audit.subject.model, audit.subject.encoding, audit.subject.table
    np.testing.assert_array_equal(
        network.labels(encoding.encode(codes)) == people.labels, model.predict(frame) == target
    )
    np.testing.assert_allclose(network.scores(encoding.encode(codes)), model.predict_proba(frame)[:, 1], atol=1e-5)
    with pytest.raises(ModelError, match="decides between no, yes, but the favourable value is 'hired'"):
        load_with_encoding(model, Schema(SCHEMA.attributes, "t", classes=("fired", "hired")))


def test_numbers_as_labels_and_missing_values() -> None:
    """Zip codes that were numbers in the table, grades that were text, truth values, and an empty cell."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    schema = Schema(
        (
            Attribute(name="zip", kind="category", labels=("10", "20", "33"), protected=True),
            Attribute(name="grade", kind="category", labels=("01", "02")),
            Attribute(name="member", kind="category", labels=("false", "true")),
            Attribute(name="city", kind="category", labels=("Bonn", "Ulm", MISSING)),
        ),
        target="y",
        classes=("no", "yes"),
    )
    frame = Decoder(schema).frame(random_people(rng, schema, 200))
    assert frame["zip"].dtype.kind == "i"
    assert frame["member"].dtype.kind == "b"
    assert frame["city"].isna().any()
    imputed = make_pipeline(SimpleImputer(strategy="most_frequent", missing_values=np.nan), OneHotEncoder())
    columns = ColumnTransformer([("h", OneHotEncoder(), ["zip", "grade", "member"]), ("i", imputed, ["city"])])
    target = np.where(frame["zip"] + rng.normal(0, 9, 200) > 20, "yes", "no")
    model = fit(make_pipeline(columns, perceptron()), frame, target)
    agree(load_with_encoding(model, schema), schema, model, Decoder(schema).frame)


def test_code_books_with_gaps_and_tables_that_are_one_hot_already() -> None:
    """Only the values that exist are asked about; a spread category is one attribute and several columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    schema = Schema(
        (
            Attribute(name="grade", kind="integer", low=3, high=9, allowed=(3, 6, 7, 9), protected=True),
            Attribute(name="job", kind="category", labels=("A", "B", "C"), columns=("job_A", "job_B", "job_C")),
            Attribute(name="income", kind="real", low=0, high=2),
        ),
        target="y",
        classes=("no", "yes"),
    )
    codes = np.column_stack([rng.choice([3, 6, 7, 9], 200), rng.integers(0, 3, 200), rng.uniform(0, 2, 200)])
    frame = Decoder(schema).frame(codes)
    assert list(frame.columns) == ["grade", "job_A", "job_B", "job_C", "income"]
    target = np.where(codes[:, 2] + (codes[:, 0] > 6) > 1.5, "yes", "no")
    hot = ColumnTransformer([("h", OneHotEncoder(), ["grade"])], remainder="passthrough")
    for model, native in (
        (make_pipeline(hot, perceptron()), True),
        (perceptron(), True),
        (RandomForestClassifier(5, random_state=0), False),
    ):
        found, encoding = load_with_encoding(fit(model, frame, target), schema)
        assert isinstance(found, Network) == native
        theirs = model.predict_proba(frame)[:, 1]
        np.testing.assert_allclose(found.scores(encoding.encode(codes)), theirs, atol=1e-5, rtol=1e-5)


def test_three_classes_as_a_whole_vector() -> None:
    from dataclasses import replace

    from sklearn.ensemble import RandomForestClassifier

    frame, codes, _ = table()
    grades = np.array(["high", "low", "mid"])[np.digitize(codes[:, 2], [0.5, 2])]
    three = Schema(SCHEMA.attributes, "grade", classes=("low", "mid", "high"), favourable="high")
    forest = fit(RandomForestClassifier(5, random_state=0), codes, grades)
    box, encoding = load_with_encoding(forest, three)
    theirs = forest.predict_proba(codes)[:, [1, 2, 0]]
    np.testing.assert_allclose(box.class_scores(encoding.encode(codes)), theirs, atol=1e-6)
    np.testing.assert_allclose(box.scores(encoding.encode(codes)), theirs[:, 2], atol=1e-6)
    twins = Twins(three)
    everybody = np.repeat(codes[:, None, :], twins.m, axis=1)
    everybody[:, :, twins.columns] = twins.values
    for model in (forest, fit(perceptron(), codes, grades)):
        shares = model.predict_proba(everybody.reshape(-1, codes.shape[1]))[:, [1, 2, 0]].reshape(
            len(codes), twins.m, 3
        )
        k = {
            scores: Audit(model, frame.assign(grade=grades), replace(three, scores=scores)).measure().evaluation.k
            for scores in ("favourable", "vector")
        }
        np.testing.assert_array_equal(k["favourable"], qid(shares[:, :, 2].astype(np.float32)).k)
        apart = np.abs(shares[:, :, None] - shares[:, None]).max(axis=(1, 2, 3)) > 0.025
        np.testing.assert_array_equal(k["vector"] > 1, apart)
        assert (k["vector"] >= k["favourable"]).all()
        assert k["vector"].max() > 1


def test_values_that_the_model_has_never_met() -> None:
    from sklearn.pipeline import make_pipeline

    frame, _, target = table()
    kept = frame[frame.job != "Farm"]
    model = fit(make_pipeline(preprocessing(), perceptron()), kept, target[kept.index])
    with pytest.raises(
        ModelError, match=r"cannot take the value 'Farm' of 'job', which the schema allows .*unknown cat"
    ):
        load_with_encoding(model, SCHEMA)
    tolerant = fit(make_pipeline(preprocessing(handle_unknown="ignore"), perceptron()), kept, target[kept.index])
    agree(load_with_encoding(tolerant, SCHEMA), SCHEMA, tolerant, Decoder(SCHEMA).frame)


def test_a_protected_attribute_that_the_model_never_sees_is_allowed_and_noted() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    frame, _, target = table()
    for final in (perceptron(), RandomForestClassifier(5, random_state=0)):
        columns = preprocessing()
        columns.transformers = columns.transformers[:-1]  # leaves out sex
        model = fit(make_pipeline(columns, final), frame.drop(columns="sex"), target)
        audit = Audit(model, frame.assign(hired=target), SCHEMA)
        assert isinstance(audit.subject.encoding.parts[3], Unseen)
        assert audit.subject.notes == (
            "the model never sees sex, so twins cannot differ in it; check whether other attributes stand in for it.",
        )
        assert audit.subject.with_protected(["age"]).notes == ()
        only = Audit.of(audit.subject.with_protected(["sex"])).measure()
        assert only.summary()["k_max"] == 1


def test_columns_that_do_not_fit() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    frame, codes, target = table()
    renamed = fit(make_pipeline(preprocessing(), perceptron()), frame.assign(height=1.0), target)
    with pytest.raises(
        ModelError, match="trained on the column 'height', which the schema does not describe; choose from: age"
    ):
        load_with_encoding(renamed, SCHEMA)
    forest = fit(RandomForestClassifier(3), codes[:, 1:], target)
    with pytest.raises(ModelError, match="takes 4 columns, but 5 attributes are given"):
        load_with_encoding(forest, SCHEMA)
    model, encoding = load_with_encoding(forest, SCHEMA, columns=SCHEMA.names[1:])
    assert encoding.unseen == (0,)
    np.testing.assert_allclose(
        model.scores(encoding.encode(codes)), forest.predict_proba(codes[:, 1:])[:, 1], atol=1e-6
    )
    bare = fit(perceptron(), codes[:, [1, 2, 4]], target)
    with pytest.raises(
        ModelError, match=r"takes 3 inputs, .* without age, sex they would fit as codes: .* \[model\] columns"
    ):
        load_with_encoding(bare, SCHEMA)


def test_decisions_without_probabilities() -> None:
    from sklearn.svm import SVC

    _, codes, target = table(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVC().fit(codes, target)
    box, encoding = load_with_encoding(model, SCHEMA)
    np.testing.assert_array_equal(box.scores(encoding.encode(codes)), (model.predict(codes) == "yes").astype(float))


@pytest.mark.parametrize("name", ["stacked", "voting", "calibrated", "spline", "searched", "iterative"])
def test_skops_files_of_ensembles_and_splines_need_no_trust(name: str, tmp_path: Path) -> None:
    """What they keep their parts in are numbers and estimators; skops does not know those types by itself."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import StackingClassifier, VotingClassifier
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer

    from fairbits.models.registry import read_object

    io = pytest.importorskip("skops.io", reason="the sklearn extra is not installed")
    plain = LogisticRegression()
    made = {
        "stacked": lambda: StackingClassifier([("one", plain)], cv=2),
        "voting": lambda: VotingClassifier([("one", plain)], voting="soft"),
        "calibrated": lambda: CalibratedClassifierCV(plain, cv=2),
        "spline": lambda: make_pipeline(SplineTransformer(n_knots=3), plain),
        "searched": lambda: GridSearchCV(plain, {"C": [1.0]}, cv=2),
        "iterative": lambda: make_pipeline(IterativeImputer(max_iter=1), plain),
    }[name]()
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 2))
    made.fit(rows, np.arange(40) % 2)
    io.dump(made, tmp_path / "model.skops")
    read = read_object(tmp_path / "model.skops", trust_pickle=False)
    np.testing.assert_array_equal(read.predict_proba(rows), made.predict_proba(rows))


@pytest.mark.parametrize("named", [True, False])
def test_a_pipeline_that_was_fitted_on_codes(named) -> None:
    """`input_format` counts where a pipeline is read too; without it the refusal says what to do."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    codes = random_people(np.random.default_rng(0), SCHEMA, 60)
    rows = pd.DataFrame(codes, columns=SCHEMA.names) if named else codes
    pipeline = make_pipeline(MinMaxScaler(), LogisticRegression()).fit(
        rows, np.where(codes[:, 2] > np.median(codes[:, 2]), "yes", "no")
    )
    with pytest.raises(ModelError, match=r'preprocessing failed: .*; .* say input_format = "codes" under \[model\]'):
        load_with_encoding(pipeline, SCHEMA)

    def decode(people):
        return pd.DataFrame(people, columns=SCHEMA.names) if named else people

    agree(load_with_encoding(pipeline, SCHEMA, input_format="codes"), SCHEMA, pipeline, decode)
