"""Credit card default: the raw files as codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairbits.data.coding.raw import Raw, finish, need_columns, read_text, whole
from fairbits.data.coding.shipped import DEFAULT, UNIT
from fairbits.domain import Integers, Table

STATUS = ("PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6")
RAW_COLUMNS = (
    "LIMIT_BAL",
    "SEX",
    "EDUCATION",
    "MARRIAGE",
    "AGE",
    *STATUS,
    *(f"BILL_AMT{i}" for i in range(1, 7)),
    *(f"PAY_AMT{i}" for i in range(1, 7)),
)


def read(path: Path) -> Raw:
    """UCI_Credit_Card.csv: the UCI sheet as text, with the last column named target."""
    return read_text(path)


def code(raw: Raw) -> Table:
    """The paper's coding: money in units of 10,000 cut towards zero, which puts the limit at 1 to 100."""
    need_columns(raw, (*RAW_COLUMNS, "target"), "default")
    return finish([_column(raw, name) for name in RAW_COLUMNS], whole(raw, "target"), DEFAULT)


def _column(raw: Raw, name: str) -> Integers:
    values = whole(raw, name)
    if name == "SEX":
        return values - 1
    if name == "AGE":
        return values // 10
    if name in ("PAY_5", "PAY_6"):
        return np.where(values >= 2, values + 1, values + 2)
    if name in STATUS:
        return values + 2
    if name in ("EDUCATION", "MARRIAGE"):
        return values
    return np.trunc(values / UNIT).astype(np.int64)
