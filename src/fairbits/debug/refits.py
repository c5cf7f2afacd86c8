"""Models of the same kind, trained anew on the same rows from other seeds, by the one trainer.

What cannot be trained again says so in one sentence.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fairbits.data import NetworkTrainer, Trainer, trainer_of
from fairbits.domain import Codes
from fairbits.errors import CapabilityError, TableError
from fairbits.measure import Evaluator
from fairbits.subject import Subject

#: Rows that a training needs, and people of the rarest class.
LEAST_ROWS, LEAST_OF_CLASS = 100, 10
#: Trainings on a table of so many rows or fewer, and on a larger one.
SMALL_TABLE, TRAININGS_SMALL, TRAININGS_LARGE = 5_000, 8, 4
#: Twins that are scored by every training, at most, and people.
TWINS, PEOPLE = 200_000, 2_000


@dataclass(frozen=True, slots=True)
class Trained:
    """One training: the scores that it gives, and its cost."""

    scores: npt.NDArray[np.float32]
    seconds: float


class TrainOut(Protocol):
    """Whoever trains: this process, or workers."""

    def __call__(self, subject: Subject, people: Codes, seeds: Sequence[int]) -> list[Trained]:
        """What the training of each seed scores."""


def trainings_for(rows: int) -> int:
    """How many trainings are compared on a table of so many rows."""
    return TRAININGS_SMALL if rows <= SMALL_TABLE else TRAININGS_LARGE


def origin_trainer(subject: Subject) -> Trainer:
    """Whoever can train models like the subject's on its rows."""
    table = subject.table.training()
    if table.labels is None:
        raise TableError("the table has no labels, so nothing can be trained on it; name its target.")
    if len(table) < LEAST_ROWS:
        raise TableError(
            f"the table has {len(table)} rows to train on, and fewer than {LEAST_ROWS} say nothing about training; "
            f"give a larger table."
        )
    if not subject.schema.regression:
        counts = np.bincount(table.labels.astype(np.int64), minlength=len(subject.schema.classes))
        rare = int(counts.argmin())
        if counts[rare] < LEAST_OF_CLASS:
            raise TableError(
                f"only {counts[rare]} rows are labelled {subject.schema.classes[rare]!r}, and {LEAST_OF_CLASS} are "
                f"needed to train on; give a larger table."
            )
    try:
        trainer = trainer_of(subject)
        if isinstance(trainer, NetworkTrainer):
            trainer.check()
    except CapabilityError as error:
        raise CapabilityError(f"data or training cannot be told apart: {error}") from None
    return trainer


def people_of(subject: Subject, m: int, rng: np.random.Generator) -> tuple[Codes, bool]:
    """The people whose twins are scored, and whether no training has seen them."""
    table = subject.unseen or subject.table
    count = int(np.clip(TWINS // m, 1, PEOPLE))
    rows = np.sort(rng.permutation(len(table))[:count])
    return table.codes[rows], table is not subject.table


def train_here(subject: Subject, people: Codes, seeds: Sequence[int]) -> list[Trained]:
    """Train one model after the other in this process, and score the people's twins with each."""
    trainer, table = origin_trainer(subject), subject.table.training()
    found = []
    for seed in seeds:
        begin = time.process_time()
        try:
            made = trainer.anew(table.codes, np.asarray(table.labels), seed)
        except CapabilityError as error:
            raise CapabilityError(f"data or training cannot be told apart: {error}") from None
        evaluator = Evaluator(made.model, subject.schema, made.encoding, own=False)
        found.append(Trained(evaluator.scores(people), time.process_time() - begin))
    return found
