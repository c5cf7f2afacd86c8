"""`sg`: decision trees around people, whose paths are bent to reach other people.

Aggarwal, Lohia, Nagar, Dey, Saha, "Black Box Fairness Testing of Machine Learning Models", ESEC/FSE 2019: symbolic
generation. A tree is fitted to the model's decisions about neighbours of the inputs at the head of a queue. Local: an
ID case is moved so that exactly one constraint of its path fails. Global: every input leaves its path at each of its
constraints, as long as the tree is confident there. Where we differ from the public code, and why:

* a path constrains a box, so a solver is not needed: the attribute is drawn from the interval that is left;
* one tree, fitted to 20,000 neighbours, serves all inputs taken from the queue together, where the public code fits one
  to 5000 for each; a path then belongs to many inputs, and so it is people, not paths, that are not visited twice;
* confidence at a node is the share of neighbours there that get the input's own decision: the majority's share, with
  two classes, never falls below the published threshold of 0.3;
* a round has a queue of its own. The neighbours' decisions are counted as queries, one for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairbits.domain import Codes, Truth
from fairbits.engine import Seen, keys_of
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Indices, Problem
from fairbits.search.strategies.walks import Start, apart, opened
from fairbits.search.strategy import AT_LEAST_1, SHARE, Limit, Strategy, population

#: Inputs that share a tree, at most; and how long the queue may grow, in batches.
SHARING, LONGEST = 1024, 16
#: Rank in the queue of what bends the path of an ID case; the rest is ranked by its confidence, below that.
LOCAL = 2.0


@dataclass(frozen=True)
class Sg(Strategy):
    """The paper's parameters under the paper's defaults."""

    seeds: int | None = None
    neighbours: int = 20_000  # that a tree is fitted to
    confidence: float = 0.3
    depth: int = 10
    batches: int = 40  # taken from the queue in a round

    name: ClassVar[str] = "sg"
    limits: ClassVar[Mapping[str, Limit]] = {
        **dict.fromkeys(("seeds", "neighbours", "depth", "batches"), AT_LEAST_1),
        "confidence": SHARE,
    }

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """Ask about seeds, and about people on the paths of decision trees around them."""
        problem, count = oracle.problem, self.seeds or min(SHARING, population(oracle.evaluator.m))
        start, figures = opened(oracle, rng, count)
        queue = Queue(start, problem)
        taken, hit = queue.all, apart(oracle, figures)
        for _ in range(self.batches):
            tree = self._tree(oracle, taken.people, rng)
            for local in (True, False):
                bent, ranks = self._bent(oracle, tree, taken.rows(hit) if local else taken, rng, local=local)
                queue.add(bent, ranks)
            taken, ranks = queue.take(count)
            if len(taken) == 0:
                return
            hit = np.zeros(len(taken), dtype=np.bool_)
            for origin, part in (("local", ranks >= LOCAL), ("global", ranks < LOCAL)):
                some = taken.rows(part)
                if len(some):
                    hit[part] = apart(oracle, oracle.ask(some.people, seeds=some.seeds, origin=origin))

    def _tree(self, oracle: Oracle, people: Codes, rng: np.random.Generator) -> Any:
        """A tree of the decisions about neighbours: people with about a third of their attributes drawn anew."""
        from sklearn.tree import DecisionTreeClassifier

        problem = oracle.problem
        near = people[rng.integers(0, len(people), self.neighbours)]
        fresh = rng.random((len(near), len(problem.free))) < 1 / 3
        near[:, problem.free] = np.where(fresh, problem.uniform(rng, len(near)), near[:, problem.free])
        scores = oracle.scores_at(near, rng.integers(0, oracle.evaluator.m, len(near)))
        cut = float(np.median(scores)) if problem.schema.regression else oracle.evaluator.threshold
        tree = DecisionTreeClassifier(max_depth=self.depth, min_samples_leaf=5, random_state=0)
        return tree.fit(near[:, problem.free], scores >= np.float32(cut))

    def _bent(
        self, oracle: Oracle, tree: Any, start: Start, rng: np.random.Generator, *, local: bool
    ) -> tuple[Start, Codes]:
        """One person for every constraint on every path, with that constraint negated."""
        problem = oracle.problem
        values = start.people[:, problem.free]
        if len(start) == 0 or tree.tree_.node_count == 1:
            return start.rows(np.zeros(0, dtype=np.int64)), np.zeros(0)
        person, attribute, low, high, sure = constraints(tree, values, problem, whole=local)
        usable = (low <= high) & (local | (sure >= self.confidence))
        person, attribute, low, high, sure = person[usable], attribute[usable], low[usable], high[usable], sure[usable]
        draws = rng.random(len(person))
        discrete = problem.discrete[attribute]
        value = np.where(discrete, np.floor(low + draws * (high - low + 1)), low + draws * (high - low))
        bent = start.rows(person)
        people = bent.people.copy()
        people[np.arange(len(person)), problem.free[attribute]] = np.clip(value, low, high)
        return Start(
            problem.limit(people, bent.anchors, rng, current=bent.people), bent.anchors, bent.seeds
        ), sure + LOCAL * local


def constraints(
    tree: Any, values: Codes, problem: Problem, *, whole: bool
) -> tuple[Indices, Indices, Codes, Codes, Codes]:
    """Every constraint on the people's paths through a tree, negated.

    The interval keeps the path's other constraints on the attribute: all of them (``whole``), or those before.
    """
    inner = tree.tree_
    share = inner.value[:, 0, :] / inner.value[:, 0, :].sum(axis=1, keepdims=True)
    node = np.zeros(len(values), dtype=np.int64)
    people = np.arange(len(values))
    decided = tree.predict(values).astype(np.int64) if share.shape[1] > 1 else np.zeros(len(values), np.int64)
    steps: list[tuple[Indices, Indices, Truth, Codes, Codes]] = []
    while True:
        inside = np.flatnonzero(inner.children_left[node] >= 0)
        if len(inside) == 0:
            break
        at = node[inside]
        attribute, cut = inner.feature[at].astype(np.int64), inner.threshold[at]
        left = values[inside, attribute].astype(np.float32) <= cut
        steps.append((people[inside], attribute, left, cut, share[at, decided[inside]]))
        node[inside] = np.where(left, inner.children_left[at], inner.children_right[at])
    found = []
    for place, (person, attribute, left, cut, sure) in enumerate(steps):
        low, high = problem.low[attribute].copy(), problem.high[attribute].copy()
        for other, (whom, which, below, threshold, _) in enumerate(steps if whole else steps[:place]):
            if other == place:
                continue
            # Paths only get shorter: whoever is at a later step is at all before it.
            mine = np.minimum(np.searchsorted(whom, person), len(whom) - 1)
            same = (whom[mine] == person) & (which[mine] == attribute)
            high = np.where(same & below[mine], np.minimum(high, threshold[mine]), high)
            # On the right a threshold itself is left out.
            low = np.where(same & ~below[mine], np.maximum(low, np.nextafter(threshold[mine], np.inf)), low)
        low = np.where(left, np.maximum(low, np.nextafter(cut, np.inf)), low)
        high = np.where(left, high, np.minimum(high, cut))
        discrete = problem.discrete[attribute]
        found.append(
            (person, attribute, np.where(discrete, np.ceil(low), low), np.where(discrete, np.floor(high), high), sure)
        )
    person, attribute, low, high, sure = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return person, attribute, low, high, sure


class Queue:
    """People to look at, best rank first, nobody twice."""

    def __init__(self, seeds: Start, problem: Problem):
        self.all = seeds
        self._problem = problem
        self._seen = Seen(capacity_hint=200_000)
        self._seen.add(keys_of(seeds.people, problem.person))
        self._longest = LONGEST * len(seeds)
        self._waiting, self._ranks = seeds.rows(np.zeros(0, dtype=np.int64)), np.zeros(0)

    def add(self, more: Start, ranks: Codes) -> None:
        """Add people who have not been in the queue before."""
        new = self._seen.add(keys_of(more.people, self._problem.person))
        joined = Start.joined([self._waiting, more.rows(new)])
        ranks = np.concatenate([self._ranks, ranks[new]])
        order = np.argsort(-ranks, kind="stable")[: self._longest]
        self._waiting, self._ranks = joined.rows(order), ranks[order]

    def take(self, count: int) -> tuple[Start, Codes]:
        """Remove the first people of the queue."""
        chosen, rest = np.arange(min(count, len(self._ranks))), np.arange(count, max(count, len(self._ranks)))
        taken, ranks = self._waiting.rows(chosen), self._ranks[chosen]
        self._waiting, self._ranks = self._waiting.rows(rest), self._ranks[rest]
        return taken, ranks
