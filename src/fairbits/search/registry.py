"""The strategies by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from fairbits.errors import CapabilityError, OptionError, choose_from
from fairbits.search.climb import Climb
from fairbits.search.dice import Dice
from fairbits.search.exhaustive import Exhaustive
from fairbits.search.problem import Problem
from fairbits.search.strategy import Strategy
from fairbits.search.uniform import Random

STRATEGIES: dict[str, type[Strategy]] = {kind.name: kind for kind in (Climb, Dice, Random)}
DEFAULT = Climb.name


def make_strategy(name: str, options: Mapping[str, Any], problem: Problem) -> Strategy:
    """A strategy with its options, able to work on this model."""
    if name == Exhaustive.name:
        return Exhaustive(problem, **options)
    if name not in STRATEGIES:
        raise OptionError(f"strategy {name!r} is not known; {choose_from(name, STRATEGIES)}")
    kind = STRATEGIES[name]
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # every strategy is a dataclass
    for option in options:
        if option not in known:
            raise OptionError(f"strategy {name!r} has no option {option!r}; {choose_from(option, known)}")
    if kind.needs_gradients and not problem.evaluator.has_gradients:
        able = ", ".join(other.name for other in STRATEGIES.values() if not other.needs_gradients)
        raise CapabilityError(
            f"strategy {name!r} needs gradients, which {type(problem.evaluator.model).__name__!r} does not offer; "
            f"use one of: {able}."
        )
    return kind(**options)
