"""How cost grows: seconds and peak memory by rows, twins, width, depth, trees and cases, with slopes on log axes.

    python -m benchmarks.growth --plot docs/images/growth.png         everything: three minutes, some GB of disk
    python -m benchmarks.growth --only rows,cases --largest 100       some of it, up to a hundredth of the largest sizes

Each point is measured in a process of its own, so that its peak (``ru_maxrss``) is its own: the work is done on a few
first, so that kernels are there, and what the process took by then is stated beside it as the floor. A slope of 1 is
linear. It is taken over the upper half of the sizes: at small ones starting is all that there is to see.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SIZES: dict[str, tuple[int, ...]] = {
    "rows": (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    "twins": (2, 10, 100, 1_000, 10_000),
    "width": (16, 64, 256, 1_024, 4_096),
    "depth": (1, 2, 4, 8),
    "trees": (10, 100, 1_000),
    "cases": (100_000, 1_000_000, 10_000_000, 100_000_000),
    "report": (100_000, 1_000_000, 10_000_000, 100_000_000),
    "filter": (100_000, 1_000_000, 10_000_000, 100_000_000),
    "debug": (100_000, 1_000_000, 10_000_000, 100_000_000),
}
#: What is asked of the cases of a run, which is made once for each size.
OF_CASES = ("report", "filter", "debug")
SAID = {
    "rows": "`measure` of rows, 10 columns, 10 twins",
    "twins": "twins of 2,000 people",
    "width": "width of two hidden layers, 2,000 people, 10 twins",
    "depth": "hidden layers of 64, 20,000 people, 10 twins",
    "trees": "trees of 31 leaves, 20,000 people, 10 twins",
    "cases": "cases written and summed up",
    "report": "`report` of a run of cases",
    "filter": "`cases --where` of a run of cases",
    "debug": "`debug` of a run of cases",
}

Work = tuple[Callable[[], Any], Callable[[], Any]]


def made(*, twins: int = 10, hidden: tuple[int, ...] = (64, 32), rows: int = 1_000, trees: int = 0) -> Any:
    """A subject over nine free attributes and one protected one."""
    from fairbits import Attribute, Network, Schema, Table
    from fairbits.subject import make_subject

    rng = np.random.default_rng(0)
    attributes = [Attribute(name="group", kind="integer", low=0, high=twins - 1, protected=True)]
    attributes += [Attribute(name=f"a{i}", kind="integer", low=0, high=20) for i in range(9)]
    schema = Schema(tuple(attributes), classes=("no", "yes"))
    codes = np.empty((rows, 10))
    codes[:, 0] = rng.integers(0, twins, rows)
    codes[:, 1:] = rng.integers(0, 21, (rows, 9))
    if trees:
        from sklearn.ensemble import RandomForestClassifier

        from fairbits import Audit

        forest = RandomForestClassifier(trees, max_leaf_nodes=31, random_state=0, n_jobs=1)
        some = codes[:2_000]
        forest.fit(some, some[:, 0] / twins + some[:, 1] / 20 + rng.normal(0, 0.2, len(some)) > 1)
        return Audit(forest, Table(codes), schema).subject
    widths = [10, *hidden, 2]
    weights = [rng.normal(0, 1.5 / np.sqrt(a), (a, b)) for a, b in itertools.pairwise(widths)]
    weights[0][0] *= 20 / twins
    network = Network.build(weights, [rng.normal(0, 0.3, b) for b in widths[1:]])
    return make_subject("made", network, schema, Table(codes))


def evaluated(subject: Any, people: int) -> Work:
    """All twins of people scored and classed."""
    from fairbits.measure import evaluator_of

    evaluator, codes = evaluator_of(subject), subject.table.codes[:people]
    return lambda: evaluator.evaluate(codes[:64]), lambda: evaluator.evaluate(codes)


def measured(rows: int) -> Work:
    """The whole of `measure`, figures and intervals included."""
    from fairbits import Audit

    small, large = Audit.of(made(rows=200)), Audit.of(made(rows=rows))
    return small.measure, large.measure


def searched(folder: Path, cases: int) -> None:
    """A search that ends at so many cases."""
    from fairbits.search import Budget, Settings, search_subject

    settings = Settings(budget=Budget(cases=cases), strategy="random")
    search_subject(made(hidden=(8,), twins=4), settings, folder, tasks=1)


def asked(kind: str, folder: Path) -> Work:
    """One question to a run; the subject lives in Python only, and is handed over."""
    from fairbits import open_run

    run = open_run(folder, subject=made(hidden=(8,), twins=4))
    work: dict[str, Callable[[], Any]] = {
        "report": run.report,
        "filter": lambda: run.cases(where="k >= 2 and a3 < 5", top=20),
        "debug": lambda: run.debug(samples=200, trainings=0, threads=2),
    }
    return (lambda: None), work[kind]


def work_of(kind: str, size: int, folder: Path) -> Work:
    """What is done once for the floor, and what is measured."""
    if kind in OF_CASES:
        return asked(kind, folder)
    if kind == "cases":
        with tempfile.TemporaryDirectory() as place:
            searched(Path(place) / "warm", 1_000)
        return (lambda: None), lambda: searched(folder, size)
    made_of: dict[str, Callable[[], Work]] = {
        "rows": lambda: measured(size),
        "twins": lambda: evaluated(made(twins=size, rows=2_000), 2_000),
        "width": lambda: evaluated(made(hidden=(size, size), rows=2_000), 2_000),
        "depth": lambda: evaluated(made(hidden=(64,) * size, rows=20_000), 20_000),
        "trees": lambda: evaluated(made(trees=size, rows=20_000), 20_000),
    }
    return made_of[kind]()


def peak() -> float:
    """Megabytes that this process has taken at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def child(kind: str, size: int, folder: Path) -> None:
    """Measure one point, and print it as JSON."""
    first, work = work_of(kind, size, folder)
    first()
    floor, begin, cpu = peak(), time.perf_counter(), time.process_time()
    work()
    took, spent = time.perf_counter() - begin, time.process_time() - cpu
    print(json.dumps({"seconds": took, "cpu": spent, "floor": floor, "peak": peak()}))


