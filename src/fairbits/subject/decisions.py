"""What a model decides about rows as they are, by the subject's one rule."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairbits.domain import Schema
from fairbits.models import HasClassScores, Model


def decided(model: Model, inputs: npt.NDArray[np.float32], schema: Schema) -> npt.NDArray[np.int64] | None:
    """The position of the class that each encoded row is decided for."""
    if schema.regression:
        return None
    if len(schema.classes) == 2:
        return schema.rule.decide(model.scores(inputs))
    if not isinstance(model, HasClassScores):
        return None
    return schema.rule.most_likely(np.asarray(model.class_scores(inputs)))
