"""How many people `climb` starts from: its default, fitted to the budget, beside the default of before and 1000 seeds.

    python -m benchmarks.seeds --subjects census,german

Grid partition, one thread, the same number of people asked about in every cell (750,000: what five seconds are taken
for), so that the figures do not depend on how busy the machine is; only the seconds of CPU do.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

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
    chosen = parser.parse_args()
    kinds = ("before", "1000 seeds", "fitted")
    columns = [f"{figure}: {kind}" for figure in ("K_F", "ID cases", "CPU s") for kind in kinds]
    print(f"| network | {' | '.join(columns)} |\n| --- |{' --: |' * len(columns)}")
    subjects = roster(tuple(chosen.subjects.split(",")) if chosen.subjects else None)
    for name in subjects.names:
        subject = subjects.load(name)
        cell(subject, 5_000, {})  # loads the kernels
        before = {"seeds": population(evaluator_of(subject).m), "chains": 1}
        cells = [cell(subject, chosen.people, options) for options in (before, {"seeds": 1000}, {})]
        figures = [f"{k:.2f}" for k, _, _ in cells] + [f"{ids:,}" for _, ids, _ in cells]
        figures += [f"{seconds:.1f}" for _, _, seconds in cells]
        print(f"| {name} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
