"""The same bits whatever vectors the machine has: kernels compiled for another processor give what ours do.

Compiling takes seconds: it must happen once per machine, and not once per process.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from engine_reference import random_codes, random_plan
from llvmlite.binding import get_host_cpu_features

from fairbits.engine import ACTIVATIONS, evaluate, gradients

#: Processors before AVX-512: vectors of eight.
HASWELL = ("sse4.2", "avx", "avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "popcnt")


def digest() -> str:
    """Of all figures and gradients of people under networks of all kinds: dead neurons, tables, curves, odd widths."""
    found = hashlib.sha256()
    for number, activation in enumerate(ACTIVATIONS):
        widths = ((70, 33, 6, 3), (24, 7, 1), (5, 2))[number % 3]
        head = "sigmoid" if widths[-1] == 1 else "softmax"
        plan = random_plan(widths, m=9, lookups=(2, 5, 3), activation=activation, head=head, seed=number)
        codes = random_codes(plan, 100)
        for partition in ("grid", "constrained"):
            figures = evaluate(plan, codes, epsilon=0.025, partition=partition, threads=1)
            for name in ("k", "q_1", "low", "high", "low_twin", "high_twin", "favourable"):
                found.update(getattr(figures, name).tobytes())
        found.update(gradients(plan, codes, np.arange(100) % 9, threads=1).tobytes())
    return found.hexdigest()


#: What a process says of the digest, and how often it took each kernel from the disk and compiled it.
SCRIPT = """
import test_engine_targets
from fairbits.engine.kernels import evaluate, gradients
print(test_engine_targets.digest())
for stats in (evaluate.run_chunk.stats, gradients.gradients_chunk.stats):
    print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def test_kernels_for_an_older_processor_are_compiled_once_and_give_the_same_bits(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])}
    environment |= {"NUMBA_CACHE_DIR": str(tmp_path)}
    if all(get_host_cpu_features().get(name) for name in HASWELL):  # else compiled anew for what there is
        environment |= {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in HASWELL)}
    first, second = (
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    )
    assert first == [digest(), "0 1", "0 1"]
    assert second == [digest(), "1 0", "1 0"]
