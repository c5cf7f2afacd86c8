"""Many odd files of one kind in one process; prints counts, keeps what should not have happened."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from fairbits import sandbox
from fairbits.domain import reading
from fairbits.errors import FairbitsError
from fairbits.models import trial

from . import warm
from .mutation import mutated
from .seeds import CANARY, RUN_FILES, TARGETS, Mirror, load_run_folder, run_file, write_run

SLOW, LARGE = 20.0, 2 << 30
#: What no sentence may carry to a terminal.
_RAW = {chr(code) for code in (*range(32), *range(127, 160), 0x202A, 0x202B, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068)}


def sound_files(kind: str, folder: Path) -> tuple[bytes, list[bytes]]:
    """The sound file of a kind, and some of other kinds."""
    others = []
    for name in ("toml", "csv", "npz", "parquet"):
        path = folder / f"other-{TARGETS[name].file}"
        TARGETS[name].write(path)
        others.append(path.read_bytes())
    if kind in RUN_FILES:
        write_run(folder)
        path = run_file(folder, kind)
        if path is None:
            return b"", others
        Mirror.of(folder)
        return path.read_bytes(), others
    path = folder / TARGETS[kind].file
    TARGETS[kind].write(path)
    return path.read_bytes(), others


@dataclass(slots=True)
class Spent:
    """What an input took: seconds of CPU and by the wall, and the largest resident memory, children included."""

    cpu: float = 0.0
    wall: float = 0.0
    resident: int = 0
    contained: int = 0


def try_one(kind: str, content: bytes, folder: Path, crew: warm.Crew | None = None) -> tuple[str, str, Spent]:
    """What a loader makes of a file: loaded, refused, or what should not be; the sentence or traceback; what it took."""
    began, cpu = time.monotonic(), _cpu()
    trial._known.clear()  # noqa: SLF001 - the same name, size and instant do not make the same file here
    reading._sound.clear()  # noqa: SLF001 - likewise
    warm.reset_peak()
    if crew is not None:
        crew.reset()
    said, verdict = "", "loaded"
    try:
        if kind in RUN_FILES:
            mirror = Mirror.of(folder)
            mirror.restore()
            path = run_file(folder, kind)
            assert path is not None
            path.write_bytes(content)
            load_run_folder(path)
        else:
            path = folder / TARGETS[kind].file
            path.write_bytes(content)
            TARGETS[kind].load(path)
    except FairbitsError as error:
        verdict, said = "refused", str(error)
    except BaseException:  # noqa: BLE001 - this is what is looked for
        verdict, said = "tracebacks", traceback.format_exc()
    if verdict == "refused" and (_RAW & set(said) or any("\ud800" <= mark <= "\udfff" for mark in said)):
        verdict = "raw"
    if CANARY.exists():
        CANARY.unlink()
        verdict = "code"
    spent = Spent(_cpu() - cpu, time.monotonic() - began, warm.peak())
    if crew is not None:
        spent.cpu += crew.seconds
        spent.resident, spent.contained = max(spent.resident, crew.resident), crew.contained
    if spent.resident > LARGE:
        verdict = "large"
    if max(spent.cpu, spent.wall) > SLOW:
        verdict = "slow"
    return verdict, said, spent


def _cpu() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def main() -> None:
    kind, start, count, seconds, folder, out = sys.argv[1:]
    place, keep = Path(folder), Path(out)
    warnings.simplefilter("ignore")
    os.chdir(folder)
    sound, others = sound_files(kind, place)
    until, seen, counts = time.monotonic() + float(seconds), Counter(), Counter()
    crew = warm.Crew()
    sandbox.try_out = crew.try_out  # type: ignore[assignment]
    now = os.open(place / "now", os.O_WRONLY | os.O_CREAT, 0o600)
    most = Spent()
    for seed in range(int(start), int(start) + int(count)) if sound else ():
        line = json.dumps({"seed": seed, "counts": counts, "cpu": most.cpu, "resident": most.resident})
        os.pwrite(now, line.encode().ljust(500), 0)
        content = mutated(sound, kind, seed, others)
        verdict, said, spent = try_one(kind, content, place, crew)
        counts["inputs"] += 1
        counts[verdict] += 1
        counts["contained"] += spent.contained > 0
        most.cpu, most.resident = max(most.cpu, spent.cpu), max(most.resident, spent.resident)
        if verdict not in {"loaded", "refused"}:
            last = said.strip().splitlines()[-1][:80] if said else verdict
            seen[last] += 1
            if seen[last] <= 2 or verdict in {"slow", "large"}:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{verdict}-{kind}-{seed}").write_bytes(content)
                (keep / f"{verdict}-{kind}-{seed}.txt").write_text(said, encoding="utf-8", errors="replace")
        if time.monotonic() > until:
            break
    crew.close()
    os.pwrite(now, json.dumps({"counts": counts, "cpu": most.cpu, "resident": most.resident}).encode().ljust(500), 0)


if __name__ == "__main__":
    main()
