"""The rule language: what it reads, what it refuses, and that arrays answer as a slow reader would."""

from __future__ import annotations

import contextlib
import operator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbits import Attribute, Schema
from fairbits.domain import Rule, Twins
from fairbits.domain.twins import Validity, check_rules
from fairbits.errors import SchemaError

AGE = Attribute(name="age", kind="integer", low=10, high=15, protected=True)
BAND = Attribute(name="band", kind="integer", low=1, high=3, labels=("low", "mid", "high"))
JOB = Attribute(name="job", kind="category", labels=("Sales", "Tech", "7"))
SEX = Attribute(name="sex", kind="category", labels=("F", "M"), protected=True)
PAY = Attribute(name="pay per hour", kind="real", low=-2.0, high=2.0)
SCHEMA = Schema((AGE, BAND, JOB, SEX, PAY))

# --- rules at random: (text, what it means for one person), truths over comparisons over sums -----------------------
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
SIGNS = {
    **{"=": operator.eq, "!=": operator.ne, "<": operator.lt},
    **{"<=": operator.le, ">": operator.gt, ">=": operator.ge},
}
JOINS = {"and": lambda a, b: a and b, "or": lambda a, b: a or b, "->": lambda a, b: not a or b}
NAMES = {"age": "age", "band": "band", "pay per hour": "`pay per hour`"}


def number(value: float):
    return f"{value:g}", lambda _person: value


def name(attribute: str):
    return NAMES[attribute], lambda person: person[SCHEMA.column(attribute)]


def joined(table, word, left, right):
    return f"({left[0]}) {word} ({right[0]})", lambda person: table[word](left[1](person), right[1](person))


def labelled(sign, attribute, label):
    column, code = SCHEMA.column(attribute), SCHEMA[attribute].code_of(label)
    return f'{attribute} {sign} "{label}"', lambda person: SIGNS[sign](person[column], code)


def among(left, values):
    return f"({left[0]}) in {{{', '.join(f'{v:g}' for v in values)}}}", lambda person: left[1](person) in values


def opposite(inner):
    return f"not ({inner[0]})", lambda person: not inner[1](person)


def negative(inner):
    return f"-({inner[0]})", lambda person: -inner[1](person)


numbers = st.integers(0, 20).map(float) | st.sampled_from([0.5, 1.25])
values = st.recursive(
    numbers.map(number) | st.sampled_from(sorted(NAMES)).map(name),
    lambda inner: (
        st.builds(negative, inner)
        | st.builds(joined, st.just(OPERATIONS), st.sampled_from(sorted(OPERATIONS)), inner, inner)
    ),
    max_leaves=5,
)
signs = st.sampled_from(sorted(SIGNS))
comparisons = (
    st.builds(joined, st.just(SIGNS), signs, values, values)
    | st.builds(labelled, st.sampled_from(["=", "!="]), st.just("job"), st.sampled_from(JOB.labels))
    | st.builds(labelled, signs, st.just("band"), st.sampled_from(BAND.labels))
    | st.builds(among, values, st.lists(numbers, min_size=1, max_size=3))
)
truths = st.recursive(
    comparisons,
    lambda inner: (
        st.builds(opposite, inner) | st.builds(joined, st.just(JOINS), st.sampled_from(sorted(JOINS)), inner, inner)
    ),
    max_leaves=6,
)
people = st.tuples(
    st.integers(10, 15),
    st.integers(1, 3),
    st.integers(0, 2),
    st.integers(0, 1),
    st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.25, 2.0]),
)


@given(truths, st.lists(people, min_size=1, max_size=20))
def test_arrays_answer_as_a_slow_reader_would(rule, group) -> None:
    text, slow = rule
    codes = np.array(group, dtype=np.float64)
    if not any(one in text for one in ("age", "band", "pay", "job")):
        with pytest.raises(SchemaError, match="mentions no attribute"):
            Rule.of(text, SCHEMA.attributes)
        return
    assert Rule.of(text, SCHEMA.attributes).holds(codes).tolist() == [slow(person) for person in group]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("age < 12 -> band = 1 -> age = 10", "age < 12 -> (band = 1 -> age = 10)"),
        ("band = 1 or age = 10 -> age > 11 and band = 2", "(band = 1 or age = 10) -> (age > 11 and band = 2)"),
        ("not age = 10 AND band = 1", "(not (age = 10)) and band = 1"),
        ("age - 1 - band * 2 <= -1 * -3", "((age - 1) - (band * 2)) <= ((-1) * (-3))"),
        ("age not in {10, 11}", "not (age in {10, 11})"),
        ("age == 010", "age = 10"),
    ],
)
def test_operators_bind_as_they_read(text: str, same: str) -> None:
    assert Rule.of(text, SCHEMA.attributes).program == Rule.of(same, SCHEMA.attributes).program


def test_names_may_be_words_of_python_or_need_backticks() -> None:
    schema = Schema(tuple(Attribute(name=n, kind="integer", high=3) for n in ("class", "lambda", "a`b", "ﬁne")))
    rule = Rule.of(r"class < 2 -> lambda + `a\`b` = ﬁne", schema.attributes)
    assert rule.columns == (0, 1, 2, 3)
    assert rule.holds(np.array([[1.0, 1, 2, 3], [1, 1, 2, 2]])).tolist() == [True, False]


