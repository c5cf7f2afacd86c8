"""The decision threshold of a guarded model, fitted to the training rows again: one shift of the log-odds.

Averages over twins lie closer together than single scores, so the old threshold favours the more frequent class.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Schema
from fairbits.measure import Evaluator
from fairbits.repair.margins import balanced_loss
from fairbits.repair.proposals.clip import moved

Doubles = npt.NDArray[np.float64]

#: How much of the way the log-odds move to the threshold that favours as many rows as the model does. The model has
#: seen these rows and is surer of them than of anybody else, so the whole way would be too far.
SHARE = 0.5
_TINY = 1e-6


def fitted_shift(
    average: Doubles, evaluator: Evaluator, rows: Codes, labels: npt.NDArray[np.float64], schema: Schema
) -> float:
    """What is added to the log-odds before the threshold decides; for a regression, to values, so that their
    mean is right.

    The threshold moves towards the one at which as many of these rows are favoured as by the model itself, and only
    where balanced accuracy gains more by it than chance might give.
    """
    if schema.regression:
        return float(np.mean(labels - average))
    deserved = labels == schema.favourable_index
    if deserved.all() or not deserved.any():
        return 0.0
    rule, index = schema.rule, schema.favourable_index
    cut = float(np.clip(evaluator.threshold, _TINY, 1 - _TINY))
    own = np.asarray(evaluator.model.scores(evaluator.encoding.encode(rows)))
    share = float((rule.decide(own) == index).mean())
    level = float(np.clip(np.quantile(average, 1 - share), _TINY, 1 - _TINY))
    shift = SHARE * float(np.log(cut / (1 - cut)) - np.log(level / (1 - level)))
    after = moved(average, shift, regression=False)
    gained = balanced_loss(rule.decide(average) == labels, rule.decide(after) == labels, labels)
    return shift if gained.upper < 0 else 0.0
