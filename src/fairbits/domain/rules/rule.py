"""A rule, ready to be asked about thousands of people at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import Attribute, Codes
from fairbits.domain.rules.grammar import parse
from fairbits.domain.rules.resolution import Binder
from fairbits.domain.rules.tokens import shown
from fairbits.domain.rules.tree import (
    Among,
    Arithmetic,
    Compare,
    Join,
    Name,
    Negative,
    Node,
    Not,
    NumberLiteral,
    names_in,
)
from fairbits.errors import SchemaError

Truth = npt.NDArray[np.bool_]
#: Gives the codes of a column, in any shape that broadcasts with those of the other columns.
Columns = Callable[[int], Codes]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_CALCULATE: dict[str, Callable[[Any, Any], Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply}


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold for every person, as it was written and as it is computed.

    Examples
    --------
    >>> job = Attribute(name="job", kind="category", labels=("Sales", "Tech"))
    >>> age = Attribute(name="age", kind="integer", low=10, high=90)
    >>> rule = Rule.of('age < 18 -> job != "Tech"', (age, job))
    >>> rule.holds(np.array([[17.0, 1.0], [17.0, 0.0], [40.0, 1.0]])).tolist()
    [False, True, True]
    """

    text: str
    tree: Node = field(compare=False, repr=False)
    columns: tuple[int, ...] = field(compare=False, repr=False)

    @classmethod
    def of(cls, text: str, attributes: Sequence[Attribute]) -> Rule:
        """Parse a rule and bind it to attributes."""
        tree = Binder(attributes, text).truth(parse(text))
        if not names_in(tree):
            raise SchemaError(f"rule {shown(text)!r} mentions no attribute; it is about nobody.")
        return cls(text, tree, tuple(dict.fromkeys(name.column for name in names_in(tree))))

    def holds(self, codes: Codes) -> Truth:
        """Which people keep the rule."""
        return np.broadcast_to(self.over(lambda column: codes[:, column]), (len(codes),))

    def over(self, columns: Columns) -> Truth:
        """Where it holds, in the shape that the columns broadcast to.

        Free attributes as (n, 1) and protected ones as (1, m) give the answer for all twins, and whatever
        part of the rule looks only at one side is computed on that side only.
        """
        return np.asarray(_truth(self.tree, columns))

    def program(self) -> list[Any]:
        """The rule as nested lists of plain values, for files that must do without this package.

        Each is an operation and its operands: ``["->", a, b]``, ``["<", a, b]``, ``["in", a, [b, …]]``, ``["not", a]``,
        ``["+", a, b]``, ``["neg", a]``, ``["column", number]``, ``["number", value]``. Columns and values are codes.

        Examples
        --------
        >>> age = Attribute(name="age", kind="integer", low=10, high=90)
        >>> Rule.of("age >= 18", (age,)).program()
        ['>=', ['column', 0], ['number', 18.0]]
        """
        return _program(self.tree)

    def parts(self) -> tuple[Node, ...]:
        """The conditions that the rule joins with ``and``."""
        return _conjuncts(self.tree)


def over(node: Node, columns: Columns) -> Truth:
    """Where a part of a rule holds."""
    return np.asarray(_truth(node, columns))


def _program(node: Node) -> list[Any]:
    match node:
        case Join(kind, left, right) | Compare(kind, left, right) | Arithmetic(kind, left, right):
            return [kind, _program(left), _program(right)]
        case Not(operand) | Negative(operand):
            return ["not" if isinstance(node, Not) else "neg", _program(operand)]
        case Among(operand, values):
            return ["in", _program(operand), [_program(value) for value in values]]
        case NumberLiteral(value):
            return ["number", float(value)]
        case Name(column=column):
            return ["column", int(column)]
        case _:
            raise AssertionError(f"the binder let {node!r} through")


def _conjuncts(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Join) and node.junction == "and":
        return _conjuncts(node.left) + _conjuncts(node.right)
    return (node,)


def _truth(node: Node, columns: Columns) -> Any:
    match node:
        case Join("and", left, right):
            return _truth(left, columns) & _truth(right, columns)
        case Join("or", left, right):
            return _truth(left, columns) | _truth(right, columns)
        case Join("->", left, right):
            return ~_truth(left, columns) | _truth(right, columns)
        case Not(operand):
            return ~_truth(operand, columns)
        case Compare(comparison, left, right):
            return np.asarray(_COMPARE[comparison](_value(left, columns), _value(right, columns)))
        case Among(operand, values):
            found = _value(operand, columns)
            # A few comparisons are faster than np.isin, which sorts.
            return reduce(np.logical_or, [np.asarray(found == _value(value, columns)) for value in values])
        case _:
            raise AssertionError(f"the binder let {node!r} through")


def _value(node: Node, columns: Columns) -> Any:
    match node:
        case NumberLiteral(value):
            return np.float64(value)
        case Name(column=column):
            return columns(column)
        case Negative(operand):
            return -_value(operand, columns)
        case Arithmetic(operation, left, right):
            return _CALCULATE[operation](_value(left, columns), _value(right, columns))
        case _:
            raise AssertionError(f"the binder let {node!r} through")
