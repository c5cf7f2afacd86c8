"""German credit (UCI Statlog): is a person a good or a bad credit risk?"""

from __future__ import annotations

from fairbits.data.coding.bins import range_labels
from fairbits.domain import Attribute, Category, Integer, Schema

# From the dataset's own documentation (DM: Deutsche Mark). The place in the tuple is the code.
WORDS = {
    "checking_status": ("below 0 DM", "0 to under 200 DM", "200 DM and over, or salary for a year", "no account"),
    "credit_history": (
        "no credits, or all paid back duly",
        "all credits at this bank paid back duly",
        "existing credits paid back duly till now",
        "delay in paying in the past",
        "critical account, or credits elsewhere",
    ),
    "purpose": (
        "car (new)",
        "car (used)",
        "furniture or equipment",
        "radio or television",
        "domestic appliances",
        "repairs",
        "education",
        "holiday",
        "retraining",
        "business",
        "others",
    ),
    "savings_status": (
        "below 100 DM",
        "100 to under 500 DM",
        "500 to under 1,000 DM",
        "1,000 DM and over",
        "unknown or none",
    ),
    "employment": ("unemployed", "under 1 year", "1 to under 4 years", "4 to under 7 years", "7 years and over"),
    "other_parties": ("none", "co-applicant", "guarantor"),
    "property_magnitude": ("real estate", "savings agreement or life insurance", "car or other", "unknown or none"),
    "other_payment_plans": ("bank", "stores", "none"),
    "housing": ("rent", "own", "for free"),
    "job": (
        "unemployed or unskilled, non-resident",
        "unskilled, resident",
        "skilled employee or official",
        "management, self-employed, highly qualified or officer",
    ),
    "own_telephone": ("none", "yes, in the customer's name"),
    "foreign_worker": ("yes", "no"),
}


def _category(name: str) -> Attribute:
    return Category(name=name, labels=WORDS[name])


SCHEMA = Schema(
    attributes=(
        _category("checking_status"),
        Integer(name="duration", low=1, high=80),
        _category("credit_history"),
        _category("purpose"),
        Integer(name="credit_amount", low=1, high=200, labels=range_labels(100, 1, 200)),
        _category("savings_status"),
        _category("employment"),
        Integer(name="installment_commitment", low=1, high=4),
        # The source has no column for sex: "A92" reads "female, divorced, separated or married", and no single
        # woman is coded. A later study of the source (Grömping 2019) found single men under A92 as well.
        Category(name="sex", labels=("Male", "Female"), protected=True),
        _category("other_parties"),
        Integer(name="residence", low=1, high=4),
        _category("property_magnitude"),
        Integer(name="age", low=1, high=8, labels=range_labels(10, 1, 8), protected=True),
        _category("other_payment_plans"),
        _category("housing"),
        Integer(name="existing_credits", low=1, high=4),
        _category("job"),
        Integer(name="num_dependents", low=1, high=2),
        _category("own_telephone"),
        _category("foreign_worker"),
    ),
    target="risk",
    classes=("bad credit", "good credit"),
)
