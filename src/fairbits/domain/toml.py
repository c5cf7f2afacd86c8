"""The schema's part of a ``subject.toml``: read with every slip named, written with comments."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tomlkit

from fairbits.domain.attribute import Attribute
from fairbits.domain.schema import Schema
from fairbits.domain.table import text_of
from fairbits.errors import SchemaError, choose_from

_ATTRIBUTE_KEYS = ("kind", "low", "high", "step", "labels", "protected")


def read_document(path: str | Path) -> dict[str, Any]:
    """A TOML file as a dictionary."""
    file = Path(path)
    if not file.is_file():
        raise SchemaError(f"the subject file {str(file)!r} does not exist; check the path or run `fairbits data list`.")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SchemaError(f"the subject file {str(file)!r} is not valid TOML: {error}.") from None


def schema_of_document(document: Mapping[str, Any], *, classes: Iterable[str] = ()) -> Schema:
    """The schema in a subject document. ``classes`` are the target's values where the document names none."""
    section = section_of(document, "table")
    described = section_of(document, "attributes")
    attributes = tuple(_attribute(name, fields) for name, fields in described.items())
    if not attributes:
        raise SchemaError("the subject has no attributes; describe each column under [attributes.NAME].")
    named = tuple(text_of(value) for value in section.get("classes", ())) or tuple(classes)
    favourable = section.get("favourable")
    return Schema(
        attributes,
        target=section.get("target"),
        classes=named,
        favourable=None if favourable is None else text_of(favourable),
    )


def document_of_schema(schema: Schema) -> tomlkit.TOMLDocument:
    """The [table] and [attributes] sections of a subject file."""
    document = tomlkit.document()
    table = tomlkit.table()
    if schema.target is not None:
        table.add("target", schema.target)
    if schema.classes:
        table.add("classes", list(schema.classes))
        table["classes"].comment("in the order of the network's outputs")
        table.add("favourable", str(schema.favourable))
    document.add("table", table)
    attributes = tomlkit.table(is_super_table=True)
    for attribute in schema.attributes:
        attributes.add(attribute.name, _table_of(attribute))
    document.add("attributes", attributes)
    return document


def section_of(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A section that must be a table, empty where it is missing."""
    section = document.get(name, {})
    if not isinstance(section, Mapping):
        raise SchemaError(f"[{name}] must be a section, but the subject says {name} = {section!r}.")
    return section


def _attribute(name: str, fields: object) -> Attribute:
    if not isinstance(fields, Mapping):
        raise SchemaError(f"attribute {name!r} must be a section [attributes.{name}], but got {fields!r}.")
    for key in fields:
        if key not in _ATTRIBUTE_KEYS:
            raise SchemaError(f"attribute {name!r} has the unknown key {key!r}; {choose_from(key, _ATTRIBUTE_KEYS)}")
    for key in ("low", "high", "step"):
        value = fields.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SchemaError(f"attribute {name!r} has {key} = {value!r}; it must be a number.")
    labels = fields.get("labels", ())
    if not isinstance(labels, list | tuple):
        raise SchemaError(f"attribute {name!r} has labels = {labels!r}; they must be a list.")
    if not isinstance(fields.get("protected", False), bool):
        raise SchemaError(f"attribute {name!r} has protected = {fields['protected']!r}; use true or false.")
    given = dict(fields)
    given["labels"] = tuple(text_of(label) for label in labels)
    if "kind" not in given:
        raise SchemaError(f"attribute {name!r} has no kind; use integer, category or real.")
    return Attribute(name=name, **given)


def _table_of(attribute: Attribute) -> tomlkit.items.Table:
    table = tomlkit.table()
    table.add("kind", attribute.kind)
    if attribute.kind != "category":
        number = int if attribute.kind == "integer" else float
        table.add("low", number(attribute.low))
        table.add("high", number(attribute.upper))
        if attribute.stride != 1 or attribute.kind == "real":  # a real's default is a share of its range, not 1
            table.add("step", number(attribute.stride))
    if attribute.labels:
        table.add("labels", list(attribute.labels))
    if attribute.protected:
        table.add("protected", True)
    return table
