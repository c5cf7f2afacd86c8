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
from pathlib import Path

from fairbits import sandbox
from fairbits.errors import FairbitsError

from .mutation import mutated
from .seeds import CANARY, RUN_FILES, TARGETS, copy_run, load_run_folder, run_file, write_run

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
        copy_run(folder / "run", folder / "whole")
        return path.read_bytes(), others
    path = folder / TARGETS[kind].file
    TARGETS[kind].write(path)
    return path.read_bytes(), others


def try_one(kind: str, content: bytes, folder: Path) -> tuple[str, str]:
    """What a loader makes of a file: loaded, refused, or what should not be; and the sentence or traceback."""
    began = time.monotonic()
    said, verdict = "", "loaded"
    try:
        if kind in RUN_FILES:
            copy_run(folder / "whole", folder / "run")
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
    if time.monotonic() - began > SLOW:
        verdict = "slow"
    return verdict, said


def main() -> None:
    kind, start, count, seconds, folder, out = sys.argv[1:]
    place, keep = Path(folder), Path(out)
    warnings.simplefilter("ignore")
    os.chdir(folder)
    sound, others = sound_files(kind, place)
    until, seen, counts = time.monotonic() + float(seconds), Counter(), Counter()
    with sandbox.kept():
        for seed in range(int(start), int(start) + int(count)) if sound else ():
            (place / "now").write_text(str(seed))
            content = mutated(sound, kind, seed, others)
            verdict, said = try_one(kind, content, place)
            counts["inputs"] += 1
            counts[verdict] += 1
            if verdict not in {"loaded", "refused"}:
                last = said.strip().splitlines()[-1][:80] if said else verdict
                seen[last] += 1
                if seen[last] <= 2:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{verdict}-{kind}-{seed}").write_bytes(content)
                    (keep / f"{verdict}-{kind}-{seed}.txt").write_text(said, encoding="utf-8", errors="replace")
            if time.monotonic() > until:
                break
    used = [resource.getrusage(who).ru_maxrss * 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    if max(used) > LARGE:
        counts["large"] += 1
    print(json.dumps({name: number for name, number in counts.items() if number}), flush=True)


if __name__ == "__main__":
    main()
