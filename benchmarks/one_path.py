"""The cost of the search path: two states of the source side by side, one task, one thread, in turns.

    git archive 99a7e80^ src | tar -x -C /tmp/before
    python -m benchmarks.one_path /tmp/before/src src

One process for each state stays for the whole comparison; a round is one search by each of them, the one right after
the other, and who begins alternates. What is compared is the CPU time of whole searches, from the table to the summary.
The figure is the median of the rounds' ratios with the interval of that median (order statistics, 95 %), so that a
machine that is slower now than before does not matter, and noise shows. Both states must do the same work, so options
are given and the people found are compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import IO

from benchmarks.intervals import median_interval

CODE = """
import sys, tempfile, time
from pathlib import Path
from fairbits.data import load_subject
from fairbits.search import Budget, Settings, search_subject
name, strategy, people = sys.argv[1], sys.argv[2], int(sys.argv[3])
subject = load_subject(name)
options = {"seeds": 1000} if strategy == "climb" else {}
def search(evaluations):
    budget = Budget(evaluations=evaluations)
    settings = Settings(budget=budget, strategy=strategy, partition="grid", threads=1, options=options)
    with tempfile.TemporaryDirectory() as folder:
        return search_subject(subject, settings, Path(folder) / "run").summary
search(5000)
for _ in sys.stdin:
    begin = time.process_time()
    found = search(people)
    print(time.process_time() - begin, found["evaluations"], found["cases"], found["id_cases"], flush=True)
"""


class State:
    """A process that searches with one state of the source."""

    def __init__(self, source: Path, subject: str, strategy: str, people: int):
        self._process = subprocess.Popen(
            [sys.executable, "-c", CODE, subject, strategy, str(people)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(source)},
        )  # fmt: skip

    def search(self) -> tuple[float, tuple[str, ...]]:
        """Seconds of CPU of one search, and what it found."""
        print(file=self._process.stdin, flush=True)
        answer: IO[str] = self._process.stdout  # type: ignore[assignment] # a pipe
        seconds, *found = answer.readline().split()
        return float(seconds), tuple(found)

    def close(self) -> None:
        self._process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--subject", default="census")
    parser.add_argument("--strategies", default="climb,dice")
    parser.add_argument("--people", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=24)
    chosen = parser.parse_args()
    print("| strategy | CPU s before | after | speed after / before | interval (95 %) | the same people found |")
    print("| --- | --: | --: | --: | --- | --- |")
    for strategy in chosen.strategies.split(","):
        states = [State(source, chosen.subject, strategy, chosen.people) for source in (chosen.before, chosen.after)]
        seconds: list[list[float]] = [[], []]
        found: list[tuple[str, ...]] = [(), ()]
        for number in range(chosen.rounds):
            for one in (0, 1) if number % 2 == 0 else (1, 0):
                spent, found[one] = states[one].search()
                seconds[one].append(spent)
        for state in states:
            state.close()
        ratio, low, high = median_interval([a / b for a, b in zip(*seconds, strict=True)])
        same = "yes" if found[0] == found[1] else f"no: {found}"
        before, after = map(statistics.median, seconds)
        print(
            f"| {strategy} | {before:.2f} | {after:.2f} | {ratio:.3f} | {low:.3f} to {high:.3f} | {same} |", flush=True
        )


if __name__ == "__main__":
    main()
