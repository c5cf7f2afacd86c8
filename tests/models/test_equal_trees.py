"""Every twin's score is, to the bit, what the library itself predicts: pipelines at random, tables full of ties.

Thresholds are taken from rows, so that rows lie on thresholds, or, behind a scaler, a rounding error beside them. So
tables here have few different values, people stand on the thresholds themselves and on the floats next to them, and
cut-offs are scores of the model.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairbits import Attribute, Decoder, Schema
from fairbits.measure import Evaluator
from fairbits.models import ModelOptions, TreeModel, adapt, fit_to_schema

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

ATTRIBUTES = (
    Attribute(name="sex", kind="category", labels=("Female", "Male"), protected=True),
    Attribute(name="age", kind="integer", low=18, high=60, protected=True, allowed=(18, 25, 40, 60)),
    Attribute(name="job", kind="category", labels=("care", "farm", "sales")),
    Attribute(name="hours", kind="integer", low=0, high=99, missing="model"),
    Attribute(name="wealth", kind="integer", low=-50_000, high=1_000_000),
    Attribute(name="wage", kind="real", low=-3.7, high=900.1),
    Attribute(name="rate", kind="real", low=0.0, high=1.0, missing="model"),
)
NUMBERS = ["age", "hours", "wealth", "wage", "rate"]


def people(rng: np.random.Generator, n: int) -> Any:
    """Rows as their owner has them: decimals, of which many are the same."""
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["Female", "Male"], n),
            "age": rng.choice([18, 25, 40, 60], n),
            "job": rng.choice(["care", "farm", "sales"], n),
            "hours": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 100, n)),
            "wealth": rng.choice([-50_000, 0, 7, 333_333, 1_000_000, *rng.integers(0, 10**6, 30)], n),
            "wage": np.clip(np.round(rng.lognormal(3, 1, n), 1), -3.7, 900.1),
            "rate": np.where(rng.random(n) < 0.1, np.nan, np.round(rng.random(n), 2)),
        }
    )
    wish = 0.02 * frame["wage"] + frame["rate"].fillna(0.3) + (frame["sex"] == "Male") + 0.02 * frame["age"]
    wish = wish + 0.01 * frame["hours"].fillna(0) + 1e-6 * frame["wealth"] + (frame["job"] == "care")
    return frame, (wish + rng.normal(size=n) > wish.median()).astype(int)


def scaler(rng: np.random.Generator) -> Any:
    from sklearn import preprocessing as p

    return [
        p.StandardScaler(),
        p.StandardScaler(with_mean=False),
        p.RobustScaler(),
        p.MinMaxScaler(feature_range=(-1, 3)),
        p.MinMaxScaler(clip=True),
        p.MaxAbsScaler(),
        "passthrough",
    ][rng.integers(7)]


def encoders(rng: np.random.Generator, sparse: bool) -> Any:
    """Scalers, imputers and bins for numbers, some after others, in one transformer or several; labels one-hot."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder

    def chain() -> Any:
        filled = SimpleImputer(strategy=["mean", "median"][rng.integers(2)], add_indicator=bool(rng.integers(2)))
        steps = [filled, scaler(rng), scaler(rng)] if rng.integers(2) else [scaler(rng), filled, scaler(rng)]
        if rng.random() < 0.2:
            steps.append(KBinsDiscretizer(12, encode="ordinal", strategy="uniform"))
        return make_pipeline(*steps)

    labels = OneHotEncoder(sparse_output=sparse) if rng.integers(2) else OrdinalEncoder()
    parts = [("labels", labels, ["sex", "job"])]
    if rng.integers(2):
        parts += [("numbers", chain(), NUMBERS)]
    else:
        parts += [("some", chain(), NUMBERS[:2]), ("others", chain(), NUMBERS[2:])]
    return ColumnTransformer(parts, sparse_threshold=1.0 if sparse else 0.0)


def forest(**more: Any) -> Callable[[int], Any]:
    from sklearn.ensemble import RandomForestClassifier

    return lambda seed: RandomForestClassifier(15, random_state=seed, **more)


def sklearn_model(name: str, **more: Any) -> Callable[[int], Any]:
    from sklearn import ensemble, tree

    kind = getattr(ensemble, name, None) or getattr(tree, name)
    return lambda seed: kind(random_state=seed, **more)


def lightgbm(**more: Any) -> Callable[[int], Any]:
    library = pytest.importorskip("lightgbm")
    options = {"n_estimators": 25, "num_leaves": 9, "min_child_samples": 3, "verbose": -1, "n_jobs": 1} | more
    return lambda seed: library.LGBMClassifier(random_state=seed, **options)


def xgboost(**more: Any) -> Callable[[int], Any]:
    library = pytest.importorskip("xgboost")
    options = {"n_estimators": 25, "max_depth": 4, "n_jobs": 1} | more
    return lambda seed: library.XGBClassifier(random_state=seed, **options)


