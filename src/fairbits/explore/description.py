"""Subjects, people and neurons as the page takes them: plain values, and labels that cannot play tricks."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairbits.domain import Attribute, Codes, Schema, joined, shortened
from fairbits.explore.switches import MAX_NEURONS
from fairbits.measure import Evaluator
from fairbits.report import SCORES, Portrait, axes_of
from fairbits.subject import Subject

#: Letters of a name, and of a label, on the page.
NAME, LABEL = 60, 80
#: Integers with at most so many values and no labels are still a number and a slider; allowed sets are a list.
_DIGITS = 6


def setting_of(subject: Subject, evaluator: Evaluator) -> dict[str, Any]:
    """Facts about the subject that stay the same while people change."""
    axes = axes_of(evaluator)
    return {
        "subject": shortened(subject.name, LABEL),
        "protected": joined([shortened(name, NAME) for name in axes.names]),
        "axes": [
            {"name": shortened(name, NAME), "values": [shortened(value, LABEL) for value in values]}
            for name, values in zip(axes.names, axes.values, strict=True)
        ],
        "m": evaluator.m,
        "epsilon": evaluator.epsilon,
        "partition": evaluator.partition,
        "limit": evaluator.bits_limit,
        "threshold": axes.threshold,
        "regression": subject.schema.regression,
        "vector": evaluator.by_vector,
        "colours": list(SCORES),
        "quality": [] if subject.quality is None else [shortened(line, 300) for line in subject.quality.lines()],
        "favourable": None if subject.schema.favourable is None else shortened(subject.schema.favourable, NAME),
    }


def attributes_of(schema: Schema) -> list[dict[str, Any]]:
    """The attributes that say who a person is, each with the choices or the bounds of its field."""
    return [_field(schema.attributes[column]) for column in schema.person_columns]


def _field(attribute: Attribute) -> dict[str, Any]:
    field: dict[str, Any] = {"name": shortened(attribute.name, NAME), "kind": attribute.kind}
    if attribute.labels or attribute.allowed:
        codes = attribute.values() if attribute.discrete else np.array(attribute.allowed)
        return {**field, "choices": [[float(code), shortened(attribute.read(code), LABEL)] for code in codes]}
    whole = attribute.discrete
    return {**field, "low": attribute.low, "high": attribute.upper, "step": 1 if whole else None}


def figures_of(person: Portrait, evaluator: Evaluator) -> dict[str, Any]:
    """One person's figures, scores and classes; a twin that cannot exist has no score."""
    scores = np.asarray(person.scores, dtype=float)
    return {
        "k": person.k,
        "bits": person.q_inf,
        "q_1": person.q_1,
        "low": person.low,
        "high": person.high,
        "span": person.high - person.low,
        "worst": shortened(person.worst, 2 * LABEL),
        "best": shortened(person.best, 2 * LABEL),
        "flips": person.flips,
        "favourable": person.favourable,
        "twins": person.twins,
        "limit": evaluator.bits_limit,
        "scores": [None if np.isnan(score) else round(score, _DIGITS) for score in scores.tolist()],
        "classes": list(person.classes),
    }


def spread_of(evaluator: Evaluator, codes: Codes, layer: int) -> list[list[float]]:
    """The smallest and the largest output of each neuron of a layer over the twins of one person."""
    valid = evaluator.valid_twins(codes)
    twins = evaluator.twins.as_twins(np.repeat(codes, evaluator.m, axis=0), np.arange(evaluator.m))
    inputs = evaluator.encoding.encode(twins if valid is None else twins[valid[0]])
    model: Any = evaluator.model
    outputs = np.asarray(model.activations(inputs)[layer - 1], dtype=float)[:, :MAX_NEURONS]
    return np.round(np.stack([outputs.min(axis=0), outputs.max(axis=0)]), _DIGITS).tolist()
