"""Whatever happens to workers, disks and coordinators: nothing is lost, nothing doubled, and run.json says what was."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fairbits.errors import FairbitsError, OptionError
from fairbits.scale import ExecutorOptions, Listener, carry_out
from fairbits.scale import executor as coordinating
from fairbits.store import Run
from fairbits.store.parts import CASES

from .orders import job
from .work import SHARDS, cases_of, planted_search


@pytest.fixture(autouse=True)
def impatient(monkeypatch) -> None:
    monkeypatch.setattr(coordinating, "PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(coordinating, "TICK", 0.01)


def test_a_shard_is_tried_four_times(tmp_path) -> None:
    seen = []
    orders = {0: ("die", 3, "a"), 1: ("memory", 1, "b"), 2: ("disk", 2, "c"), 3: ("die", 9, "d"), 4: ("die", 0, "e")}
    listener = Listener(fault=lambda number, failed, fault: seen.append((number, failed, fault.kind)))
    carried = carry_out(ExecutorOptions(workers=2), job(tmp_path), orders.items(), listener)
    assert carried.results == {0: 4, 1: 2, 2: 3, 4: 1}
    assert {number: fault.kind for number, fault in carried.lost.items()} == {3: "killed"}
    assert [entry[1:] for entry in seen if entry[0] == 0] == [(1, "killed"), (2, "killed"), (3, "killed")]
    assert [entry[1:] for entry in seen if entry[0] == 2] == [(1, "disk"), (2, "disk")]
    assert len([entry for entry in seen if entry[0] == 3]) == 4


def test_a_full_disk_ends_the_run_and_a_wrong_wish_does_at_once(tmp_path) -> None:
    carried = carry_out(
        ExecutorOptions(workers=2), job(tmp_path), enumerate([("disk", 9, "a"), ("disk", 9, "b"), ("die", 0, "d")])
    )
    assert set(carried.lost) <= {0, 1}
    assert carried.lost
    assert carried.results == {}
    for workers in (1, 2):
        wrong = enumerate([(OptionError("no such thing"), 9, f"c{workers}")])
        with pytest.raises(OptionError, match="no such thing"):
            carry_out(ExecutorOptions(workers=workers), job(tmp_path), wrong)
        assert (tmp_path / f"c{workers}").read_text() == "x"


def test_workers_killed_at_random_moments(alone: Run, tmp_path) -> None:
    rng = np.random.default_rng(5)
    killed = 0

    def kill(*_: object) -> None:
        nonlocal killed
        children = multiprocessing.active_children()
        if children and killed < 3:  # whenever something was done, so that it never depends on how often one is told
            victim = children[rng.integers(len(children))]
            if victim.pid is not None:
                os.kill(victim.pid, signal.SIGKILL)
                killed += 1

    run = planted_search(tmp_path / "run", ExecutorOptions(workers=2), watch=kill)
    assert killed == 3
    assert run.status == "finished"
    assert cases_of(run).equals(cases_of(alone))
    faults = json.loads((tmp_path / "run" / "run.json").read_text())["scale"]["faults"]
    assert {fault["kind"] for fault in faults} <= {"killed"}  # one that is killed while idle disturbs no shard
    assert all(0 <= fault["shard"] < SHARDS and fault["when"] for fault in faults)


COORDINATOR = """
import sys
from fairbits.scale import ExecutorOptions
from tests.scale.work import planted_search
if __name__ == "__main__":
    planted_search(sys.argv[1], ExecutorOptions(workers=2))
"""


def test_a_killed_coordinator_is_resumed_and_takes_its_workers_along(alone: Run, tmp_path) -> None:
    folder = tmp_path / "run"
    script = tmp_path / "coordinator.py"
    script.write_text(COORDINATOR)
    root = Path(__file__).resolve().parents[2]
    paths = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    child = subprocess.Popen([sys.executable, str(script), str(folder)], env={**os.environ, "PYTHONPATH": paths})
    while child.poll() is None and not list(folder.glob("tasks/*.json")):
        time.sleep(0.002)
    child.kill()
    child.wait()
    before = Run.open(folder)
    assert before.status in ("running", "finished")
    run = planted_search(folder, ExecutorOptions(workers=1), resume=True)
    assert run.status == "finished"
    assert cases_of(run).equals(cases_of(alone))
    assert run.summary["evaluations"] == alone.summary["evaluations"]


def test_a_damaged_part_is_made_again(alone: Run, tmp_path) -> None:
    planted_search(tmp_path / "run", ExecutorOptions(workers=1))
    first, second = sorted((tmp_path / "run" / CASES).glob("part-*"))[:2]
    first.write_bytes(first.read_bytes()[:-100])
    second.unlink()
    broken = Run.open(tmp_path / "run")
    assert set(broken.damaged) == {first.name, second.name}
    assert not cases_of(broken).equals(cases_of(alone))
    run = planted_search(tmp_path / "run", ExecutorOptions(workers=1), resume=True)
    assert not run.damaged
    assert cases_of(run).equals(cases_of(alone))


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if sys.platform != "linux" or os.getuid() != 0 or subprocess.run(command, check=False).returncode:
        pytest.skip("a small disk can be made only by root, on Linux, where mounting is allowed")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_leaves_what_was_safe_and_goes_on_when_there_is_room(alone: Run, small_disk: Path) -> None:
    folder = small_disk / "run"
    filler = small_disk / "filler"

    def fill(*_: object) -> None:
        if list(folder.glob("tasks/000002-*.json")) and not filler.exists():
            with filler.open("ab", buffering=0) as file:
                while shutil.disk_usage(small_disk).free:
                    file.write(b"x" * 4096)

    with pytest.raises(FairbitsError, match=r"given up, .*after 4 tries: no space was left.*resume=True"):
        planted_search(folder, ExecutorOptions(workers=2), watch=fill)
    filler.unlink()
    half = Run.open(folder)
    assert half.status != "finished"
    assert len(half) > 0
    run = planted_search(folder, ExecutorOptions(workers=1), resume=True)
    assert run.status == "finished"
    assert cases_of(run).equals(cases_of(alone))


def test_whoever_stops_it_can_go_on(alone: Run, tmp_path) -> None:
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 40

    run = planted_search(tmp_path / "run", ExecutorOptions(workers=1), stop=stop)
    assert run.status == "interrupted"
    assert 0 < len(run) < len(alone)
    again = planted_search(tmp_path / "run", ExecutorOptions(workers=1), resume=True)
    assert again.status == "finished"
    assert cases_of(again).equals(cases_of(alone))
