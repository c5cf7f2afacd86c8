"""Tree ensembles: every library's own scores of all twins, from objects and from files; and files that are no trees."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairbits import Attribute, Audit, Decoder, Schema, qid
from fairbits.errors import FairbitsError, ModelError, TableError
from fairbits.measure import Evaluator
from fairbits.models import TreeModel, load_model, load_with_encoding

from ..conftest import random_people

pd = pytest.importorskip("pandas")

ATTRIBUTES = (
    Attribute(name="age", kind="integer", low=1, high=3, protected=True),
    Attribute(name="job", kind="category", labels=("Sales", "Tech", "Farm", "Care", "(missing)")),
    Attribute(name="income", kind="real", low=-1.5, high=4.0),
    Attribute(name="sex", kind="category", labels=("Female", "Male"), protected=True),
    Attribute(name="hours", kind="integer", low=0, high=99),
)
BINARY = Schema(ATTRIBUTES, target="hired", classes=("0", "1"))
THREE = Schema(ATTRIBUTES, target="level", classes=("0", "1", "2"))
VALUE = Schema(ATTRIBUTES, target="wage")
JOBS, SEXES = ["Care", "Farm", "Sales", "Tech"], ["Female", "Male"]


def frame_of(codes: np.ndarray) -> Any:
    """As the boosters were trained: pandas categories, a missing job is missing."""
    frame = Decoder(BINARY).frame(codes)
    return frame.assign(
        job=pd.Categorical(frame["job"], categories=JOBS), sex=pd.Categorical(frame["sex"], categories=SEXES)
    )


def numbers_of(codes: np.ndarray) -> Any:
    return codes.copy()


def dummies_of(codes: np.ndarray) -> Any:
    return pd.get_dummies(frame_of(codes), columns=["job", "sex"]).astype(float)


CODES = random_people(np.random.default_rng(3), BINARY, 500)
WISH = 0.8 * CODES[:, 2] + 0.02 * CODES[:, 4] + (CODES[:, 3] == 1) + 0.4 * CODES[:, 0] + (CODES[:, 1] == 1)
WISH = WISH + np.random.default_rng(4).normal(size=500)
TARGETS = {
    "two": (np.median(WISH) < WISH).astype(int),
    "three": np.digitize(WISH, np.quantile(WISH, [0.3, 0.6])),
    "value": WISH - WISH.min() + 0.1,
}
SCHEMAS = {"two": BINARY, "three": THREE, "value": VALUE}
PEOPLE = random_people(np.random.default_rng(5), BINARY, 50)


@dataclass(frozen=True)
class Kind:
    """A library's model: how it is made, written, and asked; on which rows; for which target."""

    make: Callable[[], Any]
    save: Callable[[Any, Path], Path]
    rows: Callable[[np.ndarray], Any] = frame_of
    target: str = "two"
    ask: Callable[[Any, Any], np.ndarray] | None = None


def lightgbm(**options: Any) -> Callable[[], Any]:
    def make() -> Any:
        library = pytest.importorskip("lightgbm")
        kind = library.LGBMRegressor if options.get("objective") in REGRESSIONS else library.LGBMClassifier
        return kind(n_estimators=12, num_leaves=12, min_child_samples=5, verbose=-1, n_jobs=1, **options)

    return make


def xgboost(**options: Any) -> Callable[[], Any]:
    def make() -> Any:
        library = pytest.importorskip("xgboost")
        regresses = str(options.get("objective", "")).startswith(("reg:", "count:"))
        kind = library.XGBRegressor if regresses else library.XGBClassifier
        settings = {"n_estimators": 12, "max_depth": 4, "enable_categorical": True, "n_jobs": 1} | options
        return kind(**settings)

    return make


