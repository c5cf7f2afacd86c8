"""The probabilities of all classes, for all twins of a batch of people."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Encoding, Twins
from fairbits.engine import Plan, plan_of, scores
from fairbits.errors import ROW, ModelError
from fairbits.models import Model, Network


class ClassScores:
    """People in, (n, m, classes) out.

    A native network is asked once for each class, by the same kernels as for the favourable one: simpler than a kernel
    of its own, and as slow as there are classes.
    """

    def __init__(self, model: Model, encoding: Encoding, twins: Twins, threads: int):
        self._model = model
        self._encoding = encoding
        self._twins = twins
        self._threads = threads
        self._plans: list[Plan] = []
        if isinstance(model, Network):
            self._plans = [plan_of(model.with_favourable(c), encoding, twins) for c in range(model.classes)]

    def __call__(self, codes: Codes) -> npt.NDArray[np.float32]:
        """Probabilities of every class for every twin."""
        if self._plans:
            return np.stack([scores(plan, codes, threads=self._threads) for plan in self._plans], axis=2)
        pieces = []
        for rows, block in self._twins.blocks(codes):
            inputs = self._encoding.encode(block.reshape(-1, block.shape[-1]))
            found = np.asarray(self._model.class_scores(inputs), dtype=np.float32)  # type: ignore[attr-defined]
            if not np.isfinite(found).all():
                person = rows.start + int(np.argmax(~np.isfinite(found).all(axis=1))) // self._twins.m
                raise ModelError.of_row(
                    f"the model gave a probability that is not finite for the person in {ROW}; check its inputs.",
                    person,
                )
            pieces.append(found.reshape(len(block), self._twins.m, -1))
        return np.concatenate(pieces)
