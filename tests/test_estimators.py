"""fairbits inside scikit-learn: scorers, grid search, metadata routing, and the guarded classifier."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import estimator_checks_generator

import fairbits


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(7)
    n = 1_500
    frame = pd.DataFrame(
        {
            "sex": rng.choice([" F", " M"], n),
            "race": pd.Categorical(rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])),
            "age": rng.integers(18, 80, n),
            "income": rng.normal(50, 20, n),
        },
        index=np.arange(n) * 7 + 3,
    )
    wins = frame.income + 15 * (frame.sex == " M") + 0.2 * frame.age + rng.normal(0, 8, n) > 62
    return frame, np.where(wins, "yes", "no")


def pipeline():
    coding = make_column_transformer((OneHotEncoder(), ["sex", "race"]), remainder=StandardScaler())
    return make_pipeline(coding, LogisticRegression())


def test_the_scorers_say_what_an_audit_says(people):
    frame, y = people
    model = pipeline().fit(frame, y)
    audit = fairbits.Audit.from_table(model, frame.assign(y=y), target="y", protected=["sex", "race"])
    measured = audit.measure().summary()
    assert fairbits.bits_scorer(protected=["sex", "race"])(model, frame) == pytest.approx(-measured["q_inf_mean"])
    assert fairbits.flip_rate_scorer(["sex", "race"])(model, frame, y) == pytest.approx(-measured["flip_rate"])


def test_the_favourable_class_may_be_the_other_one(people):
    frame, y = people
    model = pipeline().fit(frame, y)
    found = fairbits.flip_rate_scorer("sex", favourable="no", threshold=0.9)(model, frame)
    other = frame.assign(sex=np.where(frame.sex == " F", " M", " F"))
    wins = [m.predict_proba(rows)[:, 0] >= 0.9 for m, rows in ((model, frame), (model, other))]
    assert found == -np.mean(wins[0] != wins[1])
    for estimator, rows in ((model, frame), (LinearSVC().fit(frame[["income"]], y), frame[["income"]])):
        with pytest.raises(fairbits.FairbitsError, match="'maybe'; choose from: no, yes"):
            fairbits.bits_scorer(rows.columns[0], favourable="maybe")(estimator, rows)


def test_a_number_of_many_values_may_be_missing(people):
    frame, y = people
    gaps = frame[["age"]].assign(age=np.where(np.arange(len(frame)) % 5 > 0, frame.age, np.nan))
    model = HistGradientBoostingClassifier(max_iter=5).fit(gaps, y)
    assert -np.log2(20) <= fairbits.bits_scorer("age")(model, gaps) < 0


def test_margins_and_values(people):
    frame, y = people
    numbers = frame[["age", "income"]].assign(sex=(frame.sex == " M") * 1.0)
    for model in (LinearSVC(), RidgeClassifier()):
        assert fairbits.flip_rate_scorer("sex")(model.fit(numbers, y), numbers) < 0
    straight = LinearRegression().fit(numbers, y == "yes")
    assert fairbits.bits_scorer("sex")(straight, numbers) == -1
    with pytest.raises(fairbits.FairbitsError, match="decides nothing"):
        fairbits.flip_rate_scorer("sex")(straight, numbers)


def test_rows_without_twins_are_not_the_best(people):
    frame, y = people
    alike = frame[frame.sex == " F"]
    with pytest.raises(fairbits.FairbitsError, match="have the same sex, so nobody has a twin"):
        fairbits.bits_scorer("sex")(pipeline().fit(frame, y), alike)


def test_cross_validation_and_grid_search(people):
    frame, y = people
    scoring = {"accuracy": "accuracy", "bits": fairbits.bits_scorer(["sex"])}
    found = cross_validate(pipeline(), frame, y, scoring=scoring, cv=3)
    assert (found["test_bits"] < 0).all()
    grid = GridSearchCV(pipeline(), {"logisticregression__C": [1e-6, 1.0]}, scoring=scoring["bits"], cv=2)
    assert grid.fit(frame, y).best_params_ == {"logisticregression__C": 1e-6}  # the one that hardly decides at all


def test_metadata_routing_weighs_people(people):
    frame, y = people
    numbers = frame[["income"]].assign(sex=(frame.sex == " M") * 1.0)
    weights = np.where(frame.sex == " M", 1.0, 0.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=False)
        scorer = fairbits.flip_rate_scorer("sex").set_score_request(sample_weight=True)
        found = cross_validate(model, numbers, y, scoring=scorer, cv=2, params={"sample_weight": weights})
        plain = cross_validate(model, numbers, y, scoring=fairbits.flip_rate_scorer("sex"), cv=2)
    assert (found["test_score"] != plain["test_score"]).all()


def test_weights_are_routed_to_the_estimator_behind_a_guard(people):
    frame, y = people
    numbers = frame[["income"]].assign(sex=(frame.sex == " M") * 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        guarded = fairbits.GuardedClassifier(LogisticRegression().set_fit_request(sample_weight=True), "sex")
        ask = {"scoring": fairbits.bits_scorer("income"), "cv": 2}
        plain = cross_validate(guarded, numbers, y, **ask)["test_score"]
        weights = np.where(y == "yes", 1.0, 1e-3)
        found = cross_validate(guarded, numbers, y, params={"sample_weight": weights}, **ask)["test_score"]
    assert (found != plain).all()


@pytest.mark.parametrize("kind", ["pandas", "polars", "numpy"])
def test_a_guard_bounds_everybody(people, kind):
    frame, y = people
    protected = ["sex", "race"]
    model = pipeline()
    if kind == "polars":
        frame = pl.from_pandas(frame.astype({"race": str}))
    elif kind == "numpy":
        frame = np.column_stack([frame.sex == " M", frame.race.cat.codes, frame.age, frame.income]).astype(float)
        protected, model = [0, 1], make_pipeline(StandardScaler(), LogisticRegression())
    plain = model.fit(frame, y)
    scorer = fairbits.bits_scorer(protected)
    assert scorer(plain, frame) < -0.5
    one = fairbits.GuardedClassifier(model, protected).fit(frame, y)
    assert scorer(one, frame) == fairbits.flip_rate_scorer(protected)(one, frame) == 0
    two = fairbits.GuardedClassifier(model, protected, K=2).fit(frame, y)
    assert -1 <= scorer(two, frame) < -0.5
    np.testing.assert_allclose(two.predict_proba(frame).sum(axis=1), 1)
    assert plain.score(frame, y) > two.score(frame, y) - 0.02 > one.score(frame, y) - 0.04 > 0.7


def test_a_guard_needs_no_protected_value_and_takes_one_that_it_never_saw(people):
    frame, y = people
    codes = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["sex"]), remainder="drop")
    guarded = fairbits.GuardedClassifier(make_pipeline(codes, LogisticRegression()), ["sex"], K=2).fit(frame, y)
    other = guarded.predict_proba(frame.assign(sex="X"))[:, 1]
    twins = [guarded.predict_proba(frame.assign(sex=value))[:, 1] for value in (" F", " M")]
    assert fairbits.qid(np.stack([*twins, other], axis=1)).k.max() <= 2


def test_three_classes(people):
    frame, y = people
    three = np.where(frame.income > 70, "much", y)
    guarded = fairbits.GuardedClassifier(pipeline(), ["sex"], K=2).fit(frame, three)
    swapped = frame.assign(sex=np.where(frame.sex == " F", " M", " F"))
    apart = np.abs(guarded.predict_proba(frame) - guarded.predict_proba(swapped)).max()
    assert 0 < apart <= 0.025
    assert set(guarded.predict(frame)) == {"much", "no", "yes"}


def test_it_is_an_ordinary_estimator():
    estimator = fairbits.GuardedClassifier(LogisticRegression(), [0])
    excused = {
        "check_estimators_nan_inf": "who declares no protected value gets the mean over the twins",
        "check_classifiers_train": "the column that is guarded is what tells the classes apart there",
        "check_array_api_input": "",
    }
    ran = 0
    for instance, check in estimator_checks_generator(estimator):
        if check.func.__name__ not in excused:
            check(instance)
            ran += 1
    assert ran > 30
    assert clone(estimator).set_params(K=3).get_params()["K"] == 3


def test_what_cannot_be(people):
    frame, y = people
    model = pipeline().fit(frame, y)
    with pytest.raises(fairbits.FairbitsError, match="'gender' is no column of X; choose from: sex, race"):
        fairbits.bits_scorer("gender")(model, frame)
    with pytest.raises(fairbits.FairbitsError, match="no protected column"):
        fairbits.GuardedClassifier(pipeline()).fit(frame, y)
    with pytest.raises(fairbits.FairbitsError, match="K is 0"):
        fairbits.GuardedClassifier(pipeline(), "sex", K=0).fit(frame, y)
    with pytest.raises(fairbits.FairbitsError, match="no predict_proba"):
        fairbits.GuardedClassifier(LinearSVC(), "sex").fit(frame, y)
    with pytest.raises(fairbits.FairbitsError, match="7 is no column of an array of 2"):
        fairbits.bits_scorer([7])(model, np.zeros((5, 2)))


@pytest.mark.parametrize("asked", ["pandas", "polars", "pyarrow"])
def test_a_guard_is_asked_about_tables_of_another_library(people, asked):
    """As where it was fitted in a notebook, pickled, and asked in a service."""
    frame, y = people
    frame = frame.astype({"race": str})
    tables = {"pandas": frame, "polars": pl.from_pandas(frame), "pyarrow": pa.Table.from_pandas(frame)}
    for fitted in ("pandas", "polars"):
        guarded = fairbits.GuardedClassifier(pipeline(), ["sex", "race"], K=2).fit(tables[fitted], y)
        found = pickle.loads(pickle.dumps(guarded)).predict_proba(tables[asked])  # noqa: S301
        np.testing.assert_array_equal(found, guarded.predict_proba(tables[fitted]))


def test_what_nobody_can_be_asked_about_is_no_perfect_score(people):
    frame, y = people
    model = pipeline().fit(frame, y)
    with pytest.raises(fairbits.FairbitsError, match="there are no rows"):
        fairbits.bits_scorer("sex")(model, frame[:0])
    with pytest.raises(fairbits.FairbitsError, match="threshold is 50"):
        fairbits.flip_rate_scorer("sex", threshold=50)
    with pytest.raises(fairbits.FairbitsError, match="epsilon is -1"):
        fairbits.GuardedClassifier(pipeline(), "sex", K=2, epsilon=-1).fit(frame, y)
    several = np.stack([y == "yes", y[::-1] == "yes"], axis=1)
    for kind in (DecisionTreeClassifier, DecisionTreeRegressor):
        with pytest.raises(fairbits.FairbitsError, match="predicts several targets"):
            fairbits.bits_scorer("age")(kind(max_depth=1).fit(frame[["age"]], several), frame[["age"]])


def test_frames_of_modin_are_taken_and_given_back() -> None:
    modin = pytest.importorskip(
        "modin.pandas", reason="modin is not installed (it asks for an older pandas than the other tests have)"
    )
    import fairbits

    rng = np.random.default_rng(0)
    people = pd.DataFrame({"sex": rng.choice(["f", "m"], 80), "income": rng.normal(3, 1, 80)}, index=range(5, 85))
    people["approved"] = np.where(people["income"] + (people["sex"] == "m") > 3.5, "yes", "no")

    def decide(frame: pd.DataFrame) -> np.ndarray:
        return 1 / (1 + np.exp(3.5 - frame["income"].to_numpy() - (frame["sex"] == "m").to_numpy()))

    found = [
        fairbits.Audit.from_table(decide, table, target="approved", favourable="yes", protected=["sex"]).measure()
        for table in (people, modin.DataFrame(people))
    ]
    frames = [one.to_frame() for one in found]
    assert type(frames[1]).__module__.startswith("modin")
    pd.testing.assert_frame_equal(frames[0], frames[1]._to_pandas())
