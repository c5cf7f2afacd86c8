"""Indirect bits on planted data with a known truth: coverage, bias, width, false claims, speed.

``python -m benchmarks.proxies [--repetitions 1000] [--claims 1000] [--rows 300000] [--workers 2] [--families linear]``
prints docs/tables/proxies-….csv. In full it takes about four hours of processor time, nearly all of it for the
claims: 0.1 s a repetition at 1,000 people, 0.5 s at 10,000; what a score tells takes six minutes. ``--people 1000``
leaves out the larger tables (40 minutes), ``--claims 100`` takes a tenth.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fairbits.measure import Grouping
from fairbits.proxies import ScoreBits, chained_bits, justified_of, score_bits, usable_bits
from fairbits.proxies.bits import column_bits
from tests.proxies.planted import NOTHING_USABLE, NOTHING_USABLE_LATER, SCORES, SOMETHING_USABLE, groups_of

#: The figures of the issue are for these.
PEOPLE = (1000, 10_000)
#: The first seed of the repetitions; the rules were tried out on seeds below it.
FIRST_SEED = 300_000
#: All planted data with justified attributes.
FAMILIES = {**NOTHING_USABLE_LATER, **NOTHING_USABLE, **SOMETHING_USABLE}


def _told(task: tuple[str, int, int]) -> tuple[float, ...]:
    """One repetition of what a score tells."""
    name, n, seed = task
    rng = np.random.default_rng((n, seed))
    a, s, truth = SCORES[name](n, rng)
    one, shuffled = _about(a, s, rng), _about(rng.permutation(a), s, rng)
    return truth, one.bits, one.low, one.guaranteed, one.placebo, shuffled.low > 0


def _about(a: np.ndarray, s: np.ndarray, rng: np.random.Generator) -> ScoreBits:
    """Bits about one attribute, or about the columns of several."""
    return score_bits(groups_of(a), s, rng) if a.ndim == 1 else chained_bits([groups_of(one) for one in a.T], s, rng)


def _used(task: tuple[str, int, int]) -> tuple[float, ...]:
    """One repetition of usable bits."""
    name, n, seed = task
    rng = np.random.default_rng((n, seed))
    j, categorical, s, a, truth = FAMILIES[name](n, rng)
    one = usable_bits(groups_of(a), justified_of(j, categorical, s, rng), rng)
    if one is None:
        raise RuntimeError(f"{name} with {n} people is too little for a figure")
    return truth, one.estimate, one.low, one.placebo, one.bits > 0


def coverage(pool: ProcessPoolExecutor, repetitions: int, chosen: list[str]) -> None:
    print(
        "| score | truth | n | bits | bias | at least | width | holds | guaranteed | holds | shuffled "
        "| claimed of shuffled |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in chosen:
        for n in PEOPLE:
            tasks = [(name, n, FIRST_SEED + i) for i in range(repetitions)]
            truth, bits, low, sure, placebo, false = _columns(pool, _told, tasks)
            print(
                f"| {name} | {truth[0]:.4f} | {n:,} | {bits.mean():.4f} | {(bits - truth).mean():+.4f} "
                f"| {low.mean():.4f} | {(bits - low).mean():.4f} | {(low <= truth).mean():.1%} | {sure.mean():.4f} "
                f"| {(sure <= truth).mean():.1%} | {placebo.mean():.4f} | {false.mean():.1%} |",
                flush=True,
            )


def claims(pool: ProcessPoolExecutor, repetitions: int, chosen: list[str], people: tuple[int, ...]) -> None:
    print("\n| planted | true usable bits | n | repetitions | estimate | placebo | claimed in | at least | holds |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in chosen:
        for n in people:
            tasks = [(name, n, FIRST_SEED + i) for i in range(repetitions)]
            truth, estimate, low, placebo, claimed = _columns(pool, _used, tasks)
            print(
                f"| {name} | {truth[0]:.4f} | {n:,} | {repetitions:,} | {estimate.mean():+.4f} | {placebo.mean():.4f} "
                f"| {claimed.mean():.1%} | {low.mean():.4f} | {(low <= truth).mean():.1%} |",
                flush=True,
            )


def _columns(pool: ProcessPoolExecutor, work: Any, tasks: list[tuple[str, int, int]]) -> Any:
    return np.array(list(pool.map(work, tasks, chunksize=5)), dtype=float).T


def speed(rows: int) -> None:
    rng = np.random.default_rng(0)
    j = rng.normal(size=(rows, 10))
    attributes = [rng.integers(0, size, rows) for size in (2, 2, 4)]
    s = 1 / (1 + np.exp(-(j[:, 0] + 0.5 * j[:, 1] + attributes[0] + 0.3 * attributes[2])))
    begin, worked = time.perf_counter(), time.process_time()
    learned = justified_of(j, (False,) * 10, s, rng)
    for i, codes in enumerate(attributes):
        groups = Grouping(f"a{i}", tuple(map(str, range(codes.max() + 1))), codes)
        score = score_bits(groups, s, rng)
        used = usable_bits(groups, learned, rng)
        columns = column_bits(
            groups.take(np.arange(min(rows, 20_000))), j[:20_000], tuple("abcdefghij"), s[:20_000], rng
        )
        if used is None:
            raise RuntimeError(f"{rows:,} rows are too few for a figure")
        print(f"{groups.name}: {score.bits:.3f} bits, {used.bits:.3f} usable, {len(columns)} columns", flush=True)
    print(
        f"{rows:,} rows x 3 attributes x 10 justified columns: {time.perf_counter() - begin:.1f} s, "
        f"{time.process_time() - worked:.1f} s of processor time, compiling included\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1000, help="of what a score tells")
    parser.add_argument("--claims", type=int, default=1000, help="repetitions of usable bits")
    parser.add_argument("--people", type=int, nargs="+", default=PEOPLE, help="for the claims")
    parser.add_argument("--rows", type=int, default=300_000, help="for the speed")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--families", nargs="+", help="only the planted data whose names contain one of these words")
    given = parser.parse_args()

    def of(names: Any) -> list[str]:
        return [name for name in names if not given.families or any(word in name for word in given.families)]

    if given.rows:
        speed(given.rows)
    with threadpool_limits(limits=1), ProcessPoolExecutor(given.workers, initializer=_alone) as pool:
        if given.repetitions:
            coverage(pool, given.repetitions, of(SCORES))
        if given.claims:
            claims(pool, given.claims, of(FAMILIES), tuple(given.people))


def _alone() -> None:
    """Two processes with two threads each would only wait for each other."""
    threadpool_limits(limits=1)


if __name__ == "__main__":
    main()