def catboost(**more: Any) -> Callable[[int], Any]:
    library = pytest.importorskip("catboost")
    options = {"iterations": 25, "depth": 4, "verbose": 0, "thread_count": 1, "allow_writing_files": False} | more
    return lambda seed: library.CatBoostClassifier(random_seed=seed, **options)


MODELS: dict[str, Callable[[], Callable[[int], Any]]] = {
    "tree": lambda: sklearn_model("DecisionTreeClassifier"),
    "forest of pure leaves": forest,
    "forest of shares": lambda: forest(min_samples_leaf=4),
    "extra trees": lambda: sklearn_model("ExtraTreesClassifier", n_estimators=15, max_depth=5),
    "boosting": lambda: sklearn_model("GradientBoostingClassifier", n_estimators=20),
    "histograms": lambda: sklearn_model("HistGradientBoostingClassifier", max_iter=20, min_samples_leaf=4),
    "LightGBM": lightgbm,
    "LightGBM forest": lambda: lightgbm(boosting_type="rf", subsample=0.7, subsample_freq=1),
    "XGBoost": xgboost,
    "XGBoost base": lambda: xgboost(base_score=0.3, max_depth=9, num_parallel_tree=2, subsample=0.8),
    "CatBoost": catboost,
}


#: These meet other encoders, too.
ONE_OF_EACH = ("forest of pure leaves", "boosting", "LightGBM", "XGBoost")


def compare(
    model: Any, schema: Schema, frame: Any, seed: int, *, sparse: bool = False, adapted: Any = None
) -> tuple[Any, Any]:
    """Our scores of the rows' twins, and the library's, in its own precision."""
    loaded = fit_to_schema(adapted or adapt(model, schema, ModelOptions()), schema)
    found, encoding = loaded.model, loaded.encoding
    assert encoding is not None
    assert isinstance(found, TreeModel) or (sparse and "takes for missing" in loaded.notes[-1]), loaded.notes
    evaluator = Evaluator(found, schema, encoding, threads=1)
    codes = codes_of(frame, schema)
    for column, cuts in evaluator.thresholds.items():  # people on thresholds, and on the floats beside them
        if schema.attributes[column].kind == "real" and len(cuts):
            rng = np.random.default_rng(seed)
            near = rng.choice(np.concatenate([cuts, np.nextafter(cuts, -9e9), np.nextafter(cuts, 9e9)]), 30)
            codes[-30:, column] = np.clip(near, schema.attributes[column].low, schema.attributes[column].upper)
    ours = evaluator.scores(codes)
    twins = evaluator.twins
    rows = np.repeat(codes, twins.m, axis=0)
    rows[:, twins.columns] = np.tile(twins.values, (len(codes), 1))
    theirs = model.predict_proba(Decoder(schema).frame(rows))[:, 1].reshape(len(codes), -1)
    alone = found.scores(encoding.encode(rows)).reshape(ours.shape)  # rows as they are, without the engine
    assert np.array_equal(alone, theirs.astype(np.float32))
    return ours, theirs


def codes_of(frame: Any, schema: Schema) -> np.ndarray:
    columns = []
    for attribute in schema.attributes:
        values = frame[attribute.name]
        if attribute.kind == "category":
            columns.append([attribute.labels.index(value) for value in values])
        else:
            columns.append(values.fillna(attribute.gap if attribute.gap is not None else 0))
    return np.column_stack(columns).astype(np.float64)


@pytest.mark.parametrize(("name", "seed"), [*((name, 0) for name in MODELS), *((name, 1) for name in ONE_OF_EACH)])
def test_trees_behind_encoders_of_any_kind_score_as_their_library_does(name: str, seed: int) -> None:
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng([seed, *name.encode()])
    frame, target = people(rng, 300)
    last = MODELS[name]()(seed)
    sparse = bool(rng.integers(2)) and name != "histograms"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(encoders(rng, sparse), last).fit(frame, target)
        schema = Schema(ATTRIBUTES, target="y", classes=("0", "1"))
        adapted = adapt(model, schema, ModelOptions())  # whatever the cut-off
        ours, theirs = compare(model, schema, frame[:120], seed, sparse=sparse, adapted=adapted)
        assert np.array_equal(ours, theirs.astype(np.float32))
        cut = float(rng.choice([0.5, *np.unique(theirs[(theirs > 0) & (theirs < 1)])][-40:]))
        at_cut = replace(schema, threshold=cut)
        again, _ = compare(model, at_cut, frame[:120], seed, sparse=sparse, adapted=adapted)
    assert np.array_equal(at_cut.rule.favours(again), theirs >= cut)
    assert np.abs(again - theirs).max() <= 1.2e-7


