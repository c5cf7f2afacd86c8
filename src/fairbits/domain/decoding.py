"""From codes back to the values of the table, byte for byte, for a model that brings its own preprocessing.

Codes and labels are for people and kernels. A model is given what its owner's table holds: " Male" with its blank, None
where it says None, an int8 or a pandas category where the column is one. So a few rows of every column are kept, as the
owner's own library holds them, and values for the model are taken from those. A CSV file has no types of its own: there
the owner's library is taken to be pandas, with its defaults. Without a table a category is its label again, labels that
look like numbers or truth values are such, and a missing value is NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import MISSING, Attribute, Codes
from fairbits.domain.encoding import Encoding, table_rows
from fairbits.domain.reading import NA_TEXTS, as_pandas
from fairbits.domain.schema import Schema
from fairbits.domain.table import BINARY
from fairbits.errors import MissingDependencyError, TableError

if TYPE_CHECKING:
    import pyarrow as pa


Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table: an attribute (by its place among those seen), or one label of a category spread out."""

    name: str
    place: int
    label: int | None = None


class Decoder:
    """Codes of the attributes that a model sees, in its order, as frames, arrays or records.

    Parameters
    ----------
    schema
        The attributes.
    columns
        The table's columns that the model was trained on, in its order; all of the schema by default.
    as_text
        Categories whose labels stay text although they look like numbers.
    categorical
        Whether frames get pandas categories, for models that were trained on those.
    typed
        Whether numbers get the type of the owner's column; otherwise they are exact, as int64 and float64.
    """

    def __init__(
        self,
        schema: Schema,
        columns: Iterable[str] | None = None,
        *,
        as_text: Sequence[str] = (),
        categorical: bool = False,
        typed: bool = True,
    ):
        spread = {column: (a.name, i) for a in schema.attributes for i, column in enumerate(a.columns) if column}
        wanted = table_columns(schema) if columns is None else tuple(columns)
        # Any other name is an attribute's, which says so if it is a slip; or a spread category's own.
        found = [(name, *(spread.get(name) or (schema[name].name, None))) for name in wanted]
        self.names = tuple(dict.fromkeys(attribute for _, attribute, _ in found))
        self.columns = tuple(Column(name, self.names.index(own), label) for name, own, label in found)
        self.encoding = Encoding.identity(schema, columns=self.names, dtype=np.float64)
        self.categorical = categorical
        attributes = self._attributes = [schema[name] for name in self.names]
        self._as_text, self._typed = frozenset(as_text), typed
        self._tables: Mapping[int, Values] = {
            i: values_of(a, text=a.name in as_text) for i, a in enumerate(attributes) if a.kind == "category"
        }
        self._frames: dict[int, Any] = {}

    def values(self, column: Column, codes: Codes) -> Values:
        """The values of one column as the table would hold them, (n,).

        Parameters
        ----------
        column
            Which column of the model's table.
        codes
            Codes of the attributes that the model sees, (n, seen).
        """
        own = codes[:, column.place]
        if column.label is not None:
            return (own == column.label).astype(np.int64)
        if column.place in self._tables:
            table = self._tables[column.place]
            return table[table_rows(own, 0, len(table))]
        attribute = self._attributes[column.place]
        if attribute.gap is not None:  # a column of whole numbers with holes is one of floats, as pandas has it
            return np.where(own == attribute.gap, np.nan, own)
        return own.astype(np.int64) if attribute.discrete else own

    def frame(self, codes: Codes) -> Any:
        """A pandas frame with the columns that the model was trained on.

        Parameters
        ----------
        codes
            Codes of the attributes that the model sees, (n, seen).

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingDependencyError.of("pandas", "pandas", "a model that was trained on a data frame") from None
        found: dict[str, Any] = {}
        for column in self.columns:
            i = column.place
            if i not in self._tables or column.label is not None:
                found[column.name] = self._number_column(column, codes)
                continue
            if i not in self._frames:  # pandas finds out once what kind of values these are, not in every batch
                given = self._labelled(i)
                values = pd.Series(given, dtype=getattr(given, "dtype", None) if self._attributes[i].held else None)
                truths = self._tables[i].dtype == object and any(isinstance(one, bool) for one in self._tables[i])
                plain = values.dtype.kind in "bM" or truths  # neither is ever a category
                category = isinstance(values.dtype, pd.CategoricalDtype)
                wanted = self.categorical and not plain and not category
                self._frames[i] = (values.astype("category") if wanted else values).array
            values = self._frames[i].take(table_rows(codes[:, i], 0, len(self._tables[i])))
            found[column.name] = pd.Series(values, dtype=values.dtype, copy=False)
        return pd.DataFrame(found, copy=False)

    def _labelled(self, place: int) -> Any:
        """A value for each label, in the kind of array that the owner's column is where that is known."""
        attribute = self._attributes[place]
        if attribute.name in self._as_text or attribute.holds == "text" or attribute.held is None:
            return self._tables[place]
        few, known = attribute.held.array(), attribute.held.places
        order = np.full(len(attribute.labels), -1)
        order[known] = np.arange(len(known))
        return few.take(order) if (order >= 0).all() else _completed(few, order, self._tables[place])

    def _number_column(self, column: Column, codes: Codes) -> Any:
        """A column of numbers in the owner's type, where all numbers of the domain fit into it."""
        import pandas as pd

        attribute, values = self._attributes[column.place], self.values(column, codes)
        if attribute.held is None or column.label is not None or not self._typed:
            return values
        if column.place not in self._frames:
            self._frames[column.place] = _type_for(attribute, attribute.held)
        kind = self._frames[column.place]
        if kind is None or kind == values.dtype:
            return values
        return _as_objects(attribute, values) if pd.api.types.is_object_dtype(kind) else pd.array(values, dtype=kind)

    def mapping(self, codes: Codes) -> dict[str, Values]:
        """The columns that the model was trained on by name, (n,) each, without pandas.

        Parameters
        ----------
        codes
            Codes of the attributes that the model sees, (n, seen).
        """
        return {column.name: self.values(column, codes) for column in self.columns}

    @property
    def mixed(self) -> bool:
        """Whether a column holds something other than numbers."""
        return any(
            self._tables[c.place].dtype == object for c in self.columns if c.place in self._tables and c.label is None
        )

    def array(self, codes: Codes) -> Values:
        """One array, (n, columns): of numbers where all columns are numbers, else of objects.

        Parameters
        ----------
        codes
            Codes of the attributes that the model sees, (n, seen).
        """
        kind: Any = object if self.mixed else np.float64
        return np.column_stack([self.values(column, codes).astype(kind) for column in self.columns])

    def numbers(self, codes: Codes) -> Codes:
        """The codes themselves, for a model that was trained on codes; a missing number is NaN, as it was in training.

        Parameters
        ----------
        codes
            Codes of the attributes that the model sees, (n, seen).
        """
        gaps = np.array([np.nan if a.gap is None or a.kind == "category" else a.gap for a in self._attributes])
        lacking = codes == gaps  # never true of NaN, which stands for attributes that nobody lacks
        return np.where(lacking, np.nan, codes) if lacking.any() else codes

    def records(self, codes: Codes) -> list[dict[str, Any]]:
        """One dictionary per row, of plain Python values; a missing value is None, a date is text (2023-04-23).

        Parameters
        ----------
        codes
            Codes of the attributes that the model sees, (n, seen).
        """
        columns = []
        for column in self.columns:
            values = self.values(column, codes)
            missing = np.isnat(values) if values.dtype.kind == "M" else values != values  # noqa: PLR0124 - so is NaN alone
            plain = np.datetime_as_string(values, unit="auto") if values.dtype.kind == "M" else values
            columns.append([None if lacks else one for one, lacks in zip(plain.tolist(), missing, strict=True)])
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def table_columns(schema: Schema) -> tuple[str, ...]:
    """The columns of a table with this schema: one for each attribute, or one for each label of a spread category."""
    return tuple(name for attribute in schema.attributes for name in attribute.own_columns)


