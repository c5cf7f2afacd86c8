"""Compiling takes seconds: it must happen once per machine, not once per process."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import numpy as np
from fairbits.engine import Head, Plan, evaluate, kernels
plan = Plan(bias=[0], twins=[[0], [1]], widths=[1], head=Head.SIGMOID)
evaluate(plan, np.zeros((3, 0)), epsilon=0.025, partition="constrained", threads=1)
stats = kernels.run_chunk.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def test_a_second_process_does_not_compile(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert runs == [["0", "1"], ["1", "0"]]
