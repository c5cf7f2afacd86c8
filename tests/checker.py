"""Written files asked in a fork of a process that has imported their libraries, and not in an interpreter of their own.

Importing takes the checker longer than asking. That it starts from nothing is tested wherever
``fresh_checker`` is asked for, and by commands in processes of their own.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairbits import sandbox

USUAL = ("fairbits.repair.writers.checker", "fairbits.models", "pandas", "sklearn.ensemble", "sklearn.pipeline")
USUAL += ("skops.io", "onnxruntime", "lightgbm")


def answered(given: Any, _tell: Any) -> None:
    """The child's side."""
    from fairbits.repair.writers.checker import main

    folder, environment = given
    os.environ.update(environment)
    main(folder)


def in_forked_process(jobs: Sequence[dict[str, Any]], *, seconds: float = 300.0) -> list[dict[str, Any]]:
    files = {Path(str(job["file"])).suffix for job in jobs}
    needs = USUAL + (("torch.export", "keras") if files & {".pt2", ".pt", ".keras"} else ())
    if sys.platform == "linux":  # what nurseries are forks of has imported all that; whoever asks need not
        needs = ("tests.checker",)
    safe = {} if all(job.get("trusted") for job in jobs) else {"TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1"}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "jobs.pkl").write_bytes(pickle.dumps(list(jobs)))
        given = (folder, {**os.environ, **safe})
        outcome = sandbox.try_out("tests.checker:answered", given, seconds=seconds, memory=1 << 34, needs=needs)
        assert not outcome.fault, outcome
        found: list[dict[str, Any]] = pickle.loads((Path(folder) / "answers.pkl").read_bytes())  # noqa: S301 - our own
        return found