def _completed(few: Any, order: npt.NDArray[np.int64], labels: Values) -> Any:
    """The owner's values, and the labels themselves where no row of the table has them."""
    import pandas as pd

    values = pd.Series(few).astype(object).to_numpy()
    found = np.empty(len(order), dtype=object)
    found[:] = [labels[i] if place < 0 else values[place] for i, place in enumerate(order)]
    try:
        return pd.array(found, dtype=few.dtype)
    except (TypeError, ValueError):
        return pd.Series(found).array


def _type_for(attribute: Attribute, held: HeldValues) -> Any:
    """The owner's type of a column of numbers; None where a number of the domain would not survive it."""
    import pandas as pd

    kind = pd.Series(held.array()).dtype
    if pd.api.types.is_object_dtype(kind):
        return kind
    if not pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind):
        return None
    if pd.api.types.is_float_dtype(kind):
        return kind
    if not attribute.discrete or (attribute.gap is not None and not pd.api.types.is_extension_array_dtype(kind)):
        return None
    plain = np.dtype(getattr(kind, "numpy_dtype", kind))
    limits = np.iinfo(plain)
    return kind if limits.min <= attribute.low and attribute.upper <= limits.max else None


def _as_objects(attribute: Attribute, values: Values) -> Values:
    """Numbers as the owner's column of objects has them: whole ones, and what stands there for a missing one."""
    held = [] if attribute.held is None else list(attribute.held.array())
    lacking = np.isnan(values)
    whole = attribute.discrete and any(isinstance(one, int | np.integer) for one in held)
    found = np.where(lacking, 0, values).astype(np.int64 if whole else np.float64).astype(object)
    found[lacking] = next((one for one in held if one is None or one != one), np.nan)  # noqa: PLR0124 - so is NaN alone
    return found


