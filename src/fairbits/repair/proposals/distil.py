"""Distilling: a model that never looks at protected inputs learns what the guard's average says (k = 1 by structure).

Soft targets (Hinton, Vinyals, Dean 2015) over the training rows and over people near them: a few attributes of a row
are taken from another row, so that the pupil hears the teacher's opinion also where there are no rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Schema
from fairbits.errors import CapabilityError
from fairbits.models import Fitting, Model, Network, refit
from fairbits.repair.proposals.blind import blinded, protected_inputs
from fairbits.repair.proposals.guard import Guard

#: People near the rows for every row, at least and at most so many.
NEAR, FEWEST, MOST = 4, 8_000, 20_000
#: Rows of the table that the pupil hears about.
MAX_ROWS = 20_000
#: Attributes of a person that are taken from another row.
CHANGED = (1, 3)
UPDATES, RATE = 4_000, 2e-3


@dataclass(frozen=True, slots=True)
class Pupil:
    """A model that has learned the average, and how in words."""

    model: Model
    words: str


def pupil_of(guard: Guard, rows: Codes, rng: np.random.Generator) -> Pupil | None:
    """A model of the same kind that has learned the guard's average; None for kinds that cannot be taught here.

    Parameters
    ----------
    guard
        The guarded model.
    rows
        People of the table, (n, attributes).
    rng
        Source of random numbers.

    Returns
    -------
    Pupil | None
        The pupil; None for kinds that cannot be taught here.
    """
    if isinstance(guard.model, Network):
        words = "a network of the same shape without weights on protected inputs, taught the average over twins"
        return Pupil(distilled(guard, rows, rng), words)
    return None


def near_people(schema: Schema, rows: Codes, count: int, rng: np.random.Generator) -> Codes:
    """People near the rows: one to three attributes that are not protected come from another row.

    Parameters
    ----------
    schema
        The attributes, and what is decided.
    rows
        People of the table, (n, attributes).
    count
        How many.
    rng
        Source of random numbers.

    Returns
    -------
    Codes
        People, (count, attributes).
    """
    people = rows[rng.integers(0, len(rows), count)].copy()
    donors = rows[rng.integers(0, len(rows), count)]
    free = np.array(schema.free_columns)
    ranks = rng.random((count, len(free))).argsort(axis=1).argsort(axis=1)
    changed = ranks < rng.integers(CHANGED[0], CHANGED[1] + 1, count)[:, None]
    people[:, free] = np.where(changed, donors[:, free], people[:, free])
    return people


def distilled(guard: Guard, rows: Codes, rng: np.random.Generator, *, updates: int = UPDATES) -> Network:
    """A network of the same shape whose protected inputs have no weight, taught by the guard's average.

    Parameters
    ----------
    guard
        The guarded model.
    rows
        People of the table, (n, attributes).
    rng
        Source of random numbers.
    updates
        Steps of training.

    Returns
    -------
    Network
        A new network.

    Raises
    ------
    CapabilityError
        If the guarded model is no native network.
    """
    network = guard.model
    if not isinstance(network, Network):
        raise CapabilityError(f"a network is distilled from a network, and {type(network).__name__!r} is none.")
    people, targets = lessons(guard, rows, rng)
    pupil = blinded(network, guard.schema, guard.encoding, rows)
    protected = protected_inputs(guard.schema, guard.encoding)
    inputs = guard.encoding.encode(people)
    inputs[:, protected] = 0  # no weight: whatever stands there must not enter the scaling either
    learned = refit(pupil, inputs, targets, rng, fitting=Fitting(updates, learning_rate=RATE), frozen=protected)
    first = learned.weights[0].copy()
    first[protected] = 0
    return replace(learned, weights=(first, *learned.weights[1:]))


def lessons(guard: Guard, rows: Codes, rng: np.random.Generator) -> tuple[Codes, npt.NDArray[np.float64]]:
    """Rows and people near them, with the guard's average: probabilities (n, classes), or values for a regression.

    Parameters
    ----------
    guard
        The guarded model.
    rows
        People of the table, (n, attributes).
    rng
        Source of random numbers.

    Returns
    -------
    tuple[Codes, npt.NDArray[np.float64]]
        People, and the guard's average: probabilities (n, classes), or values (n,).
    """
    if len(rows) > MAX_ROWS:
        rows = rows[rng.choice(len(rows), MAX_ROWS, replace=False)]
    count = int(np.clip(NEAR * len(rows), FEWEST, MOST))
    people = np.concatenate([rows, near_people(guard.schema, rows, count, rng)])
    average = guard.with_guarantee(1)
    if guard.schema.regression:
        return people, average.people_scores(people).astype(np.float64)
    return people, average.people_class_scores(people).astype(np.float64)
