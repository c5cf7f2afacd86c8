"""Every strategy under rules, value sets, immutable attributes and a least plausibility."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairbits import Table
from fairbits.errors import OptionError
from fairbits.measure import Evaluator
from fairbits.measure.plausibility import Plausibility
from fairbits.search import STRATEGIES, Budget, Settings, search_subject
from fairbits.search.problem import Problem
from fairbits.subject import make_subject

from ..conftest import random_network, random_people
from .planted import planted_subject
from .test_strategies import SMALL

RULES = ("a + b <= 16", 'c = "x" -> a != 8', "age = 3 -> b < 7")


def ruled_subject(*, rules=RULES, immutable=(), allowed=None, rows=40):
    subject = planted_subject(rows=rows)
    attributes = tuple(
        replace(a, immutable=a.name in immutable, allowed=(allowed or {}).get(a.name, ()))
        for a in subject.schema.attributes
    )
    schema = replace(subject.schema, attributes=attributes, rules=rules)
    table = Table(schema.clip(subject.table.codes), subject.table.labels)
    return make_subject("ruled", subject.model, schema, table)


def searched(subject, strategy, folder, evaluations=2_000, **more):
    settings = Settings(
        budget=Budget(evaluations=evaluations), strategy=strategy, options=SMALL.get(strategy, {}), **more
    )
    return search_subject(subject, settings, folder)


@pytest.fixture(scope="module", params=sorted(STRATEGIES))
def strategy(request) -> str:
    return request.param


def test_nobody_breaks_a_rule_except_real_people(strategy: str, tmp_path) -> None:
    subject = ruled_subject(immutable=("c",), allowed={"a": (0, 1, 2, 5, 8, 9)})
    run = searched(subject, strategy, tmp_path / "run")
    codes = np.concatenate(list(run.codes()))
    a, b, c = codes[:, 1], codes[:, 3], codes[:, 4]
    rows = subject.table.codes
    real = (codes[:, None, [1, 3, 4]] == rows[None][:, :, [1, 3, 4]]).all(axis=2).any(axis=1)
    assert np.isin(a, (0, 1, 2, 5, 8, 9)).all()
    assert ((a + b <= 16) | real).all()
    assert (~((c == 0) & (a == 8)) | real).all()
    table = run.cases(labels=False)
    evaluator = Evaluator(subject.model, subject.schema, rows=rows)
    order = np.argsort(table["evaluation"].to_numpy())
    figures = evaluator.evaluate(codes)
    for name in ("k", "low_twin", "high_twin", "favourable", "twins"):
        np.testing.assert_array_equal(table[name].to_numpy()[order], getattr(figures, name), err_msg=name)
    kept = evaluator.twins.values[:, 0] != 3
    unreal = ~real & (b >= 7)
    assert (figures.twins[unreal] == kept.sum()).all()
    assert run.summary["rules"] == list(RULES)
    assert run.summary["twins_removed"] > 0
    assert run.summary["moves_removed"] > 0
    # Who somebody is includes what a search may not move.
    seeds = table["seed_row"].to_numpy()[order]
    assert (c[seeds >= 0] == rows[seeds[seeds >= 0], 4]).all()


def test_nobody_gets_an_immutable_value_that_no_row_has(strategy: str, tmp_path) -> None:
    """Real rows hold (a, c) = (small, x) or (large, y); b alone may move, and everybody keeps a pair like that."""
    subject = ruled_subject(rules=("b != 4",), immutable=("a", "c"))
    rows = subject.table.codes.copy()
    rows[:, 4] = rows[:, 1] > 4
    subject = make_subject("ruled", subject.model, subject.schema, Table(rows, subject.table.labels))
    codes = np.concatenate(list(searched(subject, strategy, tmp_path / "run", 1_000).codes()))
    real = {tuple(row) for row in rows[:, [1, 3, 4]].tolist()}
    pairs = {(a, c) for a, _, c in real}
    assert {(row[1], row[4]) for row in codes.tolist()} <= pairs
    assert all(row[3] != 4 or (row[1], row[3], row[4]) in real for row in codes.tolist())


def test_moves_that_break_a_rule_are_counted(tmp_path) -> None:
    run = searched(ruled_subject(rules=("a < 3",)), "climb", tmp_path / "run")
    assert run.summary["moves_removed"] > 100
    assert run.summary["twins_removed"] == 0
    assert "rule" not in (run.manifest.get("options") or {})


def test_an_exact_search_asks_exactly_those_who_can_exist(tmp_path) -> None:
    subject = ruled_subject(rules=("a + b <= 16",), rows=7)
    settings = Settings(budget=Budget(seconds=60), strategy="exhaustive", options={"distance": 1})
    run = search_subject(subject, settings, tmp_path / "run")
    rows = subject.table.codes
    grid = np.stack(np.meshgrid(np.arange(10), np.arange(10), np.arange(3), indexing="ij"), axis=-1).reshape(-1, 3)
    near = (grid[:, None] != rows[None][:, :, [1, 3, 4]]).sum(axis=2).min(axis=1)
    assert len(run) == ((near <= 1) & ((grid[:, 0] + grid[:, 1] <= 16) | (near == 0))).sum()


def test_plausibility_is_a_percentile_of_the_rows(tmp_path) -> None:
    subject = planted_subject(rows=300)
    learned = Plausibility(subject.schema, subject.table.codes)
    own = learned.percentiles(subject.table.codes)
    assert own.min() > 0
    assert own.max() == 100
    assert abs(np.median(own) - 50) < 5
    np.testing.assert_array_equal(own, learned.percentiles(subject.table.codes, threads=3))
    again = Plausibility(subject.schema, subject.table.codes)
    np.testing.assert_array_equal(own, again.percentiles(subject.table.codes))
    strange = subject.table.codes[:1].copy()
    strange[:, [1, 3]] = 9.0
    assert learned.percentiles(strange)[0] < 25
    run = searched(subject, "climb", tmp_path / "run", min_plausibility=30.0)
    assert run.cases()["plausibility"].to_numpy().min() >= 30
    assert run.summary["moves_removed"] > 0
    with pytest.raises(OptionError, match="min_plausibility is 130"):
        searched(subject, "climb", tmp_path / "no", min_plausibility=130.0)


@pytest.mark.parametrize("equal", [1, 5])
def test_rows_that_are_all_alike_are_all_ordinary(equal: int) -> None:
    subject = planted_subject(rows=9)
    learned = Plausibility(subject.schema, np.repeat(subject.table.codes[:1], equal, axis=0))
    np.testing.assert_array_equal(learned.percentiles(subject.table.codes[:3]), 100.0)


def test_it_agrees_with_scikit_learn() -> None:
    from sklearn.ensemble import IsolationForest

    subject = planted_subject(rows=500)
    learned = Plausibility(subject.schema, subject.table.codes)
    features = learned._features(subject.table.codes)
    theirs = IsolationForest(n_estimators=60, max_samples=256, random_state=0).fit(features).score_samples(features)
    mine = learned.percentiles(subject.table.codes)
    assert np.corrcoef(np.argsort(np.argsort(theirs)), np.argsort(np.argsort(mine, kind="stable")))[0, 1] > 0.99


def test_a_step_goes_to_the_next_value_there_is() -> None:
    subject = ruled_subject(rules=(), allowed={"a": (0, 4, 9)})
    problem = Problem(Evaluator(subject.model, subject.schema), subject.table)
    people = np.repeat(subject.table.codes[:1], 4, axis=0)
    people[:, 1] = [0, 4, 4, 9]
    moved = problem.step(people, np.zeros(4, dtype=np.int64), np.array([1.0, 1.0, -1.0, 1.0]))
    assert moved[:, 1].tolist() == [4, 9, 0, 4]
    draws = problem.uniform(np.random.default_rng(0), 500)[:, 0]
    assert set(draws) == {0, 4, 9}


def test_nothing_left_to_move_is_said() -> None:
    subject = ruled_subject(rules=(), immutable=("a", "b", "c"))
    with pytest.raises(OptionError, match="every attribute is protected or immutable"):
        Problem(Evaluator(subject.model, subject.schema), subject.table)


@pytest.mark.parametrize("task", ["vector", "regression"])
def test_every_task_is_searched(strategy: str, task: str, people_schema, rng, tmp_path) -> None:
    if task == "vector":
        schema = replace(people_schema, classes=("a", "b", "c"), favourable="b", scores="vector")
        network = random_network(rng, [9, 12, 3], favourable=1)
    else:
        schema = replace(people_schema, classes=(), favourable=None)
        network = random_network(rng, [9, 12, 1], head="linear")
    schema = replace(schema, rules=('age = "young" -> job != "Tech"',))
    people = random_people(rng, schema, 60)
    labels = rng.normal(size=60) if task == "regression" else None
    run = searched(make_subject(task, network, schema, Table(people, labels)), strategy, tmp_path / "run", 1_000)
    assert run.summary["evaluations"] == 1_000
    assert run.summary["twins_removed"] > 0
    reals = np.concatenate(list(run.codes()))[:, 2]
    assert -1.5 <= reals.min() <= reals.max() <= 4.0
    if task == "regression":
        assert run.summary["id_cases"] == 0
