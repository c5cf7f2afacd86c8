"""A table of twins as a model: what it scored is looked up, and what it did not score is not known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes
from fairbits.models.base import Array, checked_rows

Integers = npt.NDArray[np.int64]


class TwinScores:
    """Scores by person and combination of protected values; a row of inputs is their codes.

    ``pairs`` are the combinations that were scored, in order, (n, 1 + protected); ``pair`` says which of them each of
    the scores belongs to. Repeated scores of one are averaged.
    """

    def __init__(self, pairs: Integers, pair: Integers, scores: npt.NDArray[np.float64], *, sizes: tuple[int, ...]):
        self.inputs = len(sizes)
        self.pairs, self.pair, self.answers = pairs, pair, scores
        self.counts = np.bincount(pair, minlength=len(pairs))
        self.means = np.bincount(pair, weights=scores, minlength=len(pairs)) / self.counts
        self.combinations = int(np.prod(sizes[1:]))
        self._strides = np.cumprod((1, *sizes[:0:-1]), dtype=np.int64)[::-1]
        self._keys = pairs @ self._strides  # in order, because the pairs are

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The mean score of each row; of one that the table lacks, the mean of all (see ``known``)."""
        place, known = self._places(inputs)
        return np.where(known, self.means[place], self.means.mean()).astype(np.float32)

    def known(self, inputs: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which rows the table has a score of."""
        return self._places(inputs)[1]

    def _places(self, inputs: npt.ArrayLike) -> tuple[Integers, npt.NDArray[np.bool_]]:
        rows: Codes = checked_rows(inputs, self.inputs, "a table of twins", np.float64)
        keys = rows.astype(np.int64) @ self._strides
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return place, self._keys[place] == keys
