"""A subject's model, asked about the subject's people: the one place where the two meet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from fairbits.domain import Schema, Table
from fairbits.errors import OptionError
from fairbits.measure.bits import DEFAULT_EPSILON
from fairbits.measure.evaluator import Evaluator
from fairbits.models import no_model

if TYPE_CHECKING:
    from fairbits.models import Model
    from fairbits.subject import Subject

#: Of a regression target's inter-quantile range 1–99 %, this share counts as "the same".
REGRESSION_SHARE = 0.025
#: Evaluators made within `shared_evaluators`, by what they are made of, which is kept beside them; None outside of it.
_SHARED: ContextVar[dict[tuple[Any, ...], tuple[Evaluator, object]] | None] = ContextVar("evaluators", default=None)


@contextmanager
def shared_evaluators() -> Iterator[None]:
    """Within, whoever asks for the evaluator of the same model, people, tolerance, partition and threads gets one.

    For the stages of one audit. Outside of it every call makes its own: a model that lives in Python may have been
    trained again since the last one.
    """
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


def evaluator_of(
    subject: Subject,
    *,
    model: Model | None = None,
    epsilon: float | None = None,
    partition: str = "constrained",
    threads: int | None = None,
) -> Evaluator:
    """An evaluator for a subject's people, of its own model or of another one.

    The rows of the table are real people: they exist whatever the rules say.
    """
    if subject.scores_only:
        raise no_model()
    epsilon = default_epsilon(subject.schema, subject.table) if epsilon is None else epsilon
    parts = (subject.model if model is None else model, subject.schema, subject.encoding, subject.table.codes)
    shared = _SHARED.get()
    key = (*map(id, parts), epsilon, partition, threads)
    if shared is not None and key in shared:
        return shared[key][0]
    asked, schema, encoding, rows = parts
    found = Evaluator(asked, schema, encoding, epsilon=epsilon, partition=partition, threads=threads, rows=rows)
    if shared is not None:
        shared[key] = found, parts  # which stay alive, so that no other object gets their ids
    return found


def default_epsilon(schema: Schema, table: Table) -> float:
    """The default tolerance: 0.025 for probabilities; 2.5 % of the range (1 % to 99 %) of points, or of a target."""
    if schema.score_range is not None:
        return REGRESSION_SHARE * schema.score_range
    if not schema.regression:
        return DEFAULT_EPSILON
    labels = table.training().labels
    if labels is None:
        raise OptionError(
            "a regression without a target column has no natural tolerance; give epsilon, or name the target."
        )
    low, high = np.quantile(labels, [0.01, 0.99])
    if not high > low:
        raise OptionError(f"the target is {low:g} for almost everybody, so no tolerance follows from it; give epsilon.")
    return float(REGRESSION_SHARE * (high - low))
