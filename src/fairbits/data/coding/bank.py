"""Bank marketing (UCI, Portugal): will a person subscribe to a term deposit?"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairbits.data.coding.raw import Coded, Raw, finish, listed, need_columns, positions, range_labels, read_text, whole
from fairbits.domain import Attribute, Schema

JOB = listed(
    "admin.,unknown,unemployed,management,housemaid,entrepreneur,student,blue-collar,self-employed,retired,"
    "technician,services"
)
MARITAL = listed("married,divorced,single")
EDUCATION = listed("unknown,secondary,primary,tertiary")
CONTACT = listed("unknown,telephone,cellular")
MONTH = listed("jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec")
OUTCOME = listed("unknown,other,failure,success")
YES = ("no", "yes")
RAW_COLUMNS = listed(
    "age,job,marital,education,default,balance,housing,loan,contact,day,month,duration,campaign,pdays,previous,"
    "poutcome,y"
)


def _balance() -> tuple[str, ...]:
    """Floor of the balance in steps of 50 euros; everything beyond either end is in the end's code."""
    below = [f"−{-code * 50:,} to −{-code * 50 - 49:,}" for code in range(-20, 0)]
    below[0] = "−951 and under"
    return (*below, *range_labels(50, 0, 179, top=True))


SCHEMA = Schema(
    attributes=(
        Attribute(name="age", kind="integer", low=1, high=9, labels=range_labels(10, 1, 9, top=True), protected=True),
        Attribute(name="job", kind="category", labels=JOB),
        Attribute(name="marital", kind="category", labels=("married", "divorced or widowed", "single")),
        Attribute(name="education", kind="category", labels=EDUCATION),
        Attribute(name="default", kind="category", labels=YES),
        Attribute(name="balance", kind="integer", low=-20, high=179, labels=_balance()),
        Attribute(name="housing_loan", kind="category", labels=YES),
        Attribute(name="personal_loan", kind="category", labels=YES),
        Attribute(name="contact", kind="category", labels=CONTACT),
        Attribute(name="day", kind="integer", low=1, high=31),
        Attribute(name="month", kind="integer", low=0, high=11, labels=MONTH),
        Attribute(
            name="duration",
            kind="integer",
            low=0,
            high=99,
            labels=tuple(f"{text} s" for text in range_labels(10, 0, 99, top=True)),
        ),
        Attribute(name="campaign", kind="integer", low=1, high=63),
        # The paper's list of domains says −1 to 39 here, but its table holds 0 and 1 only.
        Attribute(name="never_contacted", kind="category", labels=("no", "yes")),
        Attribute(name="previous_contacts", kind="integer", low=0, high=1, labels=("none", "one or more")),
        Attribute(name="previous_outcome", kind="category", labels=OUTCOME),
    ),
    target="subscribed",
    classes=("no", "yes"),
)


def read(path: Path) -> Raw:
    """bank-full.csv as UCI has it: semicolons between fields.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Raw
        Columns of text.
    """
    return read_text(path, delimiter=";")


def code(raw: Raw) -> Coded:
    """The paper's coding.

    Parameters
    ----------
    raw
        Columns of text, by name.

    Returns
    -------
    Coded
        Codes and labels.
    """
    need_columns(raw, RAW_COLUMNS, "bank")
    columns = [
        np.clip(whole(raw, "age") // 10, 1, 9),
        positions(raw, "job", JOB),
        positions(raw, "marital", MARITAL),
        positions(raw, "education", EDUCATION),
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
    return finish(columns, positions(raw, "y", YES), SCHEMA)
