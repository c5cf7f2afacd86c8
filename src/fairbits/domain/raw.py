"""The table as its owner has it: the rows untouched, and the values behind codes, byte for byte.

Codes and labels are for people and kernels. A model is given what its owner's table holds: " Male" with its blank, None
where it says None, an int8 or a pandas category where the column is one. So a few rows of every column are kept, as the
owner's own library holds them, and values for the model are taken from those. A CSV file has no types of its own: there
the owner's library is taken to be pandas, with its defaults.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import MISSING, Attribute, Codes
from fairbits.domain.kinds import Category
from fairbits.domain.schema import Schema
from fairbits.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

#: What pandas.read_csv reads as missing in a column of text.
NA_TEXTS = frozenset(
    (
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"),
        *("NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    )
)


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
            column = column.where(~column.isin(NA_TEXTS), np.nan)
        return column.array

    def text(self, place: int) -> str | None:
        """The text behind a label; None where the table holds something else, or no row has the label."""
        found = np.flatnonzero(self.places == place)
        if not len(found):
            return None
        few = self.few
        if type(few).__module__.partition(".")[0] == "pyarrow":
            few = few.column(0).to_pylist()
        value = few[int(found[0])]
        return value if isinstance(value, str) else None


class RawTable:
    """A table before anything was made of it.

    Parameters
    ----------
    given
        A pandas or polars frame, an Arrow table, a dict of columns, or a file.
    data
        The same as Arrow, as it was read for the schema.
    delimiter
        Of a CSV file.
    """

    def __init__(self, given: Any, data: pa.Table, *, delimiter: str = ","):
        self._given, self._data, self._delimiter = given, data, delimiter
        self._file = Path(given) if isinstance(given, str | Path) else None
        home = type(given).__module__.partition(".")[0]
        self._pandas = home == "pandas"
        self._polars = home == "polars"
        if self._polars and hasattr(given, "collect"):
            self._given = given.collect()

    def __len__(self) -> int:
        return int(self._data.num_rows)

    @property
    def index(self) -> npt.NDArray[Any] | None:
        """The names of the rows in a pandas frame, (n,); None where they are only counted."""
        if not self._pandas or (type(self._given.index).__name__ == "RangeIndex" and self._given.index.start == 0):
            return None
        names = np.empty(len(self._given.index), dtype=object)
        names[:] = list(self._given.index)
        return names

    @property
    def csv(self) -> bool:
        """Whether the types of its columns are a reader's guess."""
        from fairbits.domain.table import BINARY

        return self._file is not None and self._file.suffix.lower() not in BINARY

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
        if self._pandas:
            column = self._given.iloc[:, [str(one) for one in self._given.columns].index(name)]
            return HeldValues(column.array.take(rows), places)
        if self._polars:
            few = self._given.select(name)[rows].to_arrow(compat_level=_oldest())
            words = attribute.kind == "category" and None in few.column(0).to_pylist()
            return HeldValues(_objects(few.column(0).to_pylist()) if words else few, places)
        data = _without_views(self._data.select([name])).take(rows)
        return HeldValues(_as_text(data) if self.csv else data, places, self.csv)

    def rows(self, chosen: npt.NDArray[np.int64], columns: tuple[str, ...], *, text: tuple[str, ...] = ()) -> Any:
        """Some rows of some columns in the owner's own kind of frame; ``text`` are columns of a file that stay text."""
        import pandas as pd

        if self._pandas:
            names = [str(one) for one in self._given.columns]
            return self._given.iloc[chosen, [names.index(name) for name in columns]].copy()
        if self._polars:
            return self._given.select(columns)[chosen]
        if not self.csv:
            return _without_views(self._data.select(list(columns))).take(chosen).to_pandas()
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


def _objects(values: list[Any]) -> Any:
    """Values as polars hands them to NumPy: None stays None."""
    import pandas as pd

    return pd.Series(values, dtype=object).array


def _oldest() -> Any:
    """What polars calls text that every Arrow library can take rows of."""
    import polars as pl

    return pl.CompatLevel.oldest()


def _without_views(data: pa.Table) -> pa.Table:
    """Views of text as text: Arrow takes no rows of them."""
    import pyarrow as pa

    for place, field in enumerate(data.schema):
        if pa.types.is_string_view(field.type):
            data = data.set_column(place, field.name, data[field.name].cast(pa.string()))
    return data


def _as_text(data: pa.Table) -> pa.Table:
    """Dates of a CSV file as the text that pandas leaves them."""
    import pyarrow as pa

    kind = data.schema[0].type
    return data.cast(pa.schema([(data.column_names[0], pa.string())])) if pa.types.is_temporal(kind) else data


def with_held(schema: Schema, codes: Codes, raw: RawTable) -> Schema:
    """The schema with the owner's own values behind its attributes, and labels spelled as the table spells them."""
    return replace(
        schema,
        attributes=tuple(_with_held(one, codes[:, i], raw) for i, one in enumerate(schema.attributes)),
    )


def _with_held(attribute: Attribute, codes: Codes, raw: RawTable) -> Attribute:
    held = raw.held(attribute, codes)
    if held is None:
        return attribute
    if not isinstance(attribute, Category):
        return replace(attribute, held=held)
    spelled = [attribute.labels[i] if label == MISSING else held.text(i) for i, label in enumerate(attribute.labels)]
    labels = tuple(
        own if own is not None and own.strip() == label.strip() else label
        for own, label in zip(spelled, attribute.labels, strict=True)
    )
    kept = labels if len(set(labels)) == len(labels) else attribute.labels
    return replace(attribute, held=held, labels=kept)
