"""How near the engine comes to the machine's own single-precision matrix product.

The useful rate counts two operations per multiply-add after the first layer of the network as it stands
(nothing is counted for the first layer, activations, scores and classes; the last layer counts with both its
outputs), for whole `evaluate` calls. Both rates are measured in turns in one process with the same number of
threads: `best` compares the best of each, `median` is the median of the ratios of neighbours in time.

The second table says what a row of `gradients` costs, counted in twins that `evaluate` measures in that time.

    python benchmarks/engine.py [--seconds 0.4] [--rounds 5]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from threadpoolctl import threadpool_limits

from fairbits.engine import ActivationCode, Head, Plan, evaluate, gradients

WIDTHS = (64, 32, 16, 8, 4, 2)
MULTIPLY_ADDS = sum(i * o for i, o in pairwise(WIDTHS))
SIZE = 2048


def make_plan(m: int, *, numeric: int, lookups: tuple[int, ...], seed: int = 0) -> Plan:
    """A random network whose twins spread over a few classes, as trained ones do."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(0.0, np.sqrt(2.0 / shape[0]), shape).astype(np.float32)

    h = WIDTHS[0]
    return Plan(
        bias=normal(h) * 0.1,
        twins=normal(max(m, 2), h)[:m] * 3,
        widths=np.array(WIDTHS),
        head=Head.SOFTMAX,
        favourable=1,
        activations=np.full(len(WIDTHS) - 1, ActivationCode.RELU),
        alphas=np.zeros(len(WIDTHS) - 1),
        weights=np.concatenate([normal(i, o).ravel() for i, o in pairwise(WIDTHS)]),
        biases=normal(sum(WIDTHS[1:])) * 0.1,
        numeric_columns=np.arange(numeric),
        numeric_shifts=np.zeros(numeric),
        numeric_slopes=normal(numeric, h) if numeric else np.empty((0, h)),
        lookup_columns=numeric + np.arange(len(lookups)),
        lookup_lows=np.zeros(len(lookups)),
        lookup_offsets=np.cumsum((0, *lookups))[:-1] if lookups else np.empty(0),
        lookup_tables=normal(sum(lookups), h) if lookups else np.empty((0, h)),
    )


def make_codes(n: int, numeric: int, lookups: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(1)
    columns = [rng.normal(size=n) for _ in range(numeric)] + [rng.integers(0, size, n) for size in lookups]
    return np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.float64)


def seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def describe(numeric: int, lookups: tuple[int, ...]) -> str:
    return f"{numeric} numeric" if not lookups else f"{len(lookups)} categorical, {sum(lookups)} one-hot"


def measure(m: int, numeric: int, lookups: tuple[int, ...], threads: int, args: argparse.Namespace) -> str:
    plan = make_plan(m, numeric=numeric, lookups=lookups)
    n = int(args.seconds * threads * 10e6 / m) + 1000
    codes = make_codes(n, numeric, lookups)
    matrix = np.random.default_rng(2).random((SIZE, SIZE), dtype=np.float32)
    engine, product, result = [], [], None
    with threadpool_limits(threads):
        for _ in range(args.rounds):
            product.append(seconds(lambda: matrix @ matrix))
            time.sleep(0.05)  # the matrix product's threads spin for a while before they let go of their cores
            begin = time.perf_counter()
            result = evaluate(plan, codes, epsilon=0.025, partition="constrained", threads=threads)
            engine.append(time.perf_counter() - begin)
    peak = 2.0 * SIZE**3 / min(product) / 1e9
    rate = 2.0 * MULTIPLY_ADDS * n * m / min(engine) / 1e9
    ratios = [(2.0 * MULTIPLY_ADDS * n * m / e) / (2.0 * SIZE**3 / p) for e, p in zip(engine, product, strict=True)]
    inputs = describe(numeric, lookups)
    mean_k = float(result.k.mean()) if result is not None else 0.0
    return (
        f"| {inputs} | {m} | {threads} | {n * m / min(engine) / 1e6:.1f} | {rate:.1f} | {peak:.1f} "
        f"| {100 * rate / peak:.0f} % | {100 * float(np.median(ratios)):.0f} % | {mean_k:.1f} |"
    )


def measure_gradients(m: int, numeric: int, lookups: tuple[int, ...], threads: int, args: argparse.Namespace) -> str:
    plan = make_plan(m, numeric=numeric, lookups=lookups)
    n = int(args.seconds * threads * 10e6 / m) + 1000
    codes = make_codes(n, numeric, lookups)
    rows = np.repeat(codes, 10, axis=0)
    chosen = np.random.default_rng(3).integers(0, m, len(rows))
    twin, row = [], []
    for _ in range(args.rounds):
        begin = time.perf_counter()
        evaluate(plan, codes, epsilon=0.025, partition="constrained", threads=threads)
        twin.append((time.perf_counter() - begin) / (n * m))
        row.append(seconds(lambda: gradients(plan, rows, chosen, threads=threads)) / len(rows))
    best, median = min(row) / min(twin), float(np.median(np.divide(row, twin)))
    return (
        f"| {describe(numeric, lookups)} | {m} | {threads} | {1e-6 / min(row):.2f} | {best:.1f} | {median:.1f} "
        f"| {200 * best / m:.0f} % |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.4, help="about how long one evaluate call takes")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    begin = time.perf_counter()
    evaluate(make_plan(2, numeric=3, lookups=(2,)), np.zeros((30, 4)), epsilon=0.025, partition="grid", threads=1)
    print(f"first evaluate, compiled or from the cache: {time.perf_counter() - begin:.2f} s")
    begin = time.perf_counter()
    gradients(make_plan(2, numeric=3, lookups=(2,)), np.zeros((30, 4)), np.zeros(30, int), threads=1)
    print(f"first gradients, compiled or from the cache: {time.perf_counter() - begin:.2f} s\n")
    print("| inputs | m | threads | M twin scores/s | GFLOP/s | matmul GFLOP/s | best | median | mean k |")
    print("| --- | --: | --: | --: | --: | --: | --: | --: | --: |")
    one_hot = (2,) * 14 + (3,) * 14 + (5,) * 12 + (7,)
    for threads in (1, 2):
        for numeric, lookups in ((10, ()), (0, one_hot)):
            for m in (2, 9, 16, 36, 90):
                print(measure(m, numeric, lookups, threads, args), flush=True)
    print("\n| inputs | m | threads | M gradients/s | in twins, best | median | two per person, of evaluating m |")
    print("| --- | --: | --: | --: | --: | --: | --: |")
    for threads in (1, 2):
        for numeric, lookups in ((10, ()), (0, one_hot)):
            print(measure_gradients(90, numeric, lookups, threads, args), flush=True)


if __name__ == "__main__":
    main()
