"""Threshold optimisation: a threshold for every group (Hardt, Price, Srebro 2016), for any model that gives scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairbits.errors import CapabilityError
from fairbits.repair.group_codes import coding_of
from fairbits.repair.proposals.group_thresholds import fitted_thresholds
from fairbits.repair.proposals.proposer import Planner, Proposal

_ALIKE = {
    "parity": "selected equally often",
    "opportunity": "selected equally often among those labelled favourable",
}


@dataclass(frozen=True, slots=True)
class ThresholdsByGroup:
    """Two proposals: equal selection rates, and equal true positive rates."""

    name: str = "thresholds"

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Fit the thresholds to the training rows."""
        subject, training = planner.setting.subject, planner.halves.training
        if len(subject.schema.classes) != 2:
            raise CapabilityError("thresholds by group decide between two classes, and this model does not.")
        planner.watch("thresholds by group")
        coding = coding_of(subject.schema, training.rows)
        evaluator = planner.setting.evaluator(planner.network)
        for alike, words in _ALIKE.items():
            found = fitted_thresholds(evaluator, coding, training.rows, training.labels, alike=alike)
            text = f"a threshold for each group, so that all are {words}; uses protected values directly"
            yield Proposal(f"thresholds-{alike}", f"{text}; {coding.words}", found, coding=coding.words)
