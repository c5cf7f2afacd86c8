"""Many workers: what two workers gain, what Ray costs, and what handing out shards takes by itself.

`python -m benchmarks.scale` prints the figures of docs/benchmarks.md as Markdown.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fairbits import Attribute, Schema
from fairbits.data import load_subject
from fairbits.engine.seen import keys_of
from fairbits.scale import ExecutorOptions, Job, Listener, carry_out
from fairbits.scale.run import search
from fairbits.search import Budget, Settings
from fairbits.store import Run, RunWriter, TaskWriter, find_doubles, keep_doubles
from fairbits.store.parts import Layout
from fairbits.subject import Subject

EVALUATIONS, SHARDS = 2_000_000, 16
NOTHING = 4000


class Coordinator:
    """Measures the processor time of this process between the first and the last word of a search."""

    def __init__(self) -> None:
        self.first: tuple[float, float] | None = None
        self.last = (0.0, 0.0)

    def __call__(self, *_: Any) -> None:
        self.last = time.process_time(), time.perf_counter()
        self.first = self.first or self.last

    @property
    def share(self) -> float:
        """Of one core."""
        if self.first is None:
            return 0.0
        return (self.last[0] - self.first[0]) / max(1e-9, self.last[1] - self.first[1])


def sharded(
    subject: Subject, executor_options: ExecutorOptions, *, evaluations: int, shards: int, watch: Any = None
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(budget=Budget(evaluations=evaluations))
        run = search(
            subject, settings, Path(folder) / "run", executor_options=executor_options, shards=shards, watch=watch
        )
        return run.summary or {}


def readers(cases: int = 10_000_000, tasks: int = 100) -> None:
    """Opening a run of many tasks: doubles found, and when they are known already."""
    schema = Schema(
        (
            Attribute(name="group", kind="integer", high=5, protected=True),
            *(Attribute(name=f"a{i}", kind="integer", high=20) for i in range(12)),
        )
    )
    manifest = {"subject": "made", "protected": ["group"], "strategy": "none", "options": {}, "seed": 0}
    manifest |= {"epsilon": 0.025, "partition": "grid", "budget": {}, "shards": tasks, "buckets": 16}
    each = cases // tasks
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        writer = RunWriter.create(folder, manifest, schema)
        columns = np.arange(1, 13)
        zero = dict.fromkeys(("k", "low_twin", "high_twin", "favourable", "twins", "seed_row", "changed"), 1)
        zero |= dict.fromkeys(("q_1", "low", "high", "plausibility", "l1", "seconds"), 0.5) | {"flips": False}
        before = np.zeros((0, 13))
        for number in range(tasks):
            rng = np.random.default_rng(number)
            people = np.zeros((each, 13))
            people[:, 1:] = rng.integers(0, 21, (each, 12))
            # A fifth of the people of every task are those of the task before.
            shared = before[-(each // 5) :]
            people[: len(shared)] = shared
            before = people
            with TaskWriter(folder, Layout(schema), number, offset=number * each, buckets=16) as task:
                for start in range(0, each, 20_000):
                    some = people[start : start + 20_000]
                    figures = {**zero, "evaluation": start + np.arange(len(some))}
                    task.append(some, figures, "made", keys=keys_of(some, columns))
        writer.finish("finished", {})
        run = Run.open(folder)
        print(f"\n| {cases:,} cases of {tasks} tasks | seconds | µs a case |\n| --- | --: | --: |")
        begin = time.perf_counter()
        found = find_doubles(run.parts_found, run.layout, buckets=16)
        took = time.perf_counter() - begin
        print(f"| doubles found | {took:.2f} | {1e6 * took / cases:.2f} |")
        keep_doubles(folder, run.parts_found, found)
        begin = time.perf_counter()
        opened = Run.open(folder)
        known = len(opened)
        took = time.perf_counter() - begin
        print(f"| opened, doubles known ({cases - known:,}) | {took:.2f} | {1e6 * took / cases:.2f} |")


def workers() -> None:
    """Two workers against one, and Ray against the processes, on the built-in Census network.

    Ray is up and has done something before it is measured: its own start keeps this machine's cores busy for seconds.
    """
    import ray

    subject = load_subject("census")
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    sharded(subject, ExecutorOptions(workers=2, ray="local"), evaluations=EVALUATIONS // 4, shards=4)
    watches = {"pool": Coordinator(), "ray": Coordinator()}
    plans = {
        "1 worker": (ExecutorOptions(workers=1), None),
        "2 workers": (ExecutorOptions(workers=2), watches["pool"]),
        "Ray, 2 workers": (ExecutorOptions(workers=2, ray="local"), watches["ray"]),
    }
    speeds = {}
    for name, (executor_options, watch) in plans.items():
        found = sharded(subject, executor_options, evaluations=EVALUATIONS, shards=SHARDS, watch=watch)
        speeds[name] = found["evaluations"] / found["seconds"]
    print(f"\n| census, {EVALUATIONS:,} people, {SHARDS} shards | people/s | ratio |\n| --- | --: | --: |")
    for name, speed in speeds.items():
        print(f"| {name} | {speed:,.0f} | {speed / speeds['1 worker']:.2f} |")
    pace = speeds["Ray, 2 workers"] / speeds["2 workers"]
    print(f"\nRay does {pace:.0%} of what the processes do. Coordinator, in cores per worker: ", end="")
    print(", ".join(f"{name} {watch.share / 2:.1%}" for name, watch in watches.items()) + ".")
    ray.shutdown()


def _shared(shared: Any) -> Any:
    return shared


def _nothing(_: Any, shard: int, stop: Callable[[], bool]) -> int:  # noqa: ARG001
    return shard


def simulation() -> None:
    """Thousands of shards that do nothing: what is left is the scheduler, and ours."""
    print(f"\n| {NOTHING:,} shards of nothing | ms a shard | coordinator, ms a shard |\n| --- | --: | --: |")
    began: list[tuple[float, float]] = []
    listener = Listener(started=lambda *_: began.append((time.perf_counter(), time.process_time())))
    for name, executor_options in (
        ("processes, 2", ExecutorOptions(workers=2)),
        ("Ray, 2 workers", ExecutorOptions(workers=2, ray="local")),
    ):
        began.clear()
        shards = ((number, number) for number in range(NOTHING))
        carried = carry_out(executor_options, Job(_shared, _nothing, None), shards, listener)
        took, spent = time.perf_counter() - began[0][0], time.process_time() - began[0][1]
        if carried.results != {number: number for number in range(NOTHING)}:
            raise SystemExit("shards were lost")
        print(f"| {name} | {1e3 * took / NOTHING:.2f} | {1e3 * spent / NOTHING:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=("workers", "simulation", "readers"))
    parser.add_argument("--cases", type=int, default=10_000_000)
    chosen = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    parts = {
        "workers": workers,
        "simulation": simulation,
        "readers": lambda: readers(chosen.cases),
    }
    for part in [chosen.part] if chosen.part else list(parts):
        parts[part]()
