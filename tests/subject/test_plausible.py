"""Plausible twins: what `init` proposes, what the rules say, and the figures among plausible twins."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairbits import Attribute, Audit, Schema, load_subject
from fairbits.audit import draft_subject
from fairbits.data.registry import BUILT_IN, load_table
from fairbits.domain import Rule
from fairbits.errors import SchemaError
from fairbits.subject.draft import proposed_rules

AGE = Attribute(
    name="age", kind="integer", low=17, high=79, protected=True, ranges=(("young", 20), ("old", 60)), cuts=(30,)
)
SEX = Attribute(name="sex", kind="category", labels=("F", "M"), protected=True)
JOB = Attribute(name='job in "it"', kind="category", labels=('a "b"', "b\\", "c"))
SCHEMA = Schema((AGE, SEX, JOB))


def drawn(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.column_stack(
        [rng.integers(17, 80, n), rng.integers(0, 2, n), rng.choice(3, n, p=[0.1, 0.2, 0.7])]
    ).astype(float)


def test_independent_columns_give_no_proposal() -> None:
    rng = np.random.default_rng(0)
    claimed = [bool(proposed_rules(SCHEMA, drawn(rng, n))) for n in (60, 200, 1000, 5000) for _ in range(50)]
    assert np.mean(claimed) <= 0.05


def test_what_never_meets_is_proposed_with_its_evidence() -> None:
    codes = drawn(np.random.default_rng(1), 3000)
    codes[codes[:, 2] == 0, 1] = 1  # the first job has men only, but for one row
    codes[np.flatnonzero(codes[:, 2] == 0)[0], 1] = 0
    codes[(codes[:, 2] == 1), 0] = 20  # the second the young only
    found = proposed_rules(SCHEMA, codes)
    assert [one.text for one in found] == [
        '`job in "it"` = "b\\\\" -> age < 30',
        '`job in "it"` = "a \\"b\\"" -> sex = "M"',
    ]
    assert found[1].evidence.startswith("1 row breaks it; ")
    for one in found:
        assert (~Rule.of(one.text, SCHEMA.attributes).holds(codes)).sum() == one.rows


def test_a_value_of_ones_own() -> None:
    rule = Rule.of("age >= own age - 1 and age <= own age + 1", SCHEMA.attributes, own=True)
    assert rule.holds(drawn(np.random.default_rng(0), 5)).all()
    with pytest.raises(SchemaError, match="move the rule from rules to plausible"):
        replace(SCHEMA, rules=("sex = own sex",))
    assert [rule.program for rule in replace(SCHEMA, plausible=("sex = own sex",)).plausible] == [
        ["=", ["column", 1], ["own", 1]]
    ]


def test_figures_among_plausible_twins_counted_by_hand() -> None:
    subject = load_subject("german")
    found = Audit.of(subject).measure(threads=1)
    codes = subject.table.codes
    sex, age = (subject.schema.column(name) for name in ("sex", "age"))
    counts = pd.Series(list(zip(codes[:, sex], codes[:, age], strict=True))).value_counts()
    decided = {"all": [], "sex": [], "age": []}
    for values in counts.index[counts >= 10]:
        twins = codes.copy()
        twins[:, [sex, age]] = values
        favoured = np.asarray(subject.model.scores(subject.encoding.encode(twins)) >= 0.5, float)
        near, same = abs(values[1] - codes[:, age]) <= 1, codes == twins
        masks = {"all": near, "sex": near & same[:, age], "age": near & same[:, sex]}
        for name, mask in masks.items():
            decided[name].append(np.where(mask, 1 + favoured, 0))
    flips = {name: (np.array(one) == 1).any(axis=0) & (np.array(one) == 2).any(axis=0) for name, one in decided.items()}
    assert found.flip_rate_plausible.value == pytest.approx(flips["all"].mean())
    assert {name: rate.value for name, rate in found.flip_rate_plausible_by.items()} == pytest.approx(
        {name: flips[name].mean() for name in ("sex", "age")}
    )
    assert found.flip_rate.value > found.flip_rate_supported.value > found.flip_rate_plausible.value > 0
    assert found.summary()["plausible"] == ["age >= own age - 1 and age <= own age + 1"]


@pytest.mark.parametrize("name", [name for name, one in BUILT_IN.items() if one.ships])
def test_built_in_rules_are_broken_by_hardly_anybody(name: str) -> None:
    codes = load_table(name).codes
    for rule in BUILT_IN[name].schema.plausible:
        assert (~rule.holds(codes)).mean() < 0.002, rule.text


def test_init_writes_the_rules_it_proposes(tmp_path) -> None:
    rng = np.random.default_rng(2)
    sex, age = rng.choice(["female", "male"], 600), rng.integers(18, 80, 600)
    role = np.where(rng.random(600) < 0.5, np.where(sex == "male", "husband", "wife's"), "single")
    table = pd.DataFrame({"sex": sex, "age": age, "role": role, "paid": rng.choice(["no", "yes"], 600)})
    table.to_csv(tmp_path / "people.csv", index=False)
    out = tmp_path / "subject.toml"
    draft_subject(tmp_path / "people.csv", target="paid", protected=["sex", "age"], out=out)
    text = out.read_text(encoding="utf-8")
    assert set(tomllib.loads(text)["plausible"]) == {
        'role = "husband" -> sex = "male"',
        'role = "wife\'s" -> sex = "female"',
    }
    assert text.count("# no row breaks it; ") == 2
    assert '"age >= own age - 10 and age <= own age + 10"' in text
