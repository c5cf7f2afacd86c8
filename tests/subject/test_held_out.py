"""Rows that the model was not trained on: a table of their own, or a column that marks them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from fairbits import Audit, load_subject
from fairbits.domain import Attribute
from fairbits.errors import SchemaError, TableError
from fairbits.measure import grouping_of, subject_groups
from fairbits.measure.groups import UNKNOWN
from fairbits.subject import export_subject
from tests.repair.conftest import write_subject


def with_column(folder: Path, values: list[object], line: str = 'split = "part"') -> Path:
    """A subject whose table has one more column, and one more line under [table]."""
    path = write_subject(folder)
    table = next(folder.glob("table.*"))
    frame = pd.read_csv(table)
    frame.assign(part=[values[i % len(values)] for i in range(len(frame))]).to_csv(table, index=False)
    path.write_text(path.read_text().replace("[table]", f"[table]\n{line}", 1))
    return path


@pytest.mark.parametrize("values", [["train", "test", "train"], [0, 1, 0], [False, True, False]])
def test_a_column_marks_rows_and_accuracy_is_about_them(values: list[object], tmp_path: Path) -> None:
    subject = load_subject(with_column(tmp_path / "s", values)).checked()
    marked = np.arange(len(subject.table)) % 3 == 1
    assert np.array_equal(subject.table.held_out, marked)
    assert subject.unseen is not None
    assert len(subject.unseen) == marked.sum()
    assert subject.quality is not None
    assert (subject.quality.accuracy_on, subject.quality.accuracy_rows) == ("held-out", marked.sum())


def test_a_test_table_is_its_own(tmp_path: Path) -> None:
    path = write_subject(tmp_path / "s")
    frame = pd.read_csv(next((tmp_path / "s").glob("table.*")))
    frame.head(50).to_csv(tmp_path / "s" / "later.csv", index=False)
    path.write_text(path.read_text().replace("[table]", '[table]\ntest = "later.csv"', 1))
    subject = load_subject(path).checked()
    assert subject.test is not None
    assert len(subject.test) == 50
    assert np.array_equal(subject.test.codes, subject.table.codes[:50])
    assert np.array_equal(subject.test.labels, subject.table.labels[:50])
    assert subject.quality is not None
    assert (subject.quality.accuracy_on, subject.quality.accuracy_rows) == ("held-out", 50)
    assert subject.quality.rows == len(subject.table)


@pytest.mark.parametrize(
    ("line", "values", "complaint"),
    [
        ('split = "nowhere"', [1], "split 'nowhere' is not in the table"),
        (
            'split = "part"',
            ["train", "later"],
            r"holds 'later' in row 2, line 3 of .* .true, 1 or test: not trained on",
        ),
        ("split = 3", [1], "split = 3; it must be text"),
        ('split = "skill"', [1], "split is 'skill', which is an attribute"),
        ('split = "part"\ntest = "later.csv"', [1], "both split and test"),
    ],
)
def test_marks_that_say_nothing_are_refused(line: str, values: list[object], complaint: str, tmp_path: Path) -> None:
    with pytest.raises((SchemaError, TableError), match=complaint):
        load_subject(with_column(tmp_path / "s", values, line))


@pytest.mark.parametrize("name", ["heart", "census"])
def test_an_export_keeps_who_was_held_out(name: str, tmp_path: Path) -> None:
    original = load_subject(name)
    export_subject(original, tmp_path / "out")
    again = load_subject(tmp_path / "out" / "subject.toml")
    for there, here in ((original.unseen, again.unseen), (original.table, again.table)):
        assert there is not None
        assert here is not None
        assert np.array_equal(there.codes, here.codes)
        assert np.array_equal(there.labels, here.labels)
    assert original.identity.ingredients["table"] == again.identity.ingredients["table"]


def test_from_table_takes_a_test_table() -> None:
    """One that reaches beyond the numbers of the first, with its labels in the model's order."""
    rng = np.random.default_rng(0)
    skill, sex = rng.normal(size=600), rng.integers(0, 2, 600)
    frame = pd.DataFrame({"skill": skill.round(2), "sex": sex})
    hired = np.where(skill + 0.3 * rng.normal(size=600) > 0, "yes", "no")
    model = LogisticRegression().fit(frame.head(400).to_numpy(), hired[:400])
    frame = frame.assign(hired=hired)
    later = frame.tail(200).assign(skill=lambda f: f["skill"] * 3)
    audit = Audit.from_table(
        model, frame.head(400), target="hired", protected="sex", favourable="yes", test=later, input_format="array"
    )
    quality = audit.subject.quality
    assert quality is not None
    assert (quality.accuracy_on, quality.accuracy_rows, quality.rows) == ("held-out", 200, 400)
    assert quality.accuracy == (model.predict(later[["skill", "sex"]].to_numpy()) == later["hired"]).mean()


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (
            {"test": {"sex": ["x"], "skill": [1.0], "hired": ["no"]}},
            "the test table does not fit: column 'sex' holds 'x'",
        ),
        ({"test": {"sex": ["f"], "hired": ["no"]}}, "the test table does not fit: attribute 'skill' is not in"),
        ({"person": "sex"}, "person is 'sex', which is protected or the target too"),
        ({"weight": "hired"}, "weight is 'hired', which is protected or the target too"),
    ],
)
def test_columns_and_tables_that_cannot_be_meant_are_named(more: dict, complaint: str) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 60), "skill": rng.normal(size=60)})
    frame["hired"] = np.where(frame["skill"] > 0, "yes", "no")
    more = {key: pd.DataFrame(value) if key == "test" else value for key, value in more.items()}
    with pytest.raises((SchemaError, TableError), match=complaint):
        Audit.from_table(
            lambda rows: (rows["skill"] > 0).to_numpy(float),
            frame,
            target="hired",
            protected=["sex"],
            favourable="yes",
            **more,
        )


