"""The average over twins as a proposal, the guards around it, and models that do without protected inputs (k = 1).

Blinding shrinks what protected inputs add to the first layer towards its mean. Distilling has a blind model learn what
the guard's average says: soft targets (Hinton, Vinyals, Dean 2015) over the training rows and over people near them, in
whom a few attributes of a row are taken from another, so that the teacher is heard also where there are no rows.

All of this ends the *direct* use of protected attributes only. Whatever stands in for them among the other attributes
(a postcode for an origin, hours of work for a sex) stays, and group figures say what it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairbits.domain import Codes, Doubles, Encoding, Integers, Schema, Table
from fairbits.errors import CapabilityError, FairbitsError
from fairbits.language import TextModel
from fairbits.models import Fitting, Network, fit_to_schema, is_url, read_model, refit, refitted
from fairbits.repair.choice import Planner
from fairbits.repair.proposals.guard import Guard
from fairbits.repair.records import Proposal


def protected_inputs(schema: Schema, encoding: Encoding) -> Integers:
    """Positions of the network's inputs that protected attributes fill."""
    return np.concatenate([encoding.parts[i].columns for i in schema.protected_columns])


def shrunk(network: Network, schema: Schema, encoding: Encoding, rows: Codes, share: float) -> Network:
    """The network with protected inputs moved this share of the way to their mean over the rows.

    Their weights become ``1 − share`` of what they were, and the first bias takes up the rest: the shape stays. With
    all of the way every protected input is its mean: k = 1 for everybody.
    """
    inputs = protected_inputs(schema, encoding)
    first = network.weights[0].copy()
    mean = encoding.encode(rows)[:, inputs].mean(axis=0, dtype=np.float64)
    taken = share * (mean @ first[inputs].astype(np.float64))
    first[inputs] *= np.float32(1 - share)
    bias = (network.biases[0] + taken).astype(np.float32)
    return replace(network, weights=(first, *network.weights[1:]), biases=(bias, *network.biases[1:]))


def without_weights(network: Network, inputs: Integers) -> Network:
    """The same network, which gives some of its inputs no weight."""
    first = network.weights[0].copy()
    first[inputs] = 0
    return replace(network, weights=(first, *network.weights[1:]))


#: People near the rows for every row, at least and at most so many.
NEAR, FEWEST, MOST = 4, 8_000, 20_000
#: Rows of the table that it learns from.
MAX_ROWS = 20_000
#: Attributes of a person that are taken from another row.
CHANGED = (1, 3)
UPDATES, RATE = 4_000, 2e-3
#: Rows, and as many people near them, that other libraries' models learn from; people whose twins are compared then.
MAX_FOREIGN, CHECKED = 10_000, 200


def distilled_model(guard: Guard, rows: Codes, rng: np.random.Generator) -> Proposal:
    """A model of the same kind that has learned the guard's average."""
    if isinstance(guard.model, Network):
        words = "a network of the same shape without weights on protected inputs, taught the average over twins"
        return Proposal("distilled", f"{words}; {DIRECT_ONLY}", distilled(guard, rows, rng), teacher=guard)
    subject = guard.subject
    if subject.original is None or is_url(str(subject.original)) or not hasattr(guard.model, "scores"):
        raise CapabilityError("a service or a model of unknown origin cannot be fitted again here.")
    people, targets = training_data(guard, rows, rng, max_rows=MAX_FOREIGN)
    estimator, words = refitted(
        *(subject.original, guard.model, guard.encoding, guard.schema), people, targets, rng, options=subject.options
    )
    loaded = fit_to_schema(read_model(estimator, guard.schema, subject.options), guard.schema, options=subject.options)
    everything = _every_value(guard.schema, people)
    mine, theirs = loaded.encoding.encode(everything), guard.encoding.encode(everything)
    if mine.shape != theirs.shape or not np.array_equal(mine, theirs, equal_nan=True):
        raise CapabilityError("the model fitted again takes other inputs than the one it learned from.")
    twins = guard.subject_twins.expand(people[:CHECKED]).reshape(-1, people.shape[1])
    scores = np.asarray(loaded.model.scores(guard.encoding.encode(twins)))
    if np.ptp(scores.reshape(-1, guard.m), axis=1).max(initial=0.0) > 0:
        raise CapabilityError("the model fitted again still tells twins apart, so that it was not kept.")
    return Proposal("distilled", f"{words}; {DIRECT_ONLY}", loaded.model, source=estimator, teacher=guard)


