"""Many odd files of one kind in one process; prints counts, keeps what should not have happened."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairbits import sandbox
from fairbits.domain import reading
from fairbits.errors import FairbitsError
from fairbits.models import guards

from . import warm
from .mutation import mutated
from .seeds import CANARY, RUN_FILES, TARGETS, Mirror, load_run_folder, run_file, write_run

SLOW, LARGE = 20.0, 2 << 30
#: Inputs of one child: few enough that a leak of a library does not add up.
JOBS = 400
#: Seconds between two looks at a child, and for which it may stand still on a machine that may be very busy.
TICK, PATIENCE = 0.1, 900.0
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
    """What an input took: seconds of CPU, seconds by the wall in which it was not kept waiting, resident memory."""

    cpu: float = 0.0
    wall: float = 0.0
    resident: int = 0


def try_one(kind: str, content: bytes, folder: Path) -> tuple[str, str, Spent]:
    """What a loader makes of a file: loaded, refused, or what should not be; the sentence or traceback; what it took."""
    began, cpu, waited = time.monotonic(), warm.cpu(), warm.waited()
    guards._known.clear()
    reading._sound.clear()
    warm.reset_peak()
    said, verdict = "", "loaded"
    try:
        if kind in RUN_FILES:
            Mirror.of(folder).restore()
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
    spent = Spent(warm.cpu() - cpu, time.monotonic() - began - warm.waited() + waited, warm.peak())
    if spent.resident > LARGE:
        verdict = "large"
    if max(spent.cpu, spent.wall) > SLOW:
        verdict = "slow"
    return verdict, said, spent


def work(kind: str, first: int, end: int, until: float, note: warm.Note, place: Path, keep: Path, files: Any) -> None:
    """In the child: one input after another."""
    sound, others = files
    counts, seen = Counter(note.read().get("counts", {})), Counter()
    sandbox.try_out = warm.Trial(note).try_out  # type: ignore[assignment]
    for seed in range(first, min(end, first + JOBS)):
        note.write(seed=seed, counts=counts, trial=0, memory=0, began=warm.cpu())
        content = mutated(sound, kind, seed, others)
        verdict, said, spent = try_one(kind, content, place)
        counts["inputs"] += 1
        counts[verdict] += 1
        for name, most in (("cpu", spent.cpu), ("wall", spent.wall), ("resident", spent.resident)):
            note.state[name] = max(note.state.get(name, 0), most)
        if verdict not in {"loaded", "refused"}:
            last = said.strip().splitlines()[-1][:80] if said else verdict
            seen[last] += 1
            if seen[last] <= 2 or verdict in {"slow", "large"}:
                kept(keep, f"{verdict}-{kind}-{seed}", content, f"{spent}\n{said}")
        note.write(next=seed + 1, counts=counts)
        if time.monotonic() > until:
            note.write(next=end)
            return


def kept(keep: Path, name: str, content: bytes, said: str) -> None:
    """A finding as a file, and what was said beside it."""
    keep.mkdir(parents=True, exist_ok=True)
    (keep / name).write_bytes(content)
    (keep / f"{name}.txt").write_text(said, encoding="utf-8", errors="replace")


def main() -> None:
    """The parent: everything imported, then children that each do some inputs, until there are no more."""
    kind, start, count, seconds, folder, out = sys.argv[1:]
    place, keep = Path(folder), Path(out)
    warnings.simplefilter("ignore")
    os.chdir(folder)
    files = sound_files(kind, place)
    end, until, note = int(start) + int(count), time.monotonic() + float(seconds), warm.Note(place / "now")
    note.write(next=int(start) if files[0] else end, counts={})
    gc.collect()
    gc.freeze()
    while (first := note.read()["next"]) < end:
        note.state = note.read()
        child = os.fork()
        if not child:
            code = 1
            try:
                work(kind, first, end, until, note, place, keep, files)
                code = 0
            except BaseException:  # noqa: BLE001 - a fault of the fuzzer itself
                traceback.print_exc()
            finally:
                os._exit(code)
        fault = watch(child, note)
        state = note.read()
        if fault:
            counts = Counter(state["counts"])
            counts["inputs"] += 1
            counts[fault] += 1
            if fault == "contained":
                counts["refused"] += 1
            else:
                content = mutated(files[0], kind, state["seed"], files[1])
                kept(keep, f"{fault}-{kind}-{state['seed']}", content, str(state))
            note.state = state
            note.write(next=state["seed"] + 1, counts=counts)
    note.state = note.read()
    note.write(done=True)


def watch(child: int, note: warm.Note) -> str:
    """Wait for a child: what became of its input (contained, crashes, slow, large), or nothing where all went well."""
    fault, seed, stood = "", -1, time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        state = note.read()
        trying = bool(state.get("trial"))
        if ended:
            return fault or ("" if status == 0 else "contained" if trying else "crashes")
        if state.get("seed", -1) != seed:
            seed, stood = state.get("seed", -1), time.monotonic()
        if not fault:
            taken, resident = warm.cpu_of(child), warm.resident_of(child)
            if (trying and taken > state["trial"]) or (state.get("memory") and resident > state["memory"]):
                fault = "contained"
            elif taken - state.get("began", taken) > SLOW + 5 or time.monotonic() - stood > PATIENCE:
                fault = "slow"
            elif resident > LARGE + (1 << 30):
                fault = "large"
            if fault:
                os.kill(child, signal.SIGKILL)
        time.sleep(TICK)


if __name__ == "__main__":
    main()
