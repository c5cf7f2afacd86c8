"""An interpreter without fairbits, which opens the files that it is given: one for all tests of a worker.

What takes seconds is starting one and importing frameworks into it; a file that needs fairbits fails in it whenever
it is opened.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

#: Refuses to import fairbits; for every line opens the files that it names one after the other, and scores the rows.
_CODE = """
import json, sys, traceback
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "fairbits":
            raise ImportError("not here")
sys.meta_path.insert(0, Refuse())
import numpy as np

def score(model, rows):
    inputs = np.load(rows) if rows.endswith(".npy") else None
    if model.endswith(".skops"):
        import pandas as pd
        from skops import io
        loaded = io.load(model, trusted=io.get_untrusted_types(file=model))
        asked = pd.read_parquet(rows) if inputs is None else inputs
        return loaded.predict_proba(asked) if hasattr(loaded, "predict_proba") else loaded.predict(asked)
    if model.endswith(".keras"):
        import keras
        return np.asarray(keras.models.load_model(model).predict(inputs, verbose=0))  # safe mode: no code in the file
    if model.endswith(".onnx"):
        import onnxruntime
        return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"inputs": inputs})[0]
    import torch
    return torch.export.load(model).module()(torch.from_numpy(inputs)).detach().numpy()

for line in sys.stdin:
    rows, *models = json.loads(line)
    fault = ""
    try:
        for model in models:
            np.save(model + ".npy", score(model, rows))
        assert "fairbits" not in sys.modules
    except Exception:
        fault = traceback.format_exc()
    print("answer", json.dumps(fault), flush=True)
"""


class BareInterpreter:
    """Started with the first file."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def scores(self, models: Sequence[Path], inputs: Any, folder: Path) -> list[np.ndarray]:
        """What each file says about the rows, a frame or an array, which are left in the folder."""
        framed = hasattr(inputs, "to_parquet")
        rows = folder / ("rows.parquet" if framed else "rows.npy")
        _ = inputs.to_parquet(rows) if framed else np.save(rows, inputs)
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
        print(json.dumps([str(rows), *map(str, models)]), file=self._process.stdin, flush=True)
        answers = (line.partition(" ") for line in self._process.stdout)  # frameworks may print, too
        fault = next((json.loads(text) for word, _, text in answers if word == "answer"), "it has died")
        assert not fault, fault
        return [np.load(f"{model}.npy") for model in models]

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.communicate()
