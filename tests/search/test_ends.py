"""A budget may end at any evaluation, and a run may break off at any moment: the figures and the cases stay right."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairbits.search import Budget, Settings, search_subject
from fairbits.search.settings import problem_of
from fairbits.search.shards import batch_for
from fairbits.store import Run
from fairbits.subject import Subject, make_subject

from .planted import planted_subject

SMALL = {"climb": {"seeds": 25, "generations": 12}, "dice": {"seeds": 10, "global_moves": 3, "local_moves": 4}}
few = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
strategy_names = st.sampled_from(sorted(SMALL))
#: Figures that depend on the clock, or say how the run came about.
CLOCK = ("seconds", "seconds_to_k_final", "seconds_to_first_id", "seconds_to_1000_id", "notes", "ends", "batch")


@pytest.fixture(scope="module")
def subject() -> Subject:
    return planted_subject()


@pytest.fixture
def place(tmp_path: Path) -> Any:
    numbers = itertools.count()
    return lambda: tmp_path / f"run{next(numbers)}"


def searched(subject: Subject, folder: Path, strategy: str, *, tasks: int | None = None, **limits: Any) -> Run:
    how = {name: limits.pop(name) for name in ("resume", "watch", "clock", "stop") if name in limits}
    chosen = Settings(budget=Budget(**limits), strategy=strategy, options=SMALL.get(strategy, {}), threads=1)
    return search_subject(subject, chosen, folder, tasks=tasks, **how)


def check_figures(run: Run) -> None:
    """The summary says what the cases say."""
    summary = run.summary or {}
    counted = run.query("SELECT count(*) AS n, count(*) FILTER (flips) AS ids, max(k) AS k FROM cases").to_pylist()[0]
    assert summary["cases"] == len(run) == counted["n"] == sum(entry["cases"] for entry in summary["top"])
    assert (summary["id_cases"], summary["k_max"]) == (counted["ids"], counted["k"])
    assert summary["cases"] <= summary["evaluations"]
    assert summary["queries"] >= summary["evaluations"] * summary["m"]
    if summary["seeds"]:
        assert 1 <= summary["k_initial"] <= summary["k_final"] <= summary["k_max"]
        assert summary["seeds"] <= summary["evaluations"]
        assert summary["seconds_to_k_final"] >= 0
    assert (summary["seconds_to_first_id"] is None) == (summary["id_cases"] == 0)
    people = np.concatenate([np.empty((0, 5)), *run.codes()])
    assert len(np.unique(people, axis=0)) == len(people) == len(run)


def same(one: Run, other: Run) -> None:
    assert one.content(anew=True) == other.content(anew=True)
    first, second = ({k: v for k, v in (run.summary or {}).items() if k not in CLOCK} for run in (one, other))
    assert first == second


@few
@given(n=st.integers(1, 700), name=strategy_names, tasks=st.integers(1, 3))
def test_a_budget_may_end_at_any_evaluation(subject: Subject, place: Any, n: int, name: str, tasks: int) -> None:
    run = searched(subject, place(), name, evaluations=n, tasks=tasks)
    assert run.summary["evaluations"] == n
    check_figures(run)


@pytest.mark.parametrize(("name", "tasks"), [("climb", 1), ("dice", 2)])
def test_seeds_that_were_just_opened_do_not_lower_the_figure_of_the_run(
    subject: Subject, place: Any, name: str, tasks: int
) -> None:
    """K_F is about seeds whose round came to its end; before the first one has, about all there are."""
    step = {"climb": 45, "dice": 8}[name]
    watched = [
        searched(subject, place(), name, evaluations=n, tasks=tasks).summary
        for n in range(8 * tasks, 16 * step * tasks, step * tasks)
    ]
    assert watched[0]["seeds_finished"] == 0
    assert len({one["seeds_finished"] for one in watched if one["seeds_finished"]}) >= 2  # rounds ended, others began
    for before, after in itertools.pairwise(watched):
        if before["seeds_finished"] == after["seeds_finished"] > 0:
            assert (before["k_initial"], before["k_final"]) == (after["k_initial"], after["k_final"])
        elif not after["seeds_finished"] and after["seeds"] == before["seeds"]:
            assert after["k_final"] >= before["k_final"]


@few
@given(n=st.integers(1, 200), name=strategy_names)
def test_a_budget_of_cases_is_kept_to_the_case(subject: Subject, place: Any, n: int, name: str) -> None:
    run = searched(subject, place(), name, cases=n)
    assert len(run) == n
    check_figures(run)


@few
@given(steps=st.lists(st.integers(1, 500), min_size=2, max_size=4), name=strategy_names)
def test_going_on_at_any_evaluation_is_never_having_stopped(
    subject: Subject, place: Any, steps: list[int], name: str
) -> None:
    """Budgets that shrink among them add nothing, and say so."""
    folder = place()
    done = 0
    for step in steps:
        run = searched(subject, folder, name, evaluations=step, resume=done > 0)
        assert bool(run.summary["notes"]) == (step < done)
        done = max(done, step)
        assert run.summary["evaluations"] == done
    same(run, searched(subject, place(), name, evaluations=done))
    check_figures(run)


class Broken(Exception):
    """What a machine does."""


@few
@given(moment=st.integers(1, 16), name=strategy_names, flush=st.booleans(), tasks=st.integers(1, 2))
def test_breaking_off_at_any_batch(
    subject: Subject, place: Any, moment: int, name: str, flush: bool, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place()
    calls = itertools.count()

    def watch(*_: object) -> None:
        if next(calls) == moment:
            raise Broken

    with pytest.MonkeyPatch.context() as patch:
        if flush:
            patch.setattr("fairbits.store.writer.FLUSH_SECONDS", 0.0)
        try:
            searched(subject, folder, name, evaluations=600, watch=watch, tasks=tasks)
        except Broken:
            broken = Run.open(folder)
            assert broken.status == "failed"
            searched(subject, folder, name, evaluations=600, resume=True)
    run = Run.open(folder)
    assert run.status == "finished"
    same(run, searched(subject, place(), name, evaluations=600, tasks=tasks))


@few
@given(ticks=st.integers(20, 160), more=st.integers(0, 200), name=strategy_names)
def test_a_clock_may_end_it_anywhere_and_where_is_written_down(
    subject: Subject, place: Any, ticks: int, more: int, name: str
) -> None:
    def clock() -> Any:
        numbers = itertools.count()
        return lambda: next(numbers) * 0.01

    folder = place()
    timed = searched(subject, folder, name, seconds=ticks * 0.01, clock=clock())
    check_figures(timed)
    same(timed, searched(subject, place(), name, ends=timed.summary["ends"]))
    first = timed.summary["seconds_to_first_id"]
    longer = searched(subject, folder, name, seconds=(ticks + more) * 0.01, clock=clock(), resume=True)
    assert longer.summary["evaluations"] >= timed.summary["evaluations"]
    assert longer.summary["seconds"] >= timed.summary["seconds"]
    if first is not None:
        assert longer.summary["seconds_to_first_id"] == first
    same(longer, searched(subject, place(), name, ends=longer.summary["ends"]))


def test_repeating_costs_no_time(subject: Subject, tmp_path: Path) -> None:
    """The clock of a resumed run stands still until the run is where it was."""
    numbers = itertools.count()
    options = {"seeds": 25, "generations": 10**6}

    def run(seconds: float, **more: Any) -> Run:
        chosen = Settings(budget=Budget(seconds=seconds), strategy="climb", options=options, threads=1)
        return search_subject(subject, chosen, tmp_path / "run", clock=lambda: next(numbers) * 0.01, **more)

    once = run(3.0)
    twice = run(6.0, resume=True)
    speed = once.summary["evaluations"] / once.summary["seconds"]
    # All of the first stretch is repeated, since the only round never ended; yet the second got its 3 s in full.
    assert twice.summary["evaluations"] / twice.summary["seconds"] == pytest.approx(speed, rel=0.1)


@pytest.mark.parametrize(("spent", "left"), [(4.0, 5.0), (40.0, 3.0)])
def test_preparing_and_summing_up_are_part_of_a_budget_that_began_before(
    subject: Subject, tmp_path: Path, spent: float, left: float
) -> None:
    """It leaves a part of the time in any case, and a run that is resumed does not get it back."""
    numbers = itertools.count()
    chosen = Settings(
        budget=Budget(seconds=10.0), strategy="climb", options={"seeds": 25, "generations": 10**6}, threads=1
    )

    def run(**more: Any) -> Run:
        return search_subject(subject, chosen, tmp_path / "run", clock=lambda: spent + next(numbers) * 0.01, **more)

    once = run(began=0.0)
    assert once.summary["seconds"] == pytest.approx(left, abs=0.1)
    assert once.scale["overhead"] == pytest.approx(10.0 - left, abs=0.1)
    assert once.manifest["budget"]["seconds"] == 10.0
    assert run(resume=True, began=0.0).summary["evaluations"] == once.summary["evaluations"]


def test_a_large_seed_is_kept(subject: Subject, tmp_path: Path) -> None:
    """What a run keeps is checked when it is opened; a large seed is no damage."""
    chosen = Settings(budget=Budget(evaluations=100), strategy="random", options={}, seed=2**70, threads=1)
    search_subject(subject, chosen, tmp_path / "run")
    assert Run.open(tmp_path / "run").manifest["seed"] == 2**70


def test_seeds_that_were_never_asked_do_not_count(subject: Subject, tmp_path: Path) -> None:
    run = search_subject(
        subject,
        Settings(budget=Budget(evaluations=10), strategy="climb", options={"seeds": 25}, threads=1),
        tmp_path / "run",
    )
    assert run.summary["seeds"] == 10
    assert run.summary["k_initial"] >= 1


@pytest.mark.usefixtures("clock_on_the_wall")
def test_a_slow_model_is_asked_in_portions_that_fit_the_clock(subject: Subject, tmp_path: Path) -> None:
    import time

    class Slow:
        """100 µs a row."""

        inputs = 5

        def scores(self, inputs: Any) -> Any:
            time.sleep(1e-4 * len(inputs))
            return subject.model.scores(inputs)

    slow = make_subject("slow", Slow(), subject.schema, subject.table)  # type: ignore[arg-type]
    chosen = Settings(budget=Budget(seconds=0.4), strategy="random", threads=1)
    problem, _ = problem_of(slow, chosen)
    batch = batch_for(problem, 0.4)
    assert batch is not None
    assert 1 < batch <= 128  # an eighth of the time is 83 people of 6 twins; fewer where the machine is busy
    assert batch_for(problem, None) is None
    begin = time.perf_counter()
    run = search_subject(slow, chosen, tmp_path / "run")
    assert run.summary["seconds"] <= 0.4 + 1.0
    assert time.perf_counter() - begin < 30
    assert run.manifest["batch"] == run.summary["batch"]
    again = search_subject(
        slow,
        Settings(budget=Budget(ends=run.summary["ends"]), strategy="random", threads=1, batch=run.summary["batch"]),
        tmp_path / "again",
    )
    same(run, again)