@given(st.lists(truths, min_size=1, max_size=3), st.lists(people, min_size=1, max_size=8), st.data())
@settings(deadline=None)
def test_twins_keep_the_rules_or_are_real(rules, group, data) -> None:
    texts = tuple(text for text, _ in rules if any(one in text for one in ("age", "band", "pay", "job")))
    schema = replace(SCHEMA, rules=texts)
    twins, codes = Twins(schema), np.array(group, dtype=np.float64)
    rows = codes[: data.draw(st.integers(0, len(group)))]
    validity = Validity(schema, twins, rows)
    about_twins = [r for r in schema.rules if set(r.columns) & set(schema.protected_columns)]
    about_people = [r for r in schema.rules if r not in about_twins]
    expanded = twins.expand(codes)
    real = {row.tobytes() for row in rows}
    real_people = {row[list(schema.free_columns)].tobytes() for row in rows}
    for i, person in enumerate(expanded):
        expected = [all(rule.holds(twin[None])[0] for rule in about_twins) or twin.tobytes() in real for twin in person]
        assert validity.twins(codes)[i].tolist() == expected
        kept = all(rule.holds(codes[i : i + 1])[0] for rule in about_people)
        known = codes[i][list(schema.free_columns)].tobytes() in real_people
        assert validity.people(codes)[i] == ((kept or known) and any(expected))


@given(st.text(alphabet="ageband job`\"'{}()<>=!-+*,.0123 \\ünotinor\n", max_size=40))
def test_no_text_gets_more_than_a_sentence(text: str) -> None:
    with contextlib.suppress(SchemaError):
        assert Rule.of(text, SCHEMA.attributes).text == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("agee < 3", "character 1: there is no attribute 'agee'; .* Did you mean 'age'"),
        ('job = "Tch"', "character 7: attribute 'job' has no label 'Tch'; .* Did you mean 'Tech'"),
        ('job < "Tech"', "has no order"),
        ('age = "old"', "has no labels; compare it with a number"),
        ("job + 1 = 2", "cannot be calculated with"),
        ("job = sex", "different labels"),
        ("job = age", "can only be compared with its labels"),
        ("job = 3", "no label '3'"),
        ("10 < age < 12", "character 12: comparisons cannot be chained"),
        ("age => 3", "use -> for"),
        ("age < 3 && age > 1", "use and"),
        ("(age < 3", r"character 1: .*'\(' was never closed"),
        ("age < < 3", "character 7: this cannot be read"),
        ("age", "must be true or false"),
        ("age and band = 1", "character 1: a rule must be true or false"),
        ("(age < 3) + 1 = 2", "a value should be here"),
        ("age in {}", "comes a set of values"),
        ("age in {band}", "a set holds numbers and labels"),
        ('job = "Tech', "has no end"),
        ("not " * 300 + "age = 1", "more than .* 200 operators"),
        ("(" * 300 + "age = 1" + ")" * 300, "cannot be read: too many nested"),
        ("age in {" + "1, " * 9_999 + "1}", "more than 20,000 letters"),
        (" or ".join(["age = 1"] * 300), "200 operators"),
        ("", "the rule is empty"),
        ("1 = 1", "mentions no attribute"),
        ("age = 1e999", "too large"),
        ("__import__('os')", "must be true or false"),
        ("age.real = 1", "'.' means nothing here"),
        ("(lambda: age)() = 1", "':' means nothing here"),
        ("age(1) = 1", "a value should be here"),
        ("(age, 1) = 1", "a value should be here"),
        ("{*job} = 1", "a value should be here"),
        ('job = "Te" "ch"', "cannot be read"),
    ],
)
def test_a_slip_is_named_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        Schema(SCHEMA.attributes, rules=(text,))


def test_labels_codes_and_numbers_that_are_labels() -> None:
    codes = np.array([[12.0, 2.0, 2.0, 1.0, 0.5]])
    for text in ('band = "mid"', "band = 2", 'band < "high"', "job = 7", '`pay per hour` = 0.5 and sex in {"M"}'):
        assert Rule.of(text, SCHEMA.attributes).holds(codes).all(), text


def test_rules_that_leave_nobody_are_refused() -> None:
    rows = np.array([[12.0, 2.0, 1.0, 1.0, 0.5]])
    contradiction = replace(SCHEMA, rules=("age > 12", "band = 2 and age < 12"))
    with pytest.raises(SchemaError, match="leave no value of attribute 'age': 'age > 12' and 'band = 2 and age < 12'"):
        check_rules(contradiction, rows)
    linked = replace(SCHEMA, rules=("age < band", "band > 0"))
    with pytest.raises(SchemaError, match=r"none of 50,000 people .* excludes most is 'age < band' \(100.0 %"):
        check_rules(linked, rows)
    assert check_rules(replace(SCHEMA, rules=("age >= 13",)), rows) == (
        "1 of the 1 rows break the rule; they are kept, because real people are real.",
    )
