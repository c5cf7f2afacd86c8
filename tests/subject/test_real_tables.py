"""Real tables as they came, with their own models: a file is loaded with the table alone and scores as its library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fairbits
from fairbits import qid
from fairbits.measure import evaluator_of

pytestmark = pytest.mark.filterwarnings("ignore")
RAW = Path(__file__).parents[3] / "shared" / "data"


def _raw(name: str, **options: Any) -> pd.DataFrame:
    if not (RAW / name).exists():
        pytest.skip(f"the raw table {name} is not beside the checkout")
    return pd.read_csv(RAW / name, **options)


def german() -> tuple[pd.DataFrame, str, object]:
    subject = fairbits.load_subject("german")
    assert subject.table is not None
    frame = fairbits.Decoder(subject.schema).frame(subject.table.codes)
    labels = np.asarray(subject.table.labels)
    return frame.assign(risk=np.where(labels == 1, "good", "bad")), "risk", "good"


def heart() -> tuple[pd.DataFrame, str, object]:
    frame = _raw("heart/heart_disease_uci.csv")
    return frame.assign(healthy=(frame.num == 0).astype(int)).drop(columns=["num", "dataset"]), "healthy", 1


def students() -> tuple[pd.DataFrame, str, object]:
    frame = _raw("students/student-por.csv", sep=";")
    return frame.assign(passed=np.where(frame.G3 >= 10, "yes", "no")).drop(columns=["G1", "G2", "G3"]), "passed", "yes"


#: Tables, and what is in them.
TABLES: dict[str, tuple[Callable[[], tuple[pd.DataFrame, str, object]], str]] = {
    "german": (german, "German credit, which comes with the package: 13 categories, 7 numbers"),
    "heart": (heart, "UCI heart disease as it came: gaps in 10 columns, truth values, an identifier"),
    "students": (students, "UCI students as it came: 17 columns of text, 13 of whole numbers"),
}


def _texts(rows: pd.DataFrame) -> list[str]:
    """Columns of text; the truth values of a column with gaps are text for encoders, and numbers for the rest."""
    return [name for name in rows.columns if not pd.api.types.is_numeric_dtype(rows[name])]


def _categories(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.astype(dict.fromkeys(_texts(rows), "category"))


def _pipeline(rows: pd.DataFrame, final: Any) -> Any:
    texts = _texts(rows)
    numbers = [name for name in rows.columns if name not in texts]
    return make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
            (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")), texts),
        ),
        final,
    )


def _lightgbm(rows: pd.DataFrame, folder: Path, labels: Any) -> tuple[Any, Path]:
    library = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    model = library.LGBMClassifier(n_estimators=10, min_child_samples=10, verbose=-1, n_jobs=1).fit(rows, labels)
    model.booster_.save_model(folder / "model.txt")
    return model, folder / "model.txt"


def _xgboost(rows: pd.DataFrame, folder: Path, labels: Any) -> tuple[Any, Path]:
    library = pytest.importorskip("xgboost", reason="xgboost is not installed")
    model = library.XGBClassifier(n_estimators=10, max_depth=4, enable_categorical=True, n_jobs=1).fit(rows, labels)
    model.save_model(folder / "model.ubj")
    return model, folder / "model.ubj"


def _catboost(rows: pd.DataFrame, folder: Path, labels: Any) -> tuple[Any, Path]:
    library = pytest.importorskip("catboost", reason="catboost is not installed")
    settings = {"iterations": 10, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = library.CatBoostClassifier(cat_features=_texts(rows), one_hot_max_size=50, **settings).fit(rows, labels)
    model.save_model(str(folder / "model.cbm"))
    return model, folder / "model.cbm"


def _skops(model: Any, folder: Path) -> tuple[Any, Path]:
    pytest.importorskip("skops.io", reason="the sklearn extra is not installed").dump(model, folder / "model.skops")
    return model, folder / "model.skops"


def _hist(rows: pd.DataFrame, folder: Path, labels: Any) -> tuple[Any, Path]:
    model = HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype")
    return _skops(model.fit(rows, labels), folder)


def _forest(rows: pd.DataFrame, folder: Path, labels: Any) -> tuple[Any, Path]:
    forest = RandomForestClassifier(8, min_samples_leaf=5, random_state=0)
    return _skops(_pipeline(rows, forest).fit(rows, labels), folder)


def _logistic(rows: pd.DataFrame, folder: Path, labels: Any) -> tuple[Any, Path]:
    return _skops(_pipeline(rows, LogisticRegression(max_iter=2000)).fit(rows, labels), folder)


Made = Callable[[pd.DataFrame, Path, Any], tuple[Any, Path]]
#: Files, and the rows that they were made with.
FILES: dict[str, tuple[Made, str]] = {
    "LightGBM .txt": (_lightgbm, "pandas categories, gaps"),
    "XGBoost .ubj": (_xgboost, "pandas categories, truth values as 0 and 1, gaps"),
    "CatBoost .cbm": (_catboost, 'text, with "NA" for gaps'),
    "HistGradientBoosting .skops": (_hist, "pandas categories, gaps"),
    "forest behind imputers and encoders .skops": (_forest, "labels, gaps"),
    "logistic regression behind imputers and encoders .skops": (_logistic, "labels, gaps"),
}


def _rows(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """As the model was trained on them."""
    if "0 and 1" in kind:
        true = [name for name in _texts(frame) if set(frame[name].dropna()) <= {True, False}]
        frame = frame.assign(**{name: frame[name].astype(float) for name in true})
    if "categories" in kind:
        return _categories(frame)
    texts = _texts(frame)
    return (
        frame.assign(**{name: frame[name].astype(object).fillna("NA").astype(str) for name in texts})
        if ("NA" in kind)
        else frame
    )


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("file", FILES)
def test_scores_of_all_twins_on_real_tables(file: str, table: str, tmp_path: Path) -> None:
    frame, target, favourable = TABLES[table][0]()
    make, kind = FILES[file]
    seen = frame.drop(columns=[target, *(["id"] if "id" in frame else [])])
    rows = _rows(seen, kind)
    labels = (frame[target] == favourable).astype(int)
    model, path = make(rows, tmp_path, labels)
    if "NA" in kind:  # what its owner wrote for a gap stands in the table
        frame = frame.assign(**{name: rows[name] for name in seen})
    audit = fairbits.Audit.from_table(
        path, frame.assign(**{target: labels}), target=target, protected="sex", favourable=1
    )
    subject = audit.subject
    assert subject.table is not None
    assert set(subject.schema.names) == set(seen.columns)
    sexes = subject.schema["sex"].labels
    some = slice(0, 50)
    theirs = np.column_stack([model.predict_proba(_as_sex(rows[some], sex))[:, 1] for sex in sexes])
    evaluator = evaluator_of(subject)
    found = evaluator.scores(subject.table.codes[some])
    np.testing.assert_allclose(found, theirs, atol=1e-6)
    np.testing.assert_array_equal(evaluator.evaluate(subject.table.codes[some]).k, qid(found).k)
    assert subject.quality is not None
    assert subject.quality.auc is not None
    assert subject.quality.auc > 0.7
    if table == "heart":
        assert any("id (identifiers" in note for note in subject.notes)
        assert subject.schema["chol"].missing == "model"


def _as_sex(rows: pd.DataFrame, sex: str) -> pd.DataFrame:
    column = rows["sex"]
    if isinstance(column.dtype, pd.CategoricalDtype):
        return rows.assign(sex=pd.Categorical([sex] * len(rows), categories=column.cat.categories))
    return rows.assign(sex=sex)