def _every_value(schema: Schema, people: Codes) -> Codes:
    """Some people, and one of them with every value (a thousand at most) of every attribute."""
    pieces = [people[:CHECKED]]
    for column, attribute in enumerate(schema.attributes):
        values = attribute.domain_values() if attribute.discrete else people[:CHECKED, column]
        person = np.tile(people[:1], (min(len(values), 1000), 1))
        person[:, column] = values[:1000]
        pieces.append(person)
    return np.concatenate(pieces)


def near_people(schema: Schema, rows: Codes, count: int, rng: np.random.Generator) -> Codes:
    """People near the rows: one to three attributes that are not protected come from another row."""
    people = rows[rng.integers(0, len(rows), count)]
    donors = rows[rng.integers(0, len(rows), count)]
    free = np.array(schema.free_columns)
    ranks = rng.random((count, len(free))).argsort(axis=1).argsort(axis=1)
    changed = ranks < rng.integers(CHANGED[0], CHANGED[1] + 1, count)[:, None]
    people[:, free] = np.where(changed, donors[:, free], people[:, free])
    return people


def distilled(guard: Guard, rows: Codes, rng: np.random.Generator, *, updates: int = UPDATES) -> Network:
    """A network of the same shape whose protected inputs have no weight, taught by the guard's average."""
    network: Any = guard.model
    people, targets = training_data(guard, rows, rng)
    start = shrunk(network, guard.schema, guard.encoding, rows, 1.0)
    protected = protected_inputs(guard.schema, guard.encoding)
    inputs = guard.encoding.encode(people)
    inputs[:, protected] = 0  # no weight: whatever stands there must not enter the scaling either
    learned = refit(start, inputs, targets, rng, fitting=Fitting(updates, learning_rate=RATE), frozen=protected)
    return without_weights(learned, protected)


def training_data(
    guard: Guard, rows: Codes, rng: np.random.Generator, *, max_rows: int = MAX_ROWS
) -> tuple[Codes, Doubles]:
    """Rows and people near them, with the guard's average: probabilities (n, classes), or values for a regression."""
    if len(rows) > max_rows:
        rows = rows[rng.choice(len(rows), max_rows, replace=False)]
    count = int(np.clip(NEAR * len(rows), min(FEWEST, max_rows), min(MOST, max_rows)))
    people = np.concatenate([rows, near_people(guard.schema, rows, count, rng)])
    average = guard.with_guarantee(1)
    asked = average.people_scores if guard.schema.regression else average.people_class_scores
    return people, asked(people).astype(np.float64)


#: Bounds on k that are tried beside the plain average.
GUARANTEES = (1, 2, 4, 8)
#: What every guard leaves alone.
DIRECT_ONLY = "ends direct use only"
GUARD_WARNING = (
    "The guard ends the direct use of protected attributes only: attributes that stand in for them (proxies) stay, and "
    "indirect bits with them."
)


@dataclass(frozen=True, slots=True)
class Averages:
    """The average over twins, and scores held within reach of it; and a network that has learned the average."""

    name: str = "guard"

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Guards for every model, and a distilled one where that can be trained."""
        if isinstance(planner.network, TextModel):
            raise CapabilityError("a guard looks up who somebody is in a table, and whoever decides has texts alone.")
        planner.watch("averaging over twins")
        training, setting = planner.halves.training, planner.setting
        guard = Guard.of(
            setting.subject,
            epsilon=setting.epsilon,
            partition=setting.partition,
            threads=setting.threads,
            rows=Table(training.rows, training.labels),
        )
        words = f"the average over the person's twins in place of their own score; {DIRECT_ONLY}"
        yield Proposal("average", words, guard)
        for k_max in sorted({*GUARANTEES, *(() if planner.guarantee is None else (planner.guarantee,))}):
            # One class: twins may still differ by less than ε.
            one = guard.with_guarantee(k_max) if k_max > 1 else guard.with_guarantee(tau=setting.epsilon / 2)
            if (0 < one.k_max <= k_max or k_max == planner.guarantee) and (
                k_max > 1 or setting.partition == "constrained"
            ):  # a bound that two twins cannot break promises nothing, unless it was asked for
                words = f"scores held within {one.tau:.4g} of the average over the person's twins; {DIRECT_ONLY}"
                yield Proposal(f"guard-{k_max}", words, one)
        if planner.quick:
            return
        planner.watch("distilling the average")
        try:
            yield distilled_model(guard, training.rows, planner.leaf(99))
        except FairbitsError as error:
            planner.notes.append(f"nothing was distilled: {error}")
