"""Raw tables as columns of text, the steps from text to codes that every subject shares, and labels of ranges."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Doubles, Integers, Schema, Table, check_domain, is_number
from fairbits.errors import TableError, choose_from

Raw = Mapping[str, npt.NDArray[np.str_]]
#: Plausible twins are at most one code of age away: a decade, or a bin of about that width.
OWN_DECADE = "age >= own age - 1 and age <= own age + 1"


def rules(*texts: str) -> Any:
    """Rules as text, which the schema parses."""
    return texts


def read_text(
    path: Path, *, delimiter: str = ",", names: Sequence[str] = (), comment: str = "", encoding: str = "utf-8-sig"
) -> dict[str, npt.NDArray[np.str_]]:
    """A delimited file as columns of stripped text.

    A column name that comes twice gets ``.1`` the second time, as most readers do.
    """
    try:
        with path.open(newline="", encoding=encoding) as file:
            lines = (line for line in file if line.strip() and not (comment and line.startswith(comment)))
            rows = list(csv.reader(lines, delimiter=delimiter))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"cannot read {path} as text in columns ({error}); give the original file.") from error
    header = list(names) or _unique(rows.pop(0) if rows else [])
    ragged = next((i for i, row in enumerate(rows) if len(row) != len(header)), None)
    if ragged is not None:
        raise TableError(
            f"{path} has {len(rows[ragged])} fields in data row {ragged + 1}, but {len(header)} columns; "
            f"give the original file."
        )
    return {name: np.array([row[i].strip() for row in rows]) for i, name in enumerate(header)}


def _unique(header: Iterable[str]) -> list[str]:
    names = [field.strip() for field in header]
    before = [names[:i].count(name) for i, name in enumerate(names)]
    return [f"{name}.{count}" if count else name for name, count in zip(names, before, strict=True)]


def listed(text: str) -> tuple[str, ...]:
    """The items of a list written as one line of text."""
    return tuple(text.split(","))


def need_columns(raw: Raw, wanted: Iterable[str], what: str) -> None:
    wanted = list(wanted)
    missing = [name for name in wanted if name not in raw]
    if missing:
        raise TableError(
            f"the table for {what} lacks {len(missing)} of the {len(wanted)} columns it needs "
            f"({', '.join(missing)}); {choose_from(missing[0], raw)}"
        )


def floats(raw: Raw, name: str) -> Doubles:
    try:
        return raw[name].astype(np.float64)
    except ValueError:
        bad = next(text for text in raw[name] if not is_number(text))
        raise TableError(
            f"column {name!r} holds {str(bad)!r}, which is not a number; give the original file."
        ) from None


def whole(raw: Raw, name: str) -> Integers:
    values = floats(raw, name)
    rounded = np.rint(values)
    if not np.array_equal(values, rounded):
        bad = raw[name][values != rounded][0]
        raise TableError(f"column {name!r} holds {str(bad)!r}, not a whole number; give the original file.")
    return rounded.astype(np.int64)


def positions(raw: Raw, name: str, known: Sequence[str]) -> Integers:
    """Position of each text in a list of known ones."""
    found, inverse = np.unique(raw[name], return_inverse=True)
    strange = next((str(text) for text in found if text not in known), None)
    if strange is not None:
        raise TableError(f"column {name!r} holds {strange!r}, which is no value of it; {choose_from(strange, known)}")
    return np.array([known.index(str(text)) for text in found], dtype=np.int64)[inverse]


def finish(columns: Sequence[npt.NDArray[np.int64]], labels: npt.ArrayLike, schema: Schema) -> Table:
    table = Table(np.column_stack(columns).astype(np.float64), np.asarray(labels, dtype=np.float64))
    check_domain(table.codes, schema)
    return table


def equal_bins(values: Doubles, low: float, high: float, count: int) -> Integers:
    """Bins 1..count of equal width; a value on an edge belongs to the bin below it (right-closed)."""
    edges = np.linspace(low, high, count + 1)
    return np.searchsorted(edges[1:-1], values, side="left").astype(np.int64) + 1


def bin_labels(low: float, high: float, count: int, *, digits: int = 1) -> tuple[str, ...]:
    """Labels of the bins of ``equal_bins``; each begins just above the end of the one before."""
    edges = [f"{edge:,.{digits}f}".replace("-", "−") for edge in np.linspace(low, high, count + 1)]
    first = f"{edges[0]} to {edges[1]}"
    return (first, *(f"over {edges[i]} to {edges[i + 1]}" for i in range(1, count)))


def whole_bin_labels(low: int, high: int, count: int) -> tuple[str, ...]:
    """Labels of bins of whole numbers: "21–27", "28–34", …."""
    ends = [int(np.floor(edge + 1e-9)) for edge in np.linspace(low, high, count + 1)]
    starts = [low, *(end + 1 for end in ends[1:-1])]
    return tuple(f"{a}–{b}" if a != b else f"{a}" for a, b in zip(starts, ends[1:], strict=True))


def range_labels(width: int, first: int, last: int, *, top: bool = False) -> tuple[str, ...]:
    """Labels of ``value // width``: 2 reads "2,000–2,999" for a width of 1000."""
    names = [f"{code * width:,}–{code * width + width - 1:,}" for code in range(first, last + 1)]
    if top:
        names[-1] = f"{last * width:,} and over"
    return tuple(names)
