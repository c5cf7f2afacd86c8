"""Models of the same kind, trained anew on the same rows from other seeds.

A native network is trained again in its own shape; a scikit-learn estimator (a pipeline, a booster with that interface)
is cloned and fitted again with another ``random_state``. What cannot be trained again says so in one sentence.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fairbits.data import epochs_for, fit
from fairbits.domain import Codes
from fairbits.errors import CapabilityError, ModelError, TableError
from fairbits.measure import Evaluator
from fairbits.models import (
    Model,
    Network,
    Wrapper,
    adapt,
    classes_in_order,
    estimator_of,
    feed_of,
    fit_again,
    fit_to_schema,
    fresh_estimator,
)
from fairbits.subject import Subject

#: Rows that a training needs, and people of the rarest class.
LEAST_ROWS, LEAST_OF_CLASS = 100, 10
#: Trainings on a table of so many rows or fewer, and on a larger one.
SMALL_TABLE, TRAININGS_SMALL, TRAININGS_LARGE = 5_000, 8, 4
#: Twins that are scored by every training, at most, and people.
TWINS, PEOPLE = 200_000, 2_000
#: A network that learned less than this beyond the majority is dead (every ReLU off): the next seed is tried.
ALIVE, ATTEMPTS = 0.001, 5
#: Rows that an estimator is asked about, to see whether it takes them in this form.
TRIED = 50
#: Rows of an update, and what one costs, about: the fixed part, and for each weight.
BATCH, SECONDS_PER_UPDATE, SECONDS_PER_WEIGHT = 128, 5e-4, 2e-7


class Trainer(Protocol):
    """Trains models of the subject's kind."""

    def train(self, seed: int) -> tuple[Model, Any]:
        """A model trained from this seed, and its encoding."""


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


def trainer_of(subject: Subject) -> Trainer:
    """Whoever can train models like the subject's."""
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
        estimator = estimator_of(subject.original, subject.model, subject.options)
    except CapabilityError as error:  # no estimator, but perhaps a network
        model, why = subject.model, str(error)
    else:
        return EstimatorTrainer(subject, estimator)
    while isinstance(model, Wrapper):
        model = model.original
    if isinstance(model, Network):
        return NetworkTrainer(subject, model)
    raise CapabilityError(f"data or training cannot be told apart: {why}")


def people_of(subject: Subject, m: int, rng: np.random.Generator) -> tuple[Codes, bool]:
    """The people whose twins are scored, and whether no training has seen them."""
    table = subject.unseen or subject.table
    count = int(np.clip(TWINS // m, 1, PEOPLE))
    rows = np.sort(rng.permutation(len(table))[:count])
    return table.codes[rows], table is not subject.table


def train_here(subject: Subject, people: Codes, seeds: Sequence[int]) -> list[Trained]:
    """Train one model after the other in this process, and score the people's twins with each."""
    trainer = trainer_of(subject)
    found = []
    for seed in seeds:
        begin = time.process_time()
        model, encoding = trainer.train(seed)
        evaluator = Evaluator(model, subject.schema, encoding, own=False)
        found.append(Trained(evaluator.scores(people), time.process_time() - begin))
    return found


class NetworkTrainer:
    """Networks of one shape, trained by the recipe of the built-in ones."""

    def __init__(self, subject: Subject, network: Network):
        kinds = {activation.name for activation in network.activations_after}
        if len(kinds) > 1 or not kinds <= set(_ACTIVATIONS):
            raise CapabilityError(
                f"data or training cannot be told apart: networks with the activation "
                f"{', '.join(sorted(kinds))} are not trained here."
            )
        self.subject, self.network = subject, network
        self.activation = _ACTIVATIONS[next(iter(kinds), "relu")]
        self.table = subject.table.training()
        self.inputs = subject.encoding.encode(self.table.codes)

    @property
    def seconds(self) -> float:
        """What a training takes about, on one core of today."""
        rows, weights = len(self.table), sum(layer.size for layer in self.network.weights)
        updates = epochs_for(rows) * max(1, rows // BATCH)
        return updates * (SECONDS_PER_UPDATE + SECONDS_PER_WEIGHT * weights)

    def train(self, seed: int) -> tuple[Model, Any]:
        """Train a network from a seed; one that learned nothing beyond the majority is trained again from another seed.

        After ``ATTEMPTS`` trainings the last one is taken as it is.
        """
        labels = np.asarray(self.table.labels)
        regression = self.subject.schema.regression
        majority = 0.0 if regression else float(np.bincount(labels.astype(np.int64)).max() / len(labels))
        for attempt in range(ATTEMPTS):
            network = fit(
                self.inputs,
                labels,
                epochs=epochs_for(len(labels)),
                seed=seed + 1000 * attempt,
                hidden=self.network.widths[:-1],
                activation=self.activation,
                regression=regression,
            )
            if regression:
                return network, self.subject.encoding
            network = network.with_favourable(self.subject.schema.favourable_index)
            alive = float((network.labels(self.inputs) == labels).mean()) > majority + ALIVE
            if alive:
                break
        return network, self.subject.encoding


_ACTIVATIONS = {"relu": "relu", "tanh": "tanh", "sigmoid": "logistic", "identity": "identity"}


class EstimatorTrainer:
    """Copies of an estimator, fitted on rows in the form in which it gives the scores that are known of it."""

    def __init__(self, subject: Subject, estimator: Any):
        self.subject, self.estimator = subject, estimator
        self.table = subject.table.training()
        codes, about = self.table.codes, (subject.model, subject.encoding, subject.schema)
        some = codes[:: max(1, len(codes) // TRIED)][:TRIED]
        try:
            fresh_estimator(estimator, 0)  # refused before anything is trained
            feed = feed_of(estimator, *about, subject.options, people=some, learned=True)
            classes = classes_in_order(estimator, feed, *about, some)
        except CapabilityError as error:
            raise CapabilityError(f"data or training cannot be told apart: {error}") from None
        self.rows, labels = feed(codes), np.asarray(self.table.labels)
        self.labels = labels if classes is None else classes[labels.astype(np.int64)]

    def train(self, seed: int) -> tuple[Model, Any]:
        """Copy the estimator, give the copy another seed and fit it."""
        fresh = fresh_estimator(self.estimator, seed)
        try:
            fit_again(fresh, self.rows, self.labels)
        except CapabilityError as error:
            raise ModelError(f"data or training cannot be told apart: {error}") from None
        subject = self.subject
        loaded = fit_to_schema(adapt(fresh, subject.schema, subject.options), subject.schema, options=subject.options)
        return loaded.model, loaded.encoding
