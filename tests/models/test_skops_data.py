"""Encoders and linear models of .skops files that are read as data: the same scores, without scikit-learn."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

import fairbits
from fairbits.errors import ModelError
from fairbits.models import load_with_encoding
from tests.fuzz.seeds import SCHEMA, write_pipeline

pytestmark = pytest.mark.filterwarnings("ignore")
NUMBERS, WORDS = ["age", "income"], ["sex", "job", "floor"]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    n = 150
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 70, n),
            "sex": rng.choice(["f", "m"], n),
            "job": rng.choice(["care", "farm", "tech"], n),
            "income": rng.normal(3, 1, n).round(3),
            "floor": rng.integers(0, 4, n),
        }
    )
    frame["paid"] = (frame.income + 0.02 * frame.age + (frame.sex == "m") + rng.normal(0, 0.4, n) > 4.3).map(
        {True: "yes", False: "no"}
    )
    return frame


def _behind(numbers: Any, words: Any, final: Any) -> Any:
    return make_pipeline(make_column_transformer((numbers, NUMBERS), (words, WORDS)), final)


READ = {
    "standard, one-hot": lambda: _behind(StandardScaler(), OneHotEncoder(), LogisticRegression()),
    "no mean, ignore": lambda: _behind(
        StandardScaler(with_mean=False), OneHotEncoder(handle_unknown="ignore", drop="first"), LogisticRegression()
    ),
    "min-max, if_binary": lambda: _behind(
        MinMaxScaler(clip=True), OneHotEncoder(drop="if_binary"), SGDClassifier(loss="log_loss", random_state=0)
    ),
    "robust, ordinal": lambda: _behind(
        make_pipeline(SimpleImputer(), RobustScaler()),
        OrdinalEncoder(),
        MLPClassifier((5,), max_iter=60, random_state=0),
    ),
    "passthrough, scaled twice": lambda: make_pipeline(
        make_column_transformer(("passthrough", NUMBERS), (OneHotEncoder(), WORDS)),
        MaxAbsScaler(),
        LogisticRegression(),
    ),
}
LEFT = {
    "infrequent": lambda: _behind(StandardScaler(), OneHotEncoder(min_frequency=20), LogisticRegression()),
    "function": lambda: make_pipeline(
        FunctionTransformer(), make_column_transformer((StandardScaler(), NUMBERS)), LogisticRegression()
    ),
}


def _audit(model: Any, people: pd.DataFrame) -> fairbits.Audit:
    return fairbits.Audit.from_table(model, people, target="paid", protected=["sex"], favourable="yes")


@pytest.mark.parametrize("kind", [*READ, *LEFT])
def test_scores_equal_the_library_s(kind: str, people: pd.DataFrame, tmp_path: Path) -> None:
    model = (READ | LEFT)[kind]().fit(people.drop(columns="paid"), people.paid)
    file = tmp_path / "model.skops"
    skops.io.dump(model, file)
    audit = _audit(file, people)
    assert type(audit.subject.model).__name__ == "Network"
    encoded = audit.subject.encoding.encode(audit.subject.table.codes)
    theirs = model.predict_proba(people.drop(columns="paid"))[:, 1]
    assert np.abs(audit.subject.model.scores(encoded) - theirs).max() < 1e-6
    for twin in ("f", "m"):
        changed = people.drop(columns="paid").assign(sex=twin)
        codes = audit.subject.table.codes.copy()
        codes[:, audit.subject.schema.column("sex")] = audit.subject.schema["sex"].labels.index(twin)
        ours = audit.subject.model.scores(audit.subject.encoding.encode(codes))
        assert np.abs(ours - model.predict_proba(changed)[:, 1]).max() < 1e-6


def test_bare_models_and_arrays(people: pd.DataFrame, tmp_path: Path) -> None:
    numbers = people[["age", "income", "floor"]]
    frame = numbers.assign(paid=people.paid)
    regression = LinearRegression().fit(numbers, people.income * 2)
    for model, rows in (
        (LogisticRegression().fit(numbers, people.paid), numbers),
        (
            make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers.to_numpy(), people.paid),
            numbers.to_numpy(),
        ),
    ):
        file = tmp_path / "model.skops"
        skops.io.dump(model, file)
        audit = fairbits.Audit.from_table(file, frame, target="paid", protected="floor", favourable="yes")
        found = audit.subject.model.scores(audit.subject.encoding.encode(audit.subject.table.codes))
        assert np.abs(found - model.predict_proba(rows)[:, 1]).max() < 1e-6
    skops.io.dump(regression, tmp_path / "wage.skops")
    valued = numbers.assign(wage=people.income * 2)
    audit = fairbits.Audit.from_table(tmp_path / "wage.skops", valued, target="wage", protected="floor")
    found = audit.subject.model.scores(audit.subject.encoding.encode(audit.subject.table.codes))
    assert np.abs(found - regression.predict(numbers)).max() < 1e-5


def test_what_the_file_cannot_say_is_left_to_the_library(people: pd.DataFrame, tmp_path: Path) -> None:
    """Truth values, gaps and unknown labels: the same figures, or the same sentence, as from the object in memory."""
    file = tmp_path / "model.skops"
    truths = people.assign(sex=people.sex == "m")
    model = READ["standard, one-hot"]().fit(truths.drop(columns="paid"), truths.paid)
    skops.io.dump(model, file)
    audit = _audit(file, truths)
    encoded = audit.subject.encoding.encode(audit.subject.table.codes)
    theirs = model.predict_proba(truths.drop(columns="paid"))[:, 1]
    assert np.abs(audit.subject.model.scores(encoded) - theirs).max() < 1e-6
    skops.io.dump(READ["standard, one-hot"]().fit(people.drop(columns="paid"), people.paid), file)
    with pytest.raises(fairbits.FairbitsError, match="law"):
        _audit(file, people.assign(job=["law", *people.job[1:]]))
    with pytest.raises(fairbits.FairbitsError, match="trained on the column 'job'"):
        _audit(file, people.drop(columns="job"))


def test_scikit_learn_is_not_imported(people: pd.DataFrame, tmp_path: Path) -> None:
    file, table = tmp_path / "model.skops", tmp_path / "people.csv"
    skops.io.dump(READ["standard, one-hot"]().fit(people.drop(columns="paid"), people.paid), file)
    people.to_csv(table, index=False)
    code = (
        "import sys, fairbits; "
        f"a = fairbits.Audit.from_table({str(file)!r}, {str(table)!r}, target='paid', protected='sex'); "
        "a.measure(); assert not {'sklearn', 'skops'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def parts_of(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from parts_of(inner)


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the description in a .skops file."""
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    description = json.loads(entries["schema.json"])
    change(description)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in (entries | {"schema.json": json.dumps(description).encode()}).items():
            file.writestr(name, content)


