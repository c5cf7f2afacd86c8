"""Bank marketing: the raw files as codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairbits.data.coding.raw import Raw, finish, listed, need_columns, positions, read_text, whole
from fairbits.data.coding.shipped import BANK, BANK_EDUCATION, BANK_MARITAL, CONTACT, JOB, MONTH, OUTCOME, YES
from fairbits.domain import Table

RAW_COLUMNS = listed(
    "age,job,marital,education,default,balance,housing,loan,contact,day,month,duration,campaign,pdays,previous,"
    "poutcome,y"
)


def read(path: Path) -> Raw:
    """bank-full.csv as UCI has it: semicolons between fields."""
    return read_text(path, delimiter=";")


def code(raw: Raw) -> Table:
    """The paper's coding."""
    need_columns(raw, RAW_COLUMNS, "bank")
    columns = [
        np.clip(whole(raw, "age") // 10, 1, 9),
        positions(raw, "job", JOB),
        positions(raw, "marital", BANK_MARITAL),
        positions(raw, "education", BANK_EDUCATION),
        positions(raw, "default", YES),
        np.clip(whole(raw, "balance") // 50, -20, 179),
        positions(raw, "housing", YES),
        positions(raw, "loan", YES),
        positions(raw, "contact", CONTACT),
        whole(raw, "day"),
        positions(raw, "month", MONTH),
        np.clip(whole(raw, "duration") // 10, 0, 99),
        whole(raw, "campaign"),
        (whole(raw, "pdays") == -1).astype(np.int64),
        np.clip(whole(raw, "previous"), 0, 1),
        positions(raw, "poutcome", OUTCOME),
    ]
    return finish(columns, positions(raw, "y", YES), BANK)
