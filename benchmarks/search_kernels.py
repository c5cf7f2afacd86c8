"""How fast people are told apart from those seen before, and compared with the rows of a table.

Each figure is the best of several rounds in one process; the NumPy yardstick compares a person with all rows at
once (`table != person`, summed), on a sample, in turns with ours. Every sampled answer is checked against it.
Prints two Markdown tables.

    python benchmarks/search_kernels.py [--people 50000] [--rounds 5] [--keys 1e6 1e7] [--threads 1]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fairbits.data import built_in, load_table
from fairbits.domain.schema import Schema
from fairbits.engine.nearest import NearestRow
from fairbits.engine.seen import Seen, keys_of

SUBJECTS = ("census", "default", "students", "meps15-synthetic")
BATCH = 1 << 16
SAMPLE = 100


def memory(what: str = "VmRSS") -> int:
    """Bytes resident now (VmRSS) or at most so far (VmHWM); 0 where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(what)), 0)


def seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def insert(seen: Seen, count: int, seed: int) -> float:
    """Seconds to add so many distinct keys, in batches; making them is not counted."""
    rng, spent = np.random.default_rng(seed), 0.0
    for start in range(0, count, BATCH):
        keys = rng.integers(0, 2**64, min(BATCH, count - start), dtype=np.uint64)
        spent += seconds(lambda keys=keys: seen.add(keys))  # type: ignore[misc]
    return spent


def measure_seen(count: int, rounds: int) -> str:
    fresh, again, taken = [], [], 0
    for _ in range(rounds):
        before = memory()
        seen = Seen()
        fresh.append(insert(seen, count, 1))
        taken = memory() - before
        again.append(insert(seen, count, 1))
        assert len(seen) == count  # noqa: S101
        del seen
    return (
        f"| {count:,} | {count / min(fresh) / 1e6:.1f} | {count / min(again) / 1e6:.1f} "
        f"| {taken / 2**20:.0f} | {taken / count:.1f} | {memory('VmHWM') / 2**20:.0f} |"
    )


def uniform(rng: np.random.Generator, schema: Schema, n: int) -> np.ndarray:
    columns = [
        rng.uniform(a.low, a.upper, n) if a.kind == "real" else rng.integers(int(a.low), int(a.upper) + 1, n)
        for a in schema.attributes
    ]
    return np.column_stack(columns).astype(np.float64)


def changed_rows(rng: np.random.Generator, schema: Schema, table: np.ndarray, n: int) -> np.ndarray:
    """Real rows with one to three free attributes drawn anew."""
    people, other = table[rng.integers(len(table), size=n)], uniform(rng, schema, n)
    times, free = rng.integers(1, 4, n), np.array(schema.free_columns)
    for change in range(3):
        rows = np.flatnonzero(times > change)
        columns = rng.choice(free, len(rows))
        people[rows, columns] = other[rows, columns]
    return people


def brute_force(table: np.ndarray, people: np.ndarray) -> list[tuple[int, int]]:
    answers = []
    for person in people:
        changed = (table != person).sum(axis=1)
        row = int(changed.argmin())
        answers.append((int(changed[row]), row))
    return answers


def measure_nearest(subject: str, args: argparse.Namespace) -> None:
    schema, table = built_in(subject).schema, load_table(subject).training().codes
    free = list(schema.free_columns)
    begin = time.perf_counter()
    nearest = NearestRow(schema, table)
    built = time.perf_counter() - begin
    rng, n = np.random.default_rng(0), args.people
    nearest.find(table[:10])
    crowds = {
        "real rows": table[rng.integers(len(table), size=n)],
        "1–3 changes": changed_rows(rng, schema, table, n),
        "uniform": uniform(rng, schema, n),
    }
    for name, people in crowds.items():
        plain_table, plain_people = table[:, free].copy(), people[:SAMPLE, free].copy()
        ours, plain, found = [], [], nearest.find(people[:1])
        for _ in range(args.rounds):
            begin = time.perf_counter()
            found = nearest.find(people, threads=args.threads)
            ours.append((time.perf_counter() - begin) / n)
            plain.append(seconds(lambda a=plain_table, b=plain_people: brute_force(a, b)) / SAMPLE)  # type: ignore[misc]
        answers = list(zip(found.changed[:SAMPLE].tolist(), found.row[:SAMPLE].tolist(), strict=True))
        assert answers == brute_force(plain_table, plain_people)  # noqa: S101
        print(
            f"| {subject} | {len(table):,} ({len(nearest):,}) × {len(free)} | {built:.2f} | {name} "
            f"| {found.changed.mean():.2f} | {1 / min(ours):,.0f} | {1 / min(plain):,.0f} "
            f"| {min(plain) / min(ours):,.0f} × |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keys", type=float, nargs="*", default=[1e6, 1e7])
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    Seen(capacity_hint=10).add(keys_of(np.zeros((1, 1)), np.arange(1)))
    print("| keys | M new/s | M seen/s | resident MiB | bytes per key | peak MiB of the process |")
    print("| --: | --: | --: | --: | --: | --: |")
    for count in args.keys:
        print(measure_seen(int(count), args.rounds), flush=True)
    codes = np.random.default_rng(0).integers(0, 50, (1_000_000, 13)).astype(np.float64)
    hashing = min(seconds(lambda: keys_of(codes, np.arange(10))) for _ in range(args.rounds))
    print(f"\nkeys of 10 columns: {1 / hashing:.1f} M people/s\n")
    print("| table | rows (distinct) × attributes | build s | people | mean changed | people/s | NumPy | ratio |")
    print("| --- | --: | --: | --- | --: | --: | --: | --: |")
    for subject in SUBJECTS:
        measure_nearest(subject, args)


if __name__ == "__main__":
    main()
