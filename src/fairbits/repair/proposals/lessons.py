"""What mitigators that train share: the rows and groups to learn from, checked once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes
from fairbits.errors import CapabilityError
from fairbits.repair.group_codes import Coding, coding_of
from fairbits.repair.kinds import REMAINING, ModelKind, check_rows, kind_to_fit
from fairbits.repair.proposals.proposer import Planner
from fairbits.subject import Subject


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """Training rows of a decision between two classes, and the groups of people among them."""

    subject: Subject
    rows: Codes
    labels: npt.NDArray[np.float64]
    coding: Coding
    groups: npt.NDArray[np.int64]

    @classmethod
    def of(cls, planner: Planner, purpose: str) -> Lessons:
        """The lessons of a plan; ``purpose`` begins the sentence where there are none."""
        subject, training = planner.setting.subject, planner.halves.training
        classes = len(subject.schema.classes)
        if classes != 2:
            what = "a number" if classes == 0 else f"one of {classes} classes"
            raise CapabilityError(f"{purpose} is for decisions between two classes, and this model predicts {what}.")
        check_rows(subject, training.labels)
        coding = coding_of(subject.schema, training.rows)
        return cls(subject, training.rows, training.labels, coding, coding.of(training.rows))

    @property
    def favoured(self) -> npt.NDArray[np.int64]:
        """1 for rows labelled favourable, 0 for the others."""
        return np.asarray(self.labels == self.subject.schema.favourable_index).astype(np.int64)

    def kind(self) -> ModelKind:
        """How models of the subject's kind are trained."""
        return kind_to_fit(self.subject)


def needs_weights(planner: Planner, purpose: str) -> CapabilityError:
    """Why something that changes weights has nothing for this model."""
    from fairbits.models import kind_of

    return CapabilityError(
        f"{purpose} changes the weights of a network, which {kind_of(planner.network)!r} does not show; reweigh and "
        f"expgrad train any scikit-learn style model, and {REMAINING}."
    )
