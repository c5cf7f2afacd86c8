"""The chosen measure: what a search raises, cases are ranked by, and debugging and repairs lower (Definition IV.3)."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from fairbits.engine import Evaluation
from fairbits.errors import OptionError, choose_from

Measure = Literal["q_inf", "q_1"]
MEASURES: tuple[str, ...] = get_args(Measure)


def check_measure(measure: str) -> Measure:
    """Refuse a measure that does not exist."""
    if measure not in MEASURES:
        raise OptionError(f"measure {measure!r} is not known; {choose_from(str(measure), MEASURES)}")
    return measure  # type: ignore[return-value]  # just checked


def effective_classes(figures: Evaluation, measure: Measure) -> npt.NDArray[np.float64]:
    """How many classes a person has under a measure: k, or 2 to the power of Q1.

    2^Q1 is the number of classes of one size that would show as many bits: at least 1, at most k. So one search can
    climb either of the two on one scale.
    """
    if measure == "q_inf":
        return figures.k.astype(np.float64)
    return np.exp2(figures.q_1.astype(np.float64))


def target_of(figures: Evaluation, measure: Measure) -> npt.NDArray[np.float64]:
    """What debugging and repairs lower, for each person: k for ``q_inf`` as in the paper, bits for ``q_1``."""
    return (figures.k if measure == "q_inf" else figures.q_1).astype(np.float64)


def symbol_of(measure: Measure) -> str:
    """What debugging and repairs lower, in words: "mean k" is said of ``q_inf``, "mean Q1" of ``q_1``."""
    return "k" if measure == "q_inf" else "Q1"
