"""Who, in words: planted people are found with their conditions, and where there is no pattern it is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairbits import Attribute, Audit, Network, Schema, Table
from fairbits.debug.who import Description, _described, _value, describe_people, readable
from fairbits.domain import Rule, rule_name
from fairbits.measure import evaluator_of
from fairbits.subject import make_subject

SCHEMA = Schema(
    attributes=(
        Attribute(name="sex", kind="integer", low=0, high=1, protected=True),
        Attribute(name="skill", kind="integer", low=0, high=99),
        Attribute(name="job title", kind="category", labels=('the "boss"', "Tech", "Farm", "Sales")),
        Attribute(name="pay", kind="real", low=0, high=10),
        Attribute(name="school", kind="integer", low=1, high=4, labels=("none", "primary", "high", "college")),
    ),
    target="hired",
    classes=("no", "yes"),
)


def people(rng: np.random.Generator, rows: int) -> np.ndarray:
    columns = [rng.integers(0, 2, rows), rng.integers(0, 100, rows), rng.integers(0, 4, rows)]
    return np.column_stack([*columns, rng.random(rows) * 10, rng.integers(1, 5, rows)]).astype(np.float64)


def described(codes: np.ndarray, hits: np.ndarray, rng: np.random.Generator) -> Description:
    lots, nobody = rng.random(len(codes)), Description("flips", None, None)
    return _described(nobody, SCHEMA, Table(codes), hits, (lots < 0.5, lots < 0.25), None, rng)


def test_survey_weights_count(rng: np.random.Generator) -> None:
    codes, lots = people(rng, 2000), rng.random(2000)
    hits, weight = codes[:, 1] >= 70, np.where(codes[:, 1] >= 85, 5.0, 1.0)
    halves = (lots < 0.5, lots < 0.25)
    found = _described(Description("flips", None, None), SCHEMA, Table(codes, weight=weight), hits, halves, None, rng)
    assert found.base is not None
    assert found.together is not None
    judged = lots >= 0.5
    assert found.base.value == pytest.approx(np.average(hits[judged], weights=weight[judged]))
    told = Rule.of(found.together.text, SCHEMA.attributes).holds(codes[judged])
    assert found.together.share.value == pytest.approx(np.average(told, weights=weight[judged]))


@pytest.mark.parametrize(
    "planted",
    [
        "skill >= 70",
        "skill >= 30 and skill <= 60 and pay <= 5",
        '`job title` = "the \\"boss\\"" and school = "college"',
        '`job title` not in {"Tech", "Farm"} and pay >= 3',
        '(skill <= 20 and pay <= 5) or (skill >= 80 and school in {"none", "primary"})',
    ],
)
def test_planted_people_are_found(planted: str, rng: np.random.Generator) -> None:
    codes = people(rng, 6000)
    inside = Rule.of(planted, SCHEMA.attributes).holds(codes)
    hits = rng.random(len(codes)) < np.where(inside, 0.9, 0.05)
    found = described(codes, hits, rng)
    assert found.together is not None, found.why
    assert all(one.text.count(" and ") < 3 for one in found.rules)
    fresh = people(rng, 20_000)
    truth, told = (Rule.of(text, SCHEMA.attributes).holds(fresh) for text in (planted, found.together.text))
    assert (truth & told).sum() > 0.85 * (truth | told).sum(), found.together.text
    precision, coverage = found.together.precision, found.together.coverage
    expected = np.where(truth, 0.9, 0.05)
    assert precision.low - 0.02 <= expected[told].mean() <= precision.high + 0.02
    assert coverage.low - 0.02 <= expected[told].sum() / expected.sum() <= coverage.high + 0.02


def test_without_a_pattern_it_says_so() -> None:
    nothing = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        codes = people(rng, 400)
        found = described(codes, rng.random(400) < 0.3, rng)
        nothing += found.together is None and "better than the base rate" in found.why
    assert nothing >= 95


def test_people_of_a_network_and_the_rule_as_a_region(rng: np.random.Generator) -> None:
    codes = people(rng, 3000)
    # Twins part only above a skill of 60: ReLU(skill + 5 sex - 60), around a cut-off that everybody is close to.
    first = np.zeros((5, 1))
    first[[0, 1]] = [[5.0], [1.0]]
    network = Network.build([first, np.array([[0.1]])], [np.array([-60.0]), np.array([-0.3])], head="sigmoid")
    subject = make_subject("people", network, SCHEMA, Table(codes, network.labels(codes).astype(np.float64)))
    audit = Audit.of(subject)
    found = audit.describe()
    assert found.words.startswith("One rule describes people whose decision flips")
    assert f"of all {found.judged:,} rows judged" in found.words  # the half, not everybody
    (rule,) = found.rules
    assert rule.text.startswith("skill >= 5")
    whole, some = audit.measure(), Audit.of(subject, where=rule.text).measure()
    assert some.flip_rate is not None
    assert whole.flip_rate is not None
    assert some.flip_rate.value > 5 * whole.flip_rate.value
    assert rule.precision.low <= some.flip_rate.value <= rule.precision.high
    assert audit.describe(k=1).above == 1
    assert found.command("search", rule) is None
    assert replace(found, source="a b.toml").command("search", rule) == (
        f"fairbits search 'a b.toml' --where '{rule.text}'"
    )


def test_people_alike_in_all_that_is_unprotected_stay_in_one_half(rng: np.random.Generator) -> None:
    # Every combination twice, and decisions by lot for each: only a rule that has seen a person's copy could know.
    once = people(rng, 300)
    once[:, 3] = np.round(once[:, 3])
    subject = make_subject("people", _lots(), SCHEMA, Table(np.concatenate([once, once])))
    found = describe_people(evaluator_of(subject), subject, rng, above=1)
    assert found.together is None


def _lots() -> Network:
    """A network whose twins differ for people of no pattern: a hash of the attributes decides."""
    rng = np.random.default_rng(3)
    first = rng.normal(size=(5, 40)) * np.array([[40.0], [9.0], [60.0], [40.0], [60.0]])
    return Network.build(
        [first, rng.normal(size=(40, 40)), rng.normal(size=(40, 1))],
        [rng.normal(size=40) * 300, rng.normal(size=40) * 300, np.zeros(1)],
        head="sigmoid",
    )


def test_text_of_names_labels_and_numbers() -> None:
    assert rule_name("age") == "age"
    assert rule_name("job `title`") == "`job \\`title\\``"
    assert rule_name("In") == "`In`"
    assert _value(SCHEMA.attributes[2], 0.0) == '"the \\"boss\\""'
    assert _value(SCHEMA.attributes[4], 4.0) == '"college"'
    assert [readable(*ends) for ends in ((37, 44), (0.1234, 0.1271), (-3, 2), (-44, -37), (1e6 + 1, 2e6))] == (
        [40.0, 0.125, 0.0, -40.0, 2e6]
    )
