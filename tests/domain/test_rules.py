"""The rule language: what it reads, what it refuses, and that arrays answer as a slow reader would."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbits import Attribute, Schema
from fairbits.domain import Rule, Twins
from fairbits.domain.rules import tree as syntax
from fairbits.domain.rules.grammar import parse
from fairbits.domain.rules.validity import Validity, check_rules
from fairbits.errors import SchemaError

AGE = Attribute(name="age", kind="integer", low=10, high=15, protected=True)
BAND = Attribute(name="band", kind="integer", low=1, high=3, labels=("low", "mid", "high"))
JOB = Attribute(name="job", kind="category", labels=("Sales", "Tech", "7"))
SEX = Attribute(name="sex", kind="category", labels=("F", "M"), protected=True)
PAY = Attribute(name="pay per hour", kind="real", low=-2.0, high=2.0)
SCHEMA = Schema((AGE, BAND, JOB, SEX, PAY))

# --- trees at random: truths over comparisons over sums ------------------------------------------------------------
numbers = st.builds(syntax.NumberLiteral, st.integers(0, 20).map(float) | st.sampled_from([0.5, 1.25]))
numeric_names = st.sampled_from(["age", "band", "pay per hour"]).map(syntax.Name)
values = st.recursive(
    numbers | numeric_names,
    lambda inner: (
        st.builds(syntax.Negative, inner) | st.builds(syntax.Arithmetic, st.sampled_from(["+", "-", "*"]), inner, inner)
    ),
    max_leaves=5,
)
signs = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
labels = st.sampled_from(JOB.labels).map(syntax.Text)
comparisons = (
    st.builds(syntax.Compare, signs, values, values)
    | st.builds(syntax.Compare, st.sampled_from(["=", "!="]), st.just(syntax.Name("job")), labels)
    | st.builds(syntax.Compare, signs, st.just(syntax.Name("band")), st.sampled_from(BAND.labels).map(syntax.Text))
    | st.builds(syntax.Among, st.just(syntax.Name("job")), st.lists(labels, min_size=1, max_size=3).map(tuple))
    | st.builds(syntax.Among, values, st.lists(numbers, min_size=1, max_size=3).map(tuple))
)
truths = st.recursive(
    comparisons,
    lambda inner: (
        st.builds(syntax.Not, inner) | st.builds(syntax.Join, st.sampled_from(["and", "or", "->"]), inner, inner)
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


def slow(node, person):  # noqa: PLR0911 - one for each kind of node
    """What a rule means, one person and one node at a time, from the tree as it was written."""
    match node:
        case syntax.NumberLiteral(value):
            return value
        case syntax.Name(name):
            code = person[SCHEMA.column(name)]
            return JOB.labels[int(code)] if name == "job" else code
        case syntax.Negative(operand):
            return -slow(operand, person)
        case syntax.Arithmetic(word, left, right):
            one, two = slow(left, person), slow(right, person)
            return {"+": one + two, "-": one - two, "*": one * two}[word]
        case syntax.Not(operand):
            return not slow(operand, person)
        case syntax.Among(operand, among):
            return slow(operand, person) in [v.value for v in among]
        case syntax.Join("->", left, right):
            return not slow(left, person) or slow(right, person)
        case syntax.Join(word, left, right):
            pair = slow(left, person), slow(right, person)
            return all(pair) if word == "and" else any(pair)
        case syntax.Compare(sign, left, right):
            one = slow(left, person)
            is_label = isinstance(right, syntax.Text)
            label = right.value if is_label else None
            two = label if one in JOB.labels else BAND.code_of(label) if is_label else slow(right, person)
            if sign in ("=", "!="):
                return (one == two) == (sign == "=")
            return {"<": one < two, "<=": one <= two, ">": one > two, ">=": one >= two}[sign]
    raise AssertionError(node)


@given(truths)
def test_what_is_written_is_read_back(tree) -> None:
    assert parse(syntax.write(tree)) == tree


@given(truths, st.lists(people, min_size=1, max_size=20))
def test_arrays_answer_as_a_slow_reader_would(tree, group) -> None:
    codes = np.array(group, dtype=np.float64)
    expected = [slow(tree, person) for person in group]
    text = syntax.write(tree)
    if not syntax.names_in(tree):
        with pytest.raises(SchemaError, match="mentions no attribute"):
            Rule.of(text, SCHEMA.attributes)
        return
    assert Rule.of(text, SCHEMA.attributes).holds(codes).tolist() == expected


@given(st.lists(truths, min_size=1, max_size=3), st.lists(people, min_size=1, max_size=8), st.data())
@settings(deadline=None)
def test_twins_keep_the_rules_or_are_real(trees, group, data) -> None:
    texts = tuple(syntax.write(tree) for tree in trees if syntax.names_in(tree))
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
        ("10 < age < 12", "character 10: comparisons cannot be chained"),
        ("age => 3", "use -> for"),
        ("age < 3 && age > 1", "use and"),
        ("(age < 3", r"where the '\)' for the '\(' at character 1 should be"),
        ("age", "must be true or false"),
        ("age and band = 1", "'and' needs a comparison on this side"),
        ("(age < 3) + 1 = 2", "needs a value on this side"),
        ("age in {}", "a number or a label in quotes"),
        ('job = "Tech', "has no end"),
        ("not " * 60 + "age = 1", "nested more than 50 deep"),
        (" or ".join(["age = 1"] * 300), "more than 200 operators"),
        ("", "the rule ends where"),
        ("1 = 1", "mentions no attribute"),
        ("age = 1e999", "too large"),
        ("__import__('os')", "an operator or the end"),
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
    with pytest.raises(SchemaError, match=r"none of 50,000 people .* excludes most is 'age < band' \(100.0%"):
        check_rules(linked, rows)
    assert check_rules(replace(SCHEMA, rules=("age >= 13",)), rows) == (
        "1 of the 1 rows break the rule; they are kept, because real people are real.",
    )
