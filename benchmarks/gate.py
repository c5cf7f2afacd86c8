"""The gate: how often it is wrong, what it catches, and how long a replay takes.

``python -m benchmarks.gate [--repetitions 1000] [--others 300] [--people 100000]``: gates of a model against its own
baseline, and of every other comparison.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np

from fairbits import Attribute, Schema, Table, load_subject
from fairbits.diff import Answers
from fairbits.gates import Judgement, Suite, freeze_subject, gate, policy_of, write_suite

SCHEMA = Schema(
    attributes=(
        Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
        Attribute(name="age", kind="integer", low=1, high=8, protected=True),
        Attribute(name="income", kind="real", low=0.0, high=1.0),
    ),
    classes=("no", "yes"),
)
DAY = date(2026, 1, 1)


def people(n: int, rng: np.random.Generator) -> tuple[Suite, Answers]:
    """People of whom 14 % flip, with k from 1 to 8 that rises with being near the cut."""
    codes = np.column_stack([rng.integers(0, 2, n), rng.integers(1, 9, n), rng.random(n)]).astype(np.float64)
    table = Table(codes, (rng.random(n) < 0.4).astype(np.float64))
    suite = Suite(table, np.zeros(n, np.int64), {}, "simulated", 0.025, "constrained", 1, 0, "0", "simulated")
    flips = rng.random(n) < 0.14
    k = np.where(flips, rng.integers(2, 9, n), rng.integers(1, 4, n))
    scores = rng.random(n)
    return suite, Answers(k, flips, scores, (scores > 0.5).astype(np.int64), "before")


def retrained(before: Answers, rng: np.random.Generator, *, gain: float, churn: float) -> Answers:
    """Another model: the share ``churn`` of people stops flipping, and that share and ``gain`` more begin to."""
    n = len(before)
    flips = before.flips.copy()
    flips[before.flips & (rng.random(n) < churn / max(before.flips.mean(), 1e-9))] = False
    begins = (gain + churn) / max((~before.flips).mean(), 1e-9)
    flips[~before.flips & (rng.random(n) < begins)] = True
    k = np.where(flips & ~before.flips, np.maximum(before.k, 2), before.k)
    moved = before.scores + 1e-6
    return Answers(k, flips, moved, before.decisions, "after")


def simulated(own: int, others: int, n: int = 5000) -> None:
    print("| the new model | gates | people | allowed rise | fail | inconclusive | pass |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    cases = [
        ("the same model", None, 0.0, 0.005),
        ("the same model", None, 0.0, 0.0),
        ("retrained, 1 % change sides either way, no rise", 0.0, 0.01, 0.005),
        ("retrained, 3 % change sides either way, no rise", 0.0, 0.03, 0.0),
        ("2 points more flip, nobody else changes", 0.02, 0.0, 0.005),
        ("2 points more flip, 1 % change sides either way", 0.02, 0.01, 0.005),
        ("2 points more flip, 2 % change sides either way", 0.02, 0.02, 0.005),
        ("2 points more flip, 2 % change sides either way", 0.02, 0.02, 0.0),
        ("5 points more flip, 5 % change sides either way", 0.05, 0.05, 0.005),
    ]
    for name, gain, churn, allowed in cases:
        count = {"fail": 0, "inconclusive": 0, "pass": 0}
        asked = policy_of({"checks": {"flip_rate": {"max_rise": allowed}, "bits_mean": {"max_rise": 0.05}}})
        repetitions = own if gain is None else others
        for i in range(repetitions):
            rng = np.random.default_rng((n, i))
            suite, before = people(n, rng)
            after = before if gain is None else retrained(before, rng, gain=gain, churn=churn)
            found = Judgement(SCHEMA, suite, after, before, asked, day=DAY)
            check = next(one for one in found.checks if one.name == "flip_rate_rise")
            count[check.verdict] += 1
        shares = " | ".join(f"{count[word] / repetitions:.1%}" for word in ("fail", "inconclusive", "pass"))
        print(f"| {name} | {repetitions:,} | {n:,} | {allowed:.1%} | {shares} |", flush=True)


def replayed(n: int) -> None:
    """A suite of so many people of the Census network, 90 twins each, through the whole gate."""
    subject = load_subject("census").checked()
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(subject.table), n)
    suite = freeze_subject(replace(subject, table=subject.table.rows(rows)), rows=n)
    checks = {
        "flip_rate": {"max": 0.5, "max_rise": 0.005},
        "bits_mean": {"max": 3.0, "max_rise": 0.05},
        "k_mean": 12,
        "k_max": 40,
        "k_person": 1,
        "indirect_bits": 0.5,
        "impact_ratio": 0.001,
        "accuracy": {"min": 0.8, "max_drop": 0.02},
    }
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        write_suite(suite, Path("suite.parquet"))
        seconds, processor, texts = [], [], []
        for _ in range(4):  # the first compiles and writes the baseline, the second has it
            begin, work = time.perf_counter(), time.process_time()
            found = gate(
                subject, policy={"checks": checks}, suite="suite.parquet", baseline="baseline.parquet", out="."
            )
            seconds.append(time.perf_counter() - begin)
            processor.append(time.process_time() - work)
            texts.append(Path("gate.json").read_text().replace(found.created, ""))
        os.chdir("/")
    same = texts[-1] == texts[-2]
    print(
        f"\n{n:,} people × 90 twins, {len(checks)} checks: {min(seconds[1:]):.1f} s by the clock, "
        f"{min(processor[1:]):.1f} s of processor time, warm (cold {seconds[0]:.1f} s); verdict {found.verdict}; "
        f"gate.json of two replays equal but for the time stamp: {same}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--others", type=int, default=300)
    parser.add_argument("--people", type=int, default=100_000)
    given = parser.parse_args()
    if given.repetitions:
        simulated(given.repetitions, given.others)
    if given.people:
        replayed(given.people)


if __name__ == "__main__":
    main()
