"""From text to a tree, by recursive descent: one short method per level of binding, loosest first.

A parser library would be one more dependency for forty lines of grammar, and its messages would be its own::

    rule       = or [ "->" rule ]
    or         = and { "or" and }
    and        = not { "and" not }
    not        = "not" not | comparison
    comparison = sum [ ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) sum | [ "not" ] "in" "{" value { "," value } "}" ]
    sum        = product { ( "+" | "-" ) product }
    product    = factor { "*" factor }
    factor     = "-" factor | number | "text" | name | `name` | "(" rule ")"
"""

from __future__ import annotations

from typing import NoReturn

from fairbits.domain.rules.tokens import Token, complain, tokens_of
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
    Text,
    is_truth,
)

_OPERANDS = ("number", "text", "name", ",", "{", "}", "(", ")", "end")
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
#: Brackets and signs inside one another; more is a mistake or an attack, and Python's own stack is finite.
DEEPEST = 50
MAX_OPERATORS = 200


def parse(rule: str) -> Node:
    """Parse a rule."""
    parser = _Parser(rule)
    tree = parser.rule()
    if parser.here.kind != "end":
        parser.unexpected("an operator or the end")
    if not is_truth(tree):
        complain(rule, 0, "a rule must be true or false, but this is a value; compare it with something.")
    return tree


class _Parser:
    def __init__(self, rule: str):
        self.text = rule
        self._tokens = tokens_of(rule)
        operators = [token for token in self._tokens if token.kind not in _OPERANDS]
        if len(operators) > MAX_OPERATORS:
            place = operators[MAX_OPERATORS].at
            complain(rule, place, f"the rule has more than {MAX_OPERATORS} operators; split it into several.")
        self._next = 0
        self._depth = 0

    @property
    def here(self) -> Token:
        return self._tokens[self._next]

    def take(self, *kinds: str) -> Token | None:
        """The next token, if it is one of these."""
        if self.here.kind not in kinds or self.here.kind == "end":
            return None
        self._next += 1
        return self._tokens[self._next - 1]

    def unexpected(self, wanted: str) -> NoReturn:
        token = self.here
        what = "the rule ends" if token.kind == "end" else f"there is {token.text!r}"
        complain(self.text, token.at, f"{what} where {wanted} should be.")

    def rule(self) -> Node:
        left = self.either()
        arrow = self.take("->")
        if arrow is None:
            return left
        return Join("->", self._truth(left, arrow), self._truth(self._deeper(arrow), arrow), arrow.at)

    def either(self) -> Node:
        left = self.both()
        while word := self.take("or"):
            left = Join("or", self._truth(left, word), self._truth(self.both(), word), word.at)
        return left

    def both(self) -> Node:
        left = self.negation()
        while word := self.take("and"):
            left = Join("and", self._truth(left, word), self._truth(self.negation(), word), word.at)
        return left

    def negation(self) -> Node:
        word = self.take("not")
        if word is None:
            return self.comparison()
        self._enter(word)
        operand = self._truth(self.negation(), word)
        self._depth -= 1
        return Not(operand, word.at)

    def comparison(self) -> Node:
        left = self.sum()
        if self.here.kind in ("in", "not"):
            return self._membership(left)
        sign = self.take(*_COMPARISONS)
        if sign is None:
            return left
        node = Compare(sign.kind, self._value(left, sign), self._value(self.sum(), sign), sign.at)  # type: ignore[arg-type]
        if self.here.kind in _COMPARISONS:
            complain(self.text, self.here.at, "comparisons cannot be chained; write `16 <= age and age < 18`.")
        return node

    def sum(self) -> Node:
        left = self.product()
        while sign := self.take("+", "-"):
            left = Arithmetic(sign.kind, self._value(left, sign), self._value(self.product(), sign), sign.at)  # type: ignore[arg-type]
        return left

    def product(self) -> Node:
        left = self.factor()
        while sign := self.take("*"):
            left = Arithmetic("*", self._value(left, sign), self._value(self.factor(), sign), sign.at)
        return left

    def factor(self) -> Node:
        token = self.take("number", "text", "name", "(", "-")
        if token is None:
            self.unexpected("a name, a number, a label in quotes or '('")
        match token.kind:
            case "number":
                return self._number(token)
            case "text":
                return Text(token.text, token.at)
            case "name":
                return Name(token.text, token.at)
            case "-":
                self._enter(token)
                operand = self._value(self.factor(), token)
                self._depth -= 1
                return Negative(operand, token.at)
            case _:
                inner = self._deeper(token)
                if self.take(")") is None:
                    self.unexpected(f"the ')' for the '(' at character {token.at + 1}")
                return inner

    def _membership(self, left: Node) -> Node:
        negated = self.take("not")
        word = self.take("in")
        if word is None:
            self.unexpected("'in'")
        left = self._value(left, word)
        if self.take("{") is None:
            self.unexpected('\'{\', as in job in {"Sales", "Tech"}')
        values = [self._member()]
        while self.take(","):
            values.append(self._member())
        if self.take("}") is None:
            self.unexpected("',' or '}'")
        among = Among(left, tuple(values), word.at)
        return Not(among, negated.at) if negated else among

    def _member(self) -> Node:
        sign = self.take("-")
        token = self.take("number") if sign else self.take("number", "text")
        if token is None:
            self.unexpected("a number or a label in quotes")
        value = Text(token.text, token.at) if token.kind == "text" else self._number(token)
        return Negative(value, sign.at) if sign else value

    def _number(self, token: Token) -> NumberLiteral:
        value = float(token.text)
        if value == float("inf"):
            complain(self.text, token.at, f"the number {token.text} is too large.")
        return NumberLiteral(value, token.at)

    def _deeper(self, token: Token) -> Node:
        self._enter(token)
        inner = self.rule()
        self._depth -= 1
        return inner

    def _enter(self, token: Token) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            complain(self.text, token.at, f"the rule is nested more than {DEEPEST} deep; split it into several.")

    def _truth(self, node: Node, word: Token) -> Node:
        if not is_truth(node):
            complain(self.text, node.at, f"{word.text!r} needs a comparison on this side, not a value.")
        return node

    def _value(self, node: Node, word: Token) -> Node:
        if is_truth(node):
            complain(self.text, node.at, f"{word.text!r} needs a value on this side, not a comparison.")
        return node
