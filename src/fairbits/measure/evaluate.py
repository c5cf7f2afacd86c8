"""From people to figures, whatever the model: compiled kernels for native networks, scores for everything else."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Encoding, Schema, Table, Twins
from fairbits.domain.attribute import Codes
from fairbits.engine import Evaluation, Plan, evaluate, gradients, plan_of, scores
from fairbits.errors import ModelError, OptionError
from fairbits.measure.bits import DEFAULT_EPSILON, bits_limit, qid
from fairbits.measure.partition import check_epsilon, check_partition
from fairbits.models import HasGradients, Model, Network, require

Progress = Callable[[int, int], None]

#: A favourable decision needs at least this probability.
THRESHOLD = 0.5
#: Of a regression target's inter-quantile range 1–99 %, this share counts as "the same".
REGRESSION_SHARE = 0.025
#: People handed to the engine between two reports of progress.
_CHUNK = 8192


class Evaluator:
    """Asks one model about people and all their twins, under one tolerance and one partition."""

    def __init__(
        self,
        model: Model,
        schema: Schema,
        encoding: Encoding | None = None,
        *,
        epsilon: float = DEFAULT_EPSILON,
        partition: str = "constrained",
        threads: int | None = None,
    ):
        if threads is not None and threads < 1:
            raise OptionError(f"threads is {threads}; at least one is needed.")
        self.model = model
        self.schema = schema
        self.encoding = encoding or Encoding.fitting(schema, model.inputs)
        if self.encoding.width != model.inputs:
            raise ModelError(
                f"the network takes {model.inputs} inputs, but the attributes make {self.encoding.width}; "
                f"check that the model belongs to this table."
            )
        self.twins = Twins(schema)
        self.epsilon = check_epsilon(epsilon)
        self.partition = check_partition(partition)
        self.threads = threads or os.cpu_count() or 1
        self._plan: Plan | None = plan_of(model, self.encoding, self.twins) if isinstance(model, Network) else None

    @property
    def m(self) -> int:
        """How many twins a person has."""
        return self.twins.m

    @property
    def bits_limit(self) -> float:
        """The most bits that anyone can show here."""
        return bits_limit(self.m, self.epsilon, regression=self.schema.regression)

    def evaluate(self, codes: Codes, *, progress: Progress | None = None) -> Evaluation:
        """Figures of every person, (n,) arrays."""
        if progress is None:
            return self._evaluate(codes)
        pieces = []
        for start in range(0, len(codes), _CHUNK):
            pieces.append(self._evaluate(codes[start : start + _CHUNK]))
            progress(min(start + _CHUNK, len(codes)), len(codes))
        return Evaluation.concatenate(pieces)

    def scores(self, codes: Codes) -> npt.NDArray[np.float32]:
        """Scores of every twin of every person, (n, m)."""
        if self._plan is not None:
            return scores(self._plan, codes, threads=self.threads)
        result = np.empty((len(codes), self.m), dtype=np.float32)
        for rows, block in self.twins.blocks(codes):
            flat = block.reshape(-1, block.shape[-1])
            result[rows] = self._checked(self.model.scores(self.encoding.encode(flat)), rows).reshape(-1, self.m)
        return result

    @property
    def native(self) -> bool:
        """Whether the compiled kernels do the work."""
        return self._plan is not None

    @property
    def has_gradients(self) -> bool:
        """Whether the model can tell which way its scores go."""
        return isinstance(self.model, HasGradients)

    def gradients(self, codes: Codes, twins: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float64]:
        """Slope of the logit margin per unit of code, at one twin of each person, (n, attributes)."""
        if self._plan is not None:
            return gradients(self._plan, codes, twins, threads=self.threads).astype(np.float64)
        require(self.model, HasGradients, "this search")
        rows = codes.copy()
        rows[:, self.twins.columns] = self.twins.values[twins]
        return self.encoding.pull_back(self.model.gradients(self.encoding.encode(rows)), rows)  # type: ignore[attr-defined]

    def _evaluate(self, codes: Codes) -> Evaluation:
        if self._plan is not None:
            return evaluate(self._plan, codes, epsilon=self.epsilon, partition=self.partition, threads=self.threads)
        return self._evaluation_of(self.scores(codes))

    def _evaluation_of(self, table: npt.NDArray[np.float32]) -> Evaluation:
        figures = qid(table, epsilon=self.epsilon, partition=self.partition)
        favourable = np.zeros(len(table), np.int32)
        if not self.schema.regression:
            favourable = (table >= THRESHOLD).sum(axis=1).astype(np.int32)
        return Evaluation(
            k=figures.k.astype(np.int32),
            q_1=figures.q_1.astype(np.float32),
            low=figures.low.astype(np.float32),
            high=figures.high.astype(np.float32),
            low_twin=table.argmin(axis=1).astype(np.int32),
            high_twin=table.argmax(axis=1).astype(np.int32),
            favourable=favourable,
            m=self.m,
        )

    def _checked(self, found: Any, rows: slice) -> npt.NDArray[np.float32]:
        table = np.asarray(found, dtype=np.float32)
        bad = ~np.isfinite(table)
        if bad.any():
            person = rows.start + int(np.argmax(bad)) // self.m
            raise ModelError(
                f"the model gave {bad.sum():,} scores that are not finite (first: {table[bad][0]} for the person in "
                f"row {person + 1}); check its inputs."
            )
        return table


def default_epsilon(schema: Schema, table: Table) -> float:
    """0.025 for probabilities; for a regression, 2.5 % of the training target's range between 1 % and 99 %."""
    if not schema.regression:
        return DEFAULT_EPSILON
    labels = table.training().labels
    if labels is None:
        raise OptionError("a regression without a target column has no natural tolerance; give epsilon.")
    low, high = np.quantile(labels, [0.01, 0.99])
    if not high > low:
        raise OptionError(f"the target is {low:g} for almost everybody, so no tolerance follows from it; give epsilon.")
    return float(REGRESSION_SHARE * (high - low))
