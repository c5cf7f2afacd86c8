"""Kernels are compiled once per machine (see test_engine_targets.py), and again after a change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import fairbits

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
