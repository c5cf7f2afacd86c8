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
from fairbits.models.native.chain import NotNative
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
        return _whole_part(attribute, place, read, options, used=place in used, notes=notes)

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


def _whole_part(
    attribute: Attribute, place: int, read: Read, options: ModelOptions, *, used: bool, notes: list[str]
) -> Part:
    """An attribute that is one feature: a number, or the model's number for each category."""
    features, categorical = read.features, place in read.features.categories
    number = Numeric(place, gap=None if attribute.kind == "category" else attribute.gap)
    if attribute.kind == "real" or options.input_format == "codes":
        return number
    known = features.categories.get(place)
    if known is not None:
        return _by_value(attribute, place, known, read, used=used, notes=notes)
    if attribute.kind == "integer":
        return number
    if not any(isinstance(value, str) for value in values_of(attribute).tolist()):
        spelled = [float(value) for value in values_of(attribute).tolist()]
    elif categorical:
        present = sorted(label for label in attribute.labels if label != MISSING)
        spelled = [np.nan if label == MISSING else float(present.index(label)) for label in attribute.labels]
        if used:
            notes.append(
                f"the model does not say what its categories of {attribute.name!r} are called; they are taken to be "
                f"numbered in alphabetical order, as pandas does."
            )
    elif all(label == MISSING or _digits(label) for label in attribute.labels):  # "02139": it cannot take text
        spelled = [np.nan if label == MISSING else float(label) for label in attribute.labels]
    elif features.names and used:  # its own columns, but not these values: codes would be a guess
        raise ModelError(
            f"{read.name} takes numbers for {attribute.name!r}, which has labels such as {attribute.labels[0]!r}; if "
            f'it was trained on codes that number the labels as the schema does, say input_format = "codes" under '
            f"[model]."
        )
    else:
        spelled = [float(code) for code in range(len(attribute.labels))]
        if used:
            notes.append(f"the labels of {attribute.name!r} are numbered as in the schema, from 0 up, for {read.name}.")
    return Lookup(np.array([place]), np.array(spelled)[:, None])


def _by_value(
    attribute: Attribute, place: int, known: tuple[Any, ...], read: Read, *, used: bool, notes: list[str]
) -> Part:
    """A feature of categories that the model remembers."""
    number = {text_of(value): i for i, value in enumerate(known)}
    texts = there = list(attribute.labels)
    if attribute.kind == "integer":
        texts = there = [str(code) for code in range(int(attribute.low), int(attribute.upper) + 1)]
        number |= {text_of(int(value)): i for i, value in enumerate(known) if _is_whole(value) or _digits(str(value))}
        if attribute.allowed:
            there = [text_of(code) for code in attribute.allowed]
    else:
        number |= {str(value).lower(): i for i, value in enumerate(known) if isinstance(value, bool)}
        for text in texts:  # the zeros of "02139" may have been lost before it was trained, "true" been "True"
            known_as = next((way for way in (*spellings(text), text.lstrip("0")) if way in number), None)
            if known_as is not None:
                number[text] = number[known_as]
    strange = [text for text in there if text not in number and text != MISSING]
    if strange and ((read.features.refuses and used) or len(strange) == len(there)):
        if not all(str(value).isascii() for value in known):
            raise NotNative(f"the categories of {attribute.name!r} are not all ASCII, and its library cuts such names.")
        raise ModelError(
            f"{read.name} does not know the value {strange[0]!r} of {attribute.name!r}; it was trained on "
            f"{', '.join(list(number)[:8])}: take it out of the domain or train with it."
        )
    if strange:
        shown = ", ".join(map(repr, strange[:4]))
        notes.append(f"{read.name} does not know {shown} of {attribute.name!r} and reads it as missing.")
    table = np.array([[number.get(text, np.nan)] for text in texts], dtype=np.float64)
    return Lookup(np.array([place]), table, int(attribute.low))


def _digits(label: str) -> bool:
    return label.isascii() and label.isdecimal()


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer()
