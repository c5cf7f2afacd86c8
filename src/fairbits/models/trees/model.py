"""A tree ensemble as a model: rows of features in, scores out, and its trees open to the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fairbits.errors import ModelError
from fairbits.models.base import Array, SeveralClasses, checked_rows
from fairbits.models.trees.ensemble import Ensemble
from fairbits.models.trees.tree import Floats

#: Rows whose leaves are found at once.
_ROWS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class TreeModel(SeveralClasses):
    """An ensemble, and which of its predictions is the score."""

    ensemble: Ensemble
    classes: int | None = None
    favourable: int = 1
    names: tuple[str, ...] = ()
    name: str = "the tree ensemble"

    @property
    def inputs(self) -> int:
        """How many features a row has."""
        return self.ensemble.features

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The favourable-class probability (or the predicted value) of each row of features."""
        return self.chosen(self._predictions(inputs)).astype(np.float32)

    def class_scores(self, inputs: npt.ArrayLike) -> Array:
        """The probability of every class of each row of features."""
        found = self._predictions(inputs)
        both = found if found.shape[1] > 1 else np.column_stack([1 - found[:, 0], found[:, 0]])
        return both.astype(np.float32)

    def chosen(self, predictions: Floats) -> Floats:
        """The score among the predictions."""
        if predictions.shape[-1] > 1:
            return predictions[..., self.favourable]
        only = predictions[..., 0]
        return 1 - only if self.complement else only

    @property
    def complement(self) -> bool:
        """Whether the score is what the only prediction, the probability of class 1, leaves to class 0."""
        return bool(self.ensemble.outputs == 1 and self.classes and self.favourable == 0)

    def with_favourable(self, index: int) -> TreeModel:
        """The same trees, scoring another class."""
        if self.classes and not 0 <= index < self.classes:
            raise ModelError(f"class {index} does not exist; {self.name} decides between {self.classes}.")
        return replace(self, favourable=index)

    def _predictions(self, inputs: npt.ArrayLike) -> Floats:
        rows = checked_rows(inputs, self.inputs, self.name, np.float64)
        starts = range(0, max(len(rows), 1), _ROWS)
        return np.concatenate([self.ensemble.predictions(rows[start : start + _ROWS]) for start in starts])
