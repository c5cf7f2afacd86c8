"""The one way from a record to JSON and back: whatever a stage returns is written, and read again, by its fields.

A record is a dataclass. Its fields say what is in the file: numbers, texts, enums, paths, arrays, tuples, mappings,
other records, and None where the annotation allows it. ``field(metadata={"json": "other_name"})`` stores a field under
another name, ``metadata={"json": None}`` not at all: such a field needs a default. Not a number, which JSON has no word
for, is null in the file and comes back as NaN.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from fairbits.shape import fits
from fairbits.store.files import plain
from fairbits.text import shortened

Record = TypeVar("Record")


def record_to_json(record: Any) -> Any:
    """A record, or anything made of records, in types that JSON knows."""
    if is_dataclass(record) and not isinstance(record, type):
        return {
            name: record_to_json(getattr(record, one.name))
            for one in fields(record)
            if (name := _name(one)) is not None
        }
    if isinstance(record, Enum):
        return record.value
    if isinstance(record, Mapping):
        return {str(key): record_to_json(value) for key, value in record.items()}
    return [record_to_json(value) for value in record] if isinstance(record, list | tuple) else plain(record)


def numbered(document: Any, step: int) -> Any:
    """A document whose interventions count layers from 1 (``step`` +1), as files do, or from 0 (−1), as a ``Do``."""
    if isinstance(document, list):
        return [numbered(one, step) for one in document]
    if not isinstance(document, dict):
        return document
    found = {name: numbered(value, step) for name, value in document.items()}
    return {**found, "layer": found["layer"] + step} if found.keys() == {"layer", "neuron", "value"} else found


def record_from_json(kind: type[Record], document: Any) -> Record:
    """The record that :func:`record_to_json` made a document of; what it does not know is passed over.

    Raises ``KeyError``, ``TypeError`` or ``ValueError`` where the document does not fit: `fairbits.shape.reading` makes
    a sentence about the file of them.
    """
    return _value(kind, document, kind.__name__)


def _name(one: Field[Any]) -> str | None:
    return one.metadata.get("json", one.name)


_hints = cache(get_type_hints)


def _record(kind: type[Any], document: Any, place: str) -> Any:
    if not isinstance(document, Mapping):
        raise TypeError(f"{place} is {shortened(repr(document), 40)}")
    given, hints = {}, _hints(kind)
    for one in fields(kind):
        name = _name(one)
        if name is None or not one.init:
            continue
        if name in document:
            given[one.name] = _value(hints[one.name], document[name], name)
        elif one.default is MISSING and one.default_factory is MISSING:
            raise KeyError(name)
    return kind(**given)


def _value(kind: Any, value: Any, place: str) -> Any:  # noqa: PLR0911 - one line for each kind of annotation
    """A value of JSON as what an annotation says."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _either(inner, value, place)
    if is_dataclass(kind):
        return _record(kind, value, place)  # type: ignore[arg-type]
    if origin is tuple and isinstance(value, list):
        kinds = (inner[0],) * len(value) if inner[1:] == (Ellipsis,) else inner
        return tuple(_value(each, item, place) for each, item in zip(kinds, value, strict=True))
    if origin in (list, frozenset) and isinstance(value, list):
        return origin(_value(inner[0], item, place) for item in value)
    if origin is np.ndarray and isinstance(value, list):
        return np.asarray(value, dtype=get_args(inner[1])[0])
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, Mapping):
        make = str if inner[0] is Any else inner[0]
        return {make(key): _value(inner[1], item, place) for key, item in value.items()}
    if isinstance(kind, type) and issubclass(kind, Enum | Path):
        return kind(value)
    if kind is float and value is None:
        return float("nan")
    if not fits(value, kind):
        raise TypeError(f"{place} is {shortened(repr(value), 40)}")
    return float(value) if kind is float else value


def _either(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    """The first of several kinds that fits; null is None where that is one of them."""
    if value is None and type(None) in kinds:
        return None
    for kind in kinds:
        try:
            return _value(kind, value, place)
        except (KeyError, TypeError, ValueError):
            continue
    raise TypeError(f"{place} is {shortened(repr(value), 40)}")