def values_of(attribute: Attribute, *, text: bool = False) -> Values:
    """Values that the table held for each label of a category, in order of code."""
    guessed = _guessed(attribute, text=text)
    if attribute.held is None or text or attribute.holds == "text" or attribute.columns:
        return guessed
    try:
        import pandas as pd
    except ImportError:
        return guessed
    found = pd.Series(attribute.held.array()).astype(object).to_numpy()
    if guessed.dtype == object or any(isinstance(one, str) for one in found):
        table = np.empty(len(guessed), dtype=object)
        table[:] = guessed.tolist()
        for place, value in zip(attribute.held.places, found, strict=True):
            table[place] = value if value is not pd.NA else np.nan
        return table
    return guessed


def _guessed(attribute: Attribute, *, text: bool) -> Values:
    """What a table without types holds for each label, by the looks of all of them."""
    if attribute.holds == "date":
        return np.array(["NaT" if label == MISSING else label for label in attribute.labels], dtype="datetime64[ns]")
    present = [label for label in attribute.labels if label != MISSING]
    plain: list[Any] = list(present)
    if present and not text and attribute.holds != "text":
        truths = [label == "true" for label in present] if set(present) <= {"true", "false"} else plain
        plain = _numbers(present) or truths
    known = dict(zip(present, plain, strict=True))
    values = [known.get(label, float("nan")) for label in attribute.labels]
    missing = len(present) < len(values)
    apart: tuple[type, ...] = (str, bool) if missing else (str,)  # neither goes with NaN into an array of numbers
    return np.array(values, dtype=object if not plain or isinstance(plain[0], apart) else None)


def _numbers(labels: Sequence[str]) -> list[int] | list[float] | None:
    for kind in (int, float):
        try:
            found = [kind(label) for label in labels]
        except ValueError:
            continue
        # "007" is a name, not the number seven: only what prints back the same was a number.
        if all(np.isfinite(found)) and all(str(v) == label for v, label in zip(found, labels, strict=True)):
            return found
    return None


@dataclass(frozen=True, slots=True, eq=False)
class HeldValues:
    """Some values of one column as its owner's library holds them.

    ``few`` is a pandas array, or an Arrow table of one column: a row for each label of a category (``places`` says
    which label), or rows that show the type of a column of numbers.
    """

    few: Any
    places: npt.NDArray[np.int64]
    csv: bool = False

    def array(self) -> Any:
        """The values as the array of a pandas column."""
        import pandas as pd

        if type(self.few).__module__.partition(".")[0] != "pyarrow":
            return self.few
        column = self.few.to_pandas().iloc[:, 0]
        if self.csv and (pd.api.types.is_string_dtype(column.dtype) or column.dtype == object):
            column = column.where(column.notna() & ~column.isin(NA_TEXTS), np.nan)
        return column.array


def _library(frame: Any) -> str | None:
    """The library of a data frame; None of anything else."""
    home = type(frame).__module__.partition(".")[0]
    return home if home in ("pandas", "polars", "pyarrow", "modin") else None


