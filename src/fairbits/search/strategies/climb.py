"""`climb`: our own search for the largest k, then the widest span, and for as many people on the way as possible.

A population of real people climbs together, several members from each seed. Every generation each member proposes a
change or two: a free attribute moved a little or drawn anew, or now and then a mix with a better member. Gradients at
the twins with the lowest and the highest score tell which changes would bring them together: those are passed over
(`moves`). Changes are kept by Metropolis at temperature 1 on k, with span and Shannon bits between two values of k, and
a bonus for decisions that differ: a population that only ever went up would settle on a few people and find nobody
else. Members whose twins all score alike step along the gradient towards the decision boundary, where scores begin to
differ.

Now and then the best members look at everybody within one change of them, so that no better neighbour is overlooked.

Models without gradients are searched in the same way, with changes taken as they come. What a change does to a tree
ensemble is foreseen from the thresholds that it crosses: one that crosses none would do nothing, so that every change
goes at least as far as the next threshold (`crossings`). Scoring several changes first, to ask about the best, was
tried and left out: the kernels ask about a person in the time that it takes.

How many seeds and members there are follows from the budget (`fitted`): few have the time to get high in a short
search; in a longer one a small population would keep the engine waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairbits.domain import DEFAULT_THRESHOLD, Codes, Doubles
from fairbits.engine import NOTHING_KNOWN, SHORTNESS, Domain, Evaluation, Forecast, change_some, margins
from fairbits.measure import Measure, effective_classes
from fairbits.models import HasGradients
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Indices, Problem, across
from fairbits.search.strategies.walks import opened
from fairbits.search.strategy import ABOVE_0, AT_LEAST_1, Limit, Strategy, metropolis, population

#: Chance of a proposal to be a mix with a better member; as long as all twins get the same decision, more often.
MIX, MIX_AGREED = 0.03, 0.5
#: Every so many generations, so many of the best members look around.
LOOK_EVERY, LOOKERS = 40, 4
#: Decisions that differ are worth so many classes, and so many more for scores that lie 1 away from the threshold.
FLIP, ROOM = 3.0, 4.0
#: Moves of a member after which its gradients are taken again.
PATIENCE = 3
#: Seeds at least and at most, and people asked about for each: with fewer, its members do not get far.
MIN_SEEDS, MAX_SEEDS, PER_SEED = 64, 512, 2000
#: Members at most. A few of them have at least so many generations, and so many where there are more of them: in a
#: short search a small population gets higher.
MAX_MEMBERS, FEW_MEMBERS, MIN_GENERATIONS, MANY_GENERATIONS = 2048, 512, 32, 256


@dataclass(frozen=True)
class Climb(Strategy):
    """Population search; gradients help where the model has them."""

    seeds: int | None = None  # rows that are climbed from together; None: by the budget
    chains: int | None = None  # members that start from each seed; None: by the budget, 1 where seeds are given
    generations: int = 1000
    temperature: float = 1.0

    name: ClassVar[str] = "climb"
    fits: ClassVar[tuple[str, ...]] = ("seeds", "chains")
    limits: ClassVar[Mapping[str, Limit]] = {
        **dict.fromkeys(("seeds", "chains", "generations"), AT_LEAST_1),
        "temperature": ABOVE_0,
    }

    @classmethod
    def fitted(cls, options: Mapping[str, Any], *, people: int, m: int) -> dict[str, Any]:
        """Options with numbers of seeds and chains that suit the budget."""
        seeds, chains = options.get("seeds"), options.get("chains")
        if seeds is None:
            seeds = int(np.clip(2 ** int(np.log2(max(people // PER_SEED, 1))), MIN_SEEDS, MAX_SEEDS))
            members = min(people // MIN_GENERATIONS, max(FEW_MEMBERS, people // MANY_GENERATIONS), population(m))
            chains = chains or max(1, min(members, MAX_MEMBERS) // seeds)
        return {**options, "seeds": seeds, "chains": chains or 1}

    def prepare(self, problem: Problem) -> None:
        """Compile the kernel that makes proposals."""
        given = domain_of(problem), problem.rows[:0], problem.evaluator.contributions(problem.free), NOTHING_KNOWN
        change_some(*given, np.random.default_rng(0), twins=2, threads=1)  # nothing is drawn: there is nobody

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """One population, from its seeds to the end of its generations."""
        problem = oracle.problem
        start, figures = opened(oracle, rng, self.seeds or MAX_SEEDS)
        member = np.tile(np.arange(len(start)), self.chains or 1)  # the seed of each
        start = start.rows(member)
        members = Members(oracle, start.people.copy(), figures.rows(member))
        looked: set[bytes] = set()
        for generation in range(1, self.generations + 1):
            proposed = members.propose(rng)
            members.step_to_boundary(proposed, rng)
            proposed = problem.limit(proposed, start.anchors, rng, current=members.people)
            found = oracle.ask(proposed, seeds=start.seeds, origin="climb")
            gain = members.height(found) - members.heights
            kept = np.flatnonzero(metropolis(gain, rng, temperature=self.temperature))
            members.move(kept, proposed[kept], found.rows(kept))
            if generation % LOOK_EVERY == 0 and problem.within is None:
                look_around(oracle, members, np.asarray(start.seeds), looked)


def height(figures: Evaluation, *, threshold: float = DEFAULT_THRESHOLD, measure: Measure = "q_inf") -> Doubles:
    """What the search climbs: k, and between two values of k the span and the bits.

    Under the measure ``q_1`` it is 2 to the power of Q1 in place of k, which every class of equal size raises by 1;
    of the span, which breaks ties, a hundredth is enough there.

    Where decisions differ there is a bonus, which grows with the distance of both extreme scores from the threshold:
    people in the middle of such a region have neighbours who are in it too.
    """
    share = figures.q_1 / max(np.log2(figures.m), 1.0)
    span = figures.span / (1.0 + np.abs(figures.span))  # below 1 for regressions too
    bonus = FLIP + ROOM * np.minimum(figures.high - threshold, threshold - figures.low)
    if measure == "q_1":
        return effective_classes(figures, measure) + 0.01 * span + bonus * figures.flips
    return figures.k + 0.999 * (0.5 * span + 0.5 * share) + bonus * figures.flips


def domain_of(problem: Problem) -> Domain:
    """Bounds and strides of the free attributes, for the kernel."""
    # One type of array, whatever the attributes are: the kernel is compiled once.
    low, high, stride = (np.asarray(bound, dtype=np.float64) for bound in (problem.low, problem.high, problem.stride))
    return Domain(problem.free, low, high, stride, problem.discrete)


class Members:
    """The population: who they are now, how high they stand, and what changes would do to them."""

    def __init__(self, oracle: Oracle, people: Codes, figures: Evaluation):
        problem = oracle.problem
        self._oracle, self._problem = oracle, problem
        self.people, self.figures, self.heights = people, figures, self.height(figures)
        self._domain = domain_of(problem)
        self._forecasts = isinstance(oracle.evaluator.model, HasGradients) and not problem.schema.regression
        self._contributions = oracle.evaluator.contributions(problem.free)
        self._moved = np.zeros(len(people), dtype=np.int64)
        free = set(problem.free.tolist())
        self._thresholds = {column: at for column, at in oracle.evaluator.thresholds.items() if column in free}
        self._discrete = np.array([attribute.discrete for attribute in problem.schema.attributes])
        if self._forecasts:
            self._below = oracle.forecast(people, figures.low_twin)
            self._above = oracle.forecast(people, figures.high_twin)

    def height(self, figures: Evaluation) -> Doubles:
        """The height of people with these figures, by the subject's threshold."""
        return height(figures, threshold=self._oracle.evaluator.threshold, measure=self._problem.measure)

    def propose(self, rng: np.random.Generator) -> Codes:
        """One changed copy of every member."""
        free = self._problem.free
        evaluator = self._oracle.evaluator
        proposed = change_some(
            self._domain,
            self.people,
            self._contributions,
            self._forecast(),
            rng,
            twins=evaluator.m,
            threads=evaluator.threads,
        )
        if self._thresholds:
            proposed = across(self.people, proposed, self._thresholds, self._discrete)
        agreed = self.figures.k == 1 if self._problem.schema.regression else ~self.figures.flips
        mixing = np.flatnonzero(rng.random(len(proposed)) < np.where(agreed, MIX_AGREED, MIX))
        rivals = rng.integers(0, len(proposed), (len(mixing), 2))
        donors = rivals[np.arange(len(mixing)), self.heights[rivals].argmax(axis=1)]  # the first of two equals
        taken = rng.random((len(mixing), len(free))) < rng.random((len(mixing), 1))
        mine, theirs = (self.people[np.ix_(who, free)] for who in (mixing, donors))
        proposed[np.ix_(mixing, free)] = np.where(taken, theirs, mine)
        return proposed

    def step_to_boundary(self, proposed: Codes, rng: np.random.Generator) -> None:
        """Move half of the members whose twins all score alike towards the decision boundary instead."""
        if not self._forecasts:
            return
        stuck = np.flatnonzero((self.figures.k == 1) & (rng.random(len(self.people)) < 0.5))
        if len(stuck) == 0:
            return
        people, figures = self.people[stuck], self.figures
        slope = self._oracle.gradients(people, figures.high_twin[stuck])
        uphill = np.where(figures.high[stuck] < self._oracle.evaluator.threshold, 1.0, -1.0)[:, None] * np.sign(slope)
        length = rng.geometric(SHORTNESS, (len(stuck), 1)) * self._problem.stride
        proposed[stuck] = self._problem.moved(people, length * uphill)

    def move(self, who: Indices, people: Codes, figures: Evaluation) -> None:
        """Replace some members of the population."""
        self.people[who], self.heights[who] = people, self.height(figures)
        self.figures.put(who, figures)
        self._moved[who] += 1

    def _forecast(self) -> Forecast:
        """Margins as they are; gradients as they were at most ``PATIENCE`` changes ago."""
        if not self._forecasts:
            return NOTHING_KNOWN
        due = np.flatnonzero(self._moved >= PATIENCE)
        people, figures = self.people[due], self.figures
        for known, twins in ((self._below, figures.low_twin), (self._above, figures.high_twin)):
            known.slopes[due], known.inner[due] = self._oracle.forecast(people, twins[due])
        self._moved[due] = 0
        return Forecast(margins(figures.low), margins(figures.high), self._below, self._above)


def look_around(oracle: Oracle, members: Members, seeds: Indices, looked: set[bytes]) -> None:
    """Ask about every neighbour of the best members that were not explored yet; each member moves to its best one."""
    problem, people = oracle.problem, members.people
    lookers: list[int] = []
    for member in np.argsort(-members.heights, kind="stable")[: 10 * LOOKERS]:
        key = people[member, problem.person].tobytes()
        if key not in looked and len(lookers) < LOOKERS:
            looked.add(key)
            lookers.append(int(member))
    if not lookers:
        return
    chosen = np.array(lookers)
    neighbours, origin = problem.neighbours(people[chosen])
    found = oracle.ask(neighbours, seeds=seeds[chosen[origin]], origin="climb")
    reached = members.height(found)
    order = np.lexsort((reached, origin))
    best = order[np.searchsorted(origin[order], np.arange(len(chosen)), side="right") - 1]
    better = reached[best] > members.heights[chosen]
    members.move(chosen[better], neighbours[best[better]], found.rows(best[better]))
