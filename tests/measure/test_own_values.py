"""Twins counted by a plain loop: ranges, steps, missing values, rules, several attributes, three kinds of model."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from fairbits import Attribute, Encoding, Schema, Table, Twins
from fairbits.domain import coarsened
from fairbits.measure import Evaluator, evaluator_of, grouping_of, measure_table
from fairbits.models import HasTrees
from fairbits.subject import make_subject
from tests.conftest import random_network, with_inputs_scaled

AGES = (("20–31", 25.0), ("32–38", 35.0), ("39–60", 45.0))
PROTECTED = {
    "ranges": ({"kind": "integer", "low": 20, "high": 60, "ranges": AGES},),
    "named": ({"kind": "integer", "low": 20, "high": 60, "ranges": (("young", 25.0), ("old", 50.0))},),
    "real": ({"kind": "real", "low": 0.0, "high": 1.0, "step": 0.25},),
    "step": ({"kind": "integer", "low": 20, "high": 60, "step": 10},),
    "missing": ({"kind": "integer", "low": 20, "high": 60, "ranges": AGES, "missing": "model"},),
    "missing value": ({"kind": "integer", "low": 20, "high": 60, "ranges": AGES, "missing": "value"},),
    "labels": ({"kind": "category", "labels": ("a", "b", "(missing)"), "missing": "model"},),
    "several": (
        {"kind": "integer", "low": 20, "high": 60, "ranges": AGES},
        {"kind": "category", "labels": ("f", "m")},
        {"kind": "integer", "low": 0, "high": 9, "ranges": (("few", 1.0), ("many", 7.0))},
    ),
}
RULES = {"none": (), "rules": ("p0 != 35 or hours < 60", "hours > 5")}


class Black:
    """A model that is asked for scores and nothing else."""

    def __init__(self, inputs: int, rng: np.random.Generator):
        self.inputs = inputs
        self._weights = rng.normal(size=inputs)

    def scores(self, inputs: Any) -> Any:
        rows = np.nan_to_num(np.asarray(inputs, dtype=np.float64), nan=-7.0)
        return (np.abs(np.sin(rows @ self._weights * 3)) ** 2).astype(np.float32)


def people(schema: Schema, rng: np.random.Generator, n: int = 150) -> np.ndarray:
    columns = []
    for attribute in schema.attributes:
        draws = rng.uniform(attribute.low, attribute.upper, n)
        codes = np.rint(draws) if attribute.discrete else draws
        codes = np.where(rng.random(n) < 0.3, rng.choice(attribute.twin_values(), n), codes)
        if attribute.gap is not None:
            codes = np.where(rng.random(n) < 0.2, attribute.gap, codes)
        columns.append(codes)
    return np.column_stack(columns)


def schema_of(kind: str, rules: tuple[str, ...]) -> Schema:
    protected = [Attribute(name=f"p{i}", protected=True, **given) for i, given in enumerate(PROTECTED[kind])]
    free = [
        Attribute(name="hours", kind="integer", low=0, high=99),
        Attribute(name="job", kind="category", labels=("Sales", "Tech", "Farm")),
    ]
    return Schema((protected[0], *free, *protected[1:]), target="y", classes=("no", "yes"), rules=rules)


def model_of(kind: str, schema: Schema, rng: np.random.Generator, codes: np.ndarray) -> tuple[Any, Encoding]:
    encoding = Encoding.one_hot(schema)
    if kind == "black box":
        return Black(encoding.width, rng), encoding
    if kind == "network":
        network = random_network(rng, [encoding.width, 9, 6, 2])
        large = np.flatnonzero(np.abs(np.nan_to_num(encoding.encode(codes))).max(axis=0) > 1)
        return with_inputs_scaled(network, large, 0.05), encoding
    from sklearn.tree import DecisionTreeClassifier

    encoding = Encoding.identity(schema)
    made = DecisionTreeClassifier(max_depth=9, random_state=0)
    made.fit(encoding.encode(codes), np.where(rng.random(len(codes)) < 0.5, "yes", "no"))
    subject = make_subject("trees", made, schema, Table(codes), encoding=encoding)
    assert isinstance(subject.model, HasTrees)
    return subject.model, subject.encoding


def by_hand(
    schema: Schema, encoding: Encoding, model: Any, person: np.ndarray, rows: set[tuple[float, ...]]
) -> dict[str, Any]:
    """Everything about one person, twin by twin."""
    own = [sorted({*schema.attributes[i].twin_values().tolist(), person[i]}) for i in schema.protected_columns]
    scores = []
    for values in product(*own):
        twin = person.copy()
        twin[list(schema.protected_columns)] = values
        about = [rule for rule in schema.rules if set(rule.columns) & set(schema.protected_columns)]
        if tuple(twin) not in rows and not all(rule.holds(twin[None])[0] for rule in about):
            continue
        scores.append(float(np.float32(np.asarray(model.scores(encoding.encode(twin[None])))[0])))
    k, edge = 0, -np.inf
    for score in sorted(scores):
        if score > edge:
            k, edge = k + 1, score + 0.025
    decided = {score >= 0.5 for score in scores}
    return {"k": k, "flips": len(decided) > 1, "low": min(scores), "high": max(scores), "twins": len(scores)}


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("protected", PROTECTED)
@pytest.mark.parametrize("kind", ["network", "trees", "black box"])
def test_everybody_is_among_their_own_twins(kind: str, protected: str, rules: str):
    if protected == "labels" and rules == "rules":
        pytest.skip("a rule compares numbers here")
    rng = np.random.default_rng([len(kind), len(protected), len(rules)])
    schema = schema_of(protected, RULES[rules])
    codes = people(schema, rng)
    model, encoding = model_of(kind, schema, rng, codes)
    evaluator = Evaluator(model, schema, encoding, rows=codes, threads=1)
    found = evaluator.evaluate(codes)
    real = {tuple(row) for row in codes}
    for i, person in enumerate(codes):
        wanted = by_hand(schema, encoding, model, person, real)
        assert found.flips[i] == wanted["flips"], (i, person)
        assert (evaluator.m if found.twins is None else found.twins[i]) == wanted["twins"]
        assert found.low[i] == pytest.approx(wanted["low"], abs=1e-5)
        assert found.high[i] == pytest.approx(wanted["high"], abs=1e-5)
        assert abs(int(found.k[i]) - wanted["k"]) <= (0 if kind != "network" else 1)
        label = evaluator.twins.label(int(found.low_twin[i]), person)
        twin = evaluator.twins.as_twins(person[None], np.array([found.low_twin[i]]))
        assert evaluator.row_scores(twin)[0] == pytest.approx(found.low[i], abs=1e-5)
        assert "own" not in label
    at = evaluator.twins.place_of(codes)
    assert (evaluator.twins.as_twins(codes, at) == codes).all()
    assert evaluator.scores_at(codes, at) == pytest.approx(evaluator.row_scores(codes), abs=1e-6)


def test_a_range_holds_those_whom_its_name_says():
    age = Attribute(name="age", kind="integer", low=20, high=60, protected=True, ranges=AGES)
    codes = np.arange(20.0, 61.0)
    groups = grouping_of(age, codes)
    named = [groups.labels[code] for code in groups.codes]
    assert named == ["20–31" if c <= 31 else "32–38" if c <= 38 else "39–60" for c in codes]
    schema = Schema((Attribute(name="pay", kind="integer", high=9), age), target="y", classes=("no", "yes"))
    twins = Twins(schema)
    assert [AGES[i][0] for i in twins.index_of(np.column_stack([codes * 0, codes]))] == named


def test_ranges_that_are_cut_for_a_table_count_as_pandas_counts():
    import pandas as pd

    rng = np.random.default_rng(3)
    for values in (rng.integers(17, 90, 2_000), rng.lognormal(3, 0.4, 2_000).clip(1, 400)):
        kind = "integer" if values.dtype.kind == "i" else "real"
        age = Attribute(name="age", kind=kind, low=int(values.min()), high=int(values.max()) + 1, protected=True)
        cut = coarsened(Schema((age,)), {"age": values.astype(float)}, max_twins=100).attributes[0]
        groups = grouping_of(cut, values.astype(float))
        frame = pd.DataFrame({"group": [groups.labels[c] for c in groups.codes], "value": values})
        for name, part in frame.groupby("group")["value"]:
            low, high = name.split("–")
            assert part.min() == pytest.approx(float(low), rel=1e-5)
            assert part.max() == pytest.approx(float(high), rel=1e-5)


def test_a_model_that_refuses_people_for_their_own_age_is_no_model_without_flips():
    ages = np.arange(20.0, 61.0)
    age = Attribute(name="age", kind="integer", low=20, high=60, protected=True, ranges=AGES)
    schema = Schema((Attribute(name="pay", kind="integer", high=9), age), target="y", classes=("no", "yes"))

    class Picky:
        inputs = 2

        def scores(self, inputs: Any) -> Any:
            return np.where(np.isin(np.asarray(inputs)[:, 1], (33, 51)), 0.1, 0.9).astype(np.float32)

    codes = np.column_stack([ages % 10, ages])
    subject = make_subject("picky", Picky(), schema, Table(codes), encoding=Encoding.identity(schema))
    found = measure_table(evaluator_of(subject), subject.table, np.random.default_rng(0))
    assert found.evaluation.flips.tolist() == np.isin(ages, (33, 51)).tolist()
    assert found.worst(1)[0].worst == "33"
