"""Diabetes (Pima, National Institute of Diabetes and Digestive and Kidney Diseases): is the test positive?"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairbits.data.coding.raw import (
    OWN_DECADE,
    Raw,
    bin_labels,
    equal_bins,
    finish,
    floats,
    need_columns,
    positions,
    read_text,
    rules,
    whole_bin_labels,
)
from fairbits.domain import Attribute, Integer, Schema, Table

#: name: (raw column, its name at OpenML, smallest and largest value of the 768 rows, digits of a label)
COLUMNS: dict[str, tuple[str, str, float, float, int]] = {
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


SCHEMA = Schema(
    attributes=tuple(_attribute(name, low, high, digits) for name, (_, _, low, high, digits) in COLUMNS.items()),
    target="diabetes",
    classes=("negative", "positive"),
    plausible=rules(OWN_DECADE),
)


def read(path: Path) -> Raw:
    """diabetes.csv, with the usual header or OpenML's."""
    raw = read_text(path)
    return from_openml(raw) if "preg" in raw else raw


def from_openml(raw: Raw) -> Raw:
    """OpenML's column names and classes in those of the usual file."""
    renamed = {column: raw[theirs] for column, theirs, *_ in COLUMNS.values() if theirs in raw}
    if "class" in raw:
        renamed[OUTCOME] = np.where(raw["class"] == "tested_positive", "1", "0")
    return renamed


def code(raw: Raw) -> Table:
    """The paper's coding: every column in nine bins of equal width between its smallest and largest value."""
    need_columns(raw, [*(column for column, *_ in COLUMNS.values()), OUTCOME], "diabetes")
    columns = [equal_bins(floats(raw, column), low, high, 9) for column, _, low, high, _ in COLUMNS.values()]
    return finish(columns, positions(raw, OUTCOME, ("0", "1")), SCHEMA)
