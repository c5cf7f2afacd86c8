"""How near the engine comes to the machine's own single-precision matrix product.

The useful rate counts two operations per multiply-add after the first layer of the network as it stands
(nothing is counted for the first layer, activations, scores and classes; the last layer counts with both its
outputs), for whole `evaluate` calls. Both rates are measured in turns in one process with the same number of
threads (CPU seconds where it is one): `best` compares the best of each, `median` is the median of the ratios of
neighbours in time.

The second table says what a row of `gradients` costs, counted in twins that `evaluate` measures in that time.

The third is about networks of any width: the time of NumPy's matrix products of the same layers (those after the
first; there and back for gradients; for interventions all of them once, and for each those after its neuron), and of
a plain forward pass of all twins, divided by ours. All take turns in one process, with the same number of threads.

    python benchmarks/engine.py [--seconds 0.4] [--rounds 5] [--widths]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from threadpoolctl import threadpool_limits

from fairbits import Attribute, Encoding, Schema, Twins
from fairbits.engine import Plan, evaluate, gradients, plan_of, study
from fairbits.models import Do, Network

WIDTHS = (64, 32, 16, 8, 4, 2)
MULTIPLY_ADDS = sum(i * o for i, o in pairwise(WIDTHS))
SIZE = 2048

#: Hidden layers, people and twins of the third table.
SHAPES: tuple[tuple[tuple[int, ...], int, int], ...] = (
    ((64, 32, 16), 4000, 32),
    ((16,) * 8, 4000, 32),
    ((256, 128), 2000, 32),
    ((256,) * 8, 200, 32),
    ((512, 512), 500, 32),
    ((768, 768), 300, 32),
    ((1024, 1024, 512), 128, 32),
    ((2048, 2048), 500, 2),
    ((2048, 2048), 64, 32),
    ((4096,), 500, 32),
    ((4096, 4096), 64, 32),
    ((1024, 1024), 2, 1000),
    ((64, 32, 16), 10, 10000),
    ((391,) * 6, 1, 7869),
)
DOS = 16


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
        head="softmax",
        favourable=1,
        activations=["relu"] * (len(WIDTHS) - 1),
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


def seconds(action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    begin = clock()
    action()
    return clock() - begin


def describe(numeric: int, lookups: tuple[int, ...]) -> str:
    return f"{numeric} numeric" if not lookups else f"{len(lookups)} categorical, {sum(lookups)} one-hot"


def measure(m: int, numeric: int, lookups: tuple[int, ...], threads: int, args: argparse.Namespace) -> str:
    plan = make_plan(m, numeric=numeric, lookups=lookups)
    n = int(args.seconds * threads * 10e6 / m) + 1000
    codes = make_codes(n, numeric, lookups)
    matrix = np.random.default_rng(2).random((SIZE, SIZE), dtype=np.float32)
    engine, product, result = [], [], None
    clock = time.process_time if threads == 1 else time.perf_counter
    with threadpool_limits(threads):
        for _ in range(args.rounds):
            product.append(seconds(lambda: matrix @ matrix, clock))
            time.sleep(0.05)  # the matrix product's threads spin for a while before they let go of their cores
            begin = clock()
            result = evaluate(plan, codes, epsilon=0.025, partition="constrained", threads=threads)
            engine.append(clock() - begin)
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


def plain_pass(network: Network, inputs: np.ndarray) -> None:
    """What anybody would write about the encoded twins."""
    for start in range(0, len(inputs), 16384):
        x = inputs[start : start + 16384]
        for i, (weights, biases) in enumerate(zip(network.weights, network.biases, strict=True)):
            x = x @ weights + biases
            x = np.maximum(x, 0) if i + 1 < len(network.weights) else x


def measure_widths(hidden: tuple[int, ...], n: int, m: int, threads: int, args: argparse.Namespace) -> str:
    rng = np.random.default_rng(0)
    free = [Attribute(name=f"a{j}", kind="integer", low=0, high=9) for j in range(19)]
    protected = Attribute(name="p", kind="integer", low=0, high=m - 1, protected=True)
    schema = Schema(attributes=(*free, protected), target="y", classes=("no", "yes"))
    encoding, twins = Encoding.identity(schema), Twins(schema)
    shapes = list(pairwise((20, *hidden, 2)))
    network = Network.build(
        [rng.normal(0, np.sqrt(2 / i), (i, o)) * (0.2 if i == 20 else 1) for i, o in shapes],
        [np.zeros(o) for _, o in shapes],
    )
    people = rng.integers(0, 10, (n, 20)).astype(np.float64)
    inputs = encoding.encode_twins(people, twins).reshape(-1, 20).astype(np.float32)
    plan, many = plan_of(network, encoding, twins), np.resize(people, (max(n, 1024), 20))
    chosen = rng.integers(0, m, len(many))
    dos = [Do(0, j, 0.5) for j in range(min(DOS, hidden[0]))]
    rows = {i: rng.random((4096, i), dtype=np.float32) for i in {20, 2, *hidden}}
    layers = [rng.random(shape, dtype=np.float32) for shape in shapes[1:]]

    clock = time.process_time if threads == 1 else time.perf_counter

    def product(count: int, weights: list[np.ndarray]) -> float:
        """Seconds for so many rows, from products of as many, up to 4096 at a time."""
        size = min(count, 4096)
        return seconds(lambda: [rows[w.shape[0]][:size] @ w for w in weights], clock) * count / size

    found: dict[str, list[float]] = {}
    asked = people[: max(min(n, 24), n // 8)]
    ways: dict[str, Callable[[], object]] = {
        "evaluate": lambda: evaluate(plan, people, epsilon=0.025, partition="constrained", threads=threads),
        "gradients": lambda: gradients(plan, many, chosen, threads=threads),
        "interventions": lambda: study(
            network, encoding, twins, asked, dos, epsilon=0.025, partition="constrained", threads=threads
        ),
    }
    with threadpool_limits(threads):
        for _ in range(args.rounds):
            times = {name: seconds(way, clock) for name, way in ways.items()}
            forwards, back = (
                product(n * m, layers),
                product(len(many), [w for layer in layers for w in (layer, layer.T.copy())]),
            )
            shared, later = product(len(asked) * m, layers), product(len(asked) * m * len(dos), layers[1:])
            ratios = {
                "evaluate": forwards / times["evaluate"],
                "gradients": back / times["gradients"],
                "interventions": (shared + later) / times["interventions"],
                "plain": seconds(lambda: plain_pass(network, inputs), clock) / times["evaluate"],
            }
            for name, ratio in ratios.items():
                found.setdefault(name, []).append(ratio)
    shown = " | ".join(f"{float(np.median(found[name])):.2f}" for name in ("plain", *ways))
    shape = ", ".join(map(str, hidden)) if len(set(hidden)) > 1 or len(hidden) < 4 else f"{len(hidden)} × {hidden[0]}"
    return f"| {shape} | {n:,} | {m:,} | {threads} | {'kernel' if plan.fused else 'BLAS'} | {shown} |"


def print_widths(args: argparse.Namespace) -> None:
    print(
        "| hidden layers | people | m | threads | by | plain ÷ ours | product ÷ evaluate | gradients | interventions |"
    )
    print("| --- | --: | --: | --: | --- | --: | --: | --: | --: |")
    for threads in (1, 2):
        for hidden, n, m in SHAPES:
            print(measure_widths(hidden, n, m, threads, args), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.4, help="about how long one evaluate call takes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--widths", action="store_true", help="only the table of widths")
    args = parser.parse_args()
    if args.widths:
        print_widths(args)
        return
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
    print()
    print_widths(args)


if __name__ == "__main__":
    main()
