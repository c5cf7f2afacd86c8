from __future__ import annotations

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from fairbits import Attribute, Schema
from fairbits.errors import SchemaError
from fairbits.subject.export import document_of_schema
from fairbits.subject.toml import schema_of_document

from ..conftest import random_people


def test_the_words_of_a_schema(people_schema: Schema) -> None:
    assert people_schema.protected == ("age", "sex")
    assert people_schema.protected_columns == (0, 3)
    assert people_schema.free_columns == (1, 2, 4)
    assert people_schema.favourable == "yes"
    assert people_schema.favourable_index == 1


def test_reading_a_person_and_back(people_schema: Schema, rng) -> None:
    for row in random_people(rng, people_schema, 20):
        row[2] = round(row[2], 3)  # a real attribute is read with six digits
        person = people_schema.read(row)
        assert people_schema.codes_of(person).tolist() == row.tolist()


ONE_SEX = Attribute(name="sex", kind="category", labels=("f",), protected=True)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"attributes": ()}, "at least one attribute"),
        ({"target": "age"}, "target 'age' is also an attribute"),
        ({"classes": ("yes",)}, "the single class 'yes'"),
        ({"favourable": "yse"}, "Did you mean 'yes'"),
        ({"classes": (), "favourable": "yes"}, "has no classes"),
        ({"attributes": (ONE_SEX,)}, "protected attribute 'sex' has the single value 'f', so it has no twins"),
    ],
)
def test_a_wrong_schema_is_refused(people_schema: Schema, change: dict, complaint: str) -> None:
    fields = {"attributes": people_schema.attributes, "target": "hired", "classes": ("no", "yes"), "favourable": None}
    with pytest.raises(SchemaError, match=complaint):
        Schema(**(fields | change))


def test_names_must_differ() -> None:
    twice = Attribute(name="a", kind="integer", high=1)
    with pytest.raises(SchemaError, match="'a' is listed twice"):
        Schema((twice, twice))


def test_other_protected_attributes(people_schema: Schema) -> None:
    assert people_schema.with_protected(["job"]).protected == ("job",)
    with pytest.raises(SchemaError, match=r"'gender' is not in the table; choose from: age, job, income, sex, hours\."):
        people_schema.with_protected(["gender"])


labels = st.lists(st.text(min_size=1, max_size=12), min_size=2, max_size=5, unique=True)


@given(name=st.text(min_size=1, max_size=20).filter(str.strip), labels=labels, classes=labels, low=st.integers(-50, 50))
def test_subject_files_keep_every_schema(name: str, labels: list[str], classes: list[str], low: int) -> None:
    schema = Schema(
        (
            Attribute(name=name, kind="category", labels=tuple(labels), protected=True),
            Attribute(name=name + "2", kind="integer", low=low, high=low + 7, step=2),
            Attribute(name=name + "3", kind="real", low=low / 7, high=abs(low) + 1.25),
        ),
        target=name + "4",
        classes=tuple(classes),
    )
    text = tomlkit.dumps(document_of_schema(schema))
    assert schema_of_document(tomlkit.parse(text).unwrap()) == schema


@pytest.mark.parametrize(
    ("attributes", "complaint"),
    [
        ({}, "no attributes"),
        ({"a": 3}, r"\[attributes\.a\] must be a section"),
        ({"a": {"kind": "integer", "hihg": 3}}, "Did you mean 'high'"),
        ({"a": {"kind": "integer", "high": "3"}}, "it must be a number"),
        ({"a": {"kind": "category", "labels": "x"}}, "must be a list"),
        ({"a": {"high": 3}}, "use integer, category or real"),
        ({"a": {"kind": "integer", "high": 3, "protected": "yes"}}, "use true or false"),
    ],
)
def test_slips_in_a_subject_file_are_named(attributes: dict, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        schema_of_document({"attributes": attributes})


def test_the_step_of_a_real_attribute_survives_a_file() -> None:
    from fairbits.subject.export import document_of_schema
    from fairbits.subject.toml import schema_of_document

    schema = Schema((Attribute(name="x", kind="real", low=0, high=5, step=1),))
    assert schema_of_document(document_of_schema(schema).unwrap()) == schema
