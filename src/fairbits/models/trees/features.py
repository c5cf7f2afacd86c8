"""What a tree ensemble says about its features, and how the schema's attributes become them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairbits.domain import (
    MISSING,
    Attribute,
    Encoding,
    Lookup,
    Numeric,
    Part,
    Schema,
    table_columns,
    text_of,
    values_of,
)
from fairbits.errors import ModelError, choose_from
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import column_note
from fairbits.models.predictors import label_columns, parts_of, spellings
from fairbits.models.trees.ensemble import Ensemble


@dataclass(frozen=True, slots=True)
class Features:
    """Names (none where the model was trained on an array) and which features are categories.

    ``categories`` holds the values of each categorical feature in the order of the model's numbers for them, or None
    where the model does not remember them. ``refuses`` says that the library refuses categories that it has never seen,
    where others read them as missing.
    """

    names: tuple[str, ...]
    count: int
    categories: Mapping[int, tuple[Any, ...] | None] = field(default_factory=dict)
    refuses: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """What a reader made of a model. ``classes`` as in TreeModel; ``labels`` are their names, where it names them."""

    ensemble: Ensemble
    classes: int | None
    features: Features
    name: str
    objective: str = ""
    labels: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


def encoding_for(read: Read, schema: Schema, options: ModelOptions) -> tuple[Encoding, tuple[str, ...]]:
    """How codes become rows of features, and notes on what had to be assumed."""
    features, notes = read.features, list[str]()
    used = set(np.unique(read.ensemble.feature[read.ensemble.feature >= 0]).tolist())
    columns, fixed = _columns(read, schema, options, used)

    def whole(attribute: Attribute, place: int) -> Part:
        part, note = _whole_part(attribute, place, features, options, place in used, read.name)
        notes.extend(note)
        return part

    parts = parts_of(columns, schema, whole)
    notes += () if features.names else column_note(tuple(columns.values()), options)
    return Encoding(parts, fixed=fixed, dtype=np.float64), tuple(notes)


def _columns(
    read: Read, schema: Schema, options: ModelOptions, used: set[int]
) -> tuple[dict[int, str], dict[int, float]]:
    """The table's column of each feature; features that no split looks at may be missing from the table."""
    names, count = read.features.names, read.features.count
    if not names:
        columns = options.columns or table_columns(schema)
        if len(columns) != count:
            raise ModelError(
                f"{read.name} takes {count} columns, but {len(columns)} attributes are given ({', '.join(columns)}); "
                f"list those that it sees under [model] columns."
            )
        return dict(enumerate(columns)), {}
    known, found, fixed = label_columns(schema), dict[int, str](), dict[int, float]()
    for place, name in enumerate(names):
        column = _match(name, known)
        if column is not None and column not in found.values():
            found[place] = column
        elif place not in used:
            fixed[place] = 0.0
        else:
            raise ModelError(
                f"{read.name} was trained on the column {name!r}, which the schema does not describe; "
                f"{choose_from(name, tuple(known))}"
            )
    return found, fixed


def _match(name: str, known: Iterable[str]) -> str | None:
    if name in known:
        return name
    plain = [column for column in known if _plain(column) == _plain(name)]  # LightGBM rewrites blanks and signs
    return plain[0] if len(plain) == 1 else None


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name)


def _whole_part(  # noqa: PLR0911 - one per kind of value
    attribute: Attribute, place: int, features: Features, options: ModelOptions, used: bool, name: str
) -> tuple[Part, list[str]]:
    """An attribute that is one feature: a number, or the model's number for each category."""
    notes: list[str] = []
    categorical = place in features.categories
    number = Numeric(place, gap=None if attribute.kind == "category" else attribute.gap)
    if options.input_format == "codes" or (attribute.kind != "category" and not categorical):
        return number, notes
    if attribute.kind == "real":
        return number, notes
    if categorical:
        known = features.categories[place]
        if known is not None:
            return _by_value(attribute, place, known, features.refuses and used, name)
    if attribute.kind == "integer":
        return number, notes
    values = values_of(attribute)
    if values.dtype != object or all(not isinstance(v, str) for v in values.tolist()):
        return Lookup(np.array([place]), np.array([[float(v)] for v in values.tolist()])), notes
    if categorical:
        present = sorted(label for label in attribute.labels if label != MISSING)
        table = [[np.nan if label == MISSING else float(present.index(label))] for label in attribute.labels]
        if used:
            notes.append(
                f"the model does not say what its categories of {attribute.name!r} are called; they are taken to be "
                f"numbered in alphabetical order, as pandas does."
            )
        return Lookup(np.array([place]), np.array(table)), notes
    if all(label == MISSING or _digits(label) for label in attribute.labels):  # "02139": it cannot take text
        spelled = [[np.nan if label == MISSING else float(label)] for label in attribute.labels]
        return Lookup(np.array([place]), np.array(spelled)), notes
    if features.names and used:  # its own columns, but not these values: codes would be a guess
        raise ModelError(
            f"{name} takes numbers for {attribute.name!r}, which has labels such as {attribute.labels[0]!r}; if it was "
            f'trained on codes that number the labels as the schema does, say input_format = "codes" under [model].'
        )
    if used:
        notes.append(f"the labels of {attribute.name!r} are numbered as in the schema, from 0 up, for {name}.")
    return Numeric(place), notes


def _by_value(
    attribute: Attribute,
    place: int,
    known: tuple[Any, ...],
    refuses: bool,
    name: str,
) -> tuple[Part, list[str]]:
    number = {text_of(value): i for i, value in enumerate(known)}
    notes: list[str] = []
    if attribute.kind == "integer":
        texts = [str(code) for code in range(int(attribute.low), int(attribute.upper) + 1)]
        number |= {text_of(int(value)): i for i, value in enumerate(known) if _is_whole(value) or _digits(str(value))}
    else:
        texts = list(attribute.labels)
        number |= {str(value).lower(): i for i, value in enumerate(known) if isinstance(value, bool)}
        for text in texts:  # the zeros of "02139" may have been lost before it was trained, "true" been "True"
            known_as = next((way for way in (*spellings(text), text.lstrip("0")) if way in number), None)
            if known_as is not None:
                number[text] = number[known_as]
    exist = {text_of(code) for code in attribute.allowed} if attribute.allowed and attribute.kind == "integer" else None
    there = texts if exist is None else [text for text in texts if text in exist]
    strange = [text for text in there if text not in number and text != MISSING]
    if strange and (refuses or len(strange) == len(there)):
        raise ModelError(
            f"{name} does not know the value {strange[0]!r} of {attribute.name!r}; it was trained on "
            f"{', '.join(list(number)[:8])}: take it out of the domain or train with it."
        )
    if strange:
        notes.append(
            f"{name} does not know {', '.join(map(repr, strange[:4]))} of {attribute.name!r} and reads it as missing."
        )
    table = np.array([[number.get(text, np.nan)] for text in texts], dtype=np.float64)
    return Lookup(np.array([place]), table, int(attribute.low)), notes


def _digits(label: str) -> bool:
    return label.isascii() and label.isdecimal()


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer()
