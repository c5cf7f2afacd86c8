"""``python -m tests.fuzz --minutes 5``: odd files over every loader until the time is up, and what came of them.

``--inputs 100000`` makes so many in all, the same number of every kind but for files of a run. What took too long or too much by the clock of
a busy machine is tried once more, alone in a new process, and counts only if it does so again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .seeds import RUN_FILES, TARGETS
from .warm import Note

#: Inputs of one worker where the minutes are given: enough to make its start cheap, few enough to get to every kind.
BATCH = 400
#: Seconds of one such batch at most, so that slow kinds leave time for the others; and batches in all, more than fit.
LONGEST, MOST_BATCHES = 60.0, 100_000
#: Files of a run come so much less often: each input is a whole report, hundreds of times as costly as a file.
RUN_SHARE = 0.1
#: The most that an input took: seconds of CPU, seconds in which it was not kept waiting, bytes.
MOST = {"cpu": 0.0, "wall": 0.0, "resident": 0}
FAULTS = ("tracebacks", "crashes", "slow", "large", "raw", "code")


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    words.add_argument("--minutes", type=float, default=5.0, help="how long in all")
    words.add_argument("--inputs", type=int, help="how many in all, instead of minutes")
    words.add_argument("--seed", type=int, default=0, help="where the numbering of inputs begins")
    words.add_argument("--kinds", default="", help="only these, separated by commas")
    words.add_argument("--jobs", type=int, default=1, help="workers at a time")
    words.add_argument("--out", type=Path, default=Path("fuzz-findings"), help="where findings are kept")
    chosen = words.parse_args()
    kinds = [kind for kind in (*TARGETS, *RUN_FILES) if not chosen.kinds or kind in chosen.kinds.split(",")]
    counts = {kind: Counter() for kind in kinds}
    shares = _shares(kinds, chosen.inputs or 0)
    began = time.monotonic()
    until = began + 60 * chosen.minutes

    def work(number: int) -> None:
        kind = kinds[number % len(kinds)]
        if chosen.inputs:
            found = run_batch(kind, chosen.seed, shares[kind], float("inf"), chosen.out)
            counts[kind] += _checked_again(kind, found, chosen.out)
            print(f"{kind}: {_line(counts[kind])} after {time.monotonic() - began:.0f} s", flush=True)
        elif (left := until - time.monotonic()) > 0:
            start = chosen.seed + number // len(kinds) * BATCH
            found = run_batch(kind, start, BATCH, min(left, LONGEST), chosen.out)
            counts[kind] += _checked_again(kind, found, chosen.out)

    with ThreadPoolExecutor(chosen.jobs) as pool:
        for _ in pool.map(work, range(len(kinds) if chosen.inputs else MOST_BATCHES)):
            if not chosen.inputs and time.monotonic() > until:
                pool.shutdown(cancel_futures=True)
                break
    total = sum(counts.values(), Counter())
    for kind, found in {**counts, "all": total}.items():
        print(f"{kind}: {_line(found)}", flush=True)
    print(f"{total['inputs']:,} inputs of {len(kinds)} kinds, {time.monotonic() - began:,.0f} s", flush=True)
    taken = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{taken.ru_utime + taken.ru_stime:,.0f} s of CPU; one input at most: {MOST['cpu']:.1f} s of CPU, "
        f"{MOST['wall']:.1f} s by the wall, {MOST['resident'] >> 20:,} MB",
        flush=True,
    )
    return 1 if any(total[name] for name in FAULTS) else 0


def _shares(kinds: list[str], inputs: int) -> dict[str, int]:
    """How many inputs of each kind make so many in all."""
    weights = [RUN_SHARE if kind in RUN_FILES else 1.0 for kind in kinds]
    found = {kind: int(inputs * weight / sum(weights)) for kind, weight in zip(kinds, weights, strict=True)}
    found[kinds[0]] += inputs - sum(found.values())
    return found


def _line(found: Counter[str]) -> str:
    return json.dumps({name: number for name, number in sorted(found.items()) if number})


def run_batch(kind: str, start: int, count: int, seconds: float, out: Path) -> Counter[str]:
    """A worker over one kind of file."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a folder of its own in it
    with tempfile.TemporaryDirectory(dir=memory) as folder, tempfile.TemporaryFile("w+") as said:
        ended = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.fuzz.worker",
                kind,
                str(start),
                str(count),
                str(seconds),
                folder,
                out.resolve(),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env={**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            check=False,
        ).returncode
        state = Note(Path(folder) / "now").read()
        if ended or not state.get("done"):
            said.seek(0)
            raise RuntimeError(f"the worker of {kind} ended with {ended}: {said.read()[-2000:]}")
    for name in ("cpu", "wall", "resident"):
        MOST[name] = max(MOST[name], state.get(name, 0))
    return Counter(state["counts"])


def _checked_again(kind: str, counts: Counter[str], out: Path) -> Counter[str]:
    """What was slow or large is tried alone: only what is so again counts, the rest as what it is then."""
    for verdict in ("slow", "large"):
        if not counts[verdict]:
            continue
        for path in sorted(out.glob(f"{verdict}-{kind}-*")):
            seed = path.name.rpartition("-")[2]
            if not seed.isdigit() or path.with_name(f"{path.name}.again").exists():
                continue
            found = run_batch(kind, int(seed), 1, float("inf"), out / "again")
            now = next(name for name in (*FAULTS, "loaded", "refused") if found[name])
            path.with_name(f"{path.name}.again").write_text(now)
            counts[verdict] -= 1
            counts[now] += 1
    return counts


if __name__ == "__main__":
    sys.exit(main())
