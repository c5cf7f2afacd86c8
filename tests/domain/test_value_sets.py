"""Value sets, ranges, immutable attributes and one-hot groups, in attributes, files and tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import tomlkit

from fairbits import Attribute, Schema
from fairbits.domain import Decoder, Encoding, Twins
from fairbits.domain.reading import one_hot_groups
from fairbits.domain.schema import coarsened
from fairbits.domain.table import table_from_arrow
from fairbits.errors import SchemaError, TableError
from fairbits.subject.export import document_of_schema
from fairbits.subject.infer import infer_schema
from fairbits.subject.toml import attribute_of_section, schema_of_document

THAL = Attribute(name="thal", kind="integer", low=3, high=7, allowed=(7, 3, 6))
AGE = Attribute(name="age", kind="integer", low=17, high=90, ranges=(("young", 21), ("old", 70)), protected=True)
JOB = Attribute(name="job", kind="category", labels=("Sales", "Tech"), columns=("job_Sales", "job_Tech"))
HOME = Attribute(name="home", kind="category", labels=("a", "b", "c"), allowed=(0, 2), immutable=True)


def test_only_allowed_codes_are_values() -> None:
    assert THAL.values().tolist() == [3, 6, 7]
    assert THAL.valid(np.array([3, 4, 5, 6, 7, np.nan])).tolist() == [True, False, False, True, True, False]
    assert THAL.clip(np.array([1, 4, 5, 9])).tolist() == [3, 3, 6, 7]
    with pytest.raises(SchemaError, match="takes 3, 6, 7, but got 4"):
        THAL.code_of("4")
    with pytest.raises(SchemaError, match="its values name 9"):
        Attribute(name="a", kind="integer", high=3, allowed=(1, 9))


def test_ranges_are_what_twins_take() -> None:
    schema = Schema((AGE, THAL))
    twins = Twins(schema)
    assert twins.values.ravel().tolist() == [21, 70]
    assert twins.labels == ("young", "old")
    assert twins.index_of(np.array([[17.0, 3], [45.0, 3], [46.0, 3], [90.0, 3]])).tolist() == [0, 0, 1, 1]
    with pytest.raises(SchemaError, match="must rise"):
        Attribute(name="a", kind="integer", high=9, ranges=(("x", 5), ("y", 5)))
    with pytest.raises(SchemaError, match=r"range 'x' .* stands at 12"):
        Attribute(name="a", kind="integer", high=9, ranges=(("x", 12),))


def test_everything_survives_the_file() -> None:
    schema = Schema(
        (THAL, AGE, JOB, HOME),
        target="t",
        classes=("a", "b", "c"),
        rules=('age < 30 -> job != "Tech"', "thal >= 3"),
        scores="vector",
        max_twins=7,
    )
    assert schema_of_document(tomlkit.parse(tomlkit.dumps(document_of_schema(schema))).unwrap()) == schema
    assert schema.movable_columns == (0, 2)
    assert schema.free_columns == (0, 2, 3)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"kind": "category", "labels": ["x"], "values": ["y"]}, "has no value 'y'"),
        ({"kind": "integer", "high": 9, "values": []}, "values = .*nobody could have one"),
        ({"kind": "integer", "high": 9, "values": 3}, "must be a list"),
        ({"kind": "integer", "high": 9, "ranges": 3}, "write them like"),
        ({"kind": "integer", "high": 9, "immutable": "yes"}, "use true or false"),
        ({"kind": "category", "labels": ["x", "y"], "columns": ["c"]}, "1 columns for 2 labels"),
    ],
)
def test_slips_in_a_section_are_named(fields: dict, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        schema_of_document({"attributes": {"a": fields}})
    for rules, words in (("x", "must be a list"), ([1], "texts in quotes")):
        with pytest.raises(SchemaError, match=words):
            schema_of_document({"rules": rules, "attributes": {"a": {"kind": "integer", "high": 1}}})


def encoded_table() -> pa.Table:
    return pa.table(
        {
            "age": [20, 30, 40],
            "job_Sales": [1, 0, 0],
            "flag_a": [1, 1, 0],  # not a group: the rows do not sum to 1
            "job_Tech": [False, True, True],
            "flag_b": [1, 0, 0],
            "marital_status_single": [1.0, 0.0, 1.0],
            "marital_status_married": [0.0, 1.0, 0.0],
            "y": [0, 1, 1],
        }
    )


def test_one_hot_groups_are_found_and_read_as_one_attribute() -> None:
    data = encoded_table()
    groups = one_hot_groups(data, leave_out=("y",))
    assert [(g.name, g.labels) for g in groups] == [
        ("job", ("Sales", "Tech")),
        ("marital_status", ("single", "married")),
    ]
    schema = infer_schema(data, target="y", protected=["job"], groups=groups)
    assert schema.names == ("age", "job", "flag_a", "flag_b", "marital_status")
    table = table_from_arrow(data, schema)
    assert table.codes[:, 1].tolist() == [0, 1, 1]
    encoding = Encoding.of_columns(schema, data.column_names)
    inputs = np.column_stack([data[n].cast(pa.float64()).to_numpy() for n in data.column_names if n != "y"])
    np.testing.assert_array_equal(encoding.encode(table.codes), inputs)
    with pytest.raises(TableError, match=r"'job' must hold one 1 .* 1 rows do not \(first: row 2"):
        table_from_arrow(data.set_column(1, "job_Sales", pa.array([1, 1, 0])), schema)


def dropped_table(rng: np.random.Generator, n: int = 120) -> pa.Table:
    job, flags = rng.integers(0, 4, n), rng.integers(0, 2, (2, n))
    columns = {f"job_{name}": (job == i + 1).astype(int) for i, name in enumerate(("Care", "Sales", "Tech"))}
    return pa.table({"age": rng.integers(1, 9, n), **columns, "has_car": flags[0], "has_dog": flags[1]})


def test_a_dropped_value_is_zero_in_all_columns(rng: np.random.Generator) -> None:
    data = dropped_table(rng)
    groups = one_hot_groups(data)
    assert [(g.name, g.labels, g.columns) for g in groups] == [
        ("job", ("(dropped)", "Care", "Sales", "Tech"), ("", "job_Care", "job_Sales", "job_Tech"))
    ]
    schema = infer_schema(data, protected=["job"], groups=groups)
    assert schema.names == ("age", "job", "has_car", "has_dog")
    assert Twins(schema).m == 4
    again = schema_of_document(tomlkit.parse(tomlkit.dumps(document_of_schema(schema))))
    assert again == schema
    table = table_from_arrow(data, schema)
    inputs = np.column_stack([data[n].to_numpy() for n in data.column_names])
    for encoding in (Encoding.of_columns(schema, data.column_names), Encoding.fitting(schema, inputs.shape[1])):
        np.testing.assert_array_equal(encoding.encode(table.codes), inputs)
        twins = encoding.encode_twins(table.codes[:5], Twins(schema))[:, :, 1:4]
        assert set(map(tuple, twins.reshape(-1, 3).tolist())) == {(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)}
    np.testing.assert_array_equal(Decoder(schema).array(table.codes), inputs)
    ones = pa.array(np.ones(120, int))
    doubled = data.set_column(1, "job_Care", ones).set_column(2, "job_Sales", ones)
    with pytest.raises(TableError, match=r"'job' must hold at most one 1 .* 120 rows do not"):
        table_from_arrow(doubled, schema)


def test_few_rows_that_never_meet_are_no_group(rng: np.random.Generator) -> None:
    """Two rare flags may miss each other by accident: nothing is made of it."""
    flags = np.zeros((2, 100), dtype=int)
    flags[0, :5], flags[1, 5:10] = 1, 1
    assert one_hot_groups(pa.table({"has_car": flags[0], "has_dog": flags[1]})) == []


def test_a_declared_group_may_lack_one_column() -> None:
    sex = attribute_of_section("sex", {"kind": "category", "labels": ["F", "M"], "columns": ["", "sex_M"]})
    table = table_from_arrow(pa.table({"sex_M": [True, False]}), Schema((sex,)))
    assert table.codes[:, 0].tolist() == [1, 0]
    for columns, complaint in (
        (["", ""], "one at most may be"),
        (["sex_M"], '"" for a value whose column was dropped'),
    ):
        with pytest.raises(SchemaError, match=complaint):
            attribute_of_section("sex", {"kind": "category", "labels": ["F", "M"], "columns": columns})


@pytest.mark.parametrize(
    "values",
    [1.6e9 + np.arange(60) + 0.5, 100_000 + np.arange(60) % 3 / 10, np.append(100_000 + np.arange(59) / 10, 1e9)],
)
def test_ranges_of_numbers_that_differ_late_have_names_of_their_own(values: np.ndarray) -> None:
    income = Attribute(name="income", kind="real", low=values.min(), high=values.max(), protected=True)
    cut = coarsened(Schema((income,)), {"income": values}, max_twins=100)["income"]
    assert len({name for name, _ in cut.ranges}) == len(cut.ranges) > 2
    if values.max() < 1e9:
        assert len({cut.read(code) for _, code in cut.ranges}) == len(cut.ranges)


def test_protected_numbers_get_ranges_within_the_limit(rng: np.random.Generator) -> None:
    ages = rng.integers(17, 91, 500).astype(np.float64)
    sex = Attribute(name="sex", kind="category", labels=("F", "M"), protected=True)
    schema = Schema((Attribute(name="age", kind="integer", low=17, high=90, protected=True), sex))
    assert Twins(coarsened(schema, {"age": ages}, max_twins=1000)).m == 12
    few = coarsened(schema, {"age": ages}, max_twins=5)
    assert Twins(few).m == 4
    for name, code in few["age"].ranges:
        low, high = map(float, name.split("–"))
        assert low <= code <= high
    with pytest.raises(SchemaError, match=r"4 combinations \(age 2 × sex 2\), more than 3; .*raise max_twins"):
        coarsened(schema, {"age": ages}, max_twins=3)