class RawTable:
    """A table before anything was made of it: what somebody gave (a file, a frame), and the same as Arrow."""

    def __init__(self, given: Any, data: pa.Table, *, delimiter: str = ","):
        import pyarrow as pa

        for place, field in enumerate(data.schema):  # Arrow takes no rows of views of text
            if pa.types.is_string_view(field.type):
                data = data.set_column(place, field.name, data[field.name].cast(pa.string()))
        #: Of the frame, where it is one: what results become.
        self.library = _library(given)
        given = as_pandas(given)
        self._given, self._data, self._delimiter = given, data, delimiter
        self._file = Path(given) if isinstance(given, str | Path) else None
        self._kind = _library(given)
        if self._kind == "polars" and hasattr(given, "collect"):
            self._given = given.collect()
        #: Whether the types of its columns are a reader's guess.
        self.csv = self._file is not None and self._file.suffix.lower() not in BINARY

    def __len__(self) -> int:
        return int(self._data.num_rows)

    @property
    def index(self) -> npt.NDArray[Any] | None:
        """The names of the rows in a pandas frame, (n,); None where they are only counted."""
        if self._kind != "pandas" or (
            type(self._given.index).__name__ == "RangeIndex" and self._given.index.start == 0
        ):
            return None
        names = np.empty(len(self._given.index), dtype=object)
        names[:] = list(self._given.index)
        return names

    def digits(self, schema: Schema) -> tuple[str, ...]:
        """Columns of a CSV file that are text here for the zeros that they begin with, and numbers for pandas."""
        import pyarrow as pa

        if not self.csv:
            return ()
        return tuple(
            one.name
            for one in schema.attributes
            if one.kind == "category"
            and one.holds is None
            and one.name in self._data.column_names
            and pa.types.is_string(self._data.schema.field(one.name).type)
            and all(label == MISSING or label.strip().isdecimal() for label in one.labels)
        )

    def held(self, attribute: Attribute, codes: Codes) -> HeldValues | None:
        """The values behind an attribute's labels, or what shows the type of its numbers; None where it is spread."""
        name = attribute.name
        if attribute.columns or name not in self._data.column_names:
            return None
        if attribute.kind == "category":
            found, rows = np.unique(codes, return_index=True)
            places = found.astype(np.int64)
        else:
            lacking = codes == attribute.gap if attribute.gap is not None else np.zeros(len(codes), np.bool_)
            rows = np.unique([int(np.argmin(lacking)), int(np.argmax(lacking))])
            places = np.zeros(len(rows), np.int64)
        if self._kind == "pandas":
            column = self._given.iloc[:, self._data.column_names.index(name)]
            return HeldValues(column.array.take(rows), places)
        if self._kind == "polars":
            import pandas as pd
            import polars as pl

            # Text that every Arrow library can take rows of; None stays None, as polars hands it to NumPy.
            few = self._given.select(name)[rows].to_arrow(compat_level=pl.CompatLevel.oldest())
            words = attribute.kind == "category" and None in few.column(0).to_pylist()
            return HeldValues(pd.Series(few.column(0).to_pylist(), dtype=object).array if words else few, places)
        import pyarrow as pa

        data = self._data.select([name]).take(rows)
        if self.csv and pa.types.is_temporal(data.schema[0].type):  # as the text that pandas leaves them
            data = data.cast(pa.schema([(name, pa.string())]))
        return HeldValues(data, places, self.csv)

    def rows(self, chosen: npt.NDArray[np.int64], columns: tuple[str, ...], *, text: tuple[str, ...] = ()) -> Any:
        """Some rows of some columns in the owner's own kind of frame; ``text`` are columns of a file that stay text."""
        import pandas as pd

        if self._kind == "pandas":
            names = self._data.column_names
            return self._given.iloc[chosen, [names.index(name) for name in columns]].copy()
        if self._kind == "polars":
            return self._given.select(columns)[chosen]
        if not self.csv:
            return self._data.select(list(columns)).take(chosen).to_pandas()
        kept: dict[str, Any] = dict.fromkeys(text, str)
        frame = pd.read_csv(
            self._file,
            sep=self._delimiter,
            usecols=list(columns),
            dtype=kept,
            keep_default_na=not kept,
            na_values={one: [""] if one in kept else sorted(NA_TEXTS) for one in columns} if kept else None,
        )
        if len(frame) != len(self):
            raise TableError(f"pandas reads {len(frame):,} rows of {str(self._file)!r}, and {len(self):,} are there.")
        return frame[list(columns)].iloc[chosen]


def with_held(schema: Schema, codes: Codes, raw: RawTable) -> Schema:
    """The schema with the owner's own values behind its attributes, and labels spelled as the table spells them."""
    attributes = []
    for column, attribute in enumerate(schema.attributes):
        held, labels = raw.held(attribute, codes[:, column]), attribute.labels
        if held is not None and attribute.kind == "category":
            few = held.few.column(0).to_pylist() if hasattr(held.few, "column") else held.few
            own = {i: one for i, one in zip(held.places.tolist(), few, strict=True) if isinstance(one, str)}
            alike = [label != MISSING and own.get(i, "").strip() == label.strip() for i, label in enumerate(labels)]
            spelled = tuple(own.get(i, label) if alike[i] else label for i, label in enumerate(labels))
            labels = spelled if len(set(spelled)) == len(spelled) else labels
        attributes.append(attribute if held is None else replace(attribute, held=held, labels=labels))
    return replace(schema, attributes=tuple(attributes))
