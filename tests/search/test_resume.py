"""Killed at any moment, a run goes on and ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from fairbits.errors import OptionError
from fairbits.search import Budget, Settings, search_subject
from fairbits.store import Run

from .planted import planted_subject

KILLS, NEVER = 4, -1000


class Searched(NamedTuple):
    """How much is searched, and among how many batches of an attempt the one that ends it is drawn."""

    evaluations: int
    batches: int


#: Four attempts stay within the budget: a climb asks about 25 people at once, dice about one.
LENGTHS = {"climb": Searched(8_000, 30), "dice": Searched(2_000, 300)}
#: Searches in forks of one process that has loaded everything. Each kills itself while it is at the n-th batch of this
#: attempt, or a few milliseconds later: at another moment every time, but always before it ends, whatever the speed of
#: the machine.
NURSERY = """
import json, os, random, signal, sys, threading, fairbits.store.writer as writer
from fairbits.search import Budget, Settings, search_subject
from fairbits.search import prepare, problem_of
from tests.search.planted import planted_subject

def search(folder, evaluations, strategy, how, last):
    batches = 0
    def kill():
        os.kill(os.getpid(), signal.SIGKILL)
    def stop():
        nonlocal batches
        batches += 1
        if batches == last:
            threading.Timer(random.Random(last).uniform(0, 0.01), kill).start()
        if batches == last + 40:  # the timer had no turn: time is up
            kill()
        return False
    settings = Settings(budget=Budget(evaluations=evaluations), strategy=strategy, options={"seeds": 25})
    search_subject(planted_subject(), settings, folder, resume=how == "resume", stop=stop)

writer.FLUSH_SECONDS = 0.02
for strategy in ("climb", "dice"):  # kernels are loaded once, for all, and without threads, which no fork would have
    short = Settings(budget=Budget(evaluations=100), strategy=strategy, options={"seeds": 25}, threads=1)
    prepare(*problem_of(planted_subject(), short))
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        search(*json.loads(line))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def ended() -> Iterator[Callable[..., int]]:
    """Search until killed at this batch; how it ended."""
    if not hasattr(os, "fork"):
        pytest.skip("victims are forked")
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    ) as nursery:
        assert nursery.stdin
        assert nursery.stdout

        def search(folder: Path, strategy: str, how: str, batches: int) -> int:
            words = [str(folder), LENGTHS[strategy].evaluations, strategy, how, batches]
            print(json.dumps(words), file=nursery.stdin, flush=True)
            return int(nursery.stdout.readline())

        yield search
        nursery.stdin.close()


def same_cases(one: Run, other: Run) -> None:
    columns = ["a", "b", "c", "k", "low", "high", "evaluation", "changed", "seed_row", "origin"]
    first, second = (
        run.query("SELECT * FROM cases ORDER BY evaluation").select(columns).to_pydict() for run in (one, other)
    )
    assert first == second


@pytest.mark.parametrize("strategy", ["climb", "dice"])
def test_kill_and_resume_at_random_moments(strategy: str, ended: Callable[..., int], tmp_path: Path) -> None:
    whole = Settings(budget=Budget(evaluations=LENGTHS[strategy].evaluations), strategy=strategy, options={"seeds": 25})
    unbroken = search_subject(planted_subject(), whole, tmp_path / "unbroken")
    moments = random.Random(7)  # noqa: S311
    how = "new"
    for _ in range(KILLS):
        assert (
            ended(tmp_path / "broken", strategy, how, moments.randint(1, LENGTHS[strategy].batches)) == -signal.SIGKILL
        )
        if (tmp_path / "broken" / "run.json").exists():
            how = "resume"
            run = Run.open(tmp_path / "broken")
            assert not run.damaged
            assert run.status != "finished"
            codes = np.concatenate([np.empty((0, 5)), *run.codes()])
            assert len(np.unique(codes, axis=0)) == len(codes)
    assert how == "resume"
    assert ended(tmp_path / "broken", strategy, how, NEVER) == 0
    run = Run.open(tmp_path / "broken")
    assert run.status == "finished"
    same_cases(unbroken, run)
    for name in ("evaluations", "queries", "cases", "id_cases", "seeds", "k_initial", "k_final", "k_max"):
        assert run.summary[name] == unbroken.summary[name], name


def test_a_finished_run_goes_on_with_a_larger_budget(tmp_path) -> None:
    def settings(evaluations: int) -> Settings:
        return Settings(
            budget=Budget(evaluations=evaluations), strategy="climb", options={"seeds": 25, "generations": 30}
        )

    search_subject(planted_subject(), settings(1_000), tmp_path / "steps")
    search_subject(planted_subject(), settings(2_500), tmp_path / "steps", resume=True)
    stepwise = search_subject(planted_subject(), settings(6_000), tmp_path / "steps", resume=True)
    same_cases(search_subject(planted_subject(), settings(6_000), tmp_path / "once"), stepwise)
    again = search_subject(planted_subject(), settings(6_000), tmp_path / "steps", resume=True)
    same_cases(stepwise, again)


def test_other_settings_are_refused_with_what_differs(tmp_path) -> None:
    base = {"budget": Budget(evaluations=500), "strategy": "climb"}
    search_subject(planted_subject(), Settings(**base), tmp_path / "run")
    for change, words in (
        ({"epsilon": 0.05}, "epsilon 0.025, but 0.05"),
        ({"seed": 3}, "seed 0, but 3"),
        ({"strategy": "random"}, "strategy climb, but random"),
    ):
        with pytest.raises(OptionError, match=words):
            search_subject(planted_subject(), Settings(**(base | change)), tmp_path / "run", resume=True)
    with pytest.raises(OptionError, match="was made with another table"):
        search_subject(planted_subject(seed=9), Settings(**base), tmp_path / "run", resume=True)


def test_a_stop_leaves_a_usable_run(tmp_path) -> None:
    calls = iter(range(10**6))
    settings = Settings(budget=Budget(seconds=60), strategy="climb", options={"seeds": 25})
    run = search_subject(planted_subject(), settings, tmp_path / "run", stop=lambda: next(calls) > 30)
    assert run.status == "interrupted"
    assert run.summary["cases"] == len(run) > 0
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["k_max"] == run.summary["k_max"]
