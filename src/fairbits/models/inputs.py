"""How people become the inputs of a model: which attributes go into which input, and encoding tables found by asking.

What does the preprocessing in front of a network make of every single value? Where every input depends on one attribute
only, running each value of each attribute through the fitted encoders once gives the exact tables, whatever the
encoders are and however they were set up (dropped levels, infrequent levels, imputed values, bins). What came out is
then held against the encoders on random people.

An input that is called like an attribute gets that attribute; what goes into any other one says ``[model.inputs]``.
People go through fairbits as one encoded row, which is cut into the inputs when the model is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Attribute, Codes, Encoding, Lookup, Numeric, Part, Schema, Unseen, written_otherwise
from fairbits.errors import ModelError, choose_from, foreign
from fairbits.models.native.chain import NotNative
from fairbits.models.options import ModelOptions

Transform = Callable[[Codes], Any]

#: Points on which a number must turn out to be scaled evenly, and people on whom the result is tried.
_POINTS, PEOPLE = 257, 512
#: A whole number with a larger domain is not tabulated when it is not scaled evenly.
_MAX_VALUES = 200_000
#: The same for one that may be missing.
_MAX_GAPPED = 10_000
#: The share of people who lack a number, where people may lack it.
_LACKING = 0.1


class NotColumnwise(NotNative):
    """An input depends on more than one attribute, or on a real one in more than a straight line."""

    def __init__(self, column: str | None = None) -> None:
        bent = f"its encoders bend the real column {column!r} or fill its gaps: only lines are read."
        super().__init__("its encoders look at several columns at once." if column is None else bent)


class RefusedRows(ModelError):
    """A model's own preprocessing does not take the rows that it is given."""


def remedy_for_labels(attributes: Iterable[Attribute]) -> str:
    """What to do where a model refuses labels of these."""
    return written_otherwise(attributes) or (
        'if it was trained on codes that number the labels as the schema does, say input_format = "codes" under [model]'
    )


