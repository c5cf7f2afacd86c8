"""Census income: the raw files as codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairbits.data.coding.raw import Raw, finish, listed, positions, read_text, whole
from fairbits.data.coding.shipped import (
    CENSUS,
    COUNTRY,
    EDUCATION,
    MARITAL,
    OCCUPATION,
    RACE,
    RELATIONSHIP,
    SEX,
    WORKCLASS,
)
from fairbits.domain import Table

RAW_COLUMNS = listed(
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
    "capital-gain,capital-loss,hours-per-week,native-country,income"
)


def read(path: Path) -> Raw:
    """adult.data or adult.test as UCI has them (the second starts with a remark)."""
    return read_text(path, names=RAW_COLUMNS, comment="|")


def code(raw: Raw) -> Table:
    """The paper's coding; education-num repeats education and is dropped."""
    columns = [
        np.clip(whole(raw, "age") // 10, 1, 9),
        positions(raw, "workclass", WORKCLASS),
        whole(raw, "fnlwgt") // 20_000,
        positions(raw, "education", EDUCATION),
        positions(raw, "marital-status", MARITAL),
        positions(raw, "occupation", OCCUPATION),
        positions(raw, "relationship", RELATIONSHIP),
        positions(raw, "race", RACE),
        positions(raw, "sex", SEX),
        whole(raw, "capital-gain") // 1000,
        whole(raw, "capital-loss") // 100,
        whole(raw, "hours-per-week"),
        positions(raw, "native-country", COUNTRY),
    ]
    # The held-out file writes the classes with a full stop.
    income = {"income": np.char.rstrip(raw["income"], ".")}
    return finish(columns, positions(income, "income", CENSUS.classes), CENSUS)
