"""COMPAS (Broward County, collected by ProPublica): was a person arrested again within two years?

Two columns leak the answer: ``is_recid`` and ``is_violent_recid`` were written down after the fact. The published
experiments keep them (that is why their accuracy is 0.976); ``NO_LEAK`` is the same table without them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from fairbits.data.coding.raw import (
    OWN_DECADE,
    Raw,
    finish,
    listed,
    need_columns,
    positions,
    read_text,
    rules,
    whole,
)
from fairbits.domain import Category, Integer, Schema, Table

AGES = ("Less than 25", "25 - 45", "Greater than 45")
LEAKS = ("is_recid", "is_violent_recid")
RAW_COLUMNS = listed(
    "sex,age_cat,race,juv_fel_count,decile_score,priors_count,c_charge_degree,is_recid,is_violent_recid,"
    "decile_score.1,v_decile_score,priors_count.1,two_year_recid"
)

SCHEMA = Schema(
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

KEPT = tuple(i for i, name in enumerate(SCHEMA.names) if name not in LEAKS)
NO_LEAK = replace(SCHEMA, attributes=tuple(SCHEMA.attributes[i] for i in KEPT))


def read(path: Path) -> Raw:
    """compas-scores-two-years.csv as ProPublica published it."""
    return read_text(path)


def code(raw: Raw) -> Table:
    need_columns(raw, RAW_COLUMNS, "compas")
    columns = [
        positions(raw, "sex", ("Male", "Female")),
        positions(raw, "age_cat", AGES),
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
    return finish(columns, positions(raw, "two_year_recid", ("0", "1")), SCHEMA)
