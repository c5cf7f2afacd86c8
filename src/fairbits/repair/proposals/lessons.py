"""What mitigators that train share: the rows and groups to learn from, checked once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.data import EstimatorTrainer, NetworkTrainer, Trainer, trainer_of
from fairbits.domain import Codes
from fairbits.errors import CapabilityError, TableError
from fairbits.models import Network
from fairbits.repair.group_codes import Coding, coding_of
from fairbits.repair.proposals.proposer import Planner
from fairbits.subject import Subject

#: Fewer training rows than this teach a model nothing that could be told from chance.
MIN_ROWS = 60
#: What needs scores only, and so remains for every model.
REMAINING = "average, guard-K and thresholds need scores only"


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

    def trainer(self) -> Trainer:
        """How models of the subject's kind are trained."""
        return trainer_for(self.subject)


def trainer_for(subject: Subject, *, own_parameters: bool = False) -> Trainer:
    """Who trains candidates: a native network goes on from its own weights, whatever it was read from.

    With ``own_parameters`` an estimator that was read as a network is the estimator, whose parameters can be searched.
    """
    if isinstance(subject.model, Network):
        if own_parameters:
            try:
                return EstimatorTrainer.of(subject)
            except CapabilityError:
                pass  # a network alone: its shape and its training are what can be searched
        return NetworkTrainer(subject, subject.model)
    try:
        return trainer_of(subject)
    except CapabilityError as error:
        raise CapabilityError(f"{str(error).rstrip('.')}; {REMAINING}.") from None


def check_rows(subject: Subject, labels: npt.NDArray[np.float64]) -> None:
    """Refuse to train on a table that is too small for it."""
    if len(labels) < MIN_ROWS:
        raise TableError(
            f"the table of {subject.name!r} has {len(labels)} training rows, and training again needs {MIN_ROWS}; "
            f"{REMAINING}."
        )
    if not subject.schema.regression and len(np.unique(labels)) < 2:
        raise TableError(
            f"all {len(labels)} training rows of {subject.name!r} have one label, so there is nothing to learn; "
            f"{REMAINING}."
        )


def needs_weights(planner: Planner, purpose: str) -> CapabilityError:
    """Why something that changes weights has nothing for this model."""
    from fairbits.models import kind_of

    return CapabilityError(
        f"{purpose} changes the weights of a network, which {kind_of(planner.network)!r} does not show; reweigh and "
        f"expgrad train any scikit-learn style model, and {REMAINING}."
    )
