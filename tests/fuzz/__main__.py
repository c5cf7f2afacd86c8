"""``python -m tests.fuzz --minutes 5``: odd files over every loader until the time is up, and what came of them."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .seeds import RUN_FILES, TARGETS

#: Inputs of one worker: enough to make its start cheap, few enough to see a leak.
BATCH = 400
SLOW, LARGE = 20.0, 2 << 30
#: Seconds of one batch at most, so that slow kinds leave time for the others; and batches in all, far more than fit.
LONGEST, MOST_BATCHES = 60.0, 100_000


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    words.add_argument("--minutes", type=float, default=5.0, help="how long in all")
    words.add_argument("--seed", type=int, default=0, help="where the numbering of inputs begins")
    words.add_argument("--kinds", default="", help="only these, separated by commas")
    words.add_argument("--jobs", type=int, default=1, help="workers at a time")
    words.add_argument("--out", type=Path, default=Path("fuzz-findings"), help="where findings are kept")
    chosen = words.parse_args()
    kinds = [kind for kind in (*TARGETS, *RUN_FILES) if not chosen.kinds or kind in chosen.kinds.split(",")]
    until, counts = time.monotonic() + 60 * chosen.minutes, {kind: Counter() for kind in kinds}

    def work(number: int) -> None:
        left, kind = until - time.monotonic(), kinds[number % len(kinds)]
        if left > 0:
            counts[kind] += run_batch(kind, chosen.seed + number // len(kinds) * BATCH, min(left, LONGEST), chosen.out)

    with ThreadPoolExecutor(chosen.jobs) as pool:
        for _ in pool.map(work, range(MOST_BATCHES)):
            if time.monotonic() > until:
                pool.shutdown(cancel_futures=True)
                break
    total = sum(counts.values(), Counter())
    for kind, found in {**counts, "all": total}.items():
        print(f"{kind}: {json.dumps(dict(sorted(found.items())))}", flush=True)
    return 1 if any(total[name] for name in ("tracebacks", "crashes", "slow", "large", "raw", "code")) else 0


def run_batch(kind: str, start: int, seconds: float, out: Path) -> Counter[str]:
    """One worker over one kind of file; a worker that stops is killed and its input kept."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as said:
        command = [sys.executable, "-m", "tests.fuzz.worker", kind, str(start), str(BATCH), str(seconds), folder]
        worker = subprocess.Popen([*command, str(out.resolve())], stdout=said, stderr=subprocess.DEVNULL)
        place = Path(folder) / "now"
        while worker.poll() is None:
            time.sleep(0.2)
            if place.exists() and time.time() - place.stat().st_mtime > 4 * SLOW:
                worker.kill()
                counts["slow"] += 1
        said.seek(0)
        for line in said.read().splitlines():
            counts += Counter(json.loads(line))
        if worker.wait() != 0 and not counts["slow"]:
            counts["crashes"] += 1
            out.mkdir(parents=True, exist_ok=True)
            (out / f"crash-{kind}-{place.read_text() if place.exists() else start}").touch()
    return counts


if __name__ == "__main__":
    sys.exit(main())
