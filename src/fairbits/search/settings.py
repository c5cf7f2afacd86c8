"""What a search is to do: its settings, and the problem, the strategy and the manifest that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Any

from fairbits.errors import OptionError
from fairbits.measure import Evaluator, check_measure, evaluator_of, noise_of
from fairbits.search.budget import Budget
from fairbits.search.problem import Problem
from fairbits.search.registry import DEFAULT, STRATEGIES, check_able, check_own, make_strategy
from fairbits.search.strategy import Strategy, people_in
from fairbits.store import Run
from fairbits.subject import Subject
from fairbits.text import shortened

#: Settings that decide which cases are found: run.json keeps them, and a run that goes on has its own.
SETTINGS = ("strategy", "options", "seed", "epsilon", "partition", "within", "min_plausibility", "batch", "measure")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that decides which cases a search finds, and how long it may take.

    Parameters
    ----------
    budget : Budget
        When the search ends.
    strategy, options : str, mapping
        How it searches, and the strategy's own options.
    own : Strategy, optional
        A strategy of the caller's, in place of one that is known by its name: see :meth:`with_strategy`.
    seed : int
        Same seed, same search, as far as the budget goes; one of seconds ends elsewhere each time.
    epsilon, partition : float, str
        What counts as a different score.
    within, min_plausibility : int, float, optional
        How far from real rows, and how unusual, people may be.
    threads : int, optional
        Threads of this process, or of each worker; all cores by default.
    batch : int, optional
        People whom the model is asked about at a time. A search by the clock chooses it by the speed of the model.
    measure : str
        What ``climb`` and ``dice`` raise, and cases are ranked by: ``q_inf`` (k) or ``q_1``.
    """

    budget: Budget
    strategy: str = DEFAULT
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    epsilon: float | None = None
    partition: str = "constrained"
    within: int | None = None
    min_plausibility: float | None = None
    threads: int | None = None
    batch: int | None = None
    measure: str = "q_inf"
    own: Strategy | None = None

    def with_strategy(self, strategy: str | Strategy) -> Settings:
        """The same settings with another strategy."""
        if isinstance(strategy, str):
            return replace(self, strategy=strategy, own=None)
        check_own(strategy)
        if self.options:
            raise OptionError(f"strategy {strategy.name!r} is an object, which has its own options; leave them out.")
        return replace(
            self, strategy=strategy.name, options=asdict(strategy) if is_dataclass(strategy) else {}, own=strategy
        )

    def __post_init__(self) -> None:
        check_measure(self.measure)
        if not 0 <= self.seed < 1 << 128:
            raise OptionError(f"the seed is {shortened(str(self.seed), 40)}; it must be from 0 to 2**128 - 1.")
        if self.batch is not None and self.batch < 1:
            raise OptionError(f"batch is {self.batch}; the model is asked about at least one person at a time.")


def problem_of(subject: Subject, settings: Settings) -> tuple[Problem, Strategy]:
    """The problem and the strategy that settings ask for."""
    evaluator = evaluator_of(subject, epsilon=settings.epsilon, partition=settings.partition, threads=settings.threads)
    problem = Problem(evaluator, subject.table, within=settings.within, min_plausibility=settings.min_plausibility)
    problem.measure = check_measure(settings.measure)
    return problem, _strategy(settings, problem)


def _strategy(settings: Settings, problem: Problem) -> Strategy:
    """The caller's own strategy, or the one of that name."""
    if settings.own is None:
        return make_strategy(settings.strategy, settings.options, problem)
    check_able(type(settings.own), problem)
    return settings.own


def fitted(
    settings: Settings, problem: Problem, budget: Budget, before: Run | None = None
) -> tuple[Settings, Strategy]:
    """Settings with the options that the strategy fits to a budget, and the strategy that they make."""
    kind, given = STRATEGIES.get(settings.strategy), settings.options
    if kind is None:  # an enumeration has nothing to fit, nor has an object with options of its own
        return settings, _strategy(settings, problem)
    if before is not None:
        kept = before.manifest["options"] if before.manifest["strategy"] == settings.strategy else {}
        given = {**{name: kept[name] for name in kept if name in kind.fits}, **given}
    m, native = problem.evaluator.m, problem.evaluator.native
    options = kind.fitted(given, people=people_in(budget, m=m, native=native), m=m)
    return replace(settings, options=options), make_strategy(settings.strategy, options, problem)


def manifest_of(subject: Subject, settings: Settings, evaluator: Evaluator) -> dict[str, Any]:
    """Settings and facts that run.json keeps about a search, some of them as records."""
    return {
        "subject": subject.name,
        "source": subject.source,
        "identity": subject.identity.document(),
        "repeats": subject.repeats,
        "noise": noise_of(subject, evaluator),
        "protected": list(subject.schema.protected),
        "where": subject.where,
        **{name: getattr(settings, name) for name in SETTINGS},
        **({} if settings.own is None else {"own_strategy": True}),
        "epsilon": evaluator.epsilon,
        "threads": settings.threads,
        "budget": settings.budget,
        "quality": None if subject.quality is None else subject.quality.figures(),
        "as_is": subject.as_is,
        "checks": {"round_trip": {**subject.round_trip.figures(), "compared": subject.round_trip.compared}},
    }
