"""Compiling takes seconds: it must happen once per machine, not once per process, and again after a change."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import numpy as np
from fairbits.engine import Head, Plan, evaluate
from fairbits.engine.kernels import evaluate as kernels
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


CHANGED = """
import shutil, sys
from pathlib import Path
import fairbits
copy = Path(sys.argv[1])
shutil.copytree(Path(fairbits.__file__).parent, copy / "fairbits", ignore=shutil.ignore_patterns("data", "__pycache__"))
file = copy / "fairbits" / "engine" / sys.argv[2]
file.write_text(file.read_text() + "# changed")
"""
NAME = "from fairbits.engine.kernels import evaluate; print(evaluate.run_chunk.py_func.__qualname__)"


def test_a_change_in_any_file_makes_another_copy(tmp_path):
    names = set()
    for file in ("kernels/lanes.py", "kernels/evaluate.py", "plan.py", "__init__.py"):
        copy = tmp_path / file.replace("/", "-")
        subprocess.run([sys.executable, "-c", CHANGED, str(copy), file], check=True)
        environment = os.environ | {"PYTHONPATH": str(copy)}
        run = subprocess.run([sys.executable, "-c", NAME], env=environment, capture_output=True, text=True, check=True)
        names.add(run.stdout)
    assert len(names) == 4


SETUP = """
import sys
others = {"pyarrow", "sklearn", "pandas", "duckdb", "matplotlib", "rich", "click", "jinja2", "tomlkit", "filelock"}
import fairbits.engine.__main__ as setup
print(sorted(others & {name.partition(".")[0] for name in sys.modules}))
"""


def test_kernels_can_be_compiled_before_everything_is_installed():
    run = subprocess.run([sys.executable, "-c", SETUP], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
