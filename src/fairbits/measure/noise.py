"""Scores that vary: how far repeated answers lie apart, and the bits that one and the same twin would show.

A service (a language model above all) may answer the same question otherwise. Then part of the bits is noise. Null
bits are the bits of one twin asked as often as a person has twins: nothing protected differs there, so whatever
shows is the model's own unsteadiness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from fairbits.domain import Codes
from fairbits.engine import Evaluation
from fairbits.measure.evaluator import Evaluator
from fairbits.models import HasClassScores, fresh_scores

if TYPE_CHECKING:
    from fairbits.subject import Subject

#: Answers that null bits are measured from, about; and the people among whom they are divided.
NULL_ANSWERS, MIN_PEOPLE, MAX_PEOPLE = 2_000, 4, 50


@dataclass(frozen=True, slots=True)
class Noise:
    """How far a model's answers vary when it is asked again."""

    rows: int
    varied: float
    quantile: float
    largest: float
    people: int
    m: int
    null_q_inf_mean: float
    null_q_inf_max: float
    null_flip_rate: float | None
    repeats: int = 1

    @classmethod
    def read(cls, document: Mapping[str, Any] | None) -> Noise | None:
        """Noise from a document; undoes ``document``."""
        return None if document is None else cls(**document)

    def document(self) -> dict[str, Any]:
        """As it is kept in JSON."""
        return asdict(self)

    def notes(self, epsilon: float) -> tuple[str, ...]:
        """Notes that a reader needs to read the figures."""
        mean = f", each the mean of {self.repeats} answers" if self.repeats > 1 else ""
        flips = "" if self.null_flip_rate is None else f", and {self.null_flip_rate:.0%} of their decisions flip"
        found = [
            f"the model's answers vary: of {self.rows:,} rows asked twice{mean}, {self.varied:.0%} came out otherwise, "
            f"95 % of all by at most {self.quantile:.3g}, the largest by {self.largest:.3g}.",
            f"null bits, of one and the same twin asked {self.m} times: {self.null_q_inf_mean:.2f} on average and "
            f"{self.null_q_inf_max:.2f} at most among {self.people} people{flips}; only bits beyond these can come "
            f"from protected attributes.",
        ]
        if epsilon < self.quantile:
            found.append(
                f"ε = {epsilon:g} lies below the noise, so repeated answers alone make classes; give --epsilon "
                f"{_upwards(self.quantile):g} or more, or average more answers per twin with --repeats."
            )
        return tuple(found)


def _upwards(value: float) -> float:
    """Two digits, never less than the value."""
    step = 10.0 ** (floor(log10(value)) - 1)
    return float(f"{ceil(value / step) * step:.2g}")


def noise_of(subject: Subject, evaluator: Evaluator) -> Noise | None:
    """How much a subject's answers vary, from rows that were asked twice.

    A native network is not asked: it gives the same answer every time.
    """
    if evaluator.native:
        return None
    probe = subject.identity.probe
    if not probe.varies:
        return None
    table = subject.table.codes
    people = min(len(table), MAX_PEOPLE, max(MIN_PEOPLE, NULL_ANSWERS // evaluator.m))
    chosen = np.unique(np.rint(np.linspace(0, len(table) - 1, people)).astype(np.int64))
    figures = null_figures(evaluator, table[chosen])
    bits = figures.q_inf
    return Noise(
        rows=len(probe.scores),
        varied=probe.varied,
        quantile=probe.quantile,
        largest=probe.largest,
        people=len(chosen),
        m=evaluator.m,
        null_q_inf_mean=float(bits.mean()),
        null_q_inf_max=float(bits.max()),
        null_flip_rate=None if evaluator.schema.regression else float(figures.flips.mean()),
        repeats=subject.repeats,
    )


def null_figures(evaluator: Evaluator, people: Codes) -> Evaluation:
    """Figures of people whose own row is asked m times in place of their m twins: the bits that noise alone makes."""
    inputs = evaluator.encoding.encode(people)
    schema, model = evaluator.schema, evaluator.model
    if len(schema.classes) > 2 and isinstance(model, HasClassScores):
        table = np.stack([np.asarray(model.class_scores(inputs), np.float32) for _ in range(evaluator.m)], axis=1)
        if evaluator.by_vector:
            return evaluator.figures_of_classes(table)
        scores = np.ascontiguousarray(table[:, :, schema.favourable_index])
    else:
        table = None
        scores = np.stack([fresh_scores(model, inputs) for _ in range(evaluator.m)], axis=1).astype(np.float32)
    return evaluator.figures_of_scores(np.clip(scores, 0, 1) if schema.probabilities else scores, table=table)
