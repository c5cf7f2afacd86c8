"""Some people only: what --where makes of rows, of the domain, and of every stage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fairbits
from fairbits import Attribute, Audit, Network, Schema, Table
from fairbits.errors import OptionError, SchemaError
from fairbits.store import subject_of
from fairbits.subject import make_subject

SCHEMA = Schema(
    attributes=(
        Attribute(name="sex", kind="integer", low=0, high=1, protected=True),
        Attribute(name="skill", kind="integer", low=0, high=9),
        Attribute(name="job", kind="category", labels=("Sales", "Tech", "Farm")),
        Attribute(name="pay", kind="real", low=0, high=10),
    ),
    target="hired",
    classes=("no", "yes"),
)


@pytest.fixture
def audit(rng: np.random.Generator) -> Audit:
    rows = 400
    columns = [rng.integers(0, 2, rows), rng.integers(0, 10, rows), rng.integers(0, 3, rows), rng.random(rows) * 10]
    codes = np.column_stack(columns).astype(np.float64)
    first = np.array([[0.2, 0.0], [0.1, 0.3], [0.0, 0.1], [0.1, 0.0]])
    network = Network.build([first, np.array([[1.0], [-0.8]])], [np.zeros(2), np.zeros(1)], head="sigmoid")
    table = Table(codes, network.labels(codes).astype(np.float64))
    return Audit.of(make_subject("people", network, SCHEMA, table))


@pytest.mark.parametrize(
    ("where", "values", "rules"),
    [
        ("skill >= 7", {"skill": [7, 8, 9]}, 0),
        ('job != "Tech" and 3 <= skill and skill < 5', {"skill": [3, 4], "job": [0, 2]}, 0),
        ("pay >= 2 and 8 >= pay", {"pay": (2.0, 8.0)}, 0),
        ("pay < 2", {"pay": (0.0, 10.0)}, 1),
        ('skill = 1 or job = "Farm"', {"skill": list(range(10))}, 1),
    ],
)
def test_a_condition_on_one_attribute_narrows_it_and_another_one_is_a_rule(
    audit: Audit, where: str, values: dict[str, object], rules: int
) -> None:
    some = audit.subject.within(where)
    for name, known in values.items():
        attribute = some.schema[name]
        assert known == (attribute.values().tolist() if attribute.discrete else (attribute.low, attribute.upper))
    assert len(some.schema.rules) == rules
    holds = fairbits.domain.Rule.of(where, SCHEMA.attributes).holds(audit.subject.table.codes)
    assert np.array_equal(some.table.codes, audit.subject.table.codes[holds])
    assert f"{holds.sum():,} of 400 rows" in some.notes[-1]
    assert some.identity.id != audit.subject.identity.id


@pytest.mark.parametrize(
    ("where", "words"),
    [("sex = 1", "protected"), ("skill > 9", "no value"), ("pay >= 11", "no value"), ("pay > 9.9999", "none of the")],
)
def test_nobody_and_protected_values_are_refused(audit: Audit, where: str, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        audit.subject.within(where)
    with pytest.raises(SchemaError, match="no attribute 'skil'"):
        audit.subject.within("skil > 3")


def test_every_stage_stays_inside(rng: np.random.Generator, tmp_path: Path) -> None:
    schema = Schema(attributes=SCHEMA.attributes[:3], target="hired", classes=("no", "yes"))
    codes = np.column_stack([rng.integers(0, 2, 400), rng.integers(0, 10, 400), rng.integers(0, 3, 400)])
    network = Network.build([np.array([[0.2], [0.1], [0.3]])], [np.array([-1.2])], head="sigmoid")
    table = Table(codes.astype(np.float64), network.labels(codes).astype(np.float64))
    whole = make_subject("people", network, schema, table)
    where = 'skill >= 6 and job in {"Sales", "Farm"}'
    some = Audit.of(whole, where=where)
    inside = fairbits.domain.Rule.of(where, schema.attributes)
    assert inside.holds(some.measure().table.codes).all()
    run = some.search(budget=fairbits.Budget(evaluations=200), out=tmp_path / "run", seed=0)
    cases = np.concatenate([run.layout.codes_of(batch) for batch in run.batches(labels=False)])
    assert inside.holds(cases).all()
    assert 4 < len(np.unique(cases[:, 1:], axis=0)) <= 8
    assert run.manifest["where"] == where
    assert subject_of(run, whole).table.codes.shape == some.subject.table.codes.shape
    everybody = [one for one in some.certify(budget=1.0).statements if one.kind == "exact"]
    assert {one.people for one in everybody} == {8}  # four skills and two jobs
    assert all(one.population.endswith(f"of people with {where}") for one in everybody)


def test_a_region_of_a_regression_keeps_the_tolerance_of_everybody(rng: np.random.Generator) -> None:
    schema = Schema(attributes=SCHEMA.attributes[:2], target="pay")
    codes = np.column_stack([rng.integers(0, 2, 300), rng.integers(0, 10, 300)]).astype(np.float64)
    network = Network.build([np.array([[1.0], [1.0]])], [np.zeros(1)], head="linear")
    audit = Audit.of(make_subject("pay", network, schema, Table(codes, codes.sum(axis=1))))
    whole, some = audit.measure(), Audit.of(audit.subject, where="skill <= 2").measure()
    assert some.evaluator.epsilon == whole.evaluator.epsilon
