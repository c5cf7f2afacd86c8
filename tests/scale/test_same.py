"""The same cases, whoever does the work; and a run in shards reads like any other."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing

import numpy as np
import pytest

from fairbits import Network
from fairbits.debug.run import sample_cases
from fairbits.errors import ModelError, OptionError
from fairbits.scale import ExecutorOptions, processes
from fairbits.scale.run import search
from fairbits.search import Budget, Settings, ShardPlan, search_subject
from fairbits.store import Run
from tests.search.planted import planted_subject

from .work import EVALUATIONS, SHARDS, cases_of, planted_search


def test_several_processes_give_the_same_cases(alone: Run, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(processes, "multiprocessing", multiprocessing)  # each starts from nothing, as everywhere else
    together = planted_search(tmp_path / "run", ExecutorOptions(workers=2))
    assert cases_of(together).equals(cases_of(alone))
    assert together.scale is not None
    assert together.scale["executor"] == "processes"
    assert together.scale["done"] == SHARDS
    assert together.scale["faults"] == []
    ignored = ("seconds", "seconds_to_k_final", "seconds_to_first_id", "seconds_to_1000_id", "threads")
    one, other = ({k: v for k, v in run.summary.items() if k not in ignored} for run in (alone, together))
    assert one == other
    assert one["evaluations"] == EVALUATIONS


def test_threads_do_not_matter_either(alone: Run, tmp_path) -> None:
    assert cases_of(planted_search(tmp_path / "run", ExecutorOptions(threads=2))).equals(cases_of(alone))


def test_nobody_is_shown_twice(alone: Run) -> None:
    people = np.concatenate(list(alone.codes()))
    assert len(np.unique(people, axis=0)) == len(people) == len(alone) == alone.summary["cases"]
    written = sum(part.rows for part in alone.parts_found)
    assert written > len(alone)  # shards did find the same people
    numbers = cases_of(alone)["evaluation"].to_numpy()
    assert (np.diff(numbers) > 0).all()
    assert numbers.max() < EVALUATIONS


def test_one_shard_is_the_search_without_any(tmp_path) -> None:
    settings = Settings(budget=Budget(evaluations=5000), options={"seeds": 25})
    plain = search_subject(planted_subject(), settings, tmp_path / "plain")
    shard = planted_search(tmp_path / "shard", ExecutorOptions(workers=1), shards=1, budget=settings.budget)
    assert cases_of(shard).equals(cases_of(plain))


@pytest.mark.parametrize("distance", [0, 1])
def test_enumerations_are_cut_into_stretches(distance: int, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("fairbits.search.strategies.exhaustive.ROUND", 200)
    settings = Settings(budget=Budget(seconds=1e9), strategy="exhaustive", options={"distance": distance})
    plain = search_subject(planted_subject(), settings, tmp_path / "plain")
    cut = planted_search(
        tmp_path / "cut",
        ExecutorOptions(workers=1),
        shards=3,
        budget=settings.budget,
        strategy="exhaustive",
        options=settings.options,
    )
    assert cut.status == plain.status == "finished"
    assert cut.summary["exact"] == plain.summary["exact"]
    people = [{tuple(row) for codes in run.codes() for row in codes.tolist()} for run in (plain, cut)]
    assert people[0] == people[1]


def test_a_search_that_the_clock_ends(tmp_path) -> None:
    run = planted_search(tmp_path / "run", ExecutorOptions(workers=1), shards=None, budget=Budget(seconds=0.3))
    assert run.status == "finished"
    assert run.manifest["shards"] == 1  # one worker has nobody to share the clock with
    assert run.summary["ends"] == [run.summary["evaluations"]]
    assert run.summary["cases"] == len(run) > 0
    more = planted_search(
        tmp_path / "run", ExecutorOptions(workers=1), shards=None, budget=Budget(seconds=0.6), resume=True
    )
    assert more.summary["evaluations"] > run.summary["evaluations"]


def test_debug_draws_the_same_cases(alone: Run, tmp_path) -> None:
    again = planted_search(tmp_path / "run", ExecutorOptions(threads=2))
    drawn = [sample_cases(run, 50, np.random.default_rng(0))[0] for run in (alone, again)]
    assert np.array_equal(*drawn)


def test_the_plan_depends_on_the_budget_alone() -> None:
    class Endless:
        rounds, name = None, "climb"

    def plan(shards: int | None = None, **budget: float) -> ShardPlan:
        return ShardPlan.of(Budget(**budget), Endless(), seed=0, m=10, tasks=shards)  # type: ignore[arg-type]

    assert [plan(evaluations=n).count for n in (1, 499_999, 500_000, 10**7, 10**8, 10**9)] == [1, 1, 2, 40, 100, 1000]
    assert plan(seconds=5).count == 1
    assert ShardPlan.of(Budget(seconds=5), Endless(), seed=0, m=10, shared=True).count is None  # type: ignore[arg-type]
    assert plan(queries=10_000_000).count == 4
    cut = plan(evaluations=1003, shards=4)
    shares = [shard.budget.evaluations for shard in cut.tasks()]
    assert shares == [251, 251, 251, 250]
    assert [shard.offset for shard in cut.tasks()] == [0, 251, 502, 753]
    rounds = [next(iter(shard.rounds())) for shard in cut.tasks()]
    assert rounds == [0, 1, 2, 3]
    with pytest.raises(OptionError, match="shards is 0"):
        plan(evaluations=5, shards=0)


def test_what_cannot_go_on_says_so(alone: Run, tmp_path) -> None:
    with pytest.raises(OptionError, match="its shards were cut from 16000"):
        planted_search(
            alone.folder, ExecutorOptions(workers=1), budget=Budget(evaluations=20_000), resume=True, shards=None
        )
    with pytest.raises(OptionError, match="has 8 shards, not 3"):
        planted_search(alone.folder, ExecutorOptions(workers=1), resume=True, shards=3)
    one = Settings(budget=Budget(evaluations=100))
    search_subject(planted_subject(), one, tmp_path / "plain")
    more = planted_search(
        tmp_path / "plain",
        ExecutorOptions(workers=2),
        options={},
        budget=Budget(evaluations=150),
        resume=True,
        shards=None,
    )
    assert more.summary["evaluations"] == 150  # one task is one task, whoever goes on with it


class Stuck(Network):
    """A model that no other process can get."""

    def __reduce__(self):
        raise TypeError("cannot pickle a locked door")


def test_a_model_that_cannot_travel(tmp_path) -> None:
    subject = planted_subject()
    parts = {field.name: getattr(subject.model, field.name) for field in dataclasses.fields(Network) if field.init}
    stuck = dataclasses.replace(subject, model=Stuck(**parts))
    settings = Settings(budget=Budget(evaluations=1000), strategy="random")
    with pytest.raises(ModelError, match=r"cannot be sent to other processes .*locked door.*leave the workers out"):
        search(stuck, settings, tmp_path / "run", executor_options=ExecutorOptions(workers=2))
    assert not (tmp_path / "run").exists()
    assert len(search(stuck, settings, tmp_path / "run", executor_options=ExecutorOptions(workers=1), shards=2)) > 0


def test_run_json_names_who_did_it(alone: Run) -> None:
    record = json.loads((alone.folder / "run.json").read_text())
    assert record["workers"] == 1
    assert record["shards"] == SHARDS
    assert record["cases"] == len(alone)