@pytest.mark.parametrize("depth", [3, 12])
def test_lists_of_lists_of_lists(depth: int, tmp_path: Path) -> None:
    """Each names the one before ten times: skops follows every one of them, and so did we."""
    write_pipeline(tmp_path / "model.skops")

    def change(description: dict[str, Any]) -> None:
        encoders = (
            part["content"]["content"] for part in parts_of(description) if part.get("__class__") == "OneHotEncoder"
        )
        state = next(state for state in encoders if "categories_" in state)
        node = state["categories_"]
        for number in range(depth):
            again = {
                "__class__": "list",
                "__module__": "builtins",
                "__loader__": "CachedNode",
                "__id__": node["__id__"],
            }
            node = again | {"__loader__": "ListNode", "__id__": 10**15 + number, "content": [node, *[again] * 9]}
        state["categories_"] = node

    changed(tmp_path / "model.skops", change)
    said = "again and again, .* in all" if depth > 6 else "."
    with pytest.raises(ModelError, match=said):
        load_with_encoding(tmp_path / "model.skops", SCHEMA)


def test_an_array_that_is_not_there_is_named_by_the_library(tmp_path: Path) -> None:
    write_pipeline(tmp_path / "model.skops")

    def change(description: dict[str, Any]) -> None:
        for part in parts_of(description):
            if "file" in part:
                part["file"] = "none.npy"

    changed(tmp_path / "model.skops", change)
    with pytest.raises(ModelError, match="is not a readable"):
        load_with_encoding(tmp_path / "model.skops", SCHEMA)