def sklearn(name: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from sklearn import ensemble, tree

        return getattr(ensemble if hasattr(ensemble, name) else tree, name)(random_state=0, **options)

    return make


def own_objective(labels: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log loss with denials that count twice: LightGBM cannot know that the sums are logits."""
    chance = 1 / (1 + np.exp(-sums))
    weight = np.where(labels == 1, 1.0, 2.0)
    return weight * (chance - labels), weight * chance * (1 - chance)


def logits(model: Any, rows: Any) -> np.ndarray:
    return 1 / (1 + np.exp(-model.booster_.predict(rows)))


def text(model: Any, folder: Path) -> Path:
    model.booster_.save_model(folder / "model.txt")
    return folder / "model.txt"


def xgb_file(ending: str) -> Callable[[Any, Path], Path]:
    def save(model: Any, folder: Path) -> Path:
        model.save_model(folder / f"model.{ending}")
        return folder / f"model.{ending}"

    return save


def skops(model: Any, folder: Path) -> Path:
    io = pytest.importorskip("skops.io")
    io.dump(model, folder / "model.skops")
    return folder / "model.skops"


def own_text(codes: np.ndarray) -> Any:
    """CatBoost takes categories as text, and no missing ones."""
    frame = Decoder(BINARY).frame(codes)
    return frame.assign(job=frame["job"].astype(object).fillna("nan").astype(str), sex=frame["sex"].astype(str))


def catboost(**options: Any) -> Callable[[], Any]:
    def make() -> Any:
        library = pytest.importorskip("catboost")
        loss = options.get("loss_function")
        kind = library.CatBoostRegressor if loss in ("RMSE", "Poisson") else library.CatBoostClassifier
        settings = {"iterations": 12, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
        return kind(**settings, **options)

    return make


def cbm(model: Any, folder: Path) -> Path:
    model.save_model(str(folder / "model.cbm"))
    return folder / "model.cbm"


def pipeline(name: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from sklearn.compose import make_column_transformer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

        encoders = make_column_transformer(
            (OneHotEncoder(), ["job"]),
            (OrdinalEncoder(), ["sex"]),
            (StandardScaler(), ["hours"]),
            remainder="passthrough",
        )
        return make_pipeline(encoders, sklearn(name, **options)())

    return make


REGRESSIONS = {"regression", "poisson", "tweedie", "l1", "quantile"}
HIST = "HistGradientBoostingClassifier"
KINDS: dict[str, Kind] = {
    "lightgbm": Kind(lightgbm(), text),
    "lightgbm many categories": Kind(lightgbm(max_cat_to_onehot=1, min_data_per_group=3, cat_smooth=1.0), text),
    "lightgbm zero as missing": Kind(lightgbm(zero_as_missing=True), text),
    "lightgbm without missing": Kind(lightgbm(use_missing=False), text),
    "lightgbm forest": Kind(lightgbm(boosting_type="rf", bagging_freq=1, bagging_fraction=0.6), text),
    "lightgbm dart": Kind(lightgbm(boosting_type="dart"), text),
    "lightgbm own objective": Kind(lightgbm(objective=own_objective), text, ask=logits),
    "lightgbm on dummies": Kind(lightgbm(), text, rows=dummies_of),
    "lightgbm on an array": Kind(lightgbm(), text, rows=numbers_of),
    "lightgbm three classes": Kind(lightgbm(), text, target="three"),
    "lightgbm one against all": Kind(lightgbm(objective="multiclassova"), text, target="three"),
    "lightgbm poisson": Kind(lightgbm(objective="poisson"), text, target="value"),
    "lightgbm square root": Kind(lightgbm(objective="regression", reg_sqrt=True), text, target="value"),
    "xgboost": Kind(xgboost(), xgb_file("json")),
    "xgboost binary file": Kind(xgboost(max_cat_to_onehot=1), xgb_file("ubj")),
    "xgboost forest": Kind(xgboost(num_parallel_tree=4, subsample=0.6, n_estimators=2), xgb_file("json")),
    "xgboost base score": Kind(xgboost(base_score=0.2), xgb_file("json")),
    "xgboost three classes": Kind(xgboost(), xgb_file("ubj"), target="three"),
    "xgboost gamma": Kind(xgboost(objective="reg:gamma"), xgb_file("json"), target="value"),
    "xgboost absolute error": Kind(xgboost(objective="reg:absoluteerror"), xgb_file("json"), target="value"),
    "catboost": Kind(catboost(), cbm, rows=numbers_of),
    "catboost lossguide": Kind(catboost(grow_policy="Lossguide"), cbm, rows=numbers_of),
    "catboost three classes": Kind(catboost(loss_function="MultiClass"), cbm, numbers_of, "three"),
    "catboost poisson": Kind(catboost(loss_function="Poisson"), cbm, numbers_of, "value"),
    "hist categories": Kind(sklearn(HIST, max_iter=10, categorical_features="from_dtype"), skops),
    "hist behind encoders": Kind(pipeline(HIST, max_iter=10), skops),
    "hist three classes": Kind(sklearn(HIST, max_iter=5), skops, rows=numbers_of, target="three"),
    "hist gamma": Kind(
        sklearn("HistGradientBoostingRegressor", max_iter=10, loss="gamma"), skops, numbers_of, target="value"
    ),
    "forest": Kind(sklearn("RandomForestClassifier", n_estimators=8), skops, rows=numbers_of),
    "forest behind encoders": Kind(pipeline("RandomForestClassifier", n_estimators=8), skops),
    "forest three classes": Kind(sklearn("RandomForestClassifier", n_estimators=8), skops, numbers_of, "three"),
    "forest regression": Kind(sklearn("RandomForestRegressor", n_estimators=8), skops, numbers_of, "value"),
    "extra trees": Kind(sklearn("ExtraTreesClassifier", n_estimators=8), skops, rows=numbers_of),
    "decision tree": Kind(sklearn("DecisionTreeClassifier"), skops, rows=numbers_of),
    "boosting": Kind(sklearn("GradientBoostingClassifier", n_estimators=10), skops, rows=numbers_of),
    "boosting exponential": Kind(
        sklearn("GradientBoostingClassifier", n_estimators=10, loss="exponential"), skops, rows=numbers_of
    ),
    "boosting three classes": Kind(sklearn("GradientBoostingClassifier", n_estimators=5), skops, numbers_of, "three"),
    "boosting huber": Kind(
        sklearn("GradientBoostingRegressor", n_estimators=10, loss="huber"), skops, numbers_of, target="value"
    ),
}


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    return {}


def fit(name: str, fitted: dict[str, Any]) -> Any:
    if name not in fitted:
        kind = KINDS[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted[name] = kind.make().fit(kind.rows(CODES), TARGETS[kind.target])
    return fitted[name]


def theirs(model: Any, kind: Kind, twins: np.ndarray, favourable: int) -> np.ndarray:
    rows = kind.rows(twins)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind.ask is not None:
            return kind.ask(model, rows)
        return model.predict(rows) if kind.target == "value" else model.predict_proba(rows)[:, favourable]


#: What is asked of an object besides: the others are read from it as they are from their file.
OBJECTS = ("lightgbm", "lightgbm many categories", "lightgbm own objective", "lightgbm three classes", "xgboost")
OBJECTS += ("xgboost three classes", "catboost", "hist categories", "hist behind encoders", "forest", "decision tree")
OBJECTS += ("boosting", "boosting three classes")


@pytest.mark.parametrize(
    ("name", "way"), [*((name, "file") for name in KINDS), *((name, "object") for name in OBJECTS)]
)
def test_scores_of_all_twins_are_the_librarys(name: str, way: str, fitted: dict[str, Any], tmp_path: Path) -> None:
    kind, model = KINDS[name], fit(name, fitted)
    schema = SCHEMAS[kind.target]
    source = model if way == "object" else kind.save(model, tmp_path)
    loaded, encoding = load_with_encoding(source, schema)
    evaluator = Evaluator(loaded, schema, encoding, threads=1)
    favourable = schema.favourable_index if schema.classes else 0
    twins = evaluator.twins.expand(PEOPLE).reshape(-1, len(ATTRIBUTES))
    expected = theirs(model, kind, twins, favourable).reshape(len(PEOPLE), -1)
    size = max(1.0, float(np.abs(expected).max()))
    assert isinstance(loaded, TreeModel)
    assert evaluator.native
    assert np.abs(evaluator.scores(PEOPLE) - expected).max() < 1e-6 * size
    assert np.abs(loaded.scores(encoding.encode(twins)) - expected.ravel()).max() < 1e-6 * size
    found = evaluator.evaluate(PEOPLE)
    np.testing.assert_array_equal(found.k, qid(evaluator.scores(PEOPLE)).k)
    if schema.classes:
        np.testing.assert_array_equal(found.high, evaluator.scores(PEOPLE).max(axis=1))
    many = Evaluator(loaded, schema, encoding, threads=2)
    np.testing.assert_array_equal(many.scores(np.tile(PEOPLE, (30, 1))), np.tile(evaluator.scores(PEOPLE), (30, 1)))


def test_large_trees_are_walked_and_give_the_same(fitted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from fairbits.engine import trees

    for name in (
        "lightgbm many categories",
        "forest three classes",
        "xgboost",
        "hist categories",
        "lightgbm on dummies",
    ):
        schema = SCHEMAS[KINDS[name].target]
        model, encoding = load_with_encoding(fit(name, fitted), schema)
        small = Evaluator(model, schema, encoding, threads=1).scores(PEOPLE)
        monkeypatch.setattr(trees, "SMALL_LEAVES", 0)
        monkeypatch.setattr(trees, "SMALL_LEAVES_IN_ORDER", 0)
        walked = Evaluator(model, schema, encoding, threads=1)
        monkeypatch.undo()
        assert len(walked._trees.program.large.roots) == model.ensemble.trees
        np.testing.assert_allclose(walked.scores(PEOPLE), small, atol=1e-7)


def test_more_than_64_twins_and_65_leaves(tmp_path: Path) -> None:
    library = pytest.importorskip("lightgbm")
    attributes = (
        Attribute(name="age", kind="integer", low=18, high=60, protected=True),
        Attribute(name="race", kind="integer", low=0, high=4, protected=True),
        Attribute(name="pay", kind="real", low=-2, high=2),
        Attribute(name="years", kind="integer", low=0, high=40),
    )
    schema = Schema(attributes, target="y", classes=("0", "1"))
    people = random_people(np.random.default_rng(0), schema, 2000)
    target = (people[:, 2] + people[:, 0] / 30 + people[:, 1] * people[:, 3] / 60 > 2).astype(int)
    model = library.LGBMClassifier(n_estimators=8, num_leaves=150, min_child_samples=2, verbose=-1, n_jobs=1)
    model.fit(people, target)
    loaded, encoding = load_with_encoding(model, schema)
    for small_leaves in (256, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fairbits.engine.trees.SMALL_LEAVES", small_leaves)
            evaluator = Evaluator(loaded, schema, encoding, threads=1)
        assert evaluator.m == 215
        twins = evaluator.twins.expand(people[:20]).reshape(-1, 4)
        expected = model.predict_proba(twins)[:, 1].reshape(20, -1)
        assert np.abs(evaluator.scores(people[:20]) - expected).max() < 1e-6
    people[3, 3] = 77
    with pytest.raises(TableError, match=r"column 4 must be whole numbers within 0\.\.40, but row 4 holds 77"):
        evaluator.scores(people[:20])


def test_a_model_that_only_its_library_can_ask_says_why() -> None:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

    from fairbits.models import ModelOptions, read_model

    start = RandomForestClassifier(3, random_state=0)
    model = GradientBoostingClassifier(n_estimators=3, init=start).fit(CODES, TARGETS["two"])
    loaded = read_model(model, BINARY, ModelOptions())
    assert not isinstance(loaded.model, TreeModel)
    assert any("starts from another model" in note for note in loaded.notes)


def test_statistics_of_categories_are_catboosts_own_affair(tmp_path: Path) -> None:
    model = catboost(cat_features=["job", "sex"])().fit(own_text(CODES), TARGETS["two"])
    with pytest.raises(FairbitsError, match=r"does not take a missing 'job'.*fill it in the table"):
        load_with_encoding(cbm(model, tmp_path), BINARY)  # what its owner wrote there is not in the table
    known = Attribute(name="job", kind="category", labels=ATTRIBUTES[1].labels[:-1])
    full = Schema((ATTRIBUTES[0], known, *ATTRIBUTES[2:]), target="hired", classes=("0", "1"))
    people = random_people(np.random.default_rng(6), full, 50)
    rows = Decoder(full).frame(people)
    loaded, encoding = load_with_encoding(tmp_path / "model.cbm", full)
    assert not isinstance(loaded, TreeModel)
    np.testing.assert_allclose(loaded.scores(encoding.encode(people)), model.predict_proba(rows)[:, 1], atol=1e-6)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, fitted: dict[str, Any]) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("boosters")
    return {
        name: KINDS[name].save(fit(name, fitted), folder) for name in ("lightgbm", "xgboost", "xgboost binary file")
    }


def refused(path: Path, match: str, schema: Schema | None = BINARY) -> None:
    with pytest.raises(FairbitsError, match=match) as caught:
        load_with_encoding(path, schema) if schema is not None else load_model(path)
    assert "\n" not in str(caught.value)


LIES = {
    "a child outside": (r"left_child=\S+", "left_child=999"),
    "a feature that does not exist": (r"split_feature=\d+", "split_feature=77"),
    "text for a number": (r"leaf_value=\S+", "leaf_value=lots"),
    "not finite": (r"leaf_value=\S+", "leaf_value=inf"),
    "too many leaves": (r"num_leaves=\d+", "num_leaves=99999999"),
}
DAMAGE = "it is damaged|cannot be opened by|trees cannot be read|tree 1 "


@pytest.mark.parametrize("lie", LIES)
def test_a_lightgbm_file_that_lies(lie: str, files: dict[str, Path], tmp_path: Path) -> None:
    import re

    path = tmp_path / "model.txt"
    path.write_text(re.sub(*LIES[lie], files["lightgbm"].read_text(), count=1))
    refused(path, DAMAGE)


def test_files_that_are_cut_off(files: dict[str, Path], tmp_path: Path) -> None:
    for name, path in files.items():
        content = path.read_bytes()
        cut = tmp_path / f"{name.replace(' ', '')}{path.suffix}"
        for share in (0.1, 0.5, 0.9):
            cut.write_bytes(content[: int(len(content) * share)])
            refused(cut, DAMAGE)


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree["left_children"].__setitem__(0, 0),
        lambda tree: tree["left_children"].__setitem__(0, 2),
        lambda tree: tree["right_children"].__setitem__(0, 10**9),
        lambda tree: tree["split_indices"].__setitem__(0, 99),
        lambda tree: tree.update(split_conditions=[0.0] * 3),
        lambda tree: tree.pop("left_children"),
        lambda tree: tree.update(split_indices="many"),
    ],
)
def test_an_xgboost_file_that_lies(change: Any, files: dict[str, Path], tmp_path: Path) -> None:
    document = json.loads(files["xgboost"].read_text())
    change(document["learner"]["gradient_booster"]["model"]["trees"][0])
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    refused(path, DAMAGE)


def test_a_tree_with_ten_million_nodes() -> None:
    from fairbits.models.trees.ensemble import Ensemble, Tree

    n = 10_000_001
    zeros = np.zeros(n, np.int64)
    tree = Tree(zeros, zeros, zeros, zeros, zeros.astype(np.int8), zeros.astype(bool), zeros[:, None])
    with pytest.raises(ModelError, match="10,000,001 nodes, more than the 5,000,000"):
        Ensemble.build([tree], features=1, base=[0.0])


def test_what_is_no_booster(tmp_path: Path) -> None:
    for name, content, match in (
        ("a.txt", "hello", "neither LightGBM"),
        ("a.json", "[1, 2]", "neither"),
        ("b.json", '{"a": 1}', "cannot be opened by xgboost"),
        ("c.json", '{"tree_info": []}', "dump_model"),
        ("d.json", '{"features_info": 3}', "CatBoost|catboost"),
        ("e.ubj", "{L\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f", DAMAGE),
        ("f.cbm", "CBM1 and nothing more", "cannot be opened by catboost"),
        ("g.ubj", "binf0123", "old binary format"),
        ("deep.json", '{"learner":' + "[" * 100_000, DAMAGE),
    ):
        path = tmp_path / name
        path.write_bytes(content.encode("latin-1"))
        refused(path, match)


def test_columns_that_are_called_otherwise(files: dict[str, Path]) -> None:
    attributes = tuple(
        a if a.name != "income" else Attribute(name="incomes", kind="real", low=-1.5, high=4.0) for a in ATTRIBUTES
    )
    refused(files["lightgbm"], "Did you mean 'incomes'", Schema(attributes, target="hired", classes=("0", "1")))
    fewer = tuple(a for a in ATTRIBUTES if a.name != "income")
    refused(files["xgboost"], "trained on the column 'income'", Schema(fewer, target="hired", classes=("0", "1")))


def test_a_category_that_the_model_does_not_know(files: dict[str, Path]) -> None:
    from fairbits.models import ModelOptions, read_model

    more = Attribute(name="job", kind="category", labels=("Sales", "Tech", "Farm", "Care", "Space"))
    attributes = tuple(more if a.name == "job" else a for a in ATTRIBUTES)
    loaded = read_model(files["lightgbm"], Schema(attributes, target="hired", classes=("0", "1")), ModelOptions())
    assert any("does not know 'Space'" in note and "missing" in note for note in loaded.notes)
    refused(files["xgboost"], "does not know the value 'Space'", Schema(attributes, target="hired", classes=("0", "1")))


@pytest.mark.parametrize(("low", "noted"), [(-999.0, True), (-1.5, False)])
def test_an_xgboost_file_does_not_say_which_number_was_missing(low: float, noted: bool, files: dict[str, Path]) -> None:
    from fairbits.models import ModelOptions, read_model

    income = Attribute(name="income", kind="real", low=low, high=4.0)
    schema = Schema(tuple(income if a.name == "income" else a for a in ATTRIBUTES), target="hired", classes=("0", "1"))
    loaded = read_model(files["xgboost"], schema, ModelOptions())
    assert any("trained with missing=-999" in note and "income" in note for note in loaded.notes) == noted
    assert not any("missing=" in note for note in read_model(files["lightgbm"], schema, ModelOptions()).notes)


def test_a_skops_file_with_a_tree_that_leads_astray(tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io")
    from sklearn.ensemble import AdaBoostClassifier

    model = AdaBoostClassifier(n_estimators=2, random_state=0).fit(CODES, TARGETS["two"])
    tree = model.estimators_[0].tree_
    state = tree.__getstate__()
    state["nodes"]["left_child"][0] = 10**6
    tree.__setstate__(state)
    io.dump(model, tmp_path / "model.skops")
    refused(tmp_path / "model.skops", "a child outside")


def test_a_search_crosses_thresholds() -> None:
    from fairbits.search.problem import across

    people = np.array([[5.0, 0.1], [5.0, 0.1], [5.0, 0.1]])
    proposed = np.array([[6.0, 0.1], [4.0, 0.1], [5.0, 0.2]])
    thresholds = {0: np.array([2.0, 8.0]), 1: np.array([0.5])}
    found = across(people, proposed, thresholds, np.array([True, False]))
    assert found[:, 0].tolist() == [9.0, 2.0, 5.0]
    assert 0.5 < found[2, 1] < 0.5001


@pytest.mark.parametrize("ending", ["cbm", "json"])
def test_a_catboost_file_of_unnamed_columns_is_read_by_position(ending: str, tmp_path: Path) -> None:
    """Trained on an array, with a column that no tree asks about: nothing in the file names a column."""
    catboost = pytest.importorskip("catboost")
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(1, 10, 80), rng.integers(0, 2, 80), rng.uniform(0, 9, 80)]).astype(float)
    wanted = (rows[:, 0] + rows[:, 2] > 9).astype(int)
    model = catboost.CatBoostClassifier(iterations=3, depth=2, verbose=0, thread_count=1, allow_writing_files=False)
    model.fit(rows, wanted).save_model(str(tmp_path / f"model.{ending}"), format=ending)
    schema = Schema(
        (
            Attribute(name="age", kind="integer", low=1, high=9, protected=True),
            Attribute(name="sex", kind="category", labels=("F", "M"), protected=True),
            Attribute(name="pay", kind="real", low=0, high=9),
        ),
        classes=("0", "1"),
    )
    found, encoding = load_with_encoding(tmp_path / f"model.{ending}", schema)
    np.testing.assert_allclose(found.scores(encoding.encode(rows)), model.predict_proba(rows)[:, 1], atol=1e-6)


def test_a_lightgbm_file_is_opened_without_what_predictions_do_not_need(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    from fairbits.models.trees.readers import clean_text

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    for more in ({}, {"linear_tree": True, "objective": "regression"}, {"boosting": "rf", "bagging_freq": 1}):
        settings = {"objective": "binary", "verbose": -1, "num_leaves": 5, "bagging_fraction": 0.7, **more}
        booster = lightgbm.train(settings, lightgbm.Dataset(X, y, params=settings), 4)
        text = booster.model_to_string()
        cleaned = clean_text(text)
        assert "parameters" not in cleaned
        np.testing.assert_array_equal(lightgbm.Booster(model_str=cleaned).predict(X), booster.predict(X))
    for wrong in (
        text.replace("left_child=", "left_child=7 "),
        text.replace("num_leaves=5", "num_leaves=500"),
        text[:900],
    ):
        with pytest.raises(ValueError, match=r"tree 1|cut off"):
            clean_text(wrong)


@pytest.mark.parametrize("saved", [False, True])
def test_ordered_and_unused_categories_of_lightgbm(saved: bool, tmp_path: Path) -> None:
    """LightGBM takes ordered categories for numbers, and keeps their values without saying of which column they are."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"rank": rng.choice(["low", "mid", "top"], 300), "sex": rng.choice(["f", "m"], 300)})
    frame["rank"] = pd.Categorical(frame["rank"], categories=["top", "mid", "low", "none"], ordered=True)
    frame["sex"], frame["age"] = frame["sex"].astype("category"), rng.integers(18, 70, 300)
    wish = frame["rank"].cat.codes * 0.8 + (frame["sex"] == "m") + rng.normal(size=300)
    model = lightgbm.LGBMClassifier(n_estimators=8, verbose=-1, n_jobs=1).fit(frame, wish > wish.median())
    file = tmp_path / "model.txt"
    model.booster_.save_model(file)
    table = frame.assign(good=wish > wish.median())
    audit = Audit.from_table(file if saved else model, table, target="good", protected=["sex"], favourable=True)
    other = frame.assign(sex=frame["sex"].cat.rename_categories({"f": "m", "m": "f"}).cat.set_categories(["f", "m"]))
    flips = model.predict(frame) != model.predict(other)
    assert 0 < flips.sum() < 300
    np.testing.assert_array_equal(audit.measure().to_frame()["flips"], flips)


@pytest.mark.parametrize("linear", [False, True])
def test_lightgbm_rewrites_blanks_in_names(linear):
    """Where its trees do not say it all, it is asked itself, and calls the column "own age" own_age, too."""
    lightgbm = pytest.importorskip("lightgbm")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"own age": rng.integers(1, 9, 200), "pay": rng.normal(0, 1, 200)})
    target = (frame["own age"] + frame["pay"] > 5).astype(int)
    model = lightgbm.LGBMClassifier(n_estimators=4, linear_tree=linear, verbose=-1).fit(frame, target)
    people = frame.assign(ok=target)
    audit = Audit.from_table(model, people, target="ok", protected=["own age"], favourable=1)
    assert audit.subject.round_trip.equal == 200
    twins = [model.predict_proba(frame.assign(**{"own age": age}))[:, 1] for age in range(1, 9)]
    np.testing.assert_allclose(audit.measure().evaluation.high, np.max(twins, axis=0), atol=1e-6)
