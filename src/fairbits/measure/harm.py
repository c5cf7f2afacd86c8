"""How large a harm is, by protected value: the mean gap of the score, and the share of favourable decisions lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes
from fairbits.measure.evaluator import Evaluator
from fairbits.randomness import sampled_rows

#: Twin scores that are looked at most: compiled kernels, and any other model.
MAX_SCORES, MAX_FOREIGN_SCORES = 40_000_000, 400_000
#: Twin scores held at once.
_BLOCK = 1_000_000


@dataclass(frozen=True, slots=True)
class Harm:
    """What one protected value does to the score, everything else about a person kept."""

    attribute: str
    value: str
    gap: float
    lost: float | None


def harms_of(evaluator: Evaluator, codes: Codes) -> tuple[Harm, ...]:
    """The harm of every protected value.

    For each attribute the other protected attributes take all their combinations, so the figures say what this one
    attribute does. Twins that cannot exist are left out.
    """
    evaluator = evaluator.over_values
    attributes = [evaluator.schema.attributes[i] for i in evaluator.twins.columns]
    if not attributes or not len(codes):
        return ()
    sizes = [len(attribute.twin_values()) for attribute in attributes]
    sums = [np.zeros((4, size)) for size in sizes]  # gaps, their number, decisions lost, their number
    decides = True
    people = max(1, _BLOCK // evaluator.m)
    for start in range(0, len(codes), people):
        batch = codes[start : start + people]
        scores = evaluator.scores(batch)
        favoured = evaluator.favoured(batch, scores)
        decides = decides and favoured is not None
        _add(sums, sizes, scores, favoured, evaluator.valid_twins(batch))
    found: list[Harm] = []
    for attribute, total in zip(attributes, sums, strict=True):
        gaps, losses = total[0] / np.maximum(total[1], 1), total[2] / np.maximum(total[3], 1)
        found += [
            Harm(attribute.name, attribute.read_twin(code), float(gap), float(lost) if decides else None)
            for code, gap, lost in zip(attribute.twin_values(), gaps, losses, strict=True)
        ]
    return tuple(found)


def harmed_people(evaluator: Evaluator, codes: Codes, rng: np.random.Generator, *, share: float = 1.0) -> Codes:
    """All people, or as many drawn at random as can be asked about once more."""
    limit = (MAX_SCORES if evaluator.native else MAX_FOREIGN_SCORES) // evaluator.m
    return codes[sampled_rows(len(codes), max(1, min(limit, round(share * len(codes)))), rng)]


def _add(
    sums: list[npt.NDArray[np.float64]],
    sizes: list[int],
    scores: npt.NDArray[np.float32],
    favoured: npt.NDArray[np.bool_] | None,
    valid: npt.NDArray[np.bool_] | None,
) -> None:
    """Add a batch: scores are laid out attribute by attribute, the last one changing fastest."""
    shape = (len(scores), *sizes)
    table = scores.reshape(shape).astype(np.float64)
    there = np.ones(shape, np.bool_) if valid is None else valid.reshape(shape)
    chosen = None if favoured is None else favoured.reshape(shape) & there
    for axis, total in enumerate(sums, 1):
        others = tuple(i for i in range(len(shape)) if i != axis)
        count = np.maximum(there.sum(axis=axis, keepdims=True), 1)
        mean = np.where(there, table, 0.0).sum(axis=axis, keepdims=True) / count
        total[0] += np.where(there, table - mean, 0.0).sum(axis=others)
        total[1] += there.sum(axis=others)
        if chosen is not None:
            total[2] += (there & ~chosen & chosen.any(axis=axis, keepdims=True)).sum(axis=others)
            total[3] += there.sum(axis=others)
