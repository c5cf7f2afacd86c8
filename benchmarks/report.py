"""How long, in how much memory and how large: the report of a run of a million cases, in a process of its own.

The run is made first (search by evaluations until there are enough cases, then debug and repair without training);
only `fairbits report` is measured. `--run` measures a run that is there already.

    python -m benchmarks.report [--cases 1000000] [--run runs/x] [--rounds 3]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from fairbits import Audit, Budget
from fairbits.debug import debug_run
from fairbits.repair import repair_run
from fairbits.store import Run

_MEASURED = (
    "import resource, subprocess, sys, time\n"
    "begin = time.perf_counter()\n"
    "subprocess.run([sys.executable, '-m', 'fairbits', *sys.argv[1:]], stdout=subprocess.DEVNULL, check=True)\n"
    "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
    "print(time.perf_counter() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)\n"
)


def made(folder: Path, cases: int) -> Run:
    """A Census run with every stage."""
    run = Audit.of("census").search(budget=Budget(cases=cases), out=folder)
    debug_run(run)
    repair_run(run, retrain=False)
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    args, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        place = args.run or Path(folder) / "run"
        cases = len(Run.open(place) if args.run else made(place, args.cases))
        out = Path(folder) / "out"
        command = [sys.executable, "-c", _MEASURED, "report", str(place), "--out", str(out)]
        rounds = []
        for _ in range(args.rounds):
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rounds.append([float(figure) for figure in done.stdout.split()])
        wall, cpu, memory = (min(one[i] for one in rounds) for i in range(3))
        size = (out / "report.html").stat().st_size / 1e6
    print("\n| report of | seconds | CPU seconds | peak MB | report.html, MB | asked for |")
    print("| --- | --: | --: | --: | --: | --- |")
    print(f"| {cases:,} cases | {wall:.1f} | {cpu:.1f} | {memory:.0f} | {size:.1f} | under 10 s, 1 GB, 6 MB |")


if __name__ == "__main__":
    main()