@pytest.mark.parametrize(
    "name", ["tree", "forest of shares", "boosting", "histograms", "LightGBM", "XGBoost", "CatBoost"]
)
def test_bare_trees_compare_in_the_precision_of_their_library(name: str) -> None:
    """Values next to a threshold are the same float32, or not, as the library has it; so are zeros of both signs."""
    rng = np.random.default_rng(7)
    values = np.concatenate([[-0.0, 0.0, 1e-40, -1e-40, 16_777_217.0], np.round(rng.normal(size=195), 1)])
    frame = pd.DataFrame({"sex": rng.integers(0, 2, 200), "a": values, "b": rng.permutation(values) / 3})
    target = (frame["a"] + frame["sex"] > frame["b"]).astype(int)
    attributes = [Attribute(name="sex", kind="integer", low=0, high=1, protected=True)]
    attributes += [Attribute(name=x, kind="real", low=-10.0, high=2e7) for x in "ab"]
    schema = Schema(attributes, target="y", classes=("0", "1"))
    model = MODELS[name]()(0).fit(frame, target)
    ours, theirs = compare(model, schema, frame, 0)
    assert np.array_equal(ours, theirs.astype(np.float32))


@pytest.mark.parametrize("where", ["XGBoost", "sparse"])
def test_what_xgboost_takes_for_missing_is_left_to_it(where: str) -> None:
    library = pytest.importorskip("xgboost")
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder

    frame, target = people(np.random.default_rng(1), 300)
    if where == "XGBoost":
        frame = frame[["wage", "age"]].assign(sex=(frame["sex"] == "Male").astype(int), wage=frame["wage"].round())
        model = library.XGBClassifier(n_estimators=5, missing=0.0).fit(frame, target)
        attributes = [Attribute(name="wage", kind="real", low=-3.7, high=900.1), ATTRIBUTES[1]]
        attributes.append(Attribute(name="sex", kind="integer", low=0, high=1, protected=True))
    else:
        frame = frame[["wealth", "sex"]]
        steps = make_column_transformer((OneHotEncoder(), ["sex"]), (MaxAbsScaler(), ["wealth"]), sparse_threshold=1.0)
        model = make_pipeline(steps, library.XGBClassifier(n_estimators=5)).fit(frame, target)
        attributes = [ATTRIBUTES[4], ATTRIBUTES[0]]
    schema = Schema(attributes, target="y", classes=("0", "1"))
    loaded = fit_to_schema(adapt(model, schema, ModelOptions()), schema)
    assert "for a missing value" in loaded.notes[-1] or "takes for missing" in loaded.notes[-1]
    codes = Decoder(schema).frame(codes_of(frame, schema))
    scores = loaded.model.scores(loaded.encoding.encode(codes_of(frame, schema)))  # type: ignore[union-attr]
    assert np.array_equal(scores, model.predict_proba(codes)[:, 1])


@pytest.mark.parametrize("favourable", ["high", "low", "mid"])
@pytest.mark.parametrize("asked", ["read", "asked"])
def test_a_tie_of_three_classes_goes_where_the_library_gives_it(favourable: str, asked: str) -> None:
    """Shares of nine votes are often equal, sums of thirds nearly so: a forest decides for the first of the largest."""
    from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"sex": rng.choice([0, 1], 400), "age": rng.choice([18, 25, 40, 60], 400)})
    frame["wage"] = rng.integers(0, 90, 400)
    labels = np.array(["low", "mid", "high"])[(frame["sex"] + frame["wage"] // 30 + rng.integers(0, 3, 400)) % 3]
    kinds = {
        "read": RandomForestClassifier(9, random_state=0),
        "asked": BaggingClassifier(DecisionTreeClassifier(), 9, random_state=0),
    }
    model = kinds[asked].fit(frame, labels)
    attributes = (
        Attribute(name="sex", kind="integer", low=0, high=1, protected=True),
        Attribute(name="age", kind="integer", low=18, high=60, protected=True, allowed=(18, 25, 40, 60)),
        Attribute(name="wage", kind="integer", low=0, high=89),
    )
    schema = Schema(attributes, target="y", classes=tuple(model.classes_), favourable=favourable)
    fitted = fit_to_schema(adapt(model, schema, ModelOptions()), schema)
    assert isinstance(fitted.model, TreeModel) == (asked == "read")
    evaluator = Evaluator(fitted.model, schema, fitted.encoding)
    codes = frame.drop_duplicates().to_numpy(np.float64)
    twins = evaluator.twins.expand(codes)
    theirs = model.predict(pd.DataFrame(twins.reshape(-1, 3), columns=frame.columns)).reshape(twins.shape[:2])
    shares = np.sort(model.predict_proba(frame), axis=1)
    assert np.isclose(shares[:, 1], shares[:, 2]).any()
    found = evaluator.decided(codes)
    assert found is not None
    np.testing.assert_array_equal(found, theirs == favourable)
