"""What is kept about a case: its codes under the names of the attributes, and its figures.

One row is one distinct individual: the attributes that are not protected (and a protected one of which twins take some
values only, because a person's own is one more), and what its twins experience. An attribute
whose name is taken (by a figure, or by another attribute that differs only in case, which SQL does not see) is stored
as ``attribute_<name>``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairbits.domain import Attribute, Codes, Schema, numpy_of

#: The figures of a case. ``favourable`` counts the twins with a favourable decision, ``twins`` those that can exist,
#: ``plausibility`` is a percentile among the rows of the table, ``seed_row`` the row that the search started from
#: (-1: none), ``changed`` the attributes changed from the nearest row.
FIGURES: dict[str, pa.DataType] = {
    "k": pa.int32(),
    "q_inf": pa.float32(),
    "q_1": pa.float32(),
    "low": pa.float32(),
    "high": pa.float32(),
    "span": pa.float32(),
    "flips": pa.bool_(),
    "low_twin": pa.int32(),
    "high_twin": pa.int32(),
    "favourable": pa.int32(),
    "twins": pa.int32(),
    "plausibility": pa.float32(),
    "origin": pa.dictionary(pa.int32(), pa.string()),
    "seed_row": pa.int32(),
    "changed": pa.int16(),
    "l1": pa.float32(),
    "evaluation": pa.int64(),
    "seconds": pa.float32(),
}
#: The column that says which bucket of people, by their hash, a case is in: only readers that look for doubles see it.
BUCKET = "fairbits:bucket"
#: Columns that reading adds: which protected values get the lowest and the highest score.
WORDS = ("worst", "best")
_GIVEN = tuple(name for name in FIGURES if name not in ("origin", "q_inf", "span"))


@dataclass(frozen=True, slots=True)
class Case:
    """One case as people read it.

    Parameters
    ----------
    k, q_inf, q_1
        Classes of twins, and bits of protected information by both measures.
    low, high, span
        Lowest and highest score of a twin, and their difference.
    flips
        Whether twins get different decisions.
    worst, best
        The protected values of the twins with the lowest and the highest score, in words.
    favourable
        How many twins are decided favourably.
    twins
        How many twins there are under the rules.
    plausibility
        A percentile among the rows of the table, between 0 and 1.
    origin
        What proposed the person: a row, or a step of the strategy.
    seed_row
        The row that the search started from, from 0; -1 where there is none.
    changed, l1
        Number of attributes changed from the nearest row, and the normalised distance to it.
    evaluation, seconds
        When it was found: after how many people, and after how long.
    attributes
        The person, in words, by attribute.
    """

    k: int
    q_inf: float
    q_1: float
    low: float
    high: float
    span: float
    flips: bool
    worst: str
    best: str
    favourable: int
    twins: int
    plausibility: float
    origin: str
    seed_row: int
    changed: int
    l1: float
    evaluation: int
    seconds: float
    attributes: dict[str, str]


@dataclass(frozen=True)
class Layout:
    """Which column of a part holds what, for one schema."""

    schema: Schema

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes that are stored, in column order."""
        return tuple(self.schema.attributes[i] for i in self.schema.person_columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column of each stored attribute."""
        taken = {name.casefold() for name in (*FIGURES, *WORDS)}
        # Names that stand as they are go first, so that a renamed one never takes the name of another attribute.
        waiting = {attribute.name.casefold() for attribute in self.attributes}
        names = []
        for attribute in self.attributes:
            name = attribute.name
            while name.casefold() in taken or (name != attribute.name and name.casefold() in waiting):
                name = f"attribute_{name}"
            taken.add(name.casefold())
            names.append(name)
        return tuple(names)

    @cached_property
    def arrow(self) -> pa.Schema:
        """Names and types of all columns."""
        codes = [pa.field(n, _type_of(a)) for n, a in zip(self.names, self.attributes, strict=True)]
        figures = (pa.field(name, kind) for name, kind in FIGURES.items())
        return pa.schema([*codes, *figures, pa.field(BUCKET, pa.int16())])

    def batch(self, codes: Codes, figures: Mapping[str, Any], origin: Any, bucket: Any = 0) -> pa.RecordBatch:
        """Rows to be stored; everything is copied, so the caller may use its arrays again."""
        rows, width = codes.shape
        if width != len(self.schema):
            raise ValueError(f"codes need {len(self.schema)} columns, but have {width}")
        strange = (set(figures) - {"q_inf", "span"}) ^ set(_GIVEN)
        if strange:
            raise ValueError(f"figures are {', '.join(_GIVEN)}; missing or unknown: {', '.join(sorted(strange))}")
        arrays = [_codes(codes[:, i], field) for i, field in zip(self.schema.person_columns, self.arrow, strict=False)]
        known = dict(figures)
        if "q_inf" not in known:
            known["q_inf"] = np.log2(known["k"])
        if "span" not in known:
            known["span"] = np.subtract(known["high"], known["low"])
        for name, kind in FIGURES.items():
            arrays.append(_origins(origin, rows) if name == "origin" else _figure(known[name], rows, kind))
        arrays.append(_figure(bucket, rows, pa.int16()))
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow)

    def codes_of(self, batch: pa.RecordBatch) -> Codes:
        """Codes from stored rows; protected attributes whose every value twins take get their lowest."""
        rows = np.empty((batch.num_rows, len(self.schema)), dtype=np.float64)
        for i in self.schema.protected_columns:
            rows[:, i] = self.schema.attributes[i].twin_values()[0]
        for i, name in zip(self.schema.person_columns, self.names, strict=True):
            rows[:, i] = numpy_of(batch.column(batch.schema.get_field_index(name)))
        return rows


def _type_of(attribute: Attribute) -> pa.DataType:
    """Signed types only: with unsigned ones, `hours - 40` in a filter would overflow."""
    if attribute.kind == "real":
        return pa.float64()
    low = attribute.low if attribute.gap is None else min(attribute.low, attribute.gap)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and attribute.upper <= np.iinfo(kind).max:
            return pa.from_numpy_dtype(kind)
    return pa.int64()


def _codes(column: Codes, field: pa.Field) -> pa.Array:
    whole: npt.NDArray[Any] = column.astype(field.type.to_pandas_dtype())
    if not np.array_equal(whole, column):
        raise ValueError(f"attribute {field.name!r} has codes that are no {field.type}")
    return pa.array(whole)


def _figure(values: Any, rows: int, kind: pa.DataType) -> pa.Array:
    array = np.asarray(values, dtype=kind.to_pandas_dtype())
    return pa.array(np.array(np.broadcast_to(array, (rows,))))


def _origins(origin: Any, rows: int) -> pa.DictionaryArray:
    if isinstance(origin, str):
        return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([origin], pa.string()))
    names, index = np.unique(np.asarray(origin, dtype=np.str_), return_inverse=True)
    return pa.DictionaryArray.from_arrays(index.astype(np.int32), pa.array(names.tolist(), pa.string()))
