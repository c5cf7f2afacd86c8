"""An interpreter without fairbits, which opens the files that it is given: one for all tests of a worker.

What takes seconds is starting one and importing frameworks into it; a file that needs fairbits fails in it whenever
it is opened.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

#: Refuses to import fairbits; for every line runs the code of a file with what was left beside it.
_CODE = """
import pickle, sys, traceback
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "fairbits":
            raise ImportError("not here")
sys.meta_path.insert(0, Refuse())

for line in sys.stdin:
    with open(line.strip(), "rb") as file:
        code, given = pickle.load(file)
    space, fault = dict(given), ""
    try:
        sys.modules.pop("repaired", None)
        exec(code, space)
        assert "fairbits" not in sys.modules
    except BaseException:
        fault = traceback.format_exc()
    with open(line.strip() + ".out", "wb") as file:
        pickle.dump((fault, space.get("found")), file)
    print("answer", flush=True)
"""


class BareInterpreter:
    """Started with the first question."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory()

    def run(self, code: str, **given: Any) -> Any:
        """What the code leaves in ``found``."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _CODE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "KERAS_BACKEND": "torch"},
            )
        assert self._process.stdin
        assert self._process.stdout
        path = Path(self._folder.name) / "question"
        path.write_bytes(pickle.dumps((code, given)))
        print(path, file=self._process.stdin, flush=True)
        assert any(line.startswith("answer") for line in self._process.stdout), "it has died"
        fault, found = pickle.loads(path.with_name("question.out").read_bytes())  # noqa: S301 - our own child
        assert not fault, fault
        return found

    def scores(self, models: Sequence[Path], inputs: Any) -> list[np.ndarray]:
        """What each .skops or .onnx file says about the rows."""
        code = """
from pathlib import Path
found = []
for model in models:
    if model.endswith(".skops"):
        from skops import io
        loaded = io.load(model, trusted=io.get_untrusted_types(file=model))
        found.append(loaded.predict_proba(inputs) if hasattr(loaded, "predict_proba") else loaded.predict(inputs))
    else:
        import onnxruntime
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        found.append(session.run(["output"], {"inputs": inputs})[0])
"""
        found: list[np.ndarray] = self.run(code, models=[str(model) for model in models], inputs=inputs)
        return found

    def guarded(self, folder: Path, tables: Sequence[Any], *, name: str = "Guarded", model: Any = None) -> list[Any]:
        """What ``repaired.py`` says about each table: probabilities, decisions, scores."""
        code = """
import sys
sys.path.insert(0, folder)
import repaired
made = getattr(repaired, name)(*([] if model is None else [model]))
found = [(made.predict_proba(table), made.predict(table), made.scores(table)) for table in tables]
sys.path.remove(folder)
"""
        found: list[Any] = self.run(code, folder=str(folder), tables=list(tables), name=name, model=model)
        return found

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.communicate()
        self._folder.cleanup()
