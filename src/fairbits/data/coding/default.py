"""Default of credit card clients (UCI, Taiwan 2005): will a person fail to pay next month?"""

from __future__ import annotations

from fairbits.data.coding.bins import range_labels
from fairbits.domain import Attribute, Category, Integer, Schema

STATUS = ("PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6")
MONTHS = ("september", "august", "july", "june", "may", "april")
#: Ends of the paper's domains for the six bills and the six payments, in units of 10,000; the data fill them exactly.
BILLS = ((-16, 96), (-6, 98), (-15, 166), (-17, 89), (-8, 92), (-33, 96))
PAYMENTS = (87, 168, 89, 62, 42, 52)
UNIT = 10_000
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

# UCI documents −1 and the delays; −2 and 0 are the dataset's author's later explanation.
_EARLY = ("nothing spent (−2)", "paid in full (−1)", "revolving credit used (0)")
_LATE = ("1 month late", *(f"{n} months late" for n in range(2, 8)), "8 months late or more")


def _status(month: str) -> Attribute:
    """Nobody is one month late in May and April: label encoding closes the gap, so their codes end at 9.

    (The paper states 0–10 for all six months; no row has a code 10 in these two.)
    """
    late = _LATE[1:] if month in ("may", "april") else _LATE
    labels = (*_EARLY, *late)
    return Integer(name=f"status_{month}", low=0, high=len(labels) - 1, labels=labels)


def _money(low: int, high: int) -> tuple[str, ...]:
    """Labels of amounts in units of 10,000 New Taiwan dollars, cut towards zero (so code 0 covers both signs)."""
    below = [f"−{-code * UNIT + UNIT - 1:,} to −{-code * UNIT:,}" for code in range(low, 0)]
    zero = ["−9,999 to 9,999" if low < 0 else "0–9,999"]
    return (*below, *zero, *range_labels(UNIT, 1, high))


SCHEMA = Schema(
    attributes=(
        Integer(name="limit_balance", low=1, high=100, labels=range_labels(UNIT, 1, 100)),
        Category(name="sex", labels=("Male", "Female"), protected=True),
        Category(
            name="education",
            labels=(
                "0 (undocumented)",
                "graduate school",
                "university",
                "high school",
                "others",
                "5 (undocumented)",
                "6 (undocumented)",
            ),
        ),
        Category(name="marriage", labels=("0 (undocumented)", "married", "single", "others")),
        Integer(name="age", low=2, high=7, labels=range_labels(10, 2, 7), protected=True),
        *(_status(month) for month in MONTHS),
        *(
            Integer(name=f"bill_{month}", low=low, high=high, labels=_money(low, high))
            for month, (low, high) in zip(MONTHS, BILLS, strict=True)
        ),
        *(
            Integer(name=f"paid_{month}", low=0, high=high, labels=_money(0, high))
            for month, high in zip(MONTHS, PAYMENTS, strict=True)
        ),
    ),
    target="default_next_month",
    classes=("no default", "default"),
)
