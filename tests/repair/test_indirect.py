"""What is left after direct use: also about attributes that the model does not take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from fairbits import Network, load_subject
from fairbits.measure import evaluator_of
from fairbits.repair.judgement import indirect_bits, split
from tests.repair import planted

SUBJECT = """
[model]
path = "model.npz"
[table]
path = "people.csv"
target = "y"
classes = ["0", "1"]
favourable = "1"
[attributes.zip]
kind = "integer"
low = 0
high = 1
[attributes.sex]
kind = "integer"
low = 0
high = 1
protected = true
[attributes.race]
kind = "category"
labels = ["w", "b"]
protected = "observed"
"""


def test_observed_attributes_are_told_of_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    race, sex = rng.integers(0, 2, 900), rng.integers(0, 2, 900)
    place = np.where(rng.random(900) < 0.1, 1 - race, race)
    lines = [
        f"{z},{s},{'' if i < 20 else 'wb'[race[i]]},{i % 2}" for i, (z, s) in enumerate(zip(place, sex, strict=True))
    ]
    (tmp_path / "people.csv").write_text("\n".join(["zip,sex,race,y", *lines]) + "\n")
    weights = [np.array([[2.0], [1.0]], dtype=np.float32)], [np.array([-1.0], dtype=np.float32)]
    Network.build(*weights, activation="relu", head="sigmoid").save(tmp_path / "model.npz")
    (tmp_path / "subject.toml").write_text(SUBJECT)
    subject = load_subject(tmp_path / "subject.toml").checked(as_is=True)
    name, found = indirect_bits(evaluator_of(subject), subject.schema, subject.table)
    assert name == "race"
    assert 0.3 < found.low < 0.5310  # the place tells 1 - h(0.1)
    alone = replace(subject.table, observed=None)
    name, found = indirect_bits(evaluator_of(subject), subject.schema, alone)
    assert name == "sex"
    assert found.low == 0  # the average over twins tells nothing about it


def test_parts_keep_the_observed_values_of_their_rows(tmp_path: Path) -> None:
    table = planted.table(360)
    subject = replace(planted.network_subject(360), table=replace(table, observed=table.codes[:, :1]))
    parts = split(planted.searched(subject, tmp_path / "run"), subject, np.random.default_rng(0))
    for one in (parts.plan, parts.held_out):
        assert one.people is not None  # 60 rows are few: everybody stands for them
        assert len(one.people) == 360
        assert (one.people.observed == one.people.codes[:, :1]).all()
