"""The strategies by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from fairbits.errors import CapabilityError, OptionError, choose_from
from fairbits.models import kind_of
from fairbits.search.adf import Adf
from fairbits.search.aequitas import Aequitas
from fairbits.search.climb import Climb
from fairbits.search.dice import Dice
from fairbits.search.eidig import Eidig
from fairbits.search.exhaustive import Exhaustive
from fairbits.search.expga import ExpGA
from fairbits.search.grft import Grft
from fairbits.search.maft import Maft
from fairbits.search.neuronfair import NeuronFair
from fairbits.search.problem import Problem
from fairbits.search.sg import Sg
from fairbits.search.strategy import Strategy
from fairbits.search.themis import Themis
from fairbits.search.uniform import Random

OURS: tuple[type[Strategy], ...] = (Climb, Dice, Random)
RIVALS: tuple[type[Strategy], ...] = (Adf, Aequitas, Eidig, ExpGA, Grft, Maft, NeuronFair, Sg, Themis)
STRATEGIES: dict[str, type[Strategy]] = {kind.name: kind for kind in OURS + RIVALS}
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
    missing = lacking(kind, problem)
    if missing is not None:
        able = ", ".join(other.name for other in STRATEGIES.values() if lacking(other, problem) is None)
        raise CapabilityError(
            f"strategy {name!r} needs {missing}, which {kind_of(problem.evaluator.model)!r} does not offer; "
            f"use one of: {able}."
        )
    return kind(**options)


def lacking(kind: type[Strategy], problem: Problem) -> str | None:
    """What a strategy needs and this model does not have."""
    if kind.needs_gradients and not problem.evaluator.has_gradients:
        return "gradients"
    if kind.needs_layers and not problem.evaluator.has_layers:
        return "gradients of layer outputs"
    return None
