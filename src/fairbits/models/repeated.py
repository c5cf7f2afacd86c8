"""Answers that vary: asking a model anew, and the mean of several answers in place of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.errors import OptionError
from fairbits.models.base import Array, HasClassScores, HasFreshScores, Model, Wrapper


def fresh_scores(model: Model, inputs: npt.ArrayLike) -> Array:
    """Scores of rows, asked anew even where the model remembers its answers."""
    return model.fresh_scores(inputs) if isinstance(model, HasFreshScores) else model.scores(inputs)


def answers_vary(model: Model, inputs: npt.ArrayLike) -> bool:
    """Whether a model gives the same rows other scores when it is asked again."""
    rows = np.asarray(inputs)
    return len(rows) > 0 and not np.array_equal(fresh_scores(model, rows), fresh_scores(model, rows))


class Repeated(Wrapper):
    """A model whose every score is the mean of several answers; otherwise it can do what the original can."""

    def __init__(self, original: Model, repeats: int):
        if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
            raise OptionError(f"repeats is {repeats!r}; it is the number of answers per twin, 1 or more.")
        self.original = original
        self.inputs = original.inputs
        self.repeats = repeats
        if isinstance(original, HasClassScores):
            self.class_scores = self._class_scores  # a protocol is met by what an object has
        for name in ("gradients", "activations", "layer_gradients"):
            if hasattr(original, name):
                setattr(self, name, getattr(original, name))

    def __reduce__(self) -> tuple[Any, ...]:
        return Repeated, (self.original, self.repeats)

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The mean of several answers about each encoded row."""
        return self._mean([fresh_scores(self.original, inputs) for _ in range(self.repeats)])

    def fresh_scores(self, inputs: npt.ArrayLike) -> Array:
        """The mean of several answers, asked anew; nothing is remembered."""
        return self.scores(inputs)

    def _class_scores(self, inputs: npt.ArrayLike) -> Array:
        return self._mean([self.original.class_scores(inputs) for _ in range(self.repeats)])

    @staticmethod
    def _mean(answers: list[Array]) -> Array:
        return np.mean(np.asarray(answers, dtype=np.float64), axis=0).astype(np.float32)
