"""A rule meets a schema: names become columns, labels become codes, and what makes no sense is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairbits.domain.attribute import Attribute
from fairbits.domain.rules.tokens import complain
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
    name_text,
    number_text,
)
from fairbits.errors import choose_from


class Binder:
    """Binds the trees of one rule's text to attributes."""

    def __init__(self, attributes: Sequence[Attribute], rule: str):
        self._attributes = attributes
        self._columns = {attribute.name: i for i, attribute in enumerate(attributes)}
        self._rule = rule

    def truth(self, node: Node) -> Node:
        """Bind a part of the rule that is true or false: names become columns, labels become codes."""
        match node:
            case Join(junction, left, right, at):
                return Join(junction, self.truth(left), self.truth(right), at)
            case Not(operand, at):
                return Not(self.truth(operand), at)
            case Among():
                return self._among(node)
            case Compare():
                return self._compare(node)
            case _:
                complain(self._rule, node.at, "this is a value where something true or false should be.")

    def _compare(self, node: Compare) -> Compare:
        left, right = self._named(node.left), self._named(node.right)
        categories = [side for side in (left, right) if self._category(side)]
        if categories and node.comparison not in ("=", "!="):
            name = categories[0].name  # type: ignore[union-attr]  # only a name is a category
            complain(self._rule, node.at, f"category {name!r} has no order; use =, != or in {{…}}.")
        if len(categories) == 2:
            self._same_labels(left, right, node.at)
            return replace(node, left=left, right=right)
        return replace(node, left=self._against(left, right), right=self._against(right, left))

    def _among(self, node: Among) -> Among:
        operand = self._named(node.operand)
        values = tuple(self._against(value, operand) for value in node.values)
        return replace(node, operand=self._against(operand, None), values=values)

    def _against(self, node: Node, other: Node | None) -> Node:
        """A value, read as the attribute that it is compared with reads values."""
        attribute = self._attributes[other.column] if isinstance(other, Name) else None
        if isinstance(node, Name):
            if self._category(node) and other is not None and not self._literal(other):
                complain(self._rule, node.at, f"category {node.name!r} can only be compared with its labels.")
            return node
        if isinstance(node, Text):
            return NumberLiteral(self._code(node, attribute), node.at)
        if attribute is not None and attribute.kind == "category":
            text = _literal_text(node)
            if text is None:
                complain(self._rule, node.at, f"category {attribute.name!r} can only be compared with its labels.")
            return NumberLiteral(self._code(Text(text, node.at), attribute), node.at)
        return self._number(node)

    def _number(self, node: Node) -> Node:
        """A value that is calculated with."""
        match node:
            case NumberLiteral():
                return node
            case Negative(operand, at):
                return Negative(self._number(operand), at)
            case Arithmetic(operation, left, right, at):
                return Arithmetic(operation, self._number(left), self._number(right), at)
            case Text(value, at):
                complain(self._rule, at, f"the label {value!r} cannot be calculated with; compare it with =.")
            case Name():
                bound = self._name(node)
                if self._category(bound):
                    complain(self._rule, node.at, f"category {node.name!r} cannot be calculated with.")
                return bound
            case _:
                complain(self._rule, node.at, "this is true or false where a value should be.")

    def _named(self, node: Node) -> Node:
        return self._name(node) if isinstance(node, Name) else node

    def _name(self, node: Name) -> Name:
        if node.name not in self._columns:
            known = [name_text(name) for name in self._columns]
            complain(self._rule, node.at, f"there is no attribute {node.name!r}; {choose_from(node.name, known)}")
        return replace(node, column=self._columns[node.name])

    def _code(self, node: Text, attribute: Attribute | None) -> float:
        if attribute is None:
            complain(self._rule, node.at, f"the label {node.value!r} must be compared with an attribute.")
        if not attribute.labels:
            complain(self._rule, node.at, f"attribute {attribute.name!r} has no labels; compare it with a number.")
        shown = attribute.shown_labels()
        if node.value not in (*attribute.labels, *shown):
            what = f"attribute {attribute.name!r} has no label {node.value!r}"
            complain(self._rule, node.at, f"{what}; {choose_from(node.value, shown)}")
        own = attribute.labels if node.value in attribute.labels else shown
        return attribute.low + own.index(node.value)

    def _same_labels(self, left: Node, right: Node, at: int) -> None:
        one, other = (self._attributes[side.column] for side in (left, right) if isinstance(side, Name))
        if one.labels != other.labels:
            complain(self._rule, at, f"{one.name!r} and {other.name!r} have different labels and cannot be compared.")

    def _category(self, node: Node) -> bool:
        return isinstance(node, Name) and self._attributes[node.column].kind == "category"

    def _literal(self, node: Node) -> bool:
        return isinstance(node, Text) or _literal_text(node) is not None


def _literal_text(node: Node) -> str | None:
    """A number as the label that it may be."""
    if isinstance(node, NumberLiteral):
        return number_text(node.value)
    if isinstance(node, Negative) and isinstance(node.operand, NumberLiteral):
        return f"-{number_text(node.operand.value)}"
    return None
