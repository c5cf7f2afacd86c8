"""Reweighing: rows count so that group and label look independent (Kamiran and Calders, KAIS 2012).

The weight of a row is P(group)·P(label) / P(group, label). The subject's own kind of model learns the weighted rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.repair.proposals.lessons import Lessons
from fairbits.repair.proposals.proposer import Planner, Proposal


@dataclass(frozen=True, slots=True)
class Reweighing:
    """One proposal: the subject's own kind of model on weighted rows."""

    name: str = "reweigh"

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Train once, on weighted rows."""
        planner.watch("reweighing")
        lessons = Lessons.of(planner, "reweighing")
        trainer = lessons.trainer()
        weights = independent_weights(lessons.groups, lessons.labels)
        fitted = trainer.learned(lessons.rows, lessons.labels, planner.rng(self.name), sample_weights=weights)
        words = f"{trainer.words} on rows weighted until group and label look independent; {lessons.coding.words}"
        yield Proposal("reweigh", words, fitted.model, retrained=True, coding=lessons.coding.words, fitted=fitted)


def independent_weights(groups: npt.NDArray[np.int64], labels: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Weights under which group and label are independent; they add up to the number of rows."""
    table = np.zeros((int(groups.max()) + 1, int(labels.max()) + 1))
    kinds = labels.astype(np.int64)
    np.add.at(table, (groups, kinds), 1.0)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    weights = np.asarray((expected / np.maximum(table, 1.0))[groups, kinds])
    return weights * (len(weights) / weights.sum())
