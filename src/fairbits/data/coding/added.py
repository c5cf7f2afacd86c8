"""COMPAS and Pima, two tables that do not ship: what their codes mean, and the step from raw columns to codes.

COMPAS (Broward County, collected by ProPublica): was a person arrested again within two years? Two of its columns leak
the answer: ``is_recid`` and ``is_violent_recid`` were written down after the fact. The published experiments keep them
(that is why their accuracy is 0.976); ``COMPAS_NO_LEAK`` is the same table without them.

Diabetes (Pima, National Institute of Diabetes and Digestive and Kidney Diseases): is the test positive?
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairbits.data.coding.raw import (
    OWN_DECADE,
    Raw,
    bin_labels,
    equal_bins,
    finish,
    floats,
    listed,
    need_columns,
    positions,
    rules,
    whole,
    whole_bin_labels,
)
from fairbits.domain import Attribute, Category, Integer, Schema, Table

COMPAS_AGES = ("Less than 25", "25 - 45", "Greater than 45")
COMPAS_LEAKS = ("is_recid", "is_violent_recid")
COMPAS_COLUMNS = listed(
    "sex,age_cat,race,juv_fel_count,decile_score,priors_count,c_charge_degree,is_recid,is_violent_recid,"
    "decile_score.1,v_decile_score,priors_count.1,two_year_recid"
)

COMPAS = Schema(
    attributes=(
        Category(name="sex", labels=("Male", "Female"), protected=True),
        Integer(name="age", low=0, high=2, labels=("under 25", "25–45", "over 45"), protected=True),
        Category(name="race", labels=("not Caucasian", "Caucasian"), protected=True),
        Integer(name="juv_fel_count", low=0, high=20),
        Integer(name="decile_score", low=1, high=10),
        Integer(name="priors_count", low=0, high=38),
        Category(name="charge_degree", labels=("misdemeanour", "felony")),
        Category(name="is_recid", labels=("no", "yes")),
        Category(name="is_violent_recid", labels=("no", "yes")),
        # The source has these two columns twice, and so has the paper's table.
        Integer(name="decile_score_1", low=1, high=10),
        Integer(name="v_decile_score", low=1, high=10),
        Integer(name="priors_count_1", low=0, high=38),
    ),
    target="two_year_recid",
    classes=("not arrested again", "arrested again"),
    plausible=rules(OWN_DECADE),
)

COMPAS_KEPT = tuple(i for i, name in enumerate(COMPAS.names) if name not in COMPAS_LEAKS)
COMPAS_NO_LEAK = replace(COMPAS, attributes=tuple(COMPAS.attributes[i] for i in COMPAS_KEPT))


def code_compas(raw: Raw) -> Table:
    """compas-scores-two-years.csv as ProPublica published it, in the paper's coding."""
    need_columns(raw, COMPAS_COLUMNS, "compas")
    columns = [
        positions(raw, "sex", ("Male", "Female")),
        positions(raw, "age_cat", COMPAS_AGES),
        (raw["race"] == "Caucasian").astype(np.int64),
        whole(raw, "juv_fel_count"),
        whole(raw, "decile_score"),
        whole(raw, "priors_count"),
        positions(raw, "c_charge_degree", ("M", "F")),
        whole(raw, "is_recid"),
        whole(raw, "is_violent_recid"),
        whole(raw, "decile_score.1"),
        whole(raw, "v_decile_score"),
        whole(raw, "priors_count.1"),
    ]
    return finish(columns, positions(raw, "two_year_recid", ("0", "1")), COMPAS)


#: name: (raw column, its name at OpenML, smallest and largest value of the 768 rows, digits of a label)
DIABETES_COLUMNS: dict[str, tuple[str, str, float, float, int]] = {
    "pregnancies": ("Pregnancies", "preg", 0, 17, 0),
    "glucose": ("Glucose", "plas", 0, 199, 0),
    "blood_pressure": ("BloodPressure", "pres", 0, 122, 0),
    "skin_thickness": ("SkinThickness", "skin", 0, 99, 0),
    "insulin": ("Insulin", "insu", 0, 846, 0),
    "bmi": ("BMI", "mass", 0, 67.1, 1),
    "pedigree": ("DiabetesPedigreeFunction", "pedi", 0.078, 2.42, 3),
    "age": ("Age", "age", 21, 81, 0),
}
OUTCOME = "Outcome"


def _attribute(name: str, low: float, high: float, digits: int) -> Attribute:
    labels = bin_labels(low, high, 9, digits=digits) if digits else whole_bin_labels(int(low), int(high), 9)
    return Integer(name=name, low=1, high=9, labels=labels, protected=name == "age")


DIABETES = Schema(
    attributes=tuple(
        _attribute(name, low, high, digits) for name, (_, _, low, high, digits) in DIABETES_COLUMNS.items()
    ),
    target="diabetes",
    classes=("negative", "positive"),
    plausible=rules(OWN_DECADE),
)


def code_diabetes(raw: Raw) -> Table:
    """The paper's coding: every column in nine bins of equal width between its smallest and largest value.

    Columns have the usual names, or OpenML's.
    """
    if "preg" in raw:
        names = {column: raw[theirs] for column, theirs, *_ in DIABETES_COLUMNS.values() if theirs in raw}
        raw = {**names, OUTCOME: np.where(raw["class"] == "tested_positive", "1", "0")} if "class" in raw else names
    need_columns(raw, [*(column for column, *_ in DIABETES_COLUMNS.values()), OUTCOME], "diabetes")
    columns = [equal_bins(floats(raw, column), low, high, 9) for column, _, low, high, _ in DIABETES_COLUMNS.values()]
    return finish(columns, positions(raw, OUTCOME, ("0", "1")), DIABETES)
