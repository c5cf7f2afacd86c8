"""What becomes of people when a neuron is held at a value: one intervention after the other, each alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes
from fairbits.engine import study
from fairbits.measure.evaluator import Evaluator
from fairbits.models import Do, HasInterventions, Network, require


@dataclass(frozen=True, slots=True, eq=False)
class InterventionFigures:
    """What interventions do to people; one entry per intervention."""

    k_mean: npt.NDArray[np.float64]
    id_rate: npt.NDArray[np.float64]
    k: npt.NDArray[np.int32]
    q_1: npt.NDArray[np.float32] | None = None


def hold(evaluator: Evaluator, people: Codes, dos: Sequence[Do], *, bits: bool = False) -> InterventionFigures:
    """All at once for a native network; one by one for other models, and where whole vectors are compared."""
    evaluator = evaluator.over_values
    model = evaluator.model
    valid = evaluator.valid_twins(people)
    if isinstance(model, Network) and not evaluator.by_vector and not (bits and valid is not None):
        effects = study(
            model,
            evaluator.encoding,
            evaluator.twins,
            people,
            dos,
            epsilon=evaluator.epsilon,
            partition=evaluator.partition,
            threshold=evaluator.threshold,
            valid=valid,
            bits=bits,
            threads=evaluator.threads,
        )
        return InterventionFigures(effects.k_mean, effects.flips.mean(axis=1), effects.k, effects.q_1)
    require(model, HasInterventions, "holding neurons")
    figures = [evaluator.with_model(model.with_interventions([do])).evaluate(people) for do in dos]  # type: ignore[attr-defined]
    k = np.array([found.k for found in figures], dtype=np.int32).reshape(len(dos), len(people))
    flips = np.array([found.flips.mean() for found in figures], dtype=np.float64)
    q_1 = np.array([found.q_1 for found in figures], dtype=np.float32).reshape(k.shape) if bits else None
    return InterventionFigures(k.mean(axis=1, dtype=np.float64), flips, k, q_1)
