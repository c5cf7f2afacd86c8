"""Heart disease: the raw files as codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairbits.data.coding.raw import Raw, finish, floats, listed, need_columns, positions, read_text, whole
from fairbits.data.coding.shipped import HEART, PAIN, SLOPE
from fairbits.domain import Table

ECG = ("normal", "st-t abnormality", "lv hypertrophy")


THAL = {"normal": 3, "fixed defect": 6, "reversable defect": 7}


RAW_COLUMNS = listed("id,age,sex,dataset,cp,trestbps,chol,fbs,restecg,thalch,exang,oldpeak,slope,ca,thal,num")


#: The Cleveland file of UCI has 303 people; this table numbers them 1 to 303 (and calls a 304th Cleveland too).
CLEVELAND = 303


def read(path: Path) -> Raw:
    """The combined table of the four clinics, with labels; Cleveland comes first."""
    raw = read_text(path)
    need_columns(raw, RAW_COLUMNS, "heart")
    return raw


def code(raw: Raw) -> Table:
    """The 297 complete rows of Cleveland in the paper's coding.

    The published files call grade 1 healthy; the usual rule would be grade 1 and up.
    """
    complete = whole(raw, "id") <= CLEVELAND
    for name in ("slope", "ca", "thal"):
        complete &= raw[name] != ""
    raw = {name: column[complete] for name, column in raw.items()}
    columns = [
        whole(raw, "age") // 10,
        positions(raw, "sex", ("Female", "Male")),
        positions(raw, "cp", PAIN) + 1,
        whole(raw, "trestbps"),
        whole(raw, "chol"),
        _truth(raw["fbs"]),
        positions(raw, "restecg", ECG),
        whole(raw, "thalch"),
        _truth(raw["exang"]),
        np.trunc(floats(raw, "oldpeak")).astype(np.int64),
        positions(raw, "slope", SLOPE) + 1,
        whole(raw, "ca"),
        np.array(list(THAL.values()))[positions(raw, "thal", tuple(THAL))],
    ]
    return finish(columns, (whole(raw, "num") >= 2), HEART)


def _truth(column: npt.NDArray[np.str_]) -> npt.NDArray[np.int64]:
    return np.asarray(np.char.upper(column) == "TRUE", dtype=np.int64)
