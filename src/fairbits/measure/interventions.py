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
    """Per intervention: mean k, and the share of people whose twins do not all get the same decision."""

    k_mean: npt.NDArray[np.float64]
    id_rate: npt.NDArray[np.float64]


def hold(evaluator: Evaluator, people: Codes, dos: Sequence[Do]) -> InterventionFigures:
    """Figures of people while neurons are held at values, for each intervention alone.

    All interventions go through the kernels at once for a native network; one by one for other models, and where whole
    vectors of class probabilities are compared.

    Parameters
    ----------
    evaluator
        The model, and how people are evaluated.
    people
        People, (n, attributes).
    dos
        Interventions: a layer, a neuron and the value to hold it at.

    Returns
    -------
    InterventionFigures
        Mean k and rate of discrimination, per intervention.
    """
    model = evaluator.model
    if isinstance(model, Network) and not evaluator.by_vector:
        effects = study(
            model,
            evaluator.encoding,
            evaluator.twins,
            people,
            dos,
            epsilon=evaluator.epsilon,
            partition=evaluator.partition,
            threshold=evaluator.threshold,
            valid=evaluator.valid_twins(people),
            threads=evaluator.threads,
        )
        return InterventionFigures(effects.k_mean, effects.flips.mean(axis=1))
    require(model, HasInterventions, "holding neurons")
    figures = [evaluator.with_model(model.with_interventions([do])).evaluate(people) for do in dos]  # type: ignore[attr-defined]
    k_mean = np.array([found.k.mean() for found in figures], dtype=np.float64)
    return InterventionFigures(k_mean, np.array([found.flips.mean() for found in figures], dtype=np.float64))
