"""People who are asked: everybody in the domain, everybody within c changes of a real row, or a random sample of them.

Also the fewest and the most classes of twins whose scores are known up to rounding, or as intervals.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Attribute, Codes, Doubles, Integers, Schema
from fairbits.engine import (
    FLIPPING,
    OPEN,
    STEADY,
    BoxNetwork,
    Evaluation,
    ScoreError,
    ask_people,
    box_network,
    is_interval,
    margin_cuts,
    score_error,
    tolerance_of,
)
from fairbits.errors import CapabilityError, OptionError, SchemaError
from fairbits.measure import Evaluator
from fairbits.models import Network

Counts = npt.NDArray[np.integer[Any]]

#: People asked at once.
BATCH = 65_536
#: Tries that tell how quick a model is, and seconds below which a try grows.
TRIES, QUICK = 4, 0.1
#: People within c changes of real rows that are listed at most, before duplicates are dropped.
MAX_LISTED = 30_000_000
#: Pairs of twins whose vectors are compared at once.
PAIRS = 1_000_000


@dataclass(slots=True)
class Asked:
    """People who were asked: how many, how many flip or may, and how many there are of every k.

    ``doubtful`` people are so near the cut-off that rounding decides: another library may decide otherwise. ``least``
    and ``most`` count people by the fewest and the most classes that they have in any library.
    """

    people: int
    flips: int
    doubtful: int
    least: npt.NDArray[np.int64]
    most: npt.NDArray[np.int64]
    complete: bool
    seconds: float

    @property
    def largest(self) -> int:
        """The largest k that somebody has for certain."""
        return int(np.flatnonzero(self.least).max(initial=1))

    @property
    def bound(self) -> int:
        """The k that nobody exceeds."""
        return int(np.flatnonzero(self.most).max(initial=1))

    def counts(self, k: int) -> tuple[int, int, int]:
        """How many people have at most ``k`` classes, more for certain, and either."""
        above, maybe = int(self.least[k + 1 :].sum()), int(self.most[k + 1 :].sum())
        return self.people - maybe, above, maybe - above


class Asker:
    """Asks about people in a way that holds for every library that could compute the model.

    The engine's float32 scores of a network are one library's. Whoever scores so near the cut-off, or has two scores
    so nearly ε apart, that another order of summation could decide otherwise, is counted as neither. Trees and foreign
    models are asked in their own arithmetic.
    """

    def __init__(self, evaluator: Evaluator):
        self.evaluator = evaluator
        self.error: ScoreError | None = None
        self.boxes: BoxNetwork | None = None
        model, schema = evaluator.model, evaluator.schema
        if not isinstance(model, Network) or not evaluator.native:
            return
        self.error = score_error(model, schema, evaluator.encoding, evaluator.twins)
        with suppress(CapabilityError, SchemaError):
            if not evaluator.validity.any and evaluator.twins.most == evaluator.twins.m:
                scored = len(schema.classes) <= 2
                self.boxes = box_network(model, schema, evaluator.encoding, evaluator.twins, scored=scored)

    def ask(self, codes: Codes) -> tuple[npt.NDArray[np.int64], Counts, Counts]:
        """Of every person: whether they flip (`FLIPPING`, `STEADY`, `OPEN`), and their fewest and most classes."""
        evaluator, error = self.evaluator, self.error
        decides, figures = not evaluator.schema.regression, evaluator.evaluate(codes)
        flips = np.full(len(codes), STEADY)
        if error is None:
            return np.where(figures.flips, FLIPPING, STEADY) if decides else flips, figures.k, figures.k
        flips = self._flips(codes, figures, error) if decides else flips
        if evaluator.by_vector:
            return flips, *self._vector_classes(codes, figures, error)
        sizes = float(max(np.abs(figures.low).max(initial=0.0), np.abs(figures.high).max(initial=0.0)))
        # Each of two scores may be off, and so may their difference and ε itself.
        apart = 2.0 * error.apart(sizes) + 2.0**-22 * evaluator.epsilon
        alone = figures.high - figures.low.astype(np.float64) <= evaluator.epsilon - apart
        least, most = figures.k.copy(), figures.k.copy()
        others = np.flatnonzero(~alone)
        if apart > 0.0 and len(others):
            least[others] = _with_epsilon(evaluator, evaluator.epsilon + apart).evaluate(codes[others]).k
            if evaluator.epsilon > apart:
                most[others] = _with_epsilon(evaluator, evaluator.epsilon - apart).evaluate(codes[others]).k
            else:
                most[others] = evaluator.m if figures.twins is None else figures.twins[others]
        return flips, least, most

    def _vector_classes(self, codes: Codes, figures: Evaluation, error: ScoreError) -> tuple[Counts, Counts]:
        evaluator = self.evaluator
        table, valid = evaluator.class_scores(codes).astype(np.float64), evaluator.valid_twins(codes)
        room = 2.0 * error.apart() + 2.0**-22 * evaluator.epsilon
        step = max(1, PAIRS // evaluator.m**2)
        parts = [slice(start, start + step) for start in range(0, len(codes), step)]
        pieces = [
            vector_classes(
                table[at], None if valid is None else valid[at], figures.k[at], epsilon=evaluator.epsilon, room=room
            )
            for at in parts
        ]
        fewest, most = (np.concatenate(some) for some in zip(*pieces, strict=True))
        return fewest, most

    def _flips(self, codes: Codes, figures: Evaluation, error: ScoreError) -> npt.NDArray[np.int64]:
        evaluator = self.evaluator
        lead = len(evaluator.schema.classes) > 2
        if lead:
            certified, flipping = self._class_flips(codes, error)
        else:
            down, up = error.cuts(evaluator.threshold)
            certified = (figures.low >= up) | (figures.high < down)
            flipping = (figures.low < down) & (figures.high >= up)
        found = np.where(certified, STEADY, np.where(flipping, FLIPPING, OPEN)).astype(np.int64)
        doubtful = np.flatnonzero(found == OPEN)
        if self.boxes is not None and not evaluator.by_vector and len(doubtful):
            # The whole domain's rounding is coarse: these people's own may settle it.
            inside, people = self.boxes.places(codes[doubtful])
            some = np.zeros(int(inside.sum()), np.int64)
            below, cut = margin_cuts(evaluator.threshold, linear=error.linear, lead=lead)
            ask_people(self.boxes.layers, cut, below, people[inside], some)
            found[doubtful[inside]] = some
        return found

    def _class_flips(self, codes: Codes, error: ScoreError) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Who certainly keeps one decision among three classes or more, and who certainly does not."""
        evaluator = self.evaluator
        table, valid = evaluator.class_scores(codes).astype(np.float64), evaluator.valid_twins(codes)
        # Which class is the most likely one matters where all are compared; else whether it is the favourable one.
        places = range(table.shape[-1]) if evaluator.by_vector else [evaluator.schema.favourable_index]
        leads = np.stack([table[..., c] - np.delete(table, c, axis=-1).max(axis=-1) for c in places])
        room = 2.0 * error.apart()
        there = np.ones(leads.shape[1:], np.bool_) if valid is None else valid
        ups, downs = ((side & there).sum(axis=2) for side in (leads >= room, leads < -room))
        wanted = there.sum(axis=1)
        return ((ups == wanted) | (downs == wanted)).all(axis=0), ((ups > 0) & (downs > 0)).any(axis=0)


