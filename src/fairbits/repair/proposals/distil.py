"""Distilling: a model that never looks at protected inputs learns what the guard's average says (k = 1 by structure).

Soft targets (Hinton, Vinyals, Dean 2015) over the training rows and over people near them: a few attributes of a row
are taken from another row, so that the pupil hears the teacher's opinion also where there are no rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Schema
from fairbits.errors import CapabilityError
from fairbits.models import Fitting, Model, Network, fit_to_schema, is_url, read_model, refit, refitted
from fairbits.repair.proposals.blind import blinded, protected_inputs, without_weights
from fairbits.repair.proposals.guard import Guard

#: People near the rows for every row, at least and at most so many.
NEAR, FEWEST, MOST = 4, 8_000, 20_000
#: Rows of the table that the pupil hears about.
MAX_ROWS = 20_000
#: Attributes of a person that are taken from another row.
CHANGED = (1, 3)
UPDATES, RATE = 4_000, 2e-3
#: Rows, and as many people near them, that other libraries' models hear about; people whose twins are compared then.
MAX_FOREIGN, CHECKED = 10_000, 200


@dataclass(frozen=True, slots=True)
class Pupil:
    """A model that has learned the average, how in words, and what is written to a file."""

    model: Model
    words: str
    source: Any = None


def pupil_of(guard: Guard, rows: Codes, rng: np.random.Generator) -> Pupil:
    """A model of the same kind that has learned the guard's average."""
    if isinstance(guard.model, Network):
        words = "a network of the same shape without weights on protected inputs, taught the average over twins"
        return Pupil(distilled(guard, rows, rng), words)
    subject = guard.subject
    if subject.original is None or is_url(str(subject.original)) or not hasattr(guard.model, "scores"):
        raise CapabilityError("a service or a model of unknown origin cannot be fitted again here.")
    people, targets = lessons(guard, rows, rng, max_rows=MAX_FOREIGN)
    made = refitted(subject.original, guard.schema, people, targets, rng, options=subject.options)
    loaded = fit_to_schema(
        read_model(made.estimator, guard.schema, subject.options), guard.schema, options=subject.options
    )
    everything = _every_value(guard.schema, people)
    mine, theirs = loaded.encoding.encode(everything), guard.encoding.encode(everything)
    if mine.shape != theirs.shape or not np.array_equal(mine, theirs, equal_nan=True):
        raise CapabilityError("the model fitted again takes other inputs than the one it learned from.")
    scores = np.asarray(loaded.model.scores(guard.encoding.encode(_twins(guard, people[:CHECKED]))))
    if np.ptp(scores.reshape(-1, guard.m), axis=1).max(initial=0.0) > 0:
        raise CapabilityError("the model fitted again still tells twins apart, so that it was not kept.")
    return Pupil(loaded.model, made.words, made.estimator)


def _every_value(schema: Schema, people: Codes) -> Codes:
    """Some people, and one of them with every value (a thousand at most) of every attribute."""
    pieces = [people[:CHECKED]]
    for column, attribute in enumerate(schema.attributes):
        values = attribute.domain_values() if attribute.discrete else people[:CHECKED, column]
        person = np.tile(people[:1], (min(len(values), 1000), 1))
        person[:, column] = values[:1000]
        pieces.append(person)
    return np.concatenate(pieces)


def _twins(guard: Guard, people: Codes) -> Codes:
    """All twins of some people, (n · m, attributes)."""
    return guard.subject_twins.expand(people).reshape(-1, people.shape[1])


def near_people(schema: Schema, rows: Codes, count: int, rng: np.random.Generator) -> Codes:
    """People near the rows: one to three attributes that are not protected come from another row."""
    people = rows[rng.integers(0, len(rows), count)].copy()
    donors = rows[rng.integers(0, len(rows), count)]
    free = np.array(schema.free_columns)
    ranks = rng.random((count, len(free))).argsort(axis=1).argsort(axis=1)
    changed = ranks < rng.integers(CHANGED[0], CHANGED[1] + 1, count)[:, None]
    people[:, free] = np.where(changed, donors[:, free], people[:, free])
    return people


def distilled(guard: Guard, rows: Codes, rng: np.random.Generator, *, updates: int = UPDATES) -> Network:
    """A network of the same shape whose protected inputs have no weight, taught by the guard's average."""
    network = guard.model
    if not isinstance(network, Network):
        raise CapabilityError(f"a network is distilled from a network, and {type(network).__name__!r} is none.")
    people, targets = lessons(guard, rows, rng)
    pupil = blinded(network, guard.schema, guard.encoding, rows)
    protected = protected_inputs(guard.schema, guard.encoding)
    inputs = guard.encoding.encode(people)
    inputs[:, protected] = 0  # no weight: whatever stands there must not enter the scaling either
    learned = refit(pupil, inputs, targets, rng, fitting=Fitting(updates, learning_rate=RATE), frozen=protected)
    return without_weights(learned, protected)


def lessons(
    guard: Guard, rows: Codes, rng: np.random.Generator, *, max_rows: int = MAX_ROWS
) -> tuple[Codes, npt.NDArray[np.float64]]:
    """Rows and people near them, with the guard's average: probabilities (n, classes), or values for a regression."""
    if len(rows) > max_rows:
        rows = rows[rng.choice(len(rows), max_rows, replace=False)]
    count = int(np.clip(NEAR * len(rows), min(FEWEST, max_rows), min(MOST, max_rows)))
    people = np.concatenate([rows, near_people(guard.schema, rows, count, rng)])
    average = guard.with_guarantee(1)
    if guard.schema.regression:
        return people, average.people_scores(people).astype(np.float64)
    return people, average.people_class_scores(people).astype(np.float64)
