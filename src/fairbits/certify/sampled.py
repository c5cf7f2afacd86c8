"""Statistical statements, for every model: people drawn from a stated population, and what follows about all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from fairbits.certify.exact import Asked, Asker, ask
from fairbits.domain import Codes, Schema
from fairbits.errors import OptionError
from fairbits.measure import Evaluator

#: People drawn at once at most, and in all.
BATCH, MAX_DRAWN = 16_384, 1_000_000
#: Draws in a row that the rules may leave out entirely.
MAX_EMPTY = 200


def drawn(
    evaluator: Evaluator,
    rows: Codes,
    rng: np.random.Generator,
    *,
    changes: int | None = None,
    people: int = MAX_DRAWN,
    batch: int = BATCH,
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


def sample(
    asker: Asker,
    rows: Codes,
    rng: np.random.Generator,
    *,
    changes: int | None = None,
    people: int = MAX_DRAWN,
    batch: int = BATCH,
    seconds: float,
    stop: Callable[[], bool] = lambda: False,
) -> Asked:
    """Draw people and evaluate them until the budget ends or there are enough."""
    return ask(
        asker,
        drawn(asker.evaluator, rows, rng, changes=changes, people=people, batch=batch),
        seconds=seconds,
        stop=stop,
    )