def point(kind: str, size: int, folder: Path) -> dict[str, float]:
    """One point, in a process of its own."""
    words = [sys.executable, "-m", "benchmarks.growth", "--child", kind, str(size), str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{kind} of {size:,} failed:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def slope(sizes: list[int], values: list[float]) -> float:
    """Slope on log axes over the upper half of the sizes."""
    upper = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[upper:]), np.log(np.maximum(values[upper:], 1e-9)), 1)[0])


def shown(kind: str, points: dict[int, dict[str, float]]) -> None:
    """One table in Markdown, and its slopes."""
    sizes = list(points)
    print(f"\n| {SAID[kind]} | seconds | CPU s | peak, MB | of it before, MB |\n| --: | --: | --: | --: | --: |")
    for size, one in points.items():
        print(f"| {size:,} | {one['seconds']:.3g} | {one['cpu']:.3g} | {one['peak']:,.0f} | {one['floor']:,.0f} |")
    if len(sizes) > 1:
        seconds = slope(sizes, [one["seconds"] for one in points.values()])
        memory = slope(sizes, [one["peak"] for one in points.values()])
        print(f"\nSlopes: seconds {seconds:.2f}, peak memory {memory:.2f}.", flush=True)


def draw(curves: dict[str, dict[int, dict[str, float]]], path: Path) -> None:
    """Seconds on the left axis, megabytes on the right one, both logarithmic, beside a line of slope 1."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, 3, figsize=(11, 8.5), layout="constrained")
    for axis, (kind, points) in zip(axes.flat, curves.items(), strict=False):
        sizes, seconds = list(points), [one["seconds"] for one in points.values()]
        line = [seconds[-1] * size / sizes[-1] for size in sizes]
        axis.loglog(sizes, line, color="#9aa0a6", linewidth=1.2, label="linear")
        axis.loglog(sizes, seconds, "o-", color="#2f5fd0", label="seconds")
        other = axis.twinx()
        other.loglog(sizes, [one["peak"] for one in points.values()], "s--", color="#c2571a", label="peak, MB")
        other.set_ylim(10, 10_000)
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=7)
        axis.minorticks_off()
        axis.set_xlabel(SAID[kind].replace("`", ""), fontsize=8)
        axis.spines[["top"]].set_visible(False)
        other.spines[["top"]].set_visible(False)
    for axis in list(axes.flat)[len(curves) :]:
        axis.set_visible(False)
    lines = [*axes.flat[0].get_lines(), *other.get_lines()]
    figure.legend(handles=lines, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SIZES), help="some of: " + ", ".join(SIZES))
    parser.add_argument("--largest", type=int, default=1, help="leave out sizes above the largest over this")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        child(chosen.child[0], int(chosen.child[1]), Path(chosen.child[2]))
        return
    curves: dict[str, dict[int, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as place:
        for kind in chosen.only.split(","):
            fitting = [size for size in SIZES[kind] if size * chosen.largest <= SIZES[kind][-1]]
            sizes = fitting or SIZES[kind][:1]
            curves[kind] = {}
            for size in sizes:
                folder = Path(place) / f"run-{size}"
                if kind in OF_CASES and not folder.exists():
                    point("cases", size, folder)  # elsewhere: a child begins with the peak of its parent
                curves[kind][size] = point(kind, size, folder)
            shown(kind, curves[kind])
    if chosen.plot is not None:
        draw(curves, chosen.plot)


if __name__ == "__main__":
    main()
