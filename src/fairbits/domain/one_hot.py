"""One-hot groups of a table that is encoded already: columns of 0 and 1 of which exactly one is 1 in every row.

Or at most one: encoders that drop a value (``drop="first"``) leave it as zeros in all columns of the others.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairbits.domain.arrow import numpy_of
from fairbits.domain.attribute import Attribute
from fairbits.domain.kinds import Category

if TYPE_CHECKING:
    import pyarrow as pa

#: What stands between the name of an attribute and its value in the name of a column: job_Sales, job=Sales.
_MARKS = "_=.:-/ "
#: The label of a value whose column was dropped, and with it the value's name.
DROPPED = "(dropped)"
#: Columns of at most one 1 are a group when, were they independent, at least so many rows should have had two: that
#: none has is then no accident (once in e⁵ = 150 tables).
SURPRISE = 5.0


@dataclass(frozen=True, slots=True)
class Group:
    """Columns of 0 and 1 that are one category together."""

    name: str
    labels: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The columns that are there."""
        return tuple(column for column in self.columns if column)

    @property
    def dropped(self) -> bool:
        """Whether one value has no column of its own."""
        return "" in self.columns

    def attribute(self, *, protected: bool = False) -> Attribute:
        """The category that the columns stand for."""
        return Category(name=self.name, labels=self.labels, columns=self.columns, protected=protected)


def one_hot_groups(data: pa.Table, *, leave_out: tuple[str, ...] = ()) -> list[Group]:
    """Find groups of 0/1 columns of which exactly one is 1 in every row.

    The largest groups go first, then those with the longest name: a column belongs to one group at most.
    """
    values = {name: _zeros_and_ones(data[name]) for name in data.column_names if name not in leave_out}
    binary = {name: column for name, column in values.items() if column is not None}
    candidates: dict[str, list[str]] = defaultdict(list)
    for name in binary:
        for place, character in enumerate(name):
            if character in _MARKS and 0 < place < len(name) - 1:
                candidates[name[: place + 1]].append(name)
    order = sorted(candidates.items(), key=lambda item: (-len(item[1]), -len(item[0])))
    found: list[Group] = []
    taken: set[str] = set()
    for dropped in (False, True):  # whole groups first: only what is left over can lack a column
        for prefix, columns in order:
            name = prefix[:-1].rstrip(_MARKS)
            if len(columns) < 2 or taken.intersection(columns) or not name or name in data.column_names:
                continue
            rows = np.array([binary[column] for column in columns])
            if _lacks_one(rows) if dropped else bool((rows.sum(axis=0) == 1).all()):
                labels = tuple(column[len(prefix) :] for column in columns)
                extra = ((DROPPED,), ("",)) if dropped else ((), ())
                found.append(Group(name, (*extra[0], *labels), (*extra[1], *columns)))
                taken.update(columns)
    return sorted(found, key=lambda group: data.column_names.index(group.own_columns[0]))


def _lacks_one(values: npt.NDArray[np.float64]) -> bool:
    """Whether columns (in rows here) never hold two 1s, although by chance they should have."""
    if values.sum(axis=0).max() > 1:
        return False
    rates = values.mean(axis=1)
    pairs = (rates.sum() ** 2 - (rates**2).sum()) / 2
    return bool(pairs * values.shape[1] >= SURPRISE)


def _zeros_and_ones(column: Any) -> npt.NDArray[np.float64] | None:
    """The column as numbers, if it holds nothing but 0 and 1."""
    import pyarrow as pa

    kind = column.type
    if column.null_count or not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    values = numpy_of(column.cast(pa.float64()))
    return values if np.isin(values, (0.0, 1.0)).all() else None
