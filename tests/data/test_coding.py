"""The codings against the paper's own tables, and what every shipped table must hold."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from fairbits.data import BUILT_IN, load_table
from fairbits.data.coding import added, meps, shipped
from fairbits.data.coding.raw import bin_labels, equal_bins, range_labels, read_text, whole_bin_labels
from fairbits.domain import Encoding, Twins
from fairbits.domain.table import check_domain
from fairbits.errors import TableError
from tools.coding import census, default, german
from tools.tables import BUILDERS

#: name: (rows, attributes, inputs of the network, m); the paper's 13,636 rows of default are 30,000 in its files.
EXPECTED = {
    "census": (32_561 + 16_281, 13, 13, 90),
    "compas": (7_214, 12, 12, 12),
    "compas-noleak": (7_214, 10, 10, 12),
    "german": (1_000, 20, 20, 16),
    "german-600": (600, 20, 20, 16),
    "default": (30_000, 23, 23, 12),
    "heart": (297, 13, 13, 14),
    "bank": (45_211, 16, 16, 9),
    "diabetes": (768, 8, 8, 9),
    "students": (1_044, 32, 32, 16),
    "meps15": (15_830, 41, 137, 36),
    "meps15-synthetic": (15_830, 41, 137, 36),
    "meps16": (15_675, 41, 137, 36),
    "meps16-synthetic": (15_675, 41, 137, 36),
}
#: Share of label 1 in the tables that ship.
LABEL_RATE = {
    "census": 0.2393,
    "german": 0.7,
    "german-600": 0.5,
    "default": 0.2212,
    "heart": 0.2795,
    "bank": 0.1170,
    "students": 0.7797,
}
SHIPPED = sorted(name for name, subject in BUILT_IN.items() if subject.ships)


def test_every_subject_has_an_expectation() -> None:
    assert set(EXPECTED) == set(BUILT_IN)


@pytest.mark.parametrize("name", EXPECTED)
def test_size_matches_the_paper(name: str) -> None:
    subject = BUILT_IN[name]
    rows, attributes, inputs, m = EXPECTED[name]
    encoding = Encoding.one_hot(subject.schema) if subject.one_hot else Encoding.identity(subject.schema)
    assert (subject.rows, len(subject.schema), encoding.width, Twins(subject.schema).m) == (rows, attributes, inputs, m)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_table_holds_its_domain_and_reads_back(name: str) -> None:
    subject, table = BUILT_IN[name], load_table(name)
    assert table.codes.shape == (subject.rows, len(subject.schema))
    check_domain(table.codes, subject.schema)
    assert table.labels is not None
    assert set(np.unique(table.labels)) == {0.0, 1.0}
    for row in table.codes[:: max(1, len(table) // 50)]:
        assert np.array_equal(subject.schema.codes_of(subject.schema.read(row)), row)


@pytest.mark.parametrize("name", LABEL_RATE)
def test_label_rate(name: str) -> None:
    labels = load_table(name).labels
    assert labels is not None
    assert labels.mean() == pytest.approx(LABEL_RATE[name], abs=5e-5)


@pytest.mark.parametrize("name", BUILDERS)
def test_shipped_tables_are_what_the_raw_files_give(shared: Path, name: str) -> None:
    builder, _ = BUILDERS[name]
    made, table = builder(shared / "data"), load_table(name)
    assert np.array_equal(made.codes, table.codes)
    assert np.array_equal(made.labels, table.labels)
    assert np.array_equal(made.held_out, table.held_out)


def _reference(shared: Path, name: str) -> np.ndarray:
    return np.loadtxt(shared / "reference" / name / "table.csv", delimiter=",", skiprows=1)


def test_census_agrees_with_the_paper_in_every_cell(shared: Path) -> None:
    coded = census.code(census.read(shared / "data" / "adult" / "adult.data"))
    ours = np.column_stack([coded.codes, coded.labels])
    for column in ("workclass", "occupation", "native_country"):
        i = shipped.CENSUS.column(column)
        ours[ours[:, i] == shipped.CENSUS[column].upper, i] = 100  # how the paper's file writes "?"
    assert np.array_equal(ours, _reference(shared, "census"))


def test_compas_agrees_with_the_paper_in_every_cell(shared: Path) -> None:
    coded = added.code_compas(read_text(shared / "data" / "compas" / "compas-scores-two-years.csv"))
    assert np.array_equal(np.column_stack([coded.codes, coded.labels]), _reference(shared, "compas"))


def test_german_agrees_with_the_paper_in_every_cell(shared: Path) -> None:
    coded = german.code(german.read(shared / "data" / "german" / "german.data"))
    rows = json.loads((shared / "data" / "german" / "rows_600.json").read_text())
    reference = _reference(shared, "german")
    assert np.array_equal(np.column_stack([coded.codes, coded.labels])[rows], reference)
    table = load_table("german-600")
    assert np.array_equal(np.column_stack([table.codes, table.labels]), reference)


def test_paper_domains_are_inside_ours(shared: Path) -> None:
    for name in ("census", "compas", "german"):
        with (shared / "reference" / name / "domain.csv").open(newline="") as file:
            for row, attribute in zip(csv.DictReader(file), BUILT_IN[name].schema.attributes, strict=True):
                assert (attribute.name, attribute.protected) == (row["name"], row["protected"] == "1")
                assert attribute.low <= int(row["low"]) <= int(row["high"]) <= attribute.upper


@pytest.mark.parametrize("name", ["meps15", "meps16"])
def test_meps_rows_of_development(shared: Path, name: str) -> None:
    file = next((shared / "data" / name).glob("*.csv"))
    year = meps.YEARS[name]
    numbers = meps.read_csv(file)
    assert len(meps.code(numbers, year)) == year.rows
    assert (numbers["PCS42"].min(), numbers["PCS42"].max()) == year.physical
    assert (numbers["MCS42"].min(), numbers["MCS42"].max()) == year.mental


def test_diabetes_of_development(shared: Path) -> None:
    raw = read_text(shared / "data" / "diabetes" / "diabetes.csv")
    coded = added.code_diabetes(raw)
    assert len(coded) == 768
    # The bins were made from the rows' own range, so each end is taken.
    assert (coded.codes.min(axis=0) == 1).all()
    assert (coded.codes.max(axis=0) == 9).all()
    for column, _, low, high, _ in added.DIABETES_COLUMNS.values():
        assert (raw[column].astype(float).min(), raw[column].astype(float).max()) == (low, high)


def test_census_coding_by_hand() -> None:
    fields = "99,?,1484705,Masters,14,Widowed,?,Husband,Black,Female,99999,4356,99,?,>50K."
    raw = {name: np.array([text]) for name, text in zip(census.RAW_COLUMNS, fields.split(","), strict=True)}
    coded = census.code(raw)
    assert coded.codes.tolist() == [[9, 8, 74, 10, 4, 14, 2, 4, 0, 99, 43, 99, 41]]
    assert coded.labels.tolist() == [1]
    person = shipped.CENSUS.read(coded.codes[0])
    assert (person["age"], person["workclass"], person["capital_loss"]) == ("90 and over", "unknown", "4,300–4,399")


def test_default_money_is_cut_towards_zero() -> None:
    raw = {name: np.array(["1", "1"]) for name in (*default.RAW_COLUMNS, "target")}
    raw |= {"AGE": np.array(["21", "79"]), "LIMIT_BAL": np.array(["10000", "1000000"])}
    raw |= {"BILL_AMT1": np.array(["-165580", "964511"]), "PAY_5": np.array(["0", "2"])}
    coded = default.code(raw)
    assert coded.codes[:, shipped.DEFAULT.column("limit_balance")].tolist() == [1, 100]
    assert coded.codes[:, shipped.DEFAULT.column("bill_september")].tolist() == [-16, 96]
    assert shipped.DEFAULT.read(coded.codes[0])["bill_september"] == "−169,999 to −160,000"
    assert [shipped.DEFAULT.read(row)["status_may"] for row in coded.codes] == [
        "revolving credit used (0)",
        "2 months late",
    ]


def test_a_strange_value_is_named() -> None:
    raw = {name: np.array(["1"]) for name in census.RAW_COLUMNS} | {"workclass": np.array(["Privat"])}
    with pytest.raises(TableError, match=r"'workclass' holds 'Privat'.*Did you mean 'Private'"):
        census.code(raw)


def test_a_number_that_is_none_is_named() -> None:
    raw = {name: np.array(["x"]) for name in census.RAW_COLUMNS}
    with pytest.raises(TableError, match=r"'age' holds 'x', which is not a number"):
        census.code(raw)


def test_ragged_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "ragged.csv"
    file.write_text("a,b\n1,2\n3\n")
    with pytest.raises(TableError, match=r"has 1 fields in data row 2, but 2 columns"):
        read_text(file)


def test_a_column_that_comes_twice_gets_a_number(tmp_path: Path) -> None:
    file = tmp_path / "twice.csv"
    file.write_text("a,b,a\n1,2,3\n")
    assert list(read_text(file)) == ["a", "b", "a.1"]


def test_bins_are_closed_on_the_right() -> None:
    values = np.array([21, 27, 28, 41, 42, 61, 81], dtype=float)
    assert equal_bins(values, 21, 81, 9).tolist() == [1, 1, 2, 3, 4, 6, 9]
    labels = whole_bin_labels(21, 81, 9)
    assert (labels[0], labels[2], labels[-1]) == ("21–27", "35–41", "75–81")
    assert bin_labels(-9, 72.07, 10)[:2] == ("−9.0 to −0.9", "over −0.9 to 7.2")
    assert range_labels(1000, 1, 3, top=True) == ("1,000–1,999", "2,000–2,999", "3,000 and over")
