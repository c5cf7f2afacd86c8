"""Batching told from strategy: all nine rivals and dice one individual at a time, against the batched forms.

Both sides count distinct ID cases, in turns, on the same subject and machine. The plain forms are in plain_forms.py.

    python -m benchmarks.rivals [--subjects census german default] [--protected sex] [--seconds 5] [--rounds 2]
    python -m benchmarks.rivals --everywhere      batched dice against all plain forms, each attribute of each subject
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.plain_forms import PLAIN
from fairbits.data import load_subject
from fairbits.paper.subjects import roster
from fairbits.paper.tables import Cell, Results, shown
from fairbits.search import Budget, Settings, search_subject
from fairbits.subject import Subject

COLUMNS = ("subject", "strategy", "plain ID/s", "batched ID/s", "ratio", "dice batched to plain")


def batched(subject: Subject, strategy: str, seconds: float, seed: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        run = search_subject(
            subject, Settings(budget=Budget(seconds=seconds), strategy=strategy, seed=seed), Path(folder) / "run"
        )
        # A search of a fraction of a second on a busy machine may end before its clock has moved.
        return run.summary["id_cases"] / max(run.summary["seconds"], 1e-3)


def measured(subjects: Sequence[str], protected: str, *, seconds: float, rounds: int) -> Results:
    """Distinct ID cases a second of both forms of every strategy."""
    rows: list[Sequence[Cell]] = []
    for name in subjects:
        subject = load_subject(name).with_protected([protected])
        speeds: dict[str, tuple[float, float]] = {}
        for strategy, kind in PLAIN.items():
            batched(subject, strategy, min(0.5, seconds), 99)  # first compilations are nobody's fault
            plain, ours = [], []
            for seed in range(rounds):
                plain.append(kind(subject, seed).run(seconds))
                ours.append(batched(subject, strategy, seconds, seed))
            speeds[strategy] = (float(np.mean(plain)), float(np.mean(ours)))
        for strategy, (slow, fast) in speeds.items():
            ratios = [speed / slow if slow else None for speed in (fast, speeds["dice"][1])]
            rows.append([f"{name}: {protected}", strategy, round(slow), round(fast), *ratios])
    times = f"{seconds:g} s a run, {rounds} run{'s' if rounds > 1 else ''} of each form"
    notes = [f"{times}; plain: one individual at a time, NumPy."]
    return Results("Batching told from strategy", COLUMNS, rows, notes, [_least(rows)])


def everywhere(subjects: Sequence[str], *, seconds: float) -> Results:
    """How many times the ID cases of every rival's plain form batched dice finds, on each single attribute."""
    rivals = [strategy for strategy in PLAIN if strategy != "dice"]
    rows: list[Sequence[Cell]] = []
    groups = [(name, protected) for name in subjects for protected in load_subject(name).schema.protected]
    for name, protected in groups:
        subject = load_subject(name).with_protected([protected])
        batched(subject, "dice", min(0.5, seconds), 99)  # first compilations are nobody's fault
        ours = batched(subject, "dice", seconds, 0)
        slow = [PLAIN[strategy](subject, 0).run(seconds) for strategy in rivals]
        rows.append([f"{name}: {protected}", round(ours), *(ours / speed if speed else None for speed in slow)])
    least = {
        strategy: min((row[2 + i] for row in rows if row[2 + i]), default=None) for i, strategy in enumerate(rivals)
    }
    said = ", ".join(f"{strategy} {shown(ratio)} ×" for strategy, ratio in least.items() if ratio is not None)
    notes = [f"{seconds:g} s, 1 run a cell; ratios of ID cases a second; – where the plain form found nobody."]
    title = "Batched dice against the plain forms, everywhere"
    return Results(title, ("subject", "dice ID/s", *rivals), rows, notes, [f"At least: {said}."])


def _least(rows: Sequence[Sequence[Cell]]) -> str:
    """Against each plain form, what batched dice finds at least."""
    ratios: dict[str, list[float]] = {}
    for _, strategy, *_, ratio in rows:
        if isinstance(ratio, float):  # none where the plain form found nobody
            ratios.setdefault(str(strategy), []).append(ratio)
    least = ", ".join(f"{strategy} {shown(min(found))} ×" for strategy, found in ratios.items())
    return f"Batched dice to the plain forms, at least: {least}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subjects", nargs="*", default=["census", "german", "default"])
    parser.add_argument("--protected", default="sex")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--everywhere", action="store_true")
    args = parser.parse_args()
    if args.everywhere:
        print(everywhere(roster(None).names, seconds=args.seconds).markdown())
        return
    print(measured(args.subjects, args.protected, seconds=args.seconds, rounds=args.rounds).markdown())


if __name__ == "__main__":
    main()
