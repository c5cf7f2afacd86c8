"""Compiling takes seconds: it must happen once per machine, not once per process, and again after a change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import fairbits

SCRIPT = """
import numpy as np
from fairbits.engine import Plan, evaluate
from fairbits.engine.kernels import evaluate as kernels
plan = Plan(bias=[0], twins=[[0], [1]], widths=[1], head="sigmoid")
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


NAME = "from fairbits.engine.kernels import evaluate; print(evaluate.run_chunk.py_func.__qualname__)"


def test_a_change_in_any_file_makes_another_copy(tmp_path):
    copy = tmp_path / "fairbits"
    shutil.copytree(Path(fairbits.__file__).parent, copy, ignore=shutil.ignore_patterns("data", "__pycache__"))
    names = set()
    for file in ("kernels/lanes.py", "kernels/evaluate.py", "plan.py", "__init__.py"):
        with (copy / "engine" / file).open("a") as changed:
            changed.write("# changed")
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        run = subprocess.run([sys.executable, "-c", NAME], env=environment, capture_output=True, text=True, check=True)
        names.add(run.stdout)
    assert len(names) == 4
