from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairbits import Attribute, Schema
from fairbits.domain.reading import as_arrow, read_arrow
from fairbits.domain.table import table_from_arrow
from fairbits.errors import SchemaError, TableError
from fairbits.subject.infer import infer_schema

ROWS = {
    "age": [1, 2, 3],
    "job": ["Sales", "Tech", "Farm"],
    "income": [0.5, -1.0, 3.25],
    "sex": ["Male", "Female", "Female"],
    "hours": [40, 0, 99],
    "hired": ["yes", "no", "yes"],
}


def test_labels_become_codes(people_schema: Schema) -> None:
    table = table_from_arrow(pa.table(ROWS), people_schema)
    assert table.codes.tolist() == [[1, 0, 0.5, 1, 40], [2, 1, -1, 0, 0], [3, 2, 3.25, 0, 99]]
    assert table.labels is not None
    assert table.labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, dict])
def test_any_frame_will_do(people_schema: Schema, frame) -> None:
    expected = table_from_arrow(pa.table(ROWS), people_schema)
    np.testing.assert_array_equal(table_from_arrow(as_arrow(frame(ROWS)), people_schema).codes, expected.codes)


def test_codes_are_accepted_in_place_of_labels(people_schema: Schema) -> None:
    coded = pa.table(ROWS | {"job": [0, 1, 2], "sex": [1, 0, 0]})
    expected = table_from_arrow(pa.table(ROWS), people_schema)
    np.testing.assert_array_equal(table_from_arrow(coded, people_schema).codes, expected.codes)


@pytest.mark.parametrize("numbers", [[0, 1, 1], [0.0, 1.0, 1.0], [False, True, True]])
def test_a_target_of_numbers(people_schema: Schema, numbers: list) -> None:
    data = pa.table(ROWS | {"hired": numbers})
    schema = infer_schema(data, target="hired", protected=["sex"])
    labels = table_from_arrow(data, schema).labels
    assert labels is not None
    assert labels.tolist() == [0, 1, 1]
    assert schema.favourable_index == 1


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"age": [1, 200, 300]},
            r"leaves the stated domain in age \(2 of 3 rows outside 1 to 3; first: 200 in row 2\)",
        ),
        ({"age": [1.0, np.nan, 2.0]}, "column 'age' has no value in 1 of 3 rows"),
        ({"age": [1, None, 2]}, "column 'age' has no value in 1 of 3 rows; fill or drop them"),
        ({"age": ["1", "x", "2"]}, "column 'age' .* none of its labels"),
        ({"hours": ["1", "x", "2"]}, "column 'hours' holds 'x', which is not a number"),
        (
            {"job": ["Sales", "Tec", "Tech"]},
            "column 'job' holds 'Tec' in row 2, which is none of its labels; .*Did you mean 'Tech'",
        ),
        ({"job": ["Sales", None, "Tech"]}, 'say missing = "model" of it'),
        ({"hired": ["yes", "no", "maybe"]}, "target 'hired' holds 'maybe'"),
        ({"hired": ["yes", "no", None]}, "target 'hired' has no value in 1 of 3 rows"),
        ({"income": [float("inf"), 1.0, 2.0]}, "not finite"),
    ],
)
def test_what_does_not_fit_is_named(people_schema: Schema, change: dict, complaint: str) -> None:
    with pytest.raises(TableError, match=complaint):
        table_from_arrow(pa.table(ROWS | change), people_schema)


def test_missing_columns_are_named(people_schema: Schema) -> None:
    with pytest.raises(TableError, match=r"protected attribute 'sex' is not in the table.*Did you mean 'sexe'"):
        table_from_arrow(
            pa.table(ROWS).rename_columns(["age", "job", "income", "sexe", "hours", "hired"]), people_schema
        )
    with pytest.raises(TableError, match="target 'hired' is not in the table"):
        table_from_arrow(pa.table(ROWS).drop_columns(["hired"]), people_schema)
    with pytest.raises(TableError, match="column 'age' 2 times"):
        as_arrow(pa.table(ROWS).rename_columns(["age", "age", "income", "sex", "hours", "hired"]))
    with pytest.raises(TableError, match="no rows"):
        table_from_arrow(pa.table(ROWS).slice(0, 0), people_schema)


def test_files_of_every_kind(people_schema: Schema, tmp_path) -> None:
    from pyarrow import csv, feather, parquet

    data = pa.table(ROWS)
    csv.write_csv(data, tmp_path / "t.csv")
    parquet.write_table(data, tmp_path / "t.parquet")
    feather.write_feather(data, tmp_path / "t.feather")
    expected = table_from_arrow(data, people_schema).codes
    for name in ("t.csv", "t.parquet", "t.feather"):
        np.testing.assert_array_equal(table_from_arrow(read_arrow(tmp_path / name), people_schema).codes, expected)


def test_files_that_cannot_be_read(tmp_path) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "semicolons.csv").write_text("age;sex\n1;F\n")
    (tmp_path / "ragged.csv").write_text("age,sex\n1,F\n1,F,7\n")
    (tmp_path / "utf16.csv").write_text("age,sex\n1,F\n2,M\n", encoding="utf-16")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing else")
    cases = {
        "nowhere.csv": "does not exist",
        "empty.csv": "is empty",
        "semicolons.csv": "separated by semicolons: set delimiter = ';'",
        "ragged.csv": r"cannot be read as .csv: .*; mend that line",
        "utf16.csv": r"save it as CSV in UTF-8\.$",
        "broken.parquet": "cannot be read as .parquet: .*; write the file again",
        ".": "is a folder",
    }
    for name, complaint in cases.items():
        with pytest.raises(TableError, match=complaint):
            read_arrow(tmp_path / name)
    assert read_arrow(tmp_path / "semicolons.csv", delimiter=";").column_names == ["age", "sex"]


