"""Branch and bound over boxes of people, for dense networks: who certainly does not flip, and who certainly does.

Boxes are bounded by the engine (CROWN over all twins at once); the box is split next of which most will be settled
soon, as far as one can tell: many open people, a part that is certain already, a bound that nearly settles it. What is
certain inside an open box is counted, so that certified, falsified and open people add up at every moment. A real
attribute is an interval: then parts of the domain are counted, each with all the reals in it. The statement is about
the model's own float32 scores, whatever library computes them: bounds are widened by all that rounding can do.
People who flip, drawn at random from open boxes, falsify, and show where others may be.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from fairbits.certify.exact import class_bounds
from fairbits.domain import Doubles, Integers
from fairbits.engine import BINS, FLIPPING, OPEN, STEADY, BoxNetwork, ask_people, bound_boxes, share

#: Boxes that are split at once, at most, and that a thread bounds at once; seconds that a batch may take, about.
BATCH, PIECE, ROUND = 2048, 16, 0.3
#: Counts of people up to which 64-bit integers are exact.
WHOLE = 2**62


def in_batches(
    step: Callable[[int], bool], going: Callable[[], bool], *, clock: Callable[[], float] = time.perf_counter
) -> None:
    """Take steps of a number of boxes while there are some; batches grow while they are quick, to keep the budget."""
    size = 16
    while going():
        begin = clock()
        if not step(size):
            return
        size = size // 2 + 1 if clock() - begin > ROUND else min(2 * size, BATCH)


def most_open(priority: Doubles, size: int) -> Integers:
    """The boxes with the highest priority, of those that have one: about half of them, and no more than a batch."""
    wanted = min(size, max(1, int(np.count_nonzero(priority)) // 2 + 1))
    order = np.argpartition(-priority, wanted - 1)[:wanted] if wanted < len(priority) else np.arange(len(priority))
    return np.sort(order[priority[order] > 0])


class Bounds(NamedTuple):
    """What is known of boxes: their status, shares that are certain, where to split; margins of twins, if asked for."""

    status: Integers
    certified: Doubles
    flipping: Doubles
    split: Integers
    lows: Doubles
    highs: Doubles
    gaps: Doubles
    nearness: Doubles


def bound(
    network: BoxNetwork,
    cuts: tuple[float, float],
    boxes: tuple[Any, ...],
    *,
    bins: int = 0,
    margins: bool = False,
    threads: int | None = None,
) -> Bounds:
    """Bound boxes (first and last steps, sets, states of neurons) on several threads; cuts are (below, from)."""
    n, m = len(boxes[0]), network.layers.twins.shape[0]
    kept = n if margins else 0
    found = Bounds(
        np.zeros(n, np.int64), np.zeros(n), np.zeros(n), np.zeros(n, np.int64),
        np.empty((kept, m)), np.empty((kept, m)), np.empty(kept), np.zeros(n),
    )  # fmt: skip

    def piece(start: int) -> None:
        part = slice(start, start + PIECE)
        some, (status, certified, flipping, split, *rest) = (
            [array[part] for array in group] for group in (boxes, found)
        )
        bound_boxes(network.layers, cuts[1], cuts[0], *some, status, certified, flipping, split, bins, *rest)

    share(piece, range(0, n, PIECE), threads)
    return found


def halves(
    network: BoxNetwork, first: Any, last: Any, masks: Any, where: Integers
) -> tuple[tuple[Any, Any, Any], Integers, Integers]:
    """Boxes cut in two at one attribute each: all left halves, then all right ones; and of how many values, how many go
    left.
    """
    numeric = network.numeric
    left_last, right_first = last.copy(), first.copy()
    left_masks, right_masks = masks.copy(), masks.copy()
    sizes, lefts = np.empty(len(first), np.int64), np.empty(len(first), np.int64)
    steps = np.flatnonzero(where < numeric)
    at = where[steps]
    middle = np.floor((first[steps, at] + last[steps, at]) / 2)
    left_last[steps, at], right_first[steps, at] = middle, middle + 1
    sizes[steps] = (last[steps, at] - first[steps, at] + 1).astype(np.int64)
    lefts[steps] = (middle - first[steps, at] + 1).astype(np.int64)
    for place in np.flatnonzero(where >= numeric).tolist():
        at_set = int(where[place]) - numeric
        bits = [b for b in range(64) if int(masks[place, at_set]) >> b & 1]
        half = len(bits) // 2
        left_masks[place, at_set] = np.uint64(sum(1 << b for b in bits[:half]))
        right_masks[place, at_set] = np.uint64(sum(1 << b for b in bits[half:]))
        sizes[place], lefts[place] = len(bits), half
    both = (
        np.concatenate([first, right_first]),
        np.concatenate([left_last, last]),
        np.concatenate([left_masks, right_masks]),
    )
    return both, sizes, lefts


#: People drawn at once.
DRAWN = 8_192


@dataclass(frozen=True, slots=True, eq=False)
class Witnesses:
    """Boxes with somebody who flips: how many different ones were met there, and one of them."""

    boxes: Integers
    counts: Integers
    people: npt.NDArray[np.float64]
    estimate: float = 0.0

    def largest(self, priority: npt.NDArray[np.float64], count: int) -> Witnesses:
        """Witnesses in the boxes with the most open people, among boxes that can be split."""
        order = np.argsort(-priority[self.boxes], kind="stable")
        order = order[priority[self.boxes[order]] > 0][:count]
        return Witnesses(self.boxes[order], self.counts[order], self.people[order])


def draw_witnesses(
    network: BoxNetwork,
    cut: float,
    below: float,
    pool: dict[str, npt.NDArray[Any]],
    n: int,
    rng: np.random.Generator,
) -> Witnesses | None:
    """Draw people from the first ``n`` boxes of a pool, by how many of each are open, and keep those who flip."""
    weights = pool["priority"][:n]
    total = float(weights.sum())
    if not total > 0:
        return None
    chosen = rng.choice(n, DRAWN, p=weights / total)
    first, last = pool["first"][chosen].astype(np.float64), pool["last"][chosen].astype(np.float64)
    people = np.empty((DRAWN, len(network.values)))
    people[:, : network.numeric] = np.floor(first + rng.random(first.shape) * (last - first + 1))
    np.minimum(people[:, : network.numeric], last, out=people[:, : network.numeric])
    people[:, : network.numeric] += network.layers.wide * rng.random(first.shape)  # anywhere in a part of a real one
    masks = pool["masks"][chosen]
    for place in range(masks.shape[1]):
        bits = (masks[:, place, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        # The member with the largest of as many random numbers: each is as likely as the others.
        people[:, network.numeric + place] = np.argmax(rng.random(bits.shape) * bits, axis=1)
    found = np.zeros(DRAWN, np.int64)
    ask_people(network.layers, cut, below, people, found)
    flips = found == FLIPPING
    met = np.unique(np.column_stack([chosen[flips].astype(np.float64), people[flips]]), axis=0)
    boxes, start, counts = np.unique(met[:, 0].astype(np.int64), return_index=True, return_counts=True)
    # A box is drawn by how many of it are open, and one of all its people then: each stands for so many as this.
    stands = total * pool["people"][chosen].astype(np.float64) / weights[chosen]
    return Witnesses(boxes, counts.astype(np.int64), met[start, 1:], float((stands * flips).mean()))


#: What a box promises, per open person: this, its certain share, and how nearly its bound settles it, squared: what is
#: far from that takes many splits.
PROMISE = 0.01
#: Open boxes that are kept; beyond, those with the fewest open people are put aside as they are.
MAX_BOXES = 600_000
#: Counts of people so small that the rounding of shares is far below one person.
FEW = 1_000_000
#: The last part of the budget counts the largest open boxes again, in finer steps; the part before it looks for people
#: who flip among those who are open, and for boxes around them.
RECOUNT, FINE = 0.05, 1024
FALSIFY = 0.05
#: People who flip that are followed at once, at most; a box of which so much certainly flips is split no further.
FOLLOWED, ENOUGH = 256, 0.5
#: Scores, and how far apart two are, may be off by so much of their size: heads round, and float32 compares with ε.
SCORE_ROUNDING = 2.0**-20


@dataclass(slots=True)
class Volumes:
    """How many people are certified, falsified and open, in how many boxes; of cells, the largest k between two bounds.

    ``drawn`` people were drawn at random from the boxes that were open before falsifying; ``flips_estimate`` is how
    many of everybody flip, as estimated from them.
    """

    people: int
    certified: int = 0
    falsified: int = 0
    boxes: int = 0
    drawn: int = 0
    flips_estimate: float = 0.0
    k_low: int = 1
    k_high: int = 1
    kept: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def open(self) -> int:
        """People of whom nothing is known."""
        return self.people - self.certified - self.falsified


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about everybody: the side of ``cut``, or (with ``k``) whether there are at most ``k`` classes.

    From ``cut`` on a margin is favourable, under ``below`` it is not; what lies between is rounding's.
    """

    cut: float = 0.0
    below: float = 0.0
    k: int | None = None
    epsilon: float = 0.025
    linear: bool = False
    classes: int = 2


