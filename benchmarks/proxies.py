"""Indirect bits on planted data with a known truth: coverage, bias, width, false claims, speed.

``python -m benchmarks.proxies [--repetitions 1000] [--rows 300000]``
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from fairbits.measure.groups import Grouping
from fairbits.proxies import justified_of, score_bits, usable_bits
from fairbits.proxies.columns import column_bits
from tests.proxies.planted import gaussian, noisy_copy, trap, two_groups


def coverage(repetitions: int) -> None:
    print(
        "| truth | n | bits | bias | at least (normal) | holds | guaranteed | holds | shuffled | claimed of shuffled |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for plant in (noisy_copy, gaussian):
        for n in (1000, 10_000):
            found, false, truth = [], 0, 0.0
            for i in range(repetitions):
                rng = np.random.default_rng((n, i))
                a, s, truth = plant(n, rng)
                one = score_bits(two_groups(a), s, rng)
                found.append((one.bits, one.low, one.guaranteed, one.placebo))
                false += score_bits(two_groups(rng.permutation(a)), s, rng).low > 0
            bits, low, sure, placebo = np.array(found).T
            print(
                f"| {plant.__name__} {truth:.4f} | {n:,} | {bits.mean():.4f} | {bits.mean() - truth:+.4f} "
                f"| {low.mean():.4f} | {(low <= truth).mean():.1%} | {sure.mean():.4f} | {(sure <= truth).mean():.1%} "
                f"| {placebo.mean():.4f} | {false / repetitions:.1%} |",
                flush=True,
            )


def claims(repetitions: int) -> None:
    print("\n| true usable bits 0 | n | plain estimate | placebo | claimed in |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, noise in (("score a function of J", 0.0), ("and noise", 0.5)):
        for n in (1000, 10_000):
            found = []
            for i in range(repetitions):
                rng = np.random.default_rng((n, i))
                j, s, a = trap(n, rng)
                s = s + noise * rng.normal(size=n)
                one = usable_bits(two_groups(a), justified_of(j, (False,) * 4, s, rng), rng)
                assert one is not None  # noqa: S101 - there are enough people
                found.append((one.estimate, one.placebo, one.bits > 0))
            estimate, placebo, claimed = np.array(found, dtype=float).T
            print(
                f"| {name} | {n:,} | {estimate.mean():.4f} | {placebo.mean():.4f} | {claimed.mean():.1%} |", flush=True
            )


def speed(rows: int) -> None:
    rng = np.random.default_rng(0)
    j = rng.normal(size=(rows, 10))
    attributes = [rng.integers(0, size, rows) for size in (2, 2, 4)]
    s = 1 / (1 + np.exp(-(j[:, 0] + 0.5 * j[:, 1] + attributes[0] + 0.3 * attributes[2])))
    begin = time.perf_counter()
    learned = justified_of(j, (False,) * 10, s, rng)
    print(f"\nE[S|J]: {time.perf_counter() - begin:.1f} s", flush=True)
    for i, codes in enumerate(attributes):
        groups = Grouping(f"a{i}", tuple(map(str, range(codes.max() + 1))), codes)
        score = score_bits(groups, s, rng)
        used = usable_bits(groups, learned, rng)
        columns = column_bits(
            groups.take(np.arange(min(rows, 20_000))), j[:20_000], tuple("abcdefghij"), s[:20_000], rng
        )
        assert used is not None  # noqa: S101 - there are enough people
        print(f"{groups.name}: {score.bits:.3f} bits, {used.bits:.3f} usable, {len(columns)} columns", flush=True)
    print(f"{rows:,} rows x 3 attributes x 10 justified columns: {time.perf_counter() - begin:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--claims", type=int, default=200)
    parser.add_argument("--rows", type=int, default=300_000)
    given = parser.parse_args()
    if given.rows:
        speed(given.rows)
    if given.repetitions:
        coverage(given.repetitions)
    if given.claims:
        claims(given.claims)


if __name__ == "__main__":
    main()
