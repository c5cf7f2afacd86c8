"""What a rule is made of, and how it is written. Positions are for messages only and do not tell rules apart."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

Comparison = Literal["=", "!=", "<", "<=", ">", ">="]
Operation = Literal["+", "-", "*"]
Junction = Literal["and", "or", "->"]

#: A name that needs no backticks.
PLAIN_NAME = re.compile(r"[^\W\d]\w*")
KEYWORDS = ("and", "or", "not", "in")


@dataclass(frozen=True, slots=True)
class NumberLiteral:
    """A number."""

    value: float
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Text:
    """A label in quotes."""

    value: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    """An attribute. ``column`` is known once the rule is bound to a schema."""

    name: str
    at: int = field(default=0, compare=False)
    column: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class Negative:
    """− operand."""

    operand: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """left + right, left − right, left * right."""

    operation: Operation
    left: Node
    right: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Compare:
    """left < right and its like."""

    comparison: Comparison
    left: Node
    right: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Among:
    """operand in {values}."""

    operand: Node
    values: tuple[Node, ...]
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a condition."""

    operand: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Join:
    """left and right, left or right, left -> right."""

    junction: Junction
    left: Node
    right: Node
    at: int = field(default=0, compare=False)


Node = NumberLiteral | Text | Name | Negative | Arithmetic | Compare | Among | Not | Join


def is_truth(node: Node) -> bool:
    """Whether a node is true or false, and not a value."""
    return isinstance(node, Compare | Among | Not | Join)


def write(node: Node) -> str:  # noqa: PLR0911 - one for each kind of node
    """The node as text that is parsed to the same node; brackets wherever two operators meet."""
    match node:
        case NumberLiteral(value):
            return number_text(value)
        case Text(value):
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case Name(name):
            return name_text(name)
        case Negative(operand):
            return f"-{_inner(operand)}"
        case Not(operand):
            return f"not {_inner(operand)}"
        case Among(operand, values):
            return f"{_inner(operand)} in {{{', '.join(write(value) for value in values)}}}"
        case Arithmetic(word, left, right) | Compare(word, left, right) | Join(word, left, right):
            return f"{_inner(left)} {word} {_inner(right)}"


def name_text(name: str) -> str:
    """A name as it is written in a rule: in backticks unless it is a plain word."""
    if PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def number_text(value: float) -> str:
    """A number without an exponent where that is short, and never with a sign of its own."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def names_in(node: Node) -> tuple[Name, ...]:
    """All attributes that a node mentions, in order."""
    match node:
        case Name():
            return (node,)
        case Negative(operand) | Not(operand):
            return names_in(operand)
        case Among(operand, _):
            return names_in(operand)
        case Arithmetic(_, left, right) | Compare(_, left, right) | Join(_, left, right):
            return names_in(left) + names_in(right)
        case _:
            return ()


def _inner(node: Node) -> str:
    text = write(node)
    return text if isinstance(node, NumberLiteral | Text | Name) else f"({text})"
