"""Rules that keep people real: a small language over attribute names and labels, ``age < 18 -> job != "Tech"``.

Names, numbers and labels are taken out of the text; Python's own parser reads what is left, and of its tree only
comparisons, ``and``, ``or``, ``not``, ``in {…}``, ``->``, ``+``, ``-`` and ``*`` are taken, with names as columns and
labels as codes. Nothing is ever evaluated as code. A name that is no plain word stands in backticks. Rules about
plausible twins may also say ``own age``: the value that the person has, whatever the twin's is.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import Attribute, Codes
from fairbits.errors import SchemaError, choose_from
from fairbits.text import shortened

Truth = npt.NDArray[np.bool_]
#: An operation and its operands: ``["->", a, b]``, ``["<", a, b]``, ``["in", a, b, …]``, ``["not", a]``,
#: ``["+", a, b]``, ``["neg", a]``, ``["column", number]``, ``["own", number]``, ``["number", value]``. Columns and
#: values are codes; an own value is asked for as column ``~number``.
Program = list[Any]

#: More than this is a mistake or an attack.
MAX_LETTERS, MAX_OPERATORS = 20_000, 200
_TOKEN = re.compile(
    r"""
    \s+
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<name>`(?:[^`\\]|\\.)*`)
  | (?P<own>own\s+(?!(?:and|or|not|in)\b)(?:`(?:[^`\\]|\\.)*`|[^\W\d]\w*))
  | (?P<word>[^\W\d]\w*)
  | (?P<sign>->|==|!=|<=|>=|[=<>+\-*])
  | (?P<bracket>[(){},])
    """,
    re.VERBOSE | re.DOTALL,
)
KEYWORDS = ("and", "or", "not", "in")
#: Python's loosest operator that takes its right side first stands for the arrow.
_PYTHON = {"->": "if then else", "=": "=="}
_WORDS: dict[type[ast.AST], str] = {
    **{ast.Eq: "=", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.And: "and", ast.Or: "or", ast.Add: "+", ast.Sub: "-", ast.Mult: "*"},
}
#: Signs that people type out of habit, and what they mean here.
_HABITS = {
    **{"&": "and", "|": "or", "!": "not", "≤": "<=", "≥": ">=", "≠": "!=", "→": "->"},
    **{"[": "{…} for a set of values", "/": "* with a fraction"},
}
#: What the operations are in NumPy.
NUMPY: dict[str, Callable[..., Any]] = {
    **{"=": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal},
    **{"and": np.logical_and, "or": np.logical_or, "not": np.logical_not},
    **{"+": np.add, "-": np.subtract, "*": np.multiply, "neg": np.negative},
}


def rule_name(name: str) -> str:
    """An attribute's name as rules take it.

    Examples
    --------
    >>> rule_name("age"), rule_name("age in years")
    ('age', '`age in years`')
    """
    plain = re.fullmatch(r"[^\W\d]\w*", name) and name.lower() not in (*KEYWORDS, "own")
    return name if plain else "`" + re.sub(r"([\\`])", r"\\\1", name) + "`"


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold for every person, as it was written and as it is computed.

    Examples
    --------
    >>> job = Attribute(name="job", kind="category", labels=("Sales", "Tech"))
    >>> age = Attribute(name="age", kind="integer", low=10, high=90)
    >>> rule = Rule.of('age < 18 -> job != "Tech"', (age, job))
    >>> rule.program
    ['->', ['<', ['column', 0], ['number', 18.0]], ['!=', ['column', 1], ['number', 1.0]]]
    >>> rule.holds(np.array([[17.0, 1.0], [17.0, 0.0], [40.0, 1.0]])).tolist()
    [False, True, True]
    """

    text: str
    program: Program = field(compare=False, repr=False)
    columns: tuple[int, ...] = field(compare=False, repr=False)

    @classmethod
    def of(cls, text: str, attributes: Sequence[Attribute], *, own: bool = False) -> Rule:
        """Parse a rule and bind it to attributes; ``own``: whether it may compare a twin with the person."""
        reader = _Reader(text, attributes, own, {attribute.name: i for i, attribute in enumerate(attributes)})
        program = reader.truth(reader.parsed())
        columns = tuple(dict.fromkeys(reader.columns[one] for kind, one in reader.operands if kind in ("name", "own")))
        if not columns:
            raise SchemaError(f"rule {_shown(text)!r} mentions no attribute; it is about nobody.")
        return cls(text, program, columns)

    def holds(self, codes: Codes) -> Truth:
        """Which people keep the rule."""
        found = evaluated(self.program, lambda column: codes[:, max(column, ~column)])
        return np.broadcast_to(found, (len(codes),))

    def parts(self) -> list[Program]:
        """The conditions that the rule joins with ``and``."""
        found = [self.program]
        while any(part[0] == "and" for part in found):
            found = [inner for part in found for inner in (part[1:] if part[0] == "and" else [part])]
        return found