def vector_classes(
    table: npt.NDArray[np.float64], valid: npt.NDArray[np.bool_] | None, k: Counts, *, epsilon: float, room: float
) -> tuple[Counts, Counts]:
    """The fewest and the most classes of vectors, (n, twins, classes), between which distances are off by ``room``.

    The sweep that counts ``k`` sees which twins are near each other, and their order by the score that differs most.
    Where no distance is that close to the tolerance, every library sees the same twins near each other; their order
    matters only where nearness is not transitive, and then not between twins that are near the same ones.
    """
    there = np.ones(table.shape[:2], np.bool_) if valid is None else valid
    pairs = there[:, :, None] & there[:, None, :]
    distance = np.zeros(pairs.shape)
    for scores in np.moveaxis(table, 2, 0):
        np.maximum(distance, np.abs(scores[:, :, None] - scores[:, None, :]), out=distance)
    tolerance = tolerance_of(epsilon)
    near = (distance <= tolerance) & pairs
    clear = ~((np.abs(distance - tolerance) <= room) & pairs).any(axis=(1, 2))
    single = near.astype(np.float32)
    transitive = ((single @ single > 0) == near).all(axis=(1, 2))
    hidden = ~there[:, :, None]
    spans = np.where(hidden, -np.inf, table).max(axis=1) - np.where(hidden, np.inf, table).min(axis=1)
    widest = np.where(there, np.take_along_axis(table, spans.argmax(axis=1)[:, None, None], axis=2)[:, :, 0], np.inf)
    order = np.argsort(widest, axis=1, kind="stable")
    rows = np.take_along_axis(near, order[:, :, None], axis=1)
    line = np.take_along_axis(widest, order, axis=1)
    kept = (line[:, 1:] > line[:, :-1] + room) | (rows[:, 1:] == rows[:, :-1]).all(axis=2)
    ranked = np.sort(spans, axis=1)
    ordered = (ranked[:, -1] - ranked[:, -2] > 2.0 * room) & kept.all(axis=1)
    settled = clear & (transitive | ordered)
    apart, together = (distance > tolerance + room) & pairs, (distance <= tolerance - room) | ~pairs
    fewest = np.where(settled, k, 1 + apart.any(axis=(1, 2)))
    return fewest, np.where(settled, k, np.where(together.all(axis=(1, 2)), 1, there.sum(axis=1)))


