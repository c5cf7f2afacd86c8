"""German credit: the raw files as codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairbits.data.coding.raw import Raw, finish, listed, positions, read_text, whole
from fairbits.data.coding.shipped import GERMAN, WORDS
from fairbits.domain import Integers, Table

RAW_COLUMNS = listed(
    "checking_status,duration,credit_history,purpose,credit_amount,savings_status,employment,"
    "installment_commitment,personal_status,other_parties,residence,property_magnitude,age,other_payment_plans,"
    "housing,existing_credits,job,num_dependents,own_telephone,foreign_worker,risk"
)


def read(path: Path) -> Raw:
    """german.data as UCI has it: blanks between fields, no header."""
    return read_text(path, delimiter=" ", names=RAW_COLUMNS)


def code(raw: Raw) -> Table:
    """The paper's coding."""
    columns = [_column(raw, name) for name in RAW_COLUMNS[:-1]]
    return finish(columns, (whole(raw, "risk") == 1), GERMAN)


def _column(raw: Raw, name: str) -> Integers:
    if name == "personal_status":
        return np.asarray(raw[name] == "A92", dtype=np.int64)
    if name == "age":
        return whole(raw, name) // 10
    if name == "credit_amount":
        return whole(raw, name) // 100
    if name not in WORDS:
        return whole(raw, name)
    # A-codes are "A", the column's number and a digit; two columns count from 0, the others from 1.
    start = 0 if name in ("credit_history", "purpose") else 1
    column = RAW_COLUMNS.index(name) + 1
    return positions(raw, name, [f"A{column}{start + i}" for i in range(len(WORDS[name]))])
