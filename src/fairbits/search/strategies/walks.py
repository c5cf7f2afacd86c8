"""The two halves that most testers of individual discrimination share: towards the boundary, then around what is there.

``approach`` moves real people until their twins get different decisions; ``walk`` then changes one attribute at a time.
What differs between testers is which way to go, and that is handed in. A model that predicts a number decides nothing:
there, twins count as treated apart when their scores do not all fall into one class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Truth
from fairbits.engine import Evaluation
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Indices

#: Chance to keep a step that loses an ID case: Metropolis at temperature 1 with an objective of 0 or 1.
FORGIVENESS = float(np.exp(-1.0))


@dataclass(frozen=True, slots=True)
class Start:
    """People to walk from, the real rows that they belong to, and their seed numbers if they have any."""

    people: Codes
    anchors: Codes
    seeds: Indices | None = None

    def __len__(self) -> int:
        return len(self.people)

    def rows(self, chosen: npt.NDArray[np.generic]) -> Start:
        """A selection of these people."""
        return Start(self.people[chosen], self.anchors[chosen], None if self.seeds is None else self.seeds[chosen])

    @classmethod
    def joined(cls, parts: Sequence[Start]) -> Start:
        """All people of several."""
        seeds = [part.seeds for part in parts if part.seeds is not None]
        people, anchors = (
            np.concatenate(some) for some in zip(*((one.people, one.anchors) for one in parts), strict=True)
        )
        return cls(people, anchors, np.concatenate(seeds) if seeds else None)


@dataclass(frozen=True, slots=True)
class WalkStep:
    """One step of all walkers: what was moved, who was reached, and who stays there."""

    attribute: Indices
    sign: Codes
    people: Codes
    figures: Evaluation
    hit: Truth
    kept: Truth


class Guide(ABC):
    """Says which free attribute of each walker moves next and which way, and hears what came of it."""

    @abstractmethod
    def choose(self, rng: np.random.Generator) -> tuple[Indices, Codes]:
        """Choose a free attribute and a direction for every walker."""

    def learn(self, outcome: WalkStep) -> None:  # noqa: B027 - not all do
        """Learn from the last step; called after every step."""


class Aimless(Guide):
    """Steps without guidance: any attribute, up or down, all equally likely."""

    def __init__(self, walkers: int, free: int):
        self._walkers, self._free = walkers, free

    def choose(self, rng: np.random.Generator) -> tuple[Indices, Codes]:
        """Draw an attribute and a direction for every walker, all equally likely."""
        return rng.integers(0, self._free, self._walkers), rng.choice([-1.0, 1.0], self._walkers)


def apart(oracle: Oracle, figures: Evaluation) -> Truth:
    """Whose twins do not all get the same decision (for a regression: more than one class)."""
    return figures.k > 1 if oracle.problem.schema.regression else figures.flips


def walk(
    oracle: Oracle,
    start: Start,
    guide: Guide,
    rng: np.random.Generator,
    *,
    steps: int,
    forgiveness: float = FORGIVENESS,
) -> None:
    """Walk: every walker changes one attribute a step."""
    problem = oracle.problem
    current, here = start.people.copy(), np.ones(len(start), dtype=np.bool_)
    for _ in range(steps if len(start) else 0):
        attribute, sign = guide.choose(rng)
        hopped = problem.limit(problem.step(current, attribute, sign), start.anchors, rng, current=current)
        found = oracle.ask(hopped, seeds=start.seeds, origin="local")
        hit = apart(oracle, found)
        kept = hit | ~here | (rng.random(len(hit)) < forgiveness)
        current[kept], here[kept] = hopped[kept], hit[kept]
        guide.learn(WalkStep(attribute, sign, hopped, found, hit, kept))


def opened(oracle: Oracle, rng: np.random.Generator, count: int) -> tuple[Start, Evaluation]:
    """Some rows of the table, opened as seeds, with their figures."""
    rows = oracle.problem.pick_rows(rng, count)
    seeds, figures = oracle.open_seeds(rows)
    return Start(oracle.problem.rows[rows], oracle.problem.rows[rows], seeds), figures


#: Which way people go: by who they are, their figures, and their places among the seeds.
Direction = Callable[[Codes, Evaluation, Indices], Codes]


def approach(
    oracle: Oracle,
    rng: np.random.Generator,
    *,
    seeds: int,
    moves: int,
    direction: Direction,
) -> Start:
    """Move real people until their twins get different decisions.

    Whoever gets no direction moves one attribute at random.
    """
    problem = oracle.problem
    start, figures = opened(oracle, rng, seeds)
    people = start.people.copy()
    moving = np.arange(len(start))
    arrived = np.zeros(len(start), dtype=np.bool_)
    for move in range(moves + 1):
        hit = apart(oracle, figures)
        arrived[moving[hit]] = True
        moving, figures = moving[~hit], figures.rows(~hit)
        if move == moves or len(moving) == 0:
            break
        signs = nudged(direction(people[moving], figures, moving), rng)
        reached = problem.moved(people[moving], signs * problem.stride)
        people[moving] = problem.limit(reached, start.anchors[moving], rng, current=people[moving])
        figures = oracle.ask(people[moving], seeds=start.rows(moving).seeds, origin="global")
    return Start(people, start.anchors, start.seeds).rows(arrived)


def nudged(direction: Codes, rng: np.random.Generator) -> Codes:
    """Directions, with one random attribute for whoever would stand still."""
    still = np.flatnonzero(~direction.any(axis=1))
    direction[still, rng.integers(0, direction.shape[1], len(still))] = rng.choice([-1.0, 1.0], len(still))
    return direction


def to_boundary(oracle: Oracle, figures: Evaluation) -> Codes:
    """Direction of the score towards the decision boundary: +1 for people whose score must rise, −1 for the others."""
    if oracle.problem.schema.regression:
        return np.ones((len(figures.k), 1))
    return np.where(figures.favourable[:, None] > 0, -1.0, 1.0)


def drawn_people(oracle: Oracle, rng: np.random.Generator, count: int) -> Start:
    """Draw people uniformly from the domain (within the limit of changes, where there is one)."""
    problem = oracle.problem
    anchors = problem.rows[rng.integers(0, len(problem.rows), count)]
    people = anchors.copy()
    people[:, problem.free] = problem.uniform(rng, count)
    return Start(problem.limit(people, anchors, rng), anchors)