def _with_epsilon(evaluator: Evaluator, epsilon: float) -> Evaluator:
    other = copy(evaluator)
    other.epsilon = epsilon
    return other


def protected_values(schema: Schema) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Protected attributes of which twins take some values only: those that stand for ranges, or steps of many."""
    ranged = [schema[name] for name in schema.protected if schema[name].representatives]
    return tuple((attribute.name, tuple(map(float, attribute.twin_values()))) for attribute in ranged)


def domain_size(schema: Schema) -> int | None:
    """Number of different people in the domain; those whom the rules leave out are counted too."""
    free = [schema.attributes[i] for i in schema.free_columns]
    if any(is_interval(attribute) for attribute in free):
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


def people_per_second(asker: Asker, rows: Codes) -> float:
    """How many people can be asked in a second, about: the best of a few tries, growing while they are quick.

    A single short try says little on a busy machine, and too low a figure would leave a domain unasked that fits.
    """
    asker.ask(rows[np.arange(64) % len(rows)])  # compiles
    best, count = 0.0, 256
    for _ in range(TRIES):
        some = rows[np.arange(count) % len(rows)]
        begin = time.perf_counter()
        asker.ask(some)
        seconds = max(time.perf_counter() - begin, 1e-6)
        best = max(best, count / seconds)
        if seconds < QUICK and count < BATCH:
            count = min(8 * count, BATCH)
    return best


def ask(
    asker: Asker,
    batches: Iterator[Codes],
    *,
    seconds: float = math.inf,
    stop: Callable[[], bool] = lambda: False,
) -> Asked:
    """Ask about everybody in some batches; those whom the rules leave out do not count."""
    begin = time.perf_counter()
    evaluator = asker.evaluator
    least, most = (np.zeros(evaluator.m + 3, np.int64) for _ in range(2))
    found = Asked(0, 0, 0, least, most, complete=True, seconds=0.0)
    for codes in batches:
        if stop() or (found.people and time.perf_counter() - begin > seconds):  # one batch there is always time for
            found.complete = False
            break
        there = codes[evaluator.validity.people(codes)] if evaluator.validity.any else codes
        if not len(there):
            continue
        flips, fewest, largest = asker.ask(there)
        found.people += len(there)
        found.flips += int((flips == FLIPPING).sum())
        found.doubtful += int((flips == OPEN).sum())
        least += np.bincount(fewest, minlength=len(least))
        most += np.bincount(largest, minlength=len(most))
    found.seconds = time.perf_counter() - begin
    return found


def own_values_listed(schema: Schema) -> bool:
    """Whether people can be told apart by their own protected values too: none of them is real."""
    return all(schema.attributes[i].discrete for i in schema.person_columns if i in schema.protected_columns)


def listed_within(schema: Schema, rows: Codes, changes: int) -> int | None:
    """Number of people within so many changes of each row; who is near several rows is counted for each."""
    free = [schema.attributes[i] for i in schema.free_columns]
    if changes and any(is_interval(attribute) for attribute in free):
        return None
    others = [0 if is_interval(a) else max(_size(a) - 1, 0) for a in free]
    per_row = sum(math.prod(some) for c in range(changes + 1) for some in combinations(others, c))
    return len(rows) * per_row


def within(schema: Schema, rows: Codes, changes: int, *, batch: int = BATCH) -> Iterator[Codes]:
    """Everybody within so many changes of real rows, once each, in batches."""
    free = list(schema.free_columns)
    alike = list(schema.person_columns if not changes or own_values_listed(schema) else free)
    rows = rows[np.unique(rows[:, alike], axis=0, return_index=True)[1]]
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
    for column in schema.person_columns if own_values_listed(schema) else schema.free_columns:
        attribute = schema.attributes[column]
        codes, allowed = people[:, column], np.array(attribute.allowed)
        count = _size(attribute) + 1
        if size * count >= 2**62:
            keys.append(np.zeros(len(people), np.int64))
            size = 1
        places = np.searchsorted(allowed, codes) if len(allowed) else codes - attribute.low
        if attribute.gap is not None:  # a missing number's code lies below the domain: it gets the place after the last
            places = np.where(codes == attribute.gap, count - 1, places)
        keys[-1] = keys[-1] * count + np.rint(places).astype(np.int64)
        size *= count
    if len(keys) == 1:
        return np.sort(np.unique(keys[0], return_index=True)[1])
    return np.sort(np.unique(np.stack(keys, axis=1), axis=0, return_index=True)[1])


def class_bounds(
    lows: Doubles, highs: Doubles, epsilon: float, *, spans: Doubles | None = None
) -> tuple[Integers, Integers]:
    """The fewest and the most classes of people whose twins score within intervals.

    At most: twins that lie within ε of each other whatever their scores are share a class, and a greedy sweep over the
    intervals, lowest ends first, makes groups of such twins; and scores that differ by at most D fall into
    max(1, ⌈D/ε⌉) classes. At least: twins whose intervals lie further apart than ε and its rounding margin are in
    different classes; the most leaves the margin out, so both hold whatever it is rounded to.
    """
    n, m = lows.shape
    by_low = np.argsort(lows, axis=1, kind="stable")
    low, high = np.take_along_axis(lows, by_low, axis=1), np.take_along_axis(highs, by_low, axis=1)
    groups, begin, top = np.ones(n, np.int64), low[:, 0].copy(), high[:, 0].copy()
    for j in range(1, m):
        reach = np.maximum(top, high[:, j])
        new = reach - begin > epsilon
        groups += new
        begin, top = np.where(new, low[:, j], begin), np.where(new, high[:, j], reach)
    span = highs.max(axis=1) - lows.min(axis=1)
    if spans is not None:
        span = np.minimum(span, spans)
    # Bounded before it becomes a whole number: a span of 1e30 has no integer.
    at_most = np.minimum(groups, np.clip(np.ceil(span / epsilon), 1, m).astype(np.int64))
    by_high = np.argsort(highs, axis=1, kind="stable")
    low, high = np.take_along_axis(lows, by_high, axis=1), np.take_along_axis(highs, by_high, axis=1)
    apart, last = np.ones(n, np.int64), high[:, 0].copy()
    apart_from = tolerance_of(epsilon) * (1 + 2.0**-22)  # which the kernels take as float32
    for j in range(1, m):
        new = low[:, j] - last > apart_from
        apart += new
        last = np.where(new, high[:, j], last)
    return apart, np.maximum(at_most, 1)


#: People drawn at once at most, and in all.
DRAWN_BATCH, MAX_DRAWN = 16_384, 1_000_000
#: Draws in a row that the rules may leave out entirely.
MAX_EMPTY = 200


def drawn(
    evaluator: Evaluator,
    rows: Codes,
    rng: np.random.Generator,
    *,
    changes: int | None = None,
    people: int = MAX_DRAWN,
    batch: int = DRAWN_BATCH,
) -> Iterator[Codes]:
    """Draw people of a population in batches: uniform over the domain, or a real row with some attributes drawn anew.

    Whoever the rules leave out is drawn again, so that the population is the one that the rules leave.
    """
    schema, left, empty = evaluator.schema, people, 0
    free = np.array(schema.free_columns)
    while left > 0:
        count = min(batch, left)
        codes = rows[rng.integers(0, len(rows), count)].copy()
        fresh = _uniform(schema, rng, count)
        if changes is None or changes >= len(free):
            codes[:, free] = fresh
        else:
            ranks = np.argsort(rng.random((count, len(free))), axis=1)
            chosen = ranks < changes
            codes[:, free] = np.where(chosen, fresh, codes[:, free])
        codes = codes[evaluator.validity.people(codes)] if evaluator.validity.any else codes
        empty = 0 if len(codes) else empty + 1
        if empty > MAX_EMPTY:
            raise OptionError(
                f"of {batch * MAX_EMPTY:,} people drawn the rules left nobody; draw around real rows with --changes."
            )
        left -= len(codes)
        if len(codes):
            yield codes


def _uniform(schema: Schema, rng: np.random.Generator, count: int) -> Codes:
    columns = []
    for column in schema.free_columns:
        attribute = schema.attributes[column]
        if attribute.allowed:
            columns.append(np.array(attribute.allowed)[rng.integers(0, len(attribute.allowed), count)])
        elif attribute.discrete:
            columns.append(rng.integers(int(attribute.low), int(attribute.upper) + 1, count).astype(np.float64))
        else:
            columns.append(rng.uniform(attribute.low, attribute.upper, count))
    return np.stack(columns, axis=1) if columns else np.empty((count, 0))
