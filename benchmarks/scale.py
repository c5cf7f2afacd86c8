"""Many workers: what two workers gain, what Ray costs, how cost grows, and what handing out shards takes by itself.

`python -m benchmarks.scale` prints the figures of docs/benchmarks.md as Markdown; `--plot FILE` draws the growth.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fairbits import Attribute, Network, Schema, Table
from fairbits.data import load_subject
from fairbits.engine.seen import keys_of
from fairbits.measure import Evaluator
from fairbits.scale import ExecutorOptions, Job, Listener, Signals, carry_out
from fairbits.scale.run import search
from fairbits.search import Budget, Settings
from fairbits.store import Run, RunWriter, TaskWriter, find_doubles, keep_doubles
from fairbits.store.parts import Layout
from fairbits.subject import Subject, make_subject

EVALUATIONS, SHARDS = 2_000_000, 16
CASES = (40_000, 120_000, 400_000, 1_200_000, 4_000_000)
SHARE = 40_000
TWINS = (8, 24, 80, 240, 800)
ATTRIBUTES = (6, 12, 24, 48)
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
        return {**(run.summary or {}), **{"bytes": _size(run), "read": _read(run)}}


def _size(run: Run) -> int:
    return sum(path.stat().st_size for path in run.folder.glob("cases/*"))


def _read(run: Run) -> tuple[float, float]:
    """Seconds of one question over all cases when doubles have to be found first, and when the search has done so."""
    times = []
    kept = run.folder / "cases" / "doubles.parquet"
    for known in (True, False):
        if not known:
            kept.unlink(missing_ok=True)
        opened = Run.open(run.folder)
        begin = time.perf_counter()
        opened.figures()
        times.append(time.perf_counter() - begin)
    return times[1], times[0]


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


def growth(plot: Path | None) -> None:
    """Seconds by cases, by twins and by attributes; and how far each is from a straight line through all."""
    curves = {"people asked": _by_cases(), "twins (m)": _by_twins(), "attributes": _by_attributes()}
    for name, points in curves.items():
        sizes, seconds = np.array(points).T
        slope, start = line(sizes, seconds)
        print(f"\n| {name} | seconds | per unit, µs | off the line |\n| --: | --: | --: | --: |")
        for size, took in points:
            off = took / (start + slope * size) - 1
            print(f"| {size:,.0f} | {took:.3f} | {1e6 * took / size:,.2f} | {off:+.1%} |")
        print(f"\n{name}: {1e6 * slope:,.3f} µs each, and {1e3 * start:,.1f} ms to begin with.")
    if plot is not None:
        draw(curves, plot)


def line(sizes: np.ndarray, seconds: np.ndarray) -> tuple[float, float]:
    """Slope and start (not below 0) of the line with the smallest relative errors."""
    weights = 1 / seconds
    columns = np.column_stack([sizes, np.ones(len(sizes))]) * weights[:, None]
    slope, start = np.linalg.lstsq(columns, seconds * weights, rcond=None)[0]
    if start < 0:
        slope, start = float((columns[:, 0] @ (seconds * weights)) / (columns[:, 0] @ columns[:, 0])), 0.0
    return float(slope), float(start)


def _by_cases() -> list[tuple[float, float]]:
    subject = load_subject("census")
    found = []
    for n in CASES:
        # Shards of one size, so that more people are more of the same; the fastest of two, but for the longest.
        tries = [
            sharded(subject, ExecutorOptions(workers=1), evaluations=n, shards=n // SHARE)
            for _ in range(1 if n == CASES[-1] else 2)
        ]
        one = min(tries, key=lambda found: found["seconds"])
        found.append((float(n), float(one["seconds"])))
        if n == CASES[-1]:
            with_, without = one["read"]
            print(
                f"\n{one['cases']:,} cases: {one['bytes'] / one['cases']:.0f} bytes each on disk; all figures are ",
                end="",
            )
            print(
                f"read in {with_:.2f} s, of which {with_ - without:.2f} s find the doubles of {n // SHARE} shards ",
                end="",
            )
            print(f"({1e6 * (with_ - without) / one['cases']:.2f} µs a case).")
    return found


def _by_twins() -> list[tuple[float, float]]:
    return [(float(m), _evaluated(made(12, m), 20_000)) for m in TWINS]


def _by_attributes() -> list[tuple[float, float]]:
    return [(float(count), _evaluated(made(count, 60), 50_000)) for count in ATTRIBUTES]


def _evaluated(subject: Subject, people: int) -> float:
    evaluator = Evaluator(subject.model, subject.schema, subject.encoding, threads=1)
    rows = subject.schema.clip(np.random.default_rng(1).uniform(0, 20, (people, len(subject.schema))).round())
    evaluator.evaluate(rows[:256])
    return fastest(lambda: evaluator.evaluate(rows))


def fastest(work: Callable[[], Any], *, times: int = 5) -> float:
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        took.append(time.perf_counter() - begin)
    return min(took)


def made(free: int, m: int) -> Subject:
    """A network of the benchmark's usual shape over one protected attribute with m values."""
    rng = np.random.default_rng(0)
    attributes = [Attribute(name="group", kind="integer", low=0, high=m - 1, protected=True)]
    attributes += [Attribute(name=f"a{i}", kind="integer", low=0, high=20) for i in range(free)]
    schema = Schema(tuple(attributes), classes=("no", "yes"))
    widths = [free + 1, 64, 32, 16, 8, 4, 2]
    weights = [rng.normal(0, 1.5 / np.sqrt(a), (a, b)) for a, b in itertools.pairwise(widths)]
    weights[0][0] *= 20 / m
    network = Network.build(weights, [rng.normal(0, 0.3, b) for b in widths[1:]])
    rows = schema.clip(rng.uniform(0, 20, (1000, free + 1)).round())
    return make_subject(f"made-{free}-{m}", network, schema, Table(rows))


def draw(curves: dict[str, list[tuple[float, float]]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(11, 3.4), layout="constrained")
    for axis, (name, points) in zip(axes, curves.items(), strict=True):
        sizes, seconds = np.array(points).T
        slope, start = line(sizes, seconds)
        axis.plot(sizes, start + slope * sizes, color="#9aa0a6", linewidth=1.2, label="straight line")
        axis.plot(sizes, seconds, "o", color="#2f5fd0", label="measured")
        if seconds.max() > 2 * seconds.min():
            axis.set(xscale="log", yscale="log")
        else:  # what hardly grows must not look as if it did
            axis.set_ylim(0, 1.3 * seconds.max())
        axis.set_xlabel(name)
        axis.set_ylabel("seconds")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=110)


def _shared(shared: Any) -> Any:
    return shared


def _nothing(_: Any, shard: int, signals: Signals) -> int:  # noqa: ARG001
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


def main() -> None:
    """The figures that need no plot."""
    workers()
    simulation()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=("workers", "growth", "simulation", "readers"))
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--cases", type=int, default=10_000_000)
    chosen = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    parts = {
        "workers": workers,
        "growth": lambda: growth(chosen.plot),
        "simulation": simulation,
        "readers": lambda: readers(chosen.cases),
    }
    for part in [chosen.part] if chosen.part else list(parts):
        parts[part]()
