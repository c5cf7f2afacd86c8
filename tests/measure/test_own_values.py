"""Twins counted by a plain loop: ranges, steps, missing values, rules, several attributes, three kinds of model."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from fairbits import Attribute, Audit, Encoding, Schema, Table, Twins
from fairbits.domain import coarsened
from fairbits.measure import Evaluator, evaluator_of, grouping_of, measure_table
from fairbits.models import HasTrees
from fairbits.report.compute import about_of
from fairbits.report.sections.people import real_people
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
    return Schema((protected[0], *free, *protected[1:]), target="y", classes=("no", "yes"), threshold=0.5, rules=rules)


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


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("protected", ["several", "missing", "ranges"])
@pytest.mark.parametrize("kind", ["network", "black box"])
def test_supported_twins_and_single_attributes_counted_by_hand(kind: str, protected: str, rules: str):
    import pandas as pd

    rng = np.random.default_rng([7, len(kind), len(protected)])
    schema = schema_of(protected, RULES[rules])
    codes = people(schema, rng, 240)
    model, encoding = model_of(kind, schema, rng, codes)
    evaluator = Evaluator(model, schema, encoding, rows=codes, threads=1)
    found = measure_table(evaluator, Table(codes), np.random.default_rng(0))
    columns = list(schema.protected_columns)
    about = [rule for rule in schema.rules if set(rule.columns) & set(columns)]
    real = {tuple(row) for row in codes}

    def group(column: int, value: float) -> int:
        attribute = schema.attributes[column]
        return int(attribute.twin_place(np.array([value]))[0])

    def allowed(twin: np.ndarray) -> bool:
        return all(rule.holds(twin[None])[0] for rule in about)

    def stratum(person: np.ndarray) -> tuple[bool, ...]:
        left = []
        for values in product(*(schema.attributes[i].twin_values() for i in columns)):
            twin = person.copy()
            twin[columns] = values
            left.append(allowed(twin))
        return tuple(left)

    strata = [stratum(person) for person in codes]
    keys = [(s, *(group(i, row[i]) for i in columns)) for s, row in zip(strata, codes, strict=True)]
    counts = pd.Series(keys).value_counts()
    supported, alone = [], {name: [] for name in schema.protected}
    for person, own in zip(codes, strata, strict=True):
        decided: dict[tuple[float, ...], bool] = {}
        values = [sorted({*schema.attributes[i].twin_values().tolist(), person[i]}) for i in columns]
        for combination in product(*values):
            twin = person.copy()
            twin[columns] = combination
            if tuple(twin) in real or allowed(twin):
                decided[combination] = bool(np.asarray(model.scores(encoding.encode(twin[None])))[0] >= 0.5)
        kept = {
            decision
            for combination, decision in decided.items()
            if counts.get((own, *(group(i, v) for i, v in zip(columns, combination, strict=True))), 0) >= 10
        }
        supported.append(len(kept) > 1)
        for place, name in enumerate(schema.protected):
            others = [i for i in range(len(columns)) if i != place]
            same = {d for c, d in decided.items() if all(c[i] == person[columns[i]] for i in others)}
            alone[name].append(len(same) > 1)
    assert found.flip_rate_supported.value == pytest.approx(np.mean(supported))
    for name, flips in alone.items():
        assert found.flip_rate_by[name].value == pytest.approx(np.mean(flips))
        assert found.flip_rate_by[name].value <= found.flip_rate.value
    assert found.flip_rate_supported.value <= found.flip_rate.value
    assert found.kind == "lower bound"
    assert {one.limit for one in found.limits} >= {"values"}


def test_what_the_rules_allow_is_not_whoever_breaks_them():
    schema = schema_of("several", ("p0 < 30 -> hours < 50", "hours > 5"))
    rng = np.random.default_rng(4)
    codes = people(schema, rng)
    model, encoding = model_of("network", schema, rng, codes)
    evaluator = Evaluator(model, schema, encoding, rows=codes, threads=1)
    kept = np.logical_and.reduce([rule.holds(codes) for rule in schema.rules])
    assert (~kept).any()
    assert evaluator.validity.people(codes).all()  # whoever is in the table exists
    strict = evaluator.by_rules
    hours = codes[:, 1]
    assert strict.validity.people(codes).tolist() == (hours > 5).tolist()  # everybody else has a twin of 30 or more
    assert strict.m == strict.twins.m == 12
    twins = strict.twins.expand(codes).reshape(-1, codes.shape[1])
    wanted = schema.rules[0].holds(twins).reshape(len(codes), -1)
    assert (strict.valid_twins(codes) == wanted).all()


def test_the_index_is_that_of_the_table():
    import pandas as pd
    from sklearn.tree import DecisionTreeClassifier

    import fairbits

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.integers(0, 2, 300), "pay": rng.integers(0, 50, 300)})
    frame["ok"] = (frame.pay + 9 * frame.sex > 25).astype(int)
    model = DecisionTreeClassifier(max_depth=4).fit(frame[["sex", "pay"]], frame.ok)
    for index in (pd.RangeIndex(300), pd.Index([f"p{i}" for i in range(300)]), pd.RangeIndex(1000, 1300)):
        audit = fairbits.Audit.from_table(model, frame.set_index(index), target="ok", protected="sex", favourable=1)
        found = audit.measure()
        table = found.to_frame()
        assert table.index.tolist() == index.tolist()
        worst = found.worst(1)[0]
        assert table.loc[worst.row, "k"] == worst.k
        assert index[worst.position] == worst.row


@pytest.mark.parametrize(
    ("protected", "kind"),
    [("ranges", "network"), ("several", "network"), ("step", "black box"), ("missing", "black box")],
)
def test_values_of_their_own_count_where_somebody_has_them(protected: str, kind: str):
    """m and the limit of bits are of people of the table: they have no more twins than these."""
    rng = np.random.default_rng(9)
    schema = schema_of(protected, ())
    codes = people(schema, rng)
    for place in schema.protected_columns:  # everybody has a value that twins take
        codes[:, place] = rng.choice(schema.attributes[place].twin_values(), len(codes))
    model, encoding = model_of(kind, schema, rng, codes)
    sizes = [schema.attributes[place].twin_count for place in schema.protected_columns]

    def subject_of(codes: np.ndarray) -> Any:
        return make_subject("strangers", model, schema, Table(codes), encoding=encoding)

    subject = subject_of(codes)
    found = Audit.of(subject, as_is=True).measure()
    assert found.summary()["m"] == np.prod(sizes)
    assert found.summary()["bits_limit"] == pytest.approx(np.log2(np.prod(sizes)))
    assert found.twins_removed == 0
    assert {one.removed for one in real_people(found.evaluator, found.table, [0, 1])} == {0}
    assert not about_of(subject, found.evaluator).open
    column = schema.protected_columns[0]
    codes[0, column] = 33.0 if schema.attributes[column].gap is None else schema.attributes[column].gap
    assert Audit.of(subject_of(codes), as_is=True).measure().summary()["m"] == (sizes[0] + 1) * np.prod(sizes[1:])
