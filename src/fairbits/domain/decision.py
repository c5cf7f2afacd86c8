"""From scores to decisions: one rule, stated once, for flips, counts, accuracy and groups alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

#: Where nothing else is said, a favourable decision needs at least this probability.
DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """How a model's scores become a class.

    Between two classes a score of at least ``threshold`` (both as float32, the precision of scores: see ``rounded``)
    is the favourable one. Between three or more the most likely class is decided, and a tie goes to the favourable one,
    then to the first. A regression (``classes`` 0) decides nothing.
    """

    classes: int
    favourable: int
    threshold: float | None

    def favours(self, scores: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether each score of the favourable class is a favourable decision, between two classes."""
        cut = DEFAULT_THRESHOLD if self.threshold is None else self.threshold
        return np.asarray(np.asarray(scores, dtype=np.float32) >= np.float32(cut))

    def rounded(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """Scores of a model that computes in float64 as float32, each on the side of the threshold where it was."""
        found = scores.astype(np.float32)
        if self.threshold is not None:
            cut = np.float32(self.threshold)
            found[(scores < self.threshold) & (found >= cut)] = np.nextafter(cut, np.float32(-np.inf))
        return found

    def decide(self, scores: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The position of the class that each score decides for, between two classes."""
        return np.where(self.favours(scores), self.favourable, 1 - self.favourable).astype(np.int64)

    def both(self, scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The probabilities of both classes, where there are two."""
        pair = (1 - scores, scores) if self.favourable == 1 else (scores, 1 - scores)
        return np.stack(pair, axis=-1)

    def most_likely(self, table: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The position of the class that each row of probabilities decides for."""
        if self.classes == 2:
            return self.decide(table[..., self.favourable])
        return np.where(self.favours_row(table), self.favourable, np.argmax(table, axis=-1)).astype(np.int64)

    def favours_row(self, table: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Whether each row of probabilities is a favourable decision, between three classes or more."""
        return np.asarray(table[..., self.favourable] >= table.max(axis=-1))


def rule_words(favourable: str | None, threshold: float | None, *, probability: bool = True) -> str:
    """A decision rule in words.

    Examples
    --------
    >>> rule_words("approved", 0.5)
    'favourable when P(approved) ≥ 0.5'
    >>> rule_words("approved", None), rule_words(None, None)
    ("favourable when 'approved' is the most likely class", 'a number is predicted, nothing is decided')
    """
    if favourable is None:
        return "a number is predicted, nothing is decided"
    if threshold is None:
        return f"favourable when {favourable!r} is the most likely class"
    if not probability:
        return f"favourable when the score of {favourable!r} is at least {threshold:.15g}"
    return f"favourable when P({favourable}) ≥ {threshold:.15g}"
