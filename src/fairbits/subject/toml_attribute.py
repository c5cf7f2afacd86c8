"""One attribute of a ``subject.toml``: read with every slip named, written back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairbits.domain import Attribute, text_of
from fairbits.errors import SchemaError, choose_from

if TYPE_CHECKING:
    import tomlkit

#: What `protected` says of an attribute that is in the table and no input of the model.
OBSERVED = "observed"

_KEYS = (
    *("kind", "low", "high", "step", "labels", "values", "ranges", "cuts", "columns", "protected", "immutable"),
    *("missing", "holds"),
)


def attribute_of_section(name: str, fields: object) -> Attribute:
    """The attribute that a section [attributes.NAME] describes."""
    if not isinstance(fields, Mapping):
        raise SchemaError(f"attribute {name!r} must be a section [attributes.{name}], but got {fields!r}.")
    for key in fields:
        if key not in _KEYS:
            raise SchemaError(f"attribute {name!r} has the unknown key {key!r}; {choose_from(key, _KEYS)}")
    for key in ("low", "high", "step"):
        if not _is_number(fields.get(key, 0)):
            raise SchemaError(f"attribute {name!r} has {key} = {fields[key]!r}; it must be a number.")
    for key in ("labels", "values", "columns", "cuts"):
        if not isinstance(fields.get(key, []), list | tuple):
            raise SchemaError(f"attribute {name!r} has {key} = {fields[key]!r}; they must be a list.")
    _check_flags(name, fields)
    if "kind" not in fields:
        raise SchemaError(f"attribute {name!r} has no kind; use integer, category or real.")
    given: dict[str, Any] = {key: value for key, value in fields.items() if key not in ("values", "ranges", "cuts")}
    given["protected"] = bool(fields.get("protected", False))
    given["labels"] = tuple(text_of(label) for label in fields.get("labels", ()))
    given["columns"] = tuple(str(column) for column in fields.get("columns", ()))
    attribute = Attribute.of(name=name, **given)
    if "values" not in fields and "ranges" not in fields:
        return attribute
    allowed = tuple(_code(attribute, value) for value in fields.get("values", ()))
    if "values" in fields and not allowed:
        raise SchemaError(f"attribute {name!r} has values = [], so nobody could have one; list some or drop the key.")
    ranges = _ranges(attribute, fields.get("ranges", {}))
    cuts = tuple(fields.get("cuts", ()))
    if not all(_is_number(cut) for cut in cuts):
        raise SchemaError(f"attribute {name!r} has cuts = {list(cuts)!r}; they must be numbers.")
    return Attribute.of(name=name, **given, allowed=allowed, ranges=ranges, cuts=cuts)


def _check_flags(name: str, fields: Mapping[str, Any]) -> None:
    for key in ("protected", "immutable"):
        if not isinstance(fields.get(key, False), bool) and not (key == "protected" and is_observed(fields)):
            also = ', or "observed" for a column that is no input of the model' if key == "protected" else ""
            raise SchemaError(f"attribute {name!r} has {key} = {fields[key]!r}; use true or false{also}.")


def is_observed(fields: object) -> bool:
    """Whether a section describes a protected attribute that the model does not take."""
    return isinstance(fields, Mapping) and fields.get("protected") == OBSERVED


def table_of_attribute(attribute: Attribute, *, observed: bool = False) -> tomlkit.items.Table:
    """The section [attributes.NAME] of an attribute; ``observed`` where the model does not take it."""
    import tomlkit  # only writing needs it

    table = tomlkit.table()
    number = float if attribute.kind == "real" else int
    table.add("kind", attribute.kind)
    if attribute.kind != "category":
        table.add("low", number(attribute.low))
        table.add("high", number(attribute.upper))
        if attribute.stride != 1 or attribute.kind == "real":  # a real's default is a share of its range, not 1
            table.add("step", number(attribute.stride))
    if attribute.labels:
        table.add("labels", list(attribute.labels))
    if attribute.columns:
        table.add("columns", list(attribute.columns))
    if attribute.allowed:
        readable = attribute.kind == "category"
        table.add("values", [attribute.read(c) if readable else number(c) for c in attribute.allowed])
    if attribute.ranges:
        ranges = tomlkit.inline_table()
        for name, code in attribute.ranges:
            ranges.add(name, number(code))
        table.add("ranges", ranges)
        if not attribute.cuts_named:
            table.add("cuts", [int(cut) if cut.is_integer() else cut for cut in attribute.cuts])
    for key in ("missing", "holds"):
        if getattr(attribute, key) is not None:
            table.add(key, getattr(attribute, key))
    for key in ("protected", "immutable"):
        if getattr(attribute, key):
            table.add(key, OBSERVED if observed and key == "protected" else True)
    return table


def _ranges(attribute: Attribute, stated: object) -> tuple[tuple[str, float], ...]:
    """Named ranges with the value that stands for each; a plain list names each value by itself."""
    if isinstance(stated, list | tuple):
        codes = [_code(attribute, value) for value in stated]
        return tuple((attribute.read(code), code) for code in codes)
    if not isinstance(stated, Mapping):
        raise SchemaError(
            f"attribute {attribute.name!r} has ranges = {stated!r}; "
            f'write them like {{"young" = 21, "old" = 70}}, or as a list of values.'
        )
    return tuple((str(name), _code(attribute, value)) for name, value in stated.items())


def _code(attribute: Attribute, value: object) -> float:
    """A value of a set: a label where it is one, a number otherwise."""
    text = text_of(value)
    if attribute.kind == "category" and text not in attribute.labels:
        raise SchemaError(f"attribute {attribute.name!r} has no value {text!r}; {choose_from(text, attribute.labels)}")
    if isinstance(value, int | float) and attribute.kind != "category":
        return float(value)
    return attribute.code_of(text)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
