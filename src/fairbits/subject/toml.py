"""The schema's part of a ``subject.toml``: read with every slip named, written with comments."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.domain import DEFAULT_THRESHOLD, MAX_TWINS, Schema, text_of
from fairbits.errors import SchemaError, choose_from
from fairbits.subject.toml_attribute import attribute_of_section, is_observed, table_of_attribute

if TYPE_CHECKING:
    import tomlkit

#: A description of a thousand attributes with a hundred labels each is far smaller.
_MAX_BYTES = 16 << 20
#: Parts of a key, joined by dots: [attributes.NAME] has two. Words are only tried from where they begin.
_KEY_PARTS = 64
_LONG_KEY = re.compile(rf"(?:(?:(?<![\w-])[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*\.[ \t]*){{{_KEY_PARTS}}}")


def read_document(path: str | Path) -> dict[str, Any]:
    """A TOML file as a dictionary."""
    file = Path(path)
    if not file.is_file():
        raise SchemaError(f"the subject file {str(file)!r} does not exist; check the path or run `fairbits data list`.")
    if file.stat().st_size > _MAX_BYTES:
        raise SchemaError(f"the subject file {str(file)!r} has more than {_MAX_BYTES:,} bytes; it is no description.")
    try:
        return parse_toml(file.read_bytes())
    except ValueError as error:
        raise SchemaError(f"the subject file {str(file)!r} is not valid TOML: {error}.") from None


def parse_toml(content: bytes) -> dict[str, Any]:
    """TOML from outside as a dictionary."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("it is no text in UTF-8") from None
    if _LONG_KEY.search(text) is not None:  # what a key costs to read grows with the square of its parts
        raise ValueError(f"a key has {_KEY_PARTS} parts or more")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        if re.search(r"\(at [^()]*\)$", said) is not None:
            raise ValueError(said) from None
        raise ValueError("a number is too long" if "digits" in said else "it is nested too deeply") from None


def schema_of_document(document: Mapping[str, Any], *, classes: Iterable[str] = ()) -> Schema:
    """The schema in a subject document. ``classes`` are the target's values where the document names none."""
    section = section_of(document, "table")
    described = section_of(document, "attributes")
    read = {name: attribute_of_section(name, fields) for name, fields in described.items()}
    watched = {name for name, fields in described.items() if is_observed(fields)}
    if "score" in section:  # nobody knows what a model that is not there takes
        watched |= {name for name, attribute in read.items() if attribute.protected}
    attributes = tuple(attribute for name, attribute in read.items() if name not in watched)
    if not read:
        raise SchemaError("the subject has no attributes; describe each column under [attributes.NAME].")
    stated = section.get("classes", [])
    if not isinstance(stated, list | tuple) or any(isinstance(value, list | Mapping) for value in stated):
        raise SchemaError("[table] classes must be a list of the target's values, in the order of the outputs.")
    for key in ("target", "scores"):
        if not isinstance(section.get(key, ""), str):
            raise SchemaError(f"[table] {key} is {str(section[key])[:40]!r}; it must be text in quotes.")
    justified = document.get("justified", section.get("justified", []))
    if not isinstance(justified, list | tuple) or any(not isinstance(name, str) for name in justified):
        raise SchemaError(f"justified is {str(justified)[:40]!r}; it must be a list of names of attributes.")
    named = tuple(text_of(value) for value in stated) or tuple(classes)
    favourable = section.get("favourable")
    if isinstance(favourable, list | Mapping):
        raise SchemaError("[table] favourable is a list or a section; it must be one of the target's values.")
    return Schema(
        attributes,
        target=section.get("target"),
        classes=named,
        favourable=None if favourable is None else text_of(favourable),
        rules=_rules(document.get("rules", [])),  # type: ignore[arg-type]  # the schema parses them
        scores=section.get("scores", "favourable"),
        max_twins=_max_twins(section_of(document, "limits")),
        threshold=section.get("threshold"),
        order_guessed=not section.get("classes"),
        observed=tuple(attribute for name, attribute in read.items() if name in watched),
        justified=tuple(justified),
    )


def document_of_schema(schema: Schema) -> tomlkit.TOMLDocument:
    """The sections of a subject file about people: rules, [table], [limits] and [attributes]."""
    import tomlkit  # only writing needs it

    document = tomlkit.document()
    if schema.rules:
        rules = tomlkit.array()
        rules.extend(rule.text for rule in schema.rules)
        document.add("rules", rules.multiline(True))
    if schema.justified:
        document.add("justified", list(schema.justified))
    table = tomlkit.table()
    if schema.target is not None:
        table.add("target", schema.target)
    if schema.classes:
        table.add("classes", list(schema.classes))
        table["classes"].comment("in the order of the network's outputs")
        table.add("favourable", str(schema.favourable))
    if schema.threshold not in (None, DEFAULT_THRESHOLD):
        table.add("threshold", schema.threshold)
        table["threshold"].comment("a decision is favourable from this probability on")
    if schema.scores != "favourable":
        table.add("scores", schema.scores)
    document.add("table", table)
    if schema.max_twins != MAX_TWINS:
        document.add("limits", {"twins": schema.max_twins})
    attributes = tomlkit.table(is_super_table=True)
    for attribute in schema.attributes:
        attributes.add(attribute.name, table_of_attribute(attribute))
    for attribute in schema.observed:
        attributes.add(attribute.name, table_of_attribute(attribute, observed=True))
    document.add("attributes", attributes)
    return document


def section_of(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A section of a document; empty where it is missing."""
    section = document.get(name, {}) if isinstance(document, Mapping) else document
    if not isinstance(section, Mapping):
        raise SchemaError(f"[{name}] must be a section, but the subject says {name} = {str(section)[:40]!r}.")
    return section


def _rules(stated: object) -> tuple[str, ...]:
    if not isinstance(stated, list | tuple):
        raise SchemaError(f"rules must be a list of texts, but the subject says rules = {stated!r}.")
    strange = next((rule for rule in stated if not isinstance(rule, str)), None)
    if strange is not None:
        raise SchemaError(f"a rule must be text in quotes, but the subject has the rule {strange!r}.")
    return tuple(str(rule) for rule in stated)


def _max_twins(section: Mapping[str, Any]) -> int:
    for key in section:
        if key != "twins":
            raise SchemaError(f"[limits] has the unknown key {key!r}; {choose_from(key, ['twins'])}")
    max_twins = section.get("twins", MAX_TWINS)
    if isinstance(max_twins, bool) or not isinstance(max_twins, int) or max_twins < 1:
        raise SchemaError(f"[limits] twins is {max_twins!r}; it must be a whole number, 1 or more.")
    return max_twins