def evaluated(
    program: Program,
    columns: Callable[[int], Any],
    operations: Mapping[str, Callable[..., Any]] = NUMPY,
    number: Callable[[float], Any] = np.float64,
) -> Any:
    """What a program comes to, by any library's operations."""
    kind, *operands = program
    if kind in ("column", "own"):
        return columns(operands[0] if kind == "column" else ~operands[0])
    if kind == "number":
        return number(operands[0])
    first, *rest = (evaluated(operand, columns, operations, number) for operand in operands)
    if kind == "in":  # a few comparisons are faster than np.isin, which sorts
        return reduce(operations["or"], [operations["="](first, member) for member in rest])
    if kind == "->":
        return operations["or"](operations["not"](first), rest[0])
    return operations[kind](first, *rest)


def columns_of(program: Program) -> list[int]:
    """The columns that a program looks at, in order."""
    if program[0] in ("column", "own", "number"):
        return [] if program[0] == "number" else program[1:]
    return [column for operand in program[1:] for column in columns_of(operand)]


def _shown(rule: str) -> str:
    """A rule in a message: short, and on one line."""
    return shortened(" ".join(rule.split()), 100)


class _Side(NamedTuple):
    """What stands beside a sign: what computes it, the attribute that it is, and the label that it may mean."""

    program: Program | None = None
    attribute: Attribute | None = None
    label: str | float | None = None


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one rule: its text as Python's tree, the tree as a program over columns and codes."""

    rule: str
    attributes: Sequence[Attribute]
    own: bool
    columns: Mapping[str, int]
    #: Kind (number, text, name or own) and value of each operand, which Python sees by its number.
    operands: list[tuple[str, Any]] = field(default_factory=list)
    #: Where each token begins for Python, and where it stands in the rule.
    places: list[tuple[int, int]] = field(default_factory=list)

    def parsed(self) -> ast.expr:
        """Python's tree of the rule."""
        at, length, operators, words = 0, 0, 0, []
        while at < len(self.rule):
            match = _TOKEN.match(self.rule, at)
            if match is None:
                self._strange(at)
            kind, text = match.lastgroup, match.group()
            if kind is not None:
                operators += kind == "sign" or text.lower() in KEYWORDS
                words.append(self._word(kind, text, at))
                self.places.append((length, at))
                length += len(words[-1]) + 1
            at = match.end()
        if len(self.rule) > MAX_LETTERS or operators > MAX_OPERATORS:
            limits = f"{MAX_LETTERS:,} letters or {MAX_OPERATORS} operators"
            self._complain(0, f"the rule has more than {limits}; split it into several.")
        if not words:
            self._complain(0, "the rule is empty.")
        try:
            return ast.parse(" ".join(words), mode="eval").body
        except (SyntaxError, RecursionError, MemoryError) as error:
            reason, offset = getattr(error, "msg", "it is nested too deeply"), getattr(error, "offset", 0) or 0
            self._complain(self._place(offset - 1), f"this cannot be read: {reason.partition('.')[0]}.")

    def _word(self, kind: str, text: str, at: int) -> str:
        """A token as Python gets it."""
        if kind == "bracket" or text.lower() in KEYWORDS:
            return text.lower()
        if kind == "sign":
            if self.rule.startswith("=>", at):
                self._complain(at, '\'=>\' means nothing here; use -> for "then" or >= for "at least".')
            return _PYTHON.get(text, text)
        value: Any = text
        if kind == "number":
            value = float(text)
            if value == float("inf"):
                self._complain(at, f"the number {text} is too large.")
        elif kind == "own":
            if not self.own:
                self._complain(at, f"{text!r} is about plausible twins; move the rule from rules to plausible.")
            value = re.sub(r"\\(.)", r"\1", text[3:].strip().strip("`"), flags=re.DOTALL)
        elif kind != "word":
            value = re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
        self.operands.append(("name" if kind == "word" else kind, value))
        return f"_{len(self.operands) - 1}"

    def _strange(self, at: int) -> NoReturn:
        character = self.rule[at]
        if character in "\"'`":
            self._complain(at, f"the quotation that begins here has no end; close it with {character}.")
        hint = f"; use {_HABITS[character]}" if character in _HABITS else ""
        self._complain(at, f"{character!r} means nothing here{hint}.")

    def _complain(self, where: int | ast.expr, what: str) -> NoReturn:
        """Raise the error about a rule: which rule, where, what."""
        at = where if isinstance(where, int) else self._place(where.col_offset)
        raise SchemaError(f"rule {_shown(self.rule)!r}, character {at + 1}: {what}")

    def _place(self, offset: int) -> int:
        """Where in the rule something stands that Python sees there."""
        return self.places[max(0, bisect_right(self.places, (offset, len(self.rule))) - 1)][1]

    def truth(self, node: ast.expr) -> Program:
        """A part of the rule that is true or false."""
        match node:
            case ast.IfExp(body=left, orelse=right):
                return ["->", self.truth(left), self.truth(right)]
            case ast.BoolOp(op=op, values=values):
                return reduce(lambda left, right: [_WORDS[type(op)], left, right], map(self.truth, values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ["not", self.truth(operand)]
            case ast.Compare(left=left, ops=[ast.In()], comparators=[right]):
                return self._among(left, right)
            case ast.Compare(left=left, ops=[ast.NotIn()], comparators=[right]):
                return ["not", self._among(left, right)]
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                ordered = not isinstance(op, ast.Eq | ast.NotEq)
                sides = self._value(left, right, ordered=ordered), self._value(right, left, ordered=ordered)
                return [_WORDS[type(op)], *sides]
            case ast.Compare(comparators=[_, second, *_]):
                self._complain(second, "comparisons cannot be chained; write `16 <= age and age < 18`.")
        self._complain(node, "a rule must be true or false, but this is a value; compare it with something.")

    def _among(self, left: ast.expr, right: ast.expr) -> Program:
        if not isinstance(right, ast.Set):
            self._complain(right, 'after "in" comes a set of values, as in job in {"Sales", "Tech"}.')
        for member in right.elts:
            if self._side(member).label is None:
                self._complain(member, "a set holds numbers and labels in quotes.")
        return ["in", self._value(left), *(self._value(member, left) for member in right.elts)]

    def _value(self, node: ast.expr, other: ast.expr | None = None, *, ordered: bool = False) -> Program:
        """A value, read as the attribute beside it reads values; ``ordered`` where they are compared by size."""
        side, beside = self._side(node), _Side() if other is None else self._side(other)
        own, opposite = side.attribute, beside.attribute
        category = next((one for one in (own, opposite) if one is not None and one.kind == "category"), None)
        if category is None:
            return side.program or ["number", self._code(node, side.label, opposite)]
        if ordered:
            self._complain(node, f"category {category.name!r} has no order; use =, != or in {{…}}.")
        if own is not None and opposite is not None and own.kind == opposite.kind:
            if own.labels != opposite.labels:
                self._complain(
                    node, f"{own.name!r} and {opposite.name!r} have different labels and cannot be compared."
                )
        elif other is not None and (side if own is None else beside).label is None:
            self._complain(node, f"category {category.name!r} can only be compared with its labels.")
        if own is None or side.program is None:
            return ["number", self._code(node, side.label, opposite)]
        return side.program

    def _side(self, node: ast.expr) -> _Side:
        """What a part of the rule says by itself."""
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=only):
                word, parts = "neg", [only]
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() as op, left=left, right=right):
                word, parts = _WORDS[type(op)], [left, right]
            case ast.Name(id=name):
                kind, value = self.operands[int(name[1:])]
                if kind == "number":
                    return _Side(["number", value], label=value)
                if kind == "text":
                    return _Side(label=value)
                if value not in self.columns:
                    self._complain(node, f"there is no attribute {value!r}; {choose_from(value, list(self.columns))}")
                column = self.columns[value]
                return _Side(["own" if kind == "own" else "column", column], self.attributes[column])
            case _:
                name = "a name (in backticks where it is no plain word)"
                self._complain(node, f"a value should be here: {name}, a number, or something calculated from them.")
        programs = []
        for part in parts:
            program, attribute, label = self._side(part)
            if program is None or (attribute is not None and attribute.kind == "category"):
                what = label if attribute is None else attribute.name
                self._complain(part, f"{what!r} cannot be calculated with; compare it with =.")
            programs.append(program)
        negative = word == "neg" and programs[0][0] == "number"
        return _Side([word, *programs], label=-programs[0][1] if negative else None)

    def _code(self, node: ast.expr, label: str | float | None, attribute: Attribute | None) -> float:
        if isinstance(label, float):
            label = str(int(label)) if label.is_integer() and abs(label) < 1e15 else repr(label)
        if attribute is None:
            self._complain(node, f"the label {label!r} must be compared with an attribute.")
        if not attribute.labels:
            self._complain(node, f"attribute {attribute.name!r} has no labels; compare it with a number.")
        shown = attribute.shown_labels()
        if label not in (*attribute.labels, *shown):
            what = f"attribute {attribute.name!r} has no label {label!r}"
            self._complain(node, f"{what}; {choose_from(str(label), shown)}")
        own = attribute.labels if label in attribute.labels else shown
        return float(attribute.low + own.index(str(label)))
