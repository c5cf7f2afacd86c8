"""The cost of the search path: two states of the source side by side, one task, one thread, in turns.

    git archive 99a7e80^ src | tar -x -C /tmp/before
    python -m benchmarks.one_path /tmp/before/src src

Each round starts a process for every folder and strategy; figures are people asked about per second of CPU time of that
process, after a short search that loads the kernels, and without what any search costs, however short. Both states must
do the same work, so options are given and the people found are compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

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
marks = [time.process_time()]
for evaluations in (people // 4, people):  # the difference of the two leaves out what a search costs by itself
    found = search(evaluations)
    marks.append(time.process_time())
spent = (marks[2] - marks[1]) - (marks[1] - marks[0])
print((people - people // 4) / spent, found["evaluations"], found["cases"], found["id_cases"])
"""


def speed(source: Path, subject: str, strategy: str, people: int) -> tuple[float, tuple[str, ...]]:
    """People a second of CPU in a process of its own, and what it found."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-c", CODE, subject, strategy, str(people)],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    rate, *found = done.stdout.split()
    return float(rate), tuple(found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--subject", default="census")
    parser.add_argument("--strategies", default="climb,dice")
    parser.add_argument("--people", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    print("| strategy | people/s of CPU before | after | ratio of medians | ratio of bests | the same people found |")
    print("| --- | --: | --: | --: | --: | --- |")
    for strategy in chosen.strategies.split(","):
        rates: dict[Path, list[float]] = {chosen.before: [], chosen.after: []}
        found = {}
        for _ in range(chosen.rounds):
            for source, own in rates.items():
                rate, found[source] = speed(source, chosen.subject, strategy, chosen.people)
                own.append(rate)
        before, after = (statistics.median(rates[source]) for source in (chosen.before, chosen.after))
        best = max(rates[chosen.after]) / max(rates[chosen.before])
        same = "yes" if found[chosen.before] == found[chosen.after] else f"no: {found}"
        print(f"| {strategy} | {before:,.0f} | {after:,.0f} | {after / before:.3f} | {best:.3f} | {same} |", flush=True)


if __name__ == "__main__":
    main()
