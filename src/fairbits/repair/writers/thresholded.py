"""Thresholds by group of a written ``repaired.py``; its text follows that of ``standalone``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.repair.writers.standalone import AskedModel, class_array, codes_of, decided, size_of, tabled

#: The facts about one model, which stand here where the file is written.
DATA: Any = json.loads("{}")


class Thresholded:
    """Asks a model, and moves the log-odds by group. It needs everybody's protected values, and refuses others."""

    def __init__(self, model: Any = None, *, data: Any = None, folder: Any = None) -> None:
        self.data = data = DATA if data is None else data
        self.model = AskedModel(data["model"], model, Path(__file__).parent if folder is None else folder)
        self.classes_ = class_array(data["classes"])
        self.threshold = data["threshold"]

    def scores(self, table: Any) -> Any:
        """The moved score of each row: the probability of the favourable class."""
        return self.predict_proba(table)[:, self.data["favourable"]].astype(np.float32)

    def predict_proba(self, table: Any) -> Any:
        """The moved probabilities of both classes, in the order of ``classes_``."""
        table, data = tabled(table), self.data
        if size_of(table) == 0:
            return np.empty((0, 2))
        twin = np.zeros(size_of(table), int)
        for about, values in zip(data["protected"], data["values"], strict=True):
            apart = np.abs(codes_of(table, about)[:, None] - np.array(values)[None])
            twin = twin * len(values) + np.argmin(apart, axis=1)
        own = np.clip(self.model(table)[:, data["favourable"]], 1e-6, 1 - 1e-6)
        odds = own / (1 - own) * np.exp(np.array(data["shifts"])[twin])
        score = odds / (1 + odds)
        return np.column_stack([1 - score, score] if data["favourable"] == 1 else [score, 1 - score])

    def predict(self, table: Any) -> Any:
        """The decided class of each row, as the owner's table names it."""
        return self.classes_[decided(self.predict_proba(table), self.data)]