class Encoders:
    """What preprocessing makes of people, (n, inputs); NaN among it where some may be ``missing``."""

    def __init__(self, transform: Transform, schema: Schema, *, missing: bool = False):
        self._transform, self.schema, self._missing = transform, schema, missing
        self.someone = np.array([[a.first for a in schema.attributes]], dtype=np.float64)
        self.start = self(self.someone)[0]

    def __call__(self, codes: Codes) -> npt.NDArray[Any]:
        """The inputs as finite numbers, or NaN where some may be missing."""
        with foreign("the model's preprocessing failed", RefusedRows):
            found = self._transform(codes)
        dense = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
        try:
            dense = dense if dense.dtype.kind == "f" else dense.astype(np.float64)
        except (TypeError, ValueError):
            raise ModelError("the model's preprocessing leaves values that are no numbers.") from None
        if dense.ndim != 2 or len(dense) != len(codes):
            raise ModelError(
                f"the model's preprocessing made {dense.shape} of {len(codes)} rows of {len(self.schema)} attributes."
            )
        if not (~np.isinf(dense) if self._missing else np.isfinite(dense)).all():
            raise ModelError("the model's preprocessing makes NaN or infinite inputs.")
        return dense

    def of(self, i: int | npt.NDArray[np.int64], points: Codes) -> npt.NDArray[Any]:
        """What somebody becomes with another value of one attribute each time."""
        rows = np.repeat(self.someone, len(points), axis=0)
        rows[np.arange(len(points)), i] = points
        try:
            return self(rows)
        except ModelError as error:
            raise self._refused(rows, error) from None

    def filled(self, found: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The inputs that differ from those of somebody."""
        same = (found == self.start) | (np.isnan(found) & np.isnan(self.start))
        return np.flatnonzero(~same.all(axis=0))

    def table(self, i: int) -> Part:
        """What every value of an attribute becomes, a missing number among them."""
        attribute = self.schema.attributes[i]
        points = attribute.values() if attribute.allowed else np.arange(attribute.low, attribute.upper + 1.0)
        if attribute.kind != "category" and attribute.gap is not None:
            points = np.unique(np.append(points, attribute.gap))
        found = self.of(i, points)
        filled = self.filled(found)
        if not len(filled):
            return Unseen()
        table = np.zeros((int(points[-1] - points[0]) + 1, len(filled)))  # codes that nobody has stay 0
        table[(points - points[0]).astype(np.int64)] = found[:, filled]
        return Lookup(filled, table, int(points[0]))

    def _refused(self, rows: Codes, error: ModelError) -> ModelError:
        """The first value that is refused, by name; somebody is taken."""

        def taken(person: Codes) -> bool:
            try:
                self(person)
            except ModelError:
                return False
            return True

        person = next((row[None, :].copy() for row in rows if not taken(row[None, :])), self.someone)
        for i in np.flatnonzero(person[0] != self.someone[0]):
            attribute, value = self.schema.attributes[i], person[0, i]
            person[0, i] = self.someone[0, i]
            if taken(person):
                remedy = written_otherwise([attribute]) or "take it out of the domain or train with it"
                return ModelError(
                    f"the model cannot take the value {attribute.read(value)!r} of {attribute.name!r}, which the "
                    f"schema allows ({str(error).rstrip('.:')}); {remedy}."
                )
        return error


def encoding_of(transform: Transform, schema: Schema, columns: Iterable[str]) -> Encoding:
    """The encoding that a function from rows of codes to rows of inputs amounts to."""
    seen, ask = set(columns), Encoders(transform, schema)
    parts = [_part(ask, i) if one.name in seen else Unseen() for i, one in enumerate(schema.attributes)]
    owned = np.concatenate([part.columns for part in parts])
    if len(np.unique(owned)) < len(owned):
        raise NotColumnwise
    fixed = {column: float(value) for column, value in enumerate(ask.start) if column not in owned}
    encoding = Encoding(parts, fixed=fixed)
    people = random_people(schema, PEOPLE, lacking=True)
    theirs = ask(people)
    size = float(np.abs(theirs.astype(np.float64)).max())
    if not np.allclose(encoding.encode(people), theirs, rtol=1e-5, atol=1e-6 * (1 + size)):
        raise NotColumnwise
    return encoding


def _part(ask: Encoders, i: int) -> Part:
    attribute = ask.schema.attributes[i]
    points = _some_values(attribute)
    found = ask.of(i, points)
    columns = ask.filled(found)
    if attribute.kind != "category" and attribute.gap is None and len(columns) == 1:
        straight = _straight(points, found[:, columns[0]], int(columns[0]))
        if straight is not None:
            return straight
    if len(columns) == 0:
        return Unseen()
    # A network's first layer has no place for a line with a gap.
    most = _MAX_VALUES if attribute.gap is None else _MAX_GAPPED
    if attribute.kind == "real" or attribute.upper - attribute.low >= most:
        raise NotColumnwise(attribute.name)
    return ask.table(i)


def _some_values(attribute: Attribute) -> Codes:
    """All values of a short domain; of a long one the ends and points in between."""
    if attribute.allowed:
        return attribute.values()
    if attribute.discrete and attribute.upper - attribute.low < _POINTS:
        return np.arange(attribute.low, attribute.upper + 1)
    points = np.linspace(attribute.low, attribute.upper, _POINTS)
    return np.unique(np.rint(points) if attribute.discrete else points)


def _straight(points: Codes, found: npt.NDArray[np.floating], column: int) -> Numeric | None:
    low, high = points[0], points[-1]
    scale = (float(found[-1]) - float(found[0])) / (high - low) if high > low else 0.0
    if scale == 0:
        return None
    line = Numeric(column, shift=low - float(found[0]) / scale, scale=scale)
    size = float(np.abs(found).max()) + abs(scale) * (high - low)
    tolerance = 16 * float(np.finfo(found.dtype).eps) * size
    return line if np.abs(line.encode(points)[:, 0] - found).max() <= tolerance else None


def random_people(schema: Schema, count: int, *, lacking: bool = False) -> Codes:
    """People with valid values, drawn from the whole domain, to try a model on; always the same."""
    rng = np.random.default_rng(0)
    columns = [a.clip(rng.uniform(a.low - 0.5, a.upper + 0.5, count)) for a in schema.attributes]
    for column, attribute in zip(columns, schema.attributes, strict=True):
        if lacking and attribute.kind != "category" and attribute.gap is not None:
            column[rng.random(count) < _LACKING] = attribute.gap
    return np.column_stack(columns).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Slot:
    """One input: its name, where its columns lie in an encoded row, and whether these are positions of labels."""

    name: str
    start: int
    stop: int
    whole: bool  # codes of categories and integers only: an embedding may take them
    codes: bool  # of categories only
    attributes: tuple[str, ...]


def slots_of(
    names: Sequence[str], widths: Sequence[int | None], schema: Schema, options: ModelOptions
) -> tuple[tuple[Slot, ...], Encoding]:
    """Which attributes go into which input, and the encoding of people as one row for all of them."""
    parts, slots, start = dict[str, Part](), list[Slot](), 0
    for name, width in zip(names, widths, strict=True):
        mine = [schema[own] for own in _attributes(name, names, schema, options)]
        hot, begin = _one_hot(name, width, mine), start
        for attribute in mine:
            if attribute.name in parts:
                raise ModelError(f"{attribute.name!r} goes into two inputs of the model; name it in one alone.")
            spread = hot and attribute.kind == "category"
            size = len(attribute.labels) if spread else 1
            parts[attribute.name] = Lookup(np.arange(start, start + size), np.eye(size)) if spread else Numeric(start)
            start += size
        whole = not hot and all(a.discrete for a in mine)
        codes = not hot and all(a.kind == "category" for a in mine)
        slots.append(Slot(name, begin, start, whole, codes, tuple(a.name for a in mine)))
    return tuple(slots), Encoding([parts.get(name, Unseen()) for name in schema.names]).with_gaps(schema)


def _attributes(name: str, names: Sequence[str], schema: Schema, options: ModelOptions) -> Sequence[str]:
    known = options.columns or schema.names
    if name in options.inputs:
        strange = next((own for own in options.inputs[name] if own not in schema.names), None)
        if strange is not None:
            raise ModelError(f"[model.inputs] puts {strange!r} into {name!r}; {choose_from(strange, schema.names)}")
        return options.inputs[name]
    if len(names) == 1:
        return known
    same = [own for own in known if _plain(own) == _plain(name)]
    if not same:
        raise ModelError(
            f"the model takes the inputs {', '.join(names)}, and nothing says which attributes go into {name!r}; "
            f'list them in its order under [model.inputs]: {name} = ["…"] (in Python inputs={{"{name}": […]}}); '
            f"{choose_from(name, known)}"
        )
    return same


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _one_hot(name: str, width: int | None, mine: Sequence[Attribute]) -> bool:
    """Whether categories are one-hot for an input of this width."""
    hot = sum(len(a.labels) if a.kind == "category" else 1 for a in mine)
    if width in (None, len(mine), hot):
        return width == hot != len(mine)
    make = f"{len(mine)}" if hot == len(mine) else f"{len(mine)} as codes or {hot} with one-hot categories"
    raise ModelError(
        f"the input {name!r} takes {width} columns, but {', '.join(a.name for a in mine)} make {make}; list what goes "
        f"into it under [model.inputs]."
    )
