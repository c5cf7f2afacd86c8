"""How many people `climb` starts from: its default, fitted to the budget, beside the default of before and 1000 seeds.

    python -m benchmarks.seeds --subjects census,german --rounds 7

Grid partition, one thread, the same number of people asked about in every cell (750,000: what five seconds are taken
for), so that K_F and ID cases do not depend on how busy the machine is; only the seconds of CPU do. They are taken in
turns; the last column is the median of the rounds' ratios with its interval (95 % from six rounds on).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.intervals import median_interval
from fairbits.data import load_subject
from fairbits.measure import evaluator_of
from fairbits.paper.subjects import roster
from fairbits.search import Budget, Settings, search_subject
from fairbits.search.strategy import population
from fairbits.subject import Subject


def cell(subject: Subject, people: int, options: dict[str, Any]) -> tuple[float, int, float]:
    """K_F, the number of ID cases, and seconds of CPU of one search."""
    begin = time.process_time()
    settings = Settings(
        budget=Budget(evaluations=people), strategy="climb", partition="grid", threads=1, options=options
    )
    with tempfile.TemporaryDirectory() as folder:
        found = search_subject(subject, settings, Path(folder) / "run").summary or {}
    return found["k_final"], found["id_cases"], time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--subjects", default="", help="names joined by commas; all ten by default")
    parser.add_argument("--people", type=int, default=750_000)
    parser.add_argument("--rounds", type=int, default=1, help="how often the seconds are taken")
    chosen = parser.parse_args()
    kinds = ("before", "1000 seeds", "fitted")
    columns = [f"{figure}: {kind}" for figure in ("K_F", "ID cases", "CPU s") for kind in kinds]
    columns.append("ID cases per CPU s: fitted / before")
    print(f"| network | {' | '.join(columns)} |\n| --- |{' --: |' * len(columns)}")
    rounds: list[list[float]] = [[] for _ in range(chosen.rounds)]
    subjects = roster(tuple(chosen.subjects.split(",")) if chosen.subjects else None)
    for note in subjects.notes:
        print(note, file=sys.stderr)
    for name in subjects.names:
        subject = load_subject(name)
        cell(subject, 5_000, {})  # loads the kernels
        before = {"seeds": population(evaluator_of(subject).m), "chains": 1}
        cells = [
            [cell(subject, chosen.people, options) for options in (before, {"seeds": 1000}, {})]
            for _ in range(chosen.rounds)
        ]
        ratios = [fitted[1] / fitted[2] * first[2] / first[1] for first, _, fitted in cells]
        for own, ratio in zip(rounds, ratios, strict=True):
            own.append(ratio)
        figures = [f"{k:.2f}" for k, _, _ in cells[0]] + [f"{ids:,}" for _, ids, _ in cells[0]]
        figures += [
            f"{statistics.median(seconds):.1f}" for seconds in zip(*([c[2] for c in r] for r in cells), strict=True)
        ]
        figures.append("{:.3f} ({:.3f} to {:.3f})".format(*median_interval(ratios)))
        print(f"| {name} | {' | '.join(figures)} |", flush=True)
    means = [statistics.geometric_mean(own) for own in rounds]
    print("\nGeometric mean of all: {:.3f} ({:.3f} to {:.3f})".format(*median_interval(means)))


if __name__ == "__main__":
    main()
