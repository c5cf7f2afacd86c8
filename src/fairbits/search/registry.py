"""The strategies by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from fairbits.errors import CapabilityError, OptionError, choose_from
from fairbits.models import HasGradients, HasLayerGradients, kind_of
from fairbits.search.problem import Problem
from fairbits.search.strategies.adf import Adf, Eidig, Maft, NeuronFair
from fairbits.search.strategies.aequitas import Aequitas
from fairbits.search.strategies.climb import Climb
from fairbits.search.strategies.dice import Dice
from fairbits.search.strategies.exhaustive import Exhaustive
from fairbits.search.strategies.expga import ExpGA, Grft
from fairbits.search.strategies.sg import Sg
from fairbits.search.strategies.themis import Random, Themis
from fairbits.search.strategy import Strategy
from fairbits.shape import fits

OURS: tuple[type[Strategy], ...] = (Climb, Dice, Random)
RIVALS: tuple[type[Strategy], ...] = (Adf, Aequitas, Eidig, ExpGA, Grft, Maft, NeuronFair, Sg, Themis)
STRATEGIES: dict[str, type[Strategy]] = {kind.name: kind for kind in OURS + RIVALS}
DEFAULT = Climb.name
#: The strategy that the others are tested against.
REFERENCE = Dice.name


def make_strategy(name: str, options: Mapping[str, Any], problem: Problem) -> Strategy:
    """Make a strategy by its name."""
    if name not in (*STRATEGIES, Exhaustive.name):
        raise OptionError(f"strategy {name!r} is not known; {choose_from(name, STRATEGIES)}")
    kind = STRATEGIES.get(name, Exhaustive)
    known = [field.name for field in fields(kind) if field.name != "problem"]  # type: ignore[arg-type]  # a dataclass
    for option in options:
        if option not in known:
            raise OptionError(f"strategy {name!r} has no option {option!r}; {choose_from(option, known)}")
    options = _checked(kind, options)
    if kind is Exhaustive:
        return Exhaustive(problem, **options)
    check_able(kind, problem)
    return kind(**options)


def check_able(kind: type[Strategy], problem: Problem) -> None:
    """Refuse a strategy that needs more than the model offers."""
    missing = lacking(kind, problem)
    if missing is not None:
        able = ", ".join(other.name for other in STRATEGIES.values() if lacking(other, problem) is None)
        raise CapabilityError(
            f"strategy {kind.name!r} needs {missing}, which {kind_of(problem.evaluator.model)!r} does not offer; "
            f"use one of: {able}."
        )


def check_own(strategy: object) -> None:
    """Refuse an object that cannot be a strategy of its own."""
    if not isinstance(strategy, Strategy):
        raise OptionError(
            f"strategy is {type(strategy).__name__!r}; give a name or an object of a class made from "
            f"fairbits.search.Strategy."
        )
    name = getattr(strategy, "name", None)
    if not isinstance(name, str) or not name.strip() or name in (*STRATEGIES, Exhaustive.name):
        raise OptionError(f"a strategy of your own is named {name!r}; give its class another name, as text.")


def _checked(kind: type[Strategy], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, each of the kind that the strategy states; 2.0 is as good a whole number as 2."""
    stated, found = get_type_hints(kind), dict(options)
    for name, value in options.items():
        wanted = get_args(stated[name]) or (stated[name],)
        if int in wanted and isinstance(value, float) and value.is_integer():
            found[name] = int(value)
        elif not fits(value, stated[name]):
            what = "a whole number" if int in wanted else "a number" if float in wanted else "a word"
            raise OptionError(f"option {name!r} of strategy {kind.name!r} is {value!r}; it takes {what}.")
    return found


def lacking(kind: type[Strategy], problem: Problem) -> str | None:
    """What a strategy needs and the model does not have."""
    if kind.needs_gradients and not isinstance(problem.evaluator.model, HasGradients):
        return "gradients"
    inside = isinstance(problem.evaluator.model, HasLayerGradients)
    return "gradients of layer outputs" if kind.needs_layers and not inside else None
