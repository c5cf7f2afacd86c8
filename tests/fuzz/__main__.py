"""``python -m tests.fuzz --minutes 5``: odd files over every loader until the time is up, and what came of them.

``--inputs 100000`` makes so many in all, the same number of every kind but for files of a run. What took too long or too much by the clock of
a busy machine is tried once more, alone in a new process, and counts only if it does so again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .seeds import RUN_FILES, TARGETS
from .worker import SLOW

#: Inputs of one worker where the minutes are given: enough to make its start cheap, few enough to get to every kind.
BATCH = 400
#: Seconds of one such batch at most, so that slow kinds leave time for the others; and batches in all, more than fit.
LONGEST, MOST_BATCHES = 60.0, 100_000
#: Files of a run come so much less often: each input is a whole report, hundreds of times as costly as a file.
RUN_SHARE = 0.1
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
            counts[kind] += run_batch(kind, chosen.seed, shares[kind], float("inf"), chosen.out)
            print(f"{kind}: {_line(counts[kind])} after {time.monotonic() - began:.0f} s", flush=True)
        elif (left := until - time.monotonic()) > 0:
            start = chosen.seed + number // len(kinds) * BATCH
            counts[kind] += run_batch(kind, start, BATCH, min(left, LONGEST), chosen.out)

    with ThreadPoolExecutor(chosen.jobs) as pool:
        for _ in pool.map(work, range(len(kinds) if chosen.inputs else MOST_BATCHES)):
            if not chosen.inputs and time.monotonic() > until:
                pool.shutdown(cancel_futures=True)
                break
    total = sum(counts.values(), Counter())
    for kind, found in {**counts, "all": total}.items():
        print(f"{kind}: {_line(found)}", flush=True)
    print(f"{total['inputs']:,} inputs of {len(kinds)} kinds, {time.monotonic() - began:,.0f} s", flush=True)
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
    """Workers over one kind of file; one that stops or dies costs its input, and another goes on behind it."""
    counts: Counter[str] = Counter()
    until, end = time.monotonic() + seconds, start + count
    while start < end and time.monotonic() < until:
        found, last, ended = _worker(kind, start, end - start, until - time.monotonic(), out)
        counts += found
        if ended == "well":
            break
        start = last + 1
        counts["inputs"] += 1
        counts[ended] += 1
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{ended}-{kind}-{last}").touch()
    return _checked_again(kind, counts, out)


def _worker(kind: str, start: int, count: int, seconds: float, out: Path) -> tuple[Counter[str], int, str]:
    """One worker: what it counted, its last input, and how it ended (well, slow or crashes)."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a folder of its own in it
    with tempfile.TemporaryDirectory(dir=memory) as folder, tempfile.TemporaryFile("w+") as said:
        command = [sys.executable, "-m", "tests.fuzz.worker", kind, str(start), str(count), str(seconds), folder]
        worker = subprocess.Popen(
            [*command, str(out.resolve())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env={**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        place, ended = Path(folder) / "now", "crashes"
        while worker.poll() is None:
            time.sleep(0.2)
            if place.exists() and time.time() - place.stat().st_mtime > 15 * SLOW:
                worker.kill()
                worker.wait()
                ended = "slow"
        state = json.loads(place.read_text()) if place.exists() else {"seed": start, "counts": {}}
        found, last = Counter(state["counts"]), state.get("seed", start)
        if worker.returncode == 0:
            ended = "well"
        elif ended == "crashes":
            said.seek(0)
            print(f"{kind} {last}: exit {worker.returncode}: {said.read()[-2000:]}", file=sys.stderr, flush=True)
            if "seed" not in state:  # it had done its work, and died on the way out
                found["crashes"] += 1
                ended = "well"
        return found, last, ended


def _checked_again(kind: str, counts: Counter[str], out: Path) -> Counter[str]:
    """What was slow or large is tried alone: only what is so again counts, the rest as what it is then."""
    for verdict in ("slow", "large"):
        if not counts[verdict]:
            continue
        for path in sorted(out.glob(f"{verdict}-{kind}-*")):
            seed = path.name.rpartition("-")[2]
            if not seed.isdigit() or path.with_name(f"{path.name}.again").exists():
                continue
            found, _, ended = _worker(kind, int(seed), 1, float("inf"), out / "again")
            now = ended if ended != "well" else next(name for name in (*FAULTS, "loaded", "refused") if found[name])
            path.with_name(f"{path.name}.again").write_text(now)
            counts[verdict] -= 1
            counts[now] += 1
    return counts


if __name__ == "__main__":
    sys.exit(main())
