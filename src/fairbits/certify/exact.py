"""Exact statements: everybody in the domain, or everybody within c changes of a real row, is asked."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from fairbits.domain import Attribute, Codes, Schema
from fairbits.measure import Evaluator

#: People asked at once.
BATCH = 65_536
#: Tries that tell how quick a model is, and seconds below which a try grows.
TRIES, QUICK = 4, 0.1
#: People within c changes of real rows that are listed at most, before duplicates are dropped.
MAX_LISTED = 30_000_000


@dataclass(slots=True)
class Asked:
    """People who were asked: how many, how many flip, and how many there are of every k."""

    people: int
    flips: int
    ks: npt.NDArray[np.int64]
    complete: bool
    seconds: float

    @property
    def largest(self) -> int:
        """The largest k."""
        return int(np.flatnonzero(self.ks).max(initial=1))

    def above(self, k: int) -> int:
        """How many people have more than ``k`` classes."""
        return int(self.ks[k + 1 :].sum())


def domain_size(schema: Schema) -> int | None:
    """Number of different people in the domain; those whom the rules leave out are counted too."""
    free = [schema.attributes[i] for i in schema.free_columns]
    if any(attribute.kind == "real" for attribute in free):
        return None
    return math.prod(_size(attribute) for attribute in free)


def _size(attribute: Attribute) -> int:
    """How many values people can have, without listing them; of a discrete attribute."""
    return len(attribute.allowed) if attribute.allowed else int(attribute.upper - attribute.low) + 1


def everybody(schema: Schema, *, batch: int = BATCH) -> Iterator[Codes]:
    """All people of a countable domain, in batches; protected attributes have their first value."""
    free = list(schema.free_columns)
    sizes = [_size(schema.attributes[i]) for i in free]
    total = math.prod(sizes)
    person = np.array([attribute.first for attribute in schema.attributes])
    for start in range(0, total, batch):
        index = np.arange(start, min(start + batch, total), dtype=np.int64)
        codes = np.tile(person, (len(index), 1))
        for column, size in zip(reversed(free), reversed(sizes), strict=True):
            index, place = np.divmod(index, size)
            allowed = schema.attributes[column].allowed
            codes[:, column] = np.array(allowed)[place] if allowed else person[column] + place
        yield codes


def people_per_second(evaluator: Evaluator, rows: Codes) -> float:
    """How many people can be asked in a second, about: the best of a few tries, growing while they are quick.

    A single short try says little on a busy machine, and too low a figure would leave a domain unasked that fits.
    """
    evaluator.evaluate(rows[np.arange(64) % len(rows)])  # compiles
    best, count = 0.0, 256
    for _ in range(TRIES):
        some = rows[np.arange(count) % len(rows)]
        begin = time.perf_counter()
        evaluator.evaluate(some)
        seconds = max(time.perf_counter() - begin, 1e-6)
        best = max(best, count / seconds)
        if seconds < QUICK and count < BATCH:
            count = min(8 * count, BATCH)
    return best


def ask(
    evaluator: Evaluator,
    batches: Iterator[Codes],
    *,
    seconds: float = math.inf,
    stop: Callable[[], bool] = lambda: False,
    watch: Callable[[int], None] | None = None,
) -> Asked:
    """Ask about everybody in some batches; those whom the rules leave out do not count."""
    begin = time.perf_counter()
    found = Asked(0, 0, np.zeros(evaluator.m + 2, np.int64), complete=True, seconds=0.0)
    for codes in batches:
        if stop() or (found.people and time.perf_counter() - begin > seconds):  # one batch there is always time for
            found.complete = False
            break
        there = codes[evaluator.validity.people(codes)] if evaluator.validity.any else codes
        if not len(there):
            continue
        figures = evaluator.evaluate(there)
        found.people += len(there)
        found.flips += 0 if evaluator.schema.regression else int(figures.flips.sum())
        found.ks += np.bincount(figures.k, minlength=evaluator.m + 2)
        if watch is not None:
            watch(found.people)
    found.seconds = time.perf_counter() - begin
    return found


def listed_within(schema: Schema, rows: Codes, changes: int) -> int | None:
    """Number of people within so many changes of each row; who is near several rows is counted for each."""
    free = [schema.attributes[i] for i in schema.free_columns]
    if changes and any(attribute.kind == "real" for attribute in free):
        return None
    others = [max(_size(a) - 1, 0) if a.discrete else 0 for a in free]
    per_row = sum(math.prod(some) for c in range(changes + 1) for some in combinations(others, c))
    return len(rows) * per_row


def within(schema: Schema, rows: Codes, changes: int, *, batch: int = BATCH) -> Iterator[Codes]:
    """Everybody within so many changes of real rows, once each, in batches."""
    free = list(schema.free_columns)
    if changes:
        rows = rows[np.unique(rows[:, free], axis=0, return_index=True)[1]]
    pieces = [rows]
    for c in range(1, changes + 1):
        for chosen in combinations(free, c):
            grid = np.meshgrid(*[schema.attributes[i].domain_values() for i in chosen], indexing="ij")
            values = np.stack([axis.ravel() for axis in grid], axis=1)
            people = np.repeat(rows, len(values), axis=0)
            people[:, list(chosen)] = np.tile(values, (len(rows), 1))
            # Whoever keeps one of the chosen values is listed with fewer changes.
            moved = (people[:, list(chosen)] != np.repeat(rows, len(values), axis=0)[:, list(chosen)]).all(axis=1)
            pieces.append(people[moved])
    whole = np.concatenate(pieces)
    if changes:
        whole = whole[_distinct(schema, whole)]
    for start in range(0, len(whole), batch):
        yield whole[start : start + batch]


def _distinct(schema: Schema, people: Codes) -> npt.NDArray[np.int64]:
    """The first of each person, by exact keys of as many 64-bit numbers as it takes."""
    keys, size = [np.zeros(len(people), np.int64)], 1
    for column in schema.free_columns:
        attribute = schema.attributes[column]
        count = int(attribute.upper - attribute.low) + 2
        if size * count >= 2**62:
            keys.append(np.zeros(len(people), np.int64))
            size = 1
        places = people[:, column] - attribute.low
        if attribute.gap is not None:  # a missing number's code lies below the domain: it gets the place after the last
            places = np.where(people[:, column] == attribute.gap, count - 1, places)
        keys[-1] = keys[-1] * count + np.rint(places).astype(np.int64)
        size *= count
    if len(keys) == 1:
        return np.sort(np.unique(keys[0], return_index=True)[1])
    return np.sort(np.unique(np.stack(keys, axis=1), axis=0, return_index=True)[1])