def test_errors_of_groups_are_about_held_out_rows(tmp_path: Path) -> None:
    path = write_subject(tmp_path / "s")
    frame = pd.read_csv(next((tmp_path / "s").glob("table.*")))
    frame.head(50).to_csv(tmp_path / "s" / "later.csv", index=False)
    path.write_text(path.read_text().replace("[table]", '[table]\ntest = "later.csv"', 1))
    subject = load_subject(path).checked()
    alone = replace(subject, table=subject.table.rows(np.arange(50)), test=None)
    whole, other = (subject_groups(one, np.random.default_rng(0)) for one in (subject, alone))
    marks = np.arange(len(subject.table)) < 50
    marked = replace(subject, table=replace(subject.table, held_out=marks), test=None)
    for found in (whole, subject_groups(marked, np.random.default_rng(0))):
        for one, same in zip(found, other, strict=True):
            assert (one.errors_on, one.errors_rows, one.people) == ("held-out", 50, len(subject.table))
            for name in ("tpr", "fpr", "precision", "calibration"):
                figures = {row.group: getattr(row, name) for row in one.groups if getattr(row, name) is not None}
                theirs = {row.group: getattr(row, name) for row in same.groups if getattr(row, name) is not None}
                assert {group: it.value for group, it in figures.items()} == {g: it.value for g, it in theirs.items()}
            assert sum(row.people for row in one.groups) == len(subject.table)
    assert {one.errors_on for one in other} == {"unknown"}


def test_held_out_rows_stand_in_the_groups_of_the_table() -> None:
    age = Attribute(name="age", kind="integer", low=0, high=99, protected=True)
    groups = grouping_of(age, np.array([*range(20, 60), 5, 80, np.nan]), first=40)
    assert len(groups.labels) == 4
    assert groups.codes[-3:].tolist() == [0, 3, UNKNOWN]
    few = grouping_of(age, np.array([30, 40, 35, 40]), first=2)
    assert few.labels == ("30", "40")
    assert few.codes.tolist() == [0, 1, UNKNOWN, 1]
