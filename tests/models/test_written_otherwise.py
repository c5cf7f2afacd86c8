"""Numbers that the owner of a table read with an option of pandas: one sentence says what to do about them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import fairbits
from fairbits.errors import ModelError

from ..cli.calling import fairbits as called

#: How pay is written, what pandas is told, and what is said.
WRITTEN: dict[str, tuple[Callable[[pd.Series], Any], dict[str, Any], str]] = {
    "a dash": (lambda pay: pay.astype(str).where(pay % 9 > 0, "-"), {"na_values": ["-"]}, "if '-' of 'pay'"),
    "a question": (lambda pay: pay.astype(str).where(pay % 9 > 0, "?"), {"na_values": "?"}, "if '?' of 'pay'"),
    "thousands": (lambda pay: pay.map("{:,}".format), {"thousands": ","}, "numbers such as '1,"),
}
MODELS = {
    "pipeline": lambda: make_pipeline(
        make_column_transformer((OneHotEncoder(), ["sex"]), remainder=SimpleImputer()), LogisticRegression()
    ),
    "trees": lambda: HistGradientBoostingClassifier(max_iter=5, categorical_features=["sex"]),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("written", WRITTEN)
def test_what_an_option_of_pandas_read_is_named(written: str, model: str, tmp_path: Path) -> None:
    spell, options, said = WRITTEN[written]
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"sex": draw.integers(0, 2, 200), "pay": draw.integers(1_000, 5_000, 200)})
    table["hired"] = np.where(table["pay"] > draw.integers(1_000, 5_000, 200), "yes", "no")
    table.assign(pay=spell(table["pay"])).to_csv(tmp_path / "table.csv", index=False)
    rows = pd.read_csv(tmp_path / "table.csv", **options)
    fitted = MODELS[model]().fit(rows[["sex", "pay"]], rows["hired"])

    with pytest.raises(ModelError, match="describe the column anew") as error:
        fairbits.Audit.from_table(fitted, tmp_path / "table.csv", target="hired", protected=["sex"])

    assert said in str(error.value)
    assert "input_format" not in str(error.value)


def test_a_file_that_is_refused_in_a_child_is_wrong_use(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"sex": draw.integers(0, 2, 200), "pay": draw.integers(10, 60, 200)})
    table["hired"] = np.where(draw.random(200) < 0.5, "yes", "no")
    joblib.dump(MODELS["pipeline"]().fit(table[["sex", "pay"]], table["hired"]), tmp_path / "model.joblib")
    table.assign(pay=table["pay"].map("{}%".format)).to_csv(tmp_path / "table.csv", index=False)
    named = ["--model", str(tmp_path / "model.joblib"), "--target", "hired", "--protected", "sex", "--trust-pickle"]
    called("init", str(tmp_path / "table.csv"), *named, "--yes", "--out", str(tmp_path / "subject.toml"))

    found = called("measure", str(tmp_path / "subject.toml"), "--trust-pickle")

    assert found.returncode == 2
    assert "numbers such as '" in found.stderr


def test_a_column_that_was_left_out_is_named_with_the_reason() -> None:
    draw = np.random.default_rng(0)
    rows = pd.DataFrame({"sex": draw.integers(0, 2, 200), "pay": draw.integers(10**17, 10**18, 200)})
    labels = np.where(draw.random(200) < 0.5, "yes", "no")
    fitted = LogisticRegression().fit(rows, labels)

    with pytest.raises(ModelError, match=r"does not describe \(.*pay \(whole numbers beyond 1e15"):
        fairbits.Audit.from_table(fitted, rows.assign(hired=labels), target="hired", protected=["sex"])