def test_a_schema_from_nothing_but_a_table() -> None:
    data = pa.table(ROWS | {"job": ["Sales", None, "Tech"]})
    schema = infer_schema(data, target="hired", protected=["sex", "age"], favourable="no")
    assert schema.protected == ("age", "sex")
    assert schema["job"] == Attribute(name="job", kind="category", labels=("Sales", "Tech", "(missing)"))
    assert schema["income"].kind == "real"
    assert (schema["hours"].low, schema["hours"].high) == (0, 99)
    assert schema.favourable_index == 0
    table_from_arrow(data, schema)


def test_a_target_of_many_numbers_is_a_regression() -> None:
    data = pa.table({"sex": [0, 1] * 20, "wage": [i * 1.5 for i in range(40)]})
    schema = infer_schema(data, target="wage", protected=["sex"])
    assert schema.regression
    assert schema.favourable_index == 0


def test_inference_refuses_what_is_not_there() -> None:
    data = pa.table(ROWS)
    with pytest.raises(TableError, match=r"target 'hird' is not in the table.*Did you mean 'hired'"):
        infer_schema(data, target="hird")
    with pytest.raises(TableError, match="protected attribute 'sx'"):
        infer_schema(data, protected=["sx"])
    with pytest.raises(SchemaError, match="cannot be protected"):
        infer_schema(data, target="hired", protected=["hired"])


@pytest.mark.parametrize(
    ("labels", "cells", "codes"),
    [
        ((" Male", "Female "), [" Male", "Female ", "Male", " Female"], [0, 1, 0, 1]),
        (("Male", "Female"), [" Male", "Female\t", "Male", "Female"], [0, 1, 0, 1]),
        (("a", " a", "b"), ["a", " a", "b", " b "], [0, 1, 2, 2]),  # blanks count where nothing else tells them apart
        (("a\u2028", "\u00a0b"), ["a\u2028", "b", "a", "\u00a0b"], [0, 1, 0, 1]),
        ((" 1", "2 "), [1, 2, 1, 2], [0, 1, 0, 1]),
    ],
)
def test_labels_with_blanks_around_them_match_their_cells(labels, cells, codes) -> None:
    schema = Schema(
        (
            Attribute(name="sex", kind="category", labels=labels, protected=True),
            Attribute(name="x", kind="real", high=1),
        ),
        target="pay",
        classes=(" <=50K", ">50K"),
    )
    table = table_from_arrow(
        pa.table({"sex": cells, "x": [0.5] * 4, "pay": [" <=50K", "<=50K", " >50K", ">50K"]}), schema
    )
    assert table.codes[:, 0].tolist() == codes
    assert table.labels is not None
    assert table.labels.tolist() == [0, 0, 1, 1]


def test_a_cell_that_fits_two_labels_is_refused() -> None:
    schema = Schema(
        (
            Attribute(name="sex", kind="category", labels=("a ", " a"), protected=True),
            Attribute(name="x", kind="real", high=1),
        )
    )
    with pytest.raises(TableError, match=r"row 2, which is none of its labels;"):
        table_from_arrow(pa.table({"sex": ["a ", "a"], "x": [0.5, 0.5]}), schema)


@pytest.mark.parametrize(
    ("content", "delimiter", "complaint"),
    [
        (
            "name,x\nMeier,1\nMüller,2\n".encode("latin-1"),
            ",",
            r"no text in UTF-8: column 'name' .* in row 2, line 3 of",
        ),
        ("näme,x\nMeier,1\n".encode("latin-1"), ",", "no text in UTF-8"),
        (b"job,pay,job\na,1,b\n", ",", "has the column 'job' 2 times"),
        (b"job,pay,pay\na,01,2\n", ",", "has the column 'pay' 2 times"),
        (b"job;pay\na;1,5\nb;12,25\nc;3\n", ";", r"decimal comma in column 'pay' \(first: '1,5'\); save it with"),
    ],
)
def test_other_people_s_alphabets_and_commas_are_named(
    content: bytes, delimiter: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_bytes(content)
    with pytest.raises(TableError, match=complaint):
        read_arrow(tmp_path / "people.csv", delimiter=delimiter)


def test_commas_within_labels_are_labels(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('job,pay\n"Tech, IT","1,000"\n"Sales","2,000"\n')
    (tmp_path / "b.csv").write_text("job;pay\nTech, IT;1,000 a month\nSales;2\n")
    for name, mark in (("a.csv", ","), ("b.csv", ";")):
        assert read_arrow(tmp_path / name, delimiter=mark)["job"].to_pylist() == ["Tech, IT", "Sales"]


def test_a_comma_in_numbers_is_no_second_column(tmp_path: Path) -> None:
    """As spreadsheets save a table where decimals have a comma."""
    (tmp_path / "table.csv").write_text("sex;pay\nf;1,5\nm;2,5\n")
    with pytest.raises(TableError, match="separated by semicolons: set delimiter = ';'"):
        read_arrow(tmp_path / "table.csv")
