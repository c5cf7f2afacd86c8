"""Where a row stands: errors name it as the table itself does, whatever batches the work was cut into."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fairbits import Attribute, Audit, FairbitsError, Schema
from fairbits.domain import Encoding, Table
from fairbits.domain.decoding import Decoder
from fairbits.domain.reading import read_arrow
from fairbits.domain.table import table_from_arrow
from fairbits.errors import ModelError, SchemaError, TableError, rows_named
from fairbits.measure import evaluator_of

SEX = Attribute(name="sex", kind="category", labels=("f", "m"), protected=True)
AGE = Attribute(name="age", kind="integer", low=0, high=40_000)
SCHEMA = Schema((AGE, SEX), target="y", classes=("no", "yes"))


def people(n: int, **columns: list) -> pa.Table:
    plain = {"age": list(range(n)), "sex": ["f", "m"] * (n // 2) + ["f"] * (n % 2), "y": ["no", "yes"] * (n // 2)}
    return pa.table({name: values[:n] for name, values in (plain | columns).items()})


def bad_at(age: int):
    """A model that fails about the person of one age."""
    return lambda rows: np.where(np.asarray(rows[:, 0], dtype=float) == age, np.nan, 0.4)


def test_rows_keep_their_numbers_through_every_choice() -> None:
    table = table_from_arrow(people(10), SCHEMA)
    some = table.rows(np.array([7, 3])).rows(np.array([1]))
    assert some.place(0) == "row 4"
    assert table.rows(slice(5, 8)).place(2) == "row 8"


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "loan.csv"
    file.write_text("age,sex,y\n1,f,no\n\n2,m,yes\n99999,m,no\n")
    with pytest.raises(TableError, match=r"first: 99999 in row 3, line 5 of loan\.csv\)"):
        table_from_arrow(read_arrow(file), SCHEMA, file=file)
    file.write_text("age,sex,y\n1,f,no\n2,x,yes\n")
    with pytest.raises(TableError, match=r"holds 'x' in row 2, line 3 of loan\.csv"):
        table_from_arrow(read_arrow(file), SCHEMA, file=file)
    with pytest.raises(TableError, match=r"'x' in row 2 of loan\.parquet"):
        table_from_arrow(read_arrow(file), SCHEMA, file=tmp_path / "loan.parquet")


@pytest.mark.parametrize("progress", [None, lambda done, total: None])
@pytest.mark.parametrize("row", [0, 1200, 8191, 8192, 20_000])
def test_a_model_that_fails_for_somebody(row: int, progress, tmp_path: Path) -> None:
    from pyarrow import csv

    csv.write_csv(people(20_002), tmp_path / "loan.csv")
    with pytest.raises(ModelError, match=rf"in row {row + 1:,}, line {row + 2:,} of loan\.csv\)"):
        Audit(bad_at(row), tmp_path / "loan.csv", SCHEMA, input_format="codes").measure(progress=progress)


def test_rows_of_a_sample_are_named_as_in_the_whole() -> None:
    table = table_from_arrow(people(50), SCHEMA).rows(np.array([40, 7, 12]))
    with pytest.raises(ModelError, match="person in row 8"):
        Audit(bad_at(7), table, SCHEMA, input_format="codes").measure()


def test_an_error_about_no_row_passes_unchanged() -> None:
    with pytest.raises(ModelError, match="as it was"), rows_named(5):
        raise ModelError("as it was")


@pytest.mark.parametrize("code", [-1, 2, np.nan, -0.6])
def test_codes_outside_a_category_never_count_from_its_end(code: float) -> None:
    codes = np.array([[3.0, 1.0], [4.0, code]])
    with pytest.raises(TableError, match="in row 2, but this attribute takes 0 to 1"):
        Encoding.one_hot(SCHEMA).encode(codes)
    with pytest.raises(TableError, match="in row 2"):
        Decoder(SCHEMA).frame(codes)
    with pytest.raises(TableError, match="in row 2"):
        Decoder(SCHEMA).records(codes)
    with pytest.raises(TableError, match=r"leaves the stated domain in sex \(1 of 2 rows"):
        Audit(bad_at(-1), Table(codes), SCHEMA, input_format="codes")
    if not np.isnan(code):
        with pytest.raises(SchemaError, match="attribute 'sex' takes 0 to 1"):
            SEX.read(code)


def test_nobody_is_no_reason_to_fall_over() -> None:
    audit = Audit(bad_at(-1), people(4), SCHEMA, input_format="codes")
    evaluator, nobody = evaluator_of(audit.subject), np.empty((0, 2))
    for progress in (None, lambda done, total: None):
        found = evaluator.evaluate(nobody, progress=progress)
        assert len(found.k) == 0
    assert evaluator.scores(nobody).shape == (0, 2)
    with pytest.raises(FairbitsError, match="at least one row"):
        Audit(bad_at(-1), Table(nobody), SCHEMA, input_format="codes")


LEVEL = Attribute(name="level", kind="category", labels=("1", "2", "3+"))


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([1, 2], [0, 1]),
        ([1, 1], [0, 0]),  # as codes these would be the label "2"
        ([2.0, 1.0], [1, 0]),
        (["1", "3+"], [0, 2]),
    ],
)
def test_the_schema_says_whether_numbers_are_labels(values: list, codes: list[int]) -> None:
    found = table_from_arrow(pa.table({"level": values}), Schema((LEVEL,)))
    assert found.codes[:, 0].tolist() == codes


def test_numbers_that_are_no_labels_are_not_taken_for_codes() -> None:
    with pytest.raises(TableError, match="holds '0' in row 1, which is none"):
        table_from_arrow(pa.table({"level": [0, 1]}), Schema((LEVEL,)))
    whole = Attribute(name="level", kind="category", labels=("1.0", "2.5"))
    found = table_from_arrow(pa.table({"level": [2.5, 1.0]}), Schema((whole,)))
    assert found.codes[:, 0].tolist() == [1, 0]