def prove(
    network: BoxNetwork,
    question: Question,
    *,
    seconds: float,
    threads: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    watch: Callable[[Volumes], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
    max_boxes: int | None = None,
    keep: bool = False,
    seed: int = 0,
) -> Volumes:
    """Split the domain until everything is settled, the budget ends, or somebody says stop."""
    proof = _Proof(network, question, threads, keep, np.random.default_rng(seed))
    no_people = np.zeros((0, len(network.values)))
    ask_people(network.layers, 0.0, 0.0, no_people, np.zeros(0, np.int64))  # compiles before the clock starts
    return proof.run(clock() + seconds, seconds, stop, watch, clock, max_boxes or 2**62)


class _Proof:
    """One proof in progress: a pool of open boxes, and counts of what is settled."""

    def __init__(
        self, network: BoxNetwork, question: Question, threads: int | None, keep: bool, rng: np.random.Generator
    ):
        self.network, self.question, self.threads, self.keep = network, question, threads, keep
        self.rng = rng
        self.volumes = Volumes(network.people)
        self.kind: Any = np.int64 if network.people < WHOLE else object
        self.neurons = len(network.layers.kinds) + 1  # the last says whether twins are bounded apart
        self.n = 0
        self.pool = self._empty(1024)

    def _empty(self, size: int) -> dict[str, npt.NDArray[Any]]:
        numeric, sets = self.network.numeric, len(self.network.values) - self.network.numeric
        return {
            "first": np.zeros((size, numeric), np.int32),
            "last": np.zeros((size, numeric), np.int32),
            "masks": np.zeros((size, sets), np.uint64),
            "states": np.zeros((size, self.neurons), np.int8),
            "people": np.zeros(size, self.kind),
            "certified": np.zeros(size),
            "flipping": np.zeros(size),
            "witnesses": np.zeros(size, np.int64),
            "split": np.zeros(size, np.int64),
            "priority": np.zeros(size),
            "promise": np.zeros(size),
        }

    def run(
        self,
        end: float,
        seconds: float,
        stop: Callable[[], bool],
        watch: Callable[[Volumes], None] | None,
        clock: Callable[[], float],
        max_boxes: int,
    ) -> Volumes:
        first, last, masks = self.network.whole()
        people = np.array([self.network.people], dtype=self.kind)
        states = np.zeros((1, self.neurons), np.int8)
        self._add(np.empty(0, np.int64), first, last, masks, states, people)
        about_flips = self.question.k is None
        turn = end - (RECOUNT + FALSIFY) * seconds if about_flips else end

        def step(size: int) -> bool:
            chosen = most_open(self.pool["promise"][: self.n], size)
            if not len(chosen):
                return False
            self._split(chosen)
            if self.n > MAX_BOXES:
                self._put_aside()
            if watch is not None:
                watch(self._so_far())
            return True

        in_batches(step, lambda: clock() < turn and self.volumes.boxes < max_boxes and not stop(), clock=clock)
        if about_flips:
            self._falsify(end - RECOUNT * seconds, stop, clock, max_boxes)
            self._recount(end, stop, clock, max_boxes)
        return self._so_far()

    def _split(self, chosen: Integers) -> tuple[Integers, tuple[Any, Any, Any]]:
        """Replace boxes by their halves; gives where left halves stand now, then right ones (-1: settled); and all."""
        pool = self.pool
        first, last = pool["first"][chosen].astype(np.float64), pool["last"][chosen].astype(np.float64)
        states, people = pool["states"][chosen], pool["people"][chosen]
        parts, sizes, lefts = halves(self.network, first, last, pool["masks"][chosen], pool["split"][chosen])
        each = people // sizes.astype(self.kind)
        counts = [each * lefts.astype(self.kind), each * (sizes - lefts).astype(self.kind)]
        return self._add(chosen, *parts, np.concatenate([states, states]), np.concatenate(counts)), parts

    def _add(self, free: Integers, first: Any, last: Any, masks: Any, states: Any, people: Any) -> Integers:
        """Bound boxes; count the settled ones, and keep the others, first in the places ``free``; gives where."""
        status, certified, flipping, split, *_, nearness = self._bound(first, last, masks, states, BINS)
        self.volumes.boxes += len(first)
        volumes = self.volumes
        volumes.certified += int(people[status == STEADY].sum())
        volumes.falsified += int(people[status == FLIPPING].sum())
        going = np.flatnonzero(status == OPEN)
        if self.keep:
            done = status != OPEN
            volumes.kept.append((status[done], first[done], last[done], masks[done]))
        places = free[: len(going)]
        more = len(going) - len(places)
        if more > 0:
            self._reserve(self.n + more)
            places = np.concatenate([places, np.arange(self.n, self.n + more)])
            self.n += more
        else:
            for name in ("priority", "promise", "people", "witnesses"):
                self.pool[name][free[len(going) :]] = 0
        pool = self.pool
        pool["witnesses"][places] = 0
        pool["first"][places], pool["last"][places] = first[going], last[going]
        pool["masks"][places], pool["states"][places] = masks[going], states[going]
        pool["people"][places], pool["split"][places] = people[going], split[going]
        pool["certified"][places], pool["flipping"][places] = certified[going], flipping[going]
        certain = np.minimum(certified[going] + flipping[going], 1.0)
        unknown = people[going].astype(np.float64) * (1.0 - certain)
        pool["priority"][places] = priority = np.where((split[going] >= 0) & (unknown > 0.5), unknown, 0.0)
        pool["promise"][places] = priority * (PROMISE + certain + nearness[going] ** 2)
        now = np.full(len(first), -1, np.int64)
        now[going] = places
        return now

    def _falsify(self, end: float, stop: Callable[[], bool], clock: Callable[[], float], max_boxes: int) -> None:
        """Draw people from open boxes; around those who flip, split until a box certainly has some who do."""
        followed = 16
        while clock() < end and self.volumes.boxes < max_boxes and not stop():
            found = draw_witnesses(self.network, self.question.cut, self.question.below, self.pool, self.n, self.rng)
            if found is None:
                return
            if not self.volumes.drawn:
                self.volumes.drawn = DRAWN
                self.volumes.flips_estimate = float(self.volumes.falsified) + found.estimate
            self.pool["witnesses"][found.boxes] = np.maximum(self.pool["witnesses"][found.boxes], found.counts)
            frontier = found.largest(self.pool["priority"], followed)
            if not len(frontier.boxes) and followed == FOLLOWED:
                return  # next to nobody flips among those who are open
            while len(frontier.boxes) and clock() < end and self.volumes.boxes < max_boxes and not stop():
                frontier = self._followed(frontier)
            followed = min(2 * followed, FOLLOWED)
            if self.n > MAX_BOXES:
                self._put_aside()

    def _followed(self, frontier: Witnesses) -> Witnesses:
        """Split the boxes of some people who flip; they then stand in one of the halves."""
        n, numeric = len(frontier.boxes), self.network.numeric
        now, (_, last, masks) = self._split(frontier.boxes)
        steps = np.floor(frontier.people[:, :numeric])
        values = frontier.people[:, numeric:].astype(np.uint64)
        right = (steps > last[:n]).any(axis=1) | ((masks[:n] >> values) & np.uint64(1) == 0).any(axis=1)
        places = now[np.where(right, n, 0) + np.arange(n)]
        pool = self.pool
        there = places >= 0
        pool["witnesses"][places[there]] = 1
        on = there.copy()
        on[there] = (pool["split"][places[there]] >= 0) & (pool["flipping"][places[there]] < ENOUGH)
        return Witnesses(places[on], np.ones(int(on.sum()), np.int64), frontier.people[on])

    def _bound(self, first: Any, last: Any, masks: Any, states: Any, bins: int) -> Bounds:
        question, boxes = self.question, (first, last, masks, states)
        if question.k is None:
            return bound(self.network, (question.below, question.cut), boxes, bins=bins, threads=self.threads)
        found = bound(self.network, (question.below, question.cut), boxes, margins=True, threads=self.threads)
        nothing = np.zeros(len(first))
        status = self._by_classes(found.lows, found.highs, found.gaps, question.k)
        return found._replace(status=status, certified=nothing, flipping=nothing)

    def _by_classes(self, lows: Doubles, highs: Doubles, gaps: Doubles, k: int) -> Integers:
        """Which boxes have at most K classes for certain, or certainly more."""
        question = self.question
        # Where a bound is no number, nothing is known.
        lows, highs = np.where(np.isnan(lows), -np.inf, lows), np.where(np.isnan(highs), np.inf, highs)
        spread = np.where(np.isnan(gaps), np.inf, gaps)
        if not question.linear:
            # A sigmoid is steepest where its argument is nearest to 0.
            nearest = np.clip(0.0, lows.min(axis=1), np.maximum(highs.max(axis=1), lows.min(axis=1)))
            steepest = special.expit(nearest) * special.expit(-nearest)
            lows, highs, spread = special.expit(lows), special.expit(highs), spread * steepest
        sizes = 1.0 + np.maximum(np.abs(lows), np.abs(highs)).max(axis=1)
        rounding = SCORE_ROUNDING * max(1.0, (question.classes + 8) / 16) * np.where(np.isfinite(sizes), sizes, 0.0)
        lows, highs = lows - rounding[:, None], highs + rounding[:, None]
        fewest, most = class_bounds(lows, highs, question.epsilon, spans=spread + 2.0 * rounding)
        return np.where(most <= k, STEADY, np.where(fewest > k, FLIPPING, OPEN))

    def _recount(self, end: float, stop: Callable[[], bool], clock: Callable[[], float], max_boxes: int) -> None:
        """Count the largest open boxes again, in finer steps, with what is left of the budget."""
        pool = self.pool
        order = np.argsort(-pool["priority"][: self.n], kind="stable")
        order = order[pool["priority"][order] > 0][:max_boxes]
        for start in range(0, len(order), 2 * PIECE):
            if clock() >= end or stop():
                return
            some = order[start : start + 2 * PIECE]
            first, last = pool["first"][some].astype(np.float64), pool["last"][some].astype(np.float64)
            _, certified, flipping, *_ = self._bound(first, last, pool["masks"][some], pool["states"][some], FINE)
            pool["certified"][some] = np.maximum(pool["certified"][some], certified)
            pool["flipping"][some] = np.maximum(pool["flipping"][some], flipping)

    def _certain(self, which: str, places: Any) -> int:
        """People inside open boxes of whom it is certain, rounded down."""
        people = self.pool["people"][places].astype(np.float64)
        # Shares are rounded down by 1e-10 at most: for few people, that is no whole person.
        found = np.floor(self.pool[which][places] * people + np.where(people < FEW, 1e-3, 0.0))
        if which == "flipping":
            # Who was met may be among those who were counted: the larger of the two is certain, not their sum.
            # Of a real attribute, one person is no part.
            met = self.pool["witnesses"][places] * float(self.network.factor * self.network.countable)
            found = np.maximum(found, met)
        if self.kind is object:
            return int(found.sum() * (1.0 - 1e-9))  # sums of doubles beyond 2**53 are rounded
        return int(found.astype(np.int64).sum())

    def _so_far(self) -> Volumes:
        now, everything = self.volumes, slice(0, self.n)
        return Volumes(
            now.people,
            now.certified + self._certain("certified", everything),
            now.falsified + self._certain("flipping", everything),
            now.boxes,
            drawn=now.drawn,
            flips_estimate=now.flips_estimate,
            kept=now.kept,
        )

    def _put_aside(self) -> None:
        """Let the boxes with the fewest open people go: what is certain in them is counted, the rest stays open."""
        order = np.argsort(-self.pool["priority"][: self.n], kind="stable")
        going, staying = order[MAX_BOXES // 2 :], np.sort(order[: MAX_BOXES // 2])
        self.volumes.certified += self._certain("certified", going)
        self.volumes.falsified += self._certain("flipping", going)
        for array in self.pool.values():
            array[: len(staying)] = array[staying]
        self.n = len(staying)

    def _reserve(self, size: int) -> None:
        room = len(self.pool["split"])
        if size <= room:
            return
        larger = self._empty(max(size, 2 * room))
        for name, array in self.pool.items():
            larger[name][: self.n] = array[: self.n]
        self.pool = larger
