"""A table of people as codes, and how a foreign table becomes one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairbits.domain.arrow import numpy_of
from fairbits.domain.attribute import Attribute, Codes
from fairbits.domain.column import (
    codes_of_column,
    codes_of_group,
    first_true,
    numbers,
    places_of,
    plain,
    text_of,
    with_nulls,
)
from fairbits.domain.schema import Schema
from fairbits.errors import ROW, TableError, choose_from, rows_named

if TYPE_CHECKING:
    import pyarrow as pa


#: Files without lines.
BINARY = {".parquet", ".pq", ".feather", ".arrow", ".ipc"}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """People as rows of codes; their target, where known; and which rows the model was not trained on.

    ``labels`` holds positions in ``schema.classes``, or the target itself for a regression.

    Parameters
    ----------
    codes
        A row of codes for each person, in the order of the schema, (n, attributes).
    labels
        Positions in ``schema.classes``, or the target itself for a regression, (n,); None where they are not known.
    held_out
        Rows that the model was not trained on, (n,); None where nobody knows.
    numbers
        The rows' numbers in the table as it was given, from 1; None: 1, 2, 3 …
    file
        Where it was read from.
    observed
        A column for each observed attribute of the schema; NaN where a value is missing.
    scores
        Scores of a model that is not at hand, where the table has them.
    index
        The rows' own names in the owner's table (a pandas index), (n,); None where they are only counted.
    person
        A number for each row, the same for rows of one person, (n,); None where the table does not say.
    """

    codes: Codes
    labels: npt.NDArray[np.float64] | None = None
    held_out: npt.NDArray[np.bool_] | None = None
    numbers: npt.NDArray[np.int64] | None = None  # of the rows in the table as it was given, from 1; None: 1, 2, 3 …
    file: Path | None = None  # where it was read from
    observed: Codes | None = None  # a column for each observed attribute of the schema; NaN where a value is missing
    scores: npt.NDArray[np.float64] | None = None  # the scores of a model that is not at hand, where the table has them
    index: npt.NDArray[Any] | None = None  # the rows' own names in the owner's table; None where they are only counted
    person: npt.NDArray[np.int64] | None = None  # the same number for rows of one person; None where nobody says

    def __len__(self) -> int:
        return len(self.codes)

    def rows(self, chosen: npt.NDArray[Any] | slice) -> Table:
        """A table of some of the rows, with their labels, row numbers and everything else that belongs to them.

        Parameters
        ----------
        chosen
            Row positions, truth values, or a slice.

        Returns
        -------
        Table
            A new table.
        """
        return Table(
            self.codes[chosen],
            None if self.labels is None else self.labels[chosen],
            None if self.held_out is None else self.held_out[chosen],
            (np.arange(1, len(self) + 1) if self.numbers is None else self.numbers)[chosen],
            self.file,
            None if self.observed is None else self.observed[chosen],
            None if self.scores is None else self.scores[chosen],
            None if self.index is None else self.index[chosen],
            None if self.person is None else self.person[chosen],
        )

    def names(self) -> npt.NDArray[Any]:
        """What the owner's table calls each row: its index, or the position from 0 as pandas counts, (n,)."""
        if self.index is not None:
            return self.index
        return np.arange(len(self)) if self.numbers is None else self.numbers - 1

    def place(self, row: int) -> str:
        """The name of a row for messages, by its number in the table as it was given.

        Parameters
        ----------
        row
            Position of the row, counted from 0.

        Returns
        -------
        str
            Such as "row 1,201, line 1,202 of loan.csv".

        Examples
        --------
        >>> Table(np.zeros((3, 1))).rows(np.array([2])).place(0)
        'row 3'
        """
        return place_of(row + 1 if self.numbers is None else int(self.numbers[row]), self.file)

    def training(self) -> Table:
        """The rows that the model was trained on (all, when nothing is held out)."""
        return self if self.held_out is None else replace(self.rows(~self.held_out), held_out=None)

    def unseen(self) -> Table | None:
        """The rows that the model was not trained on, where some are held out."""
        return None if self.held_out is None else replace(self.rows(self.held_out), held_out=None)


def place_of(number: int, file: Path | None = None) -> str:
    """A row by its number (from 1), with its line where it was read from a text file."""
    if file is None:
        return f"row {number:,}"
    line = None if file.suffix.lower() in BINARY else _line_of(file, number)
    return f"row {number:,}" + (f" of {file.name}" if line is None else f", line {line:,} of {file.name}")


def _line_of(file: Path, number: int) -> int | None:
    """The line of a data row: below the header, empty lines passed over as the reader does."""
    try:
        with file.open("rb") as lines:
            filled = (line for line, text in enumerate(lines, 1) if text.strip(b"\r\n"))
            return next(islice(filled, number, None), None)
    except OSError:
        return None  # it was moved since: the number of the row is still right


def table_from_arrow(
    data: pa.Table, schema: Schema, *, file: str | Path | None = None, person: str | None = None
) -> Table:
    """Codes of a table with the schema's columns; other columns are left alone, but for the id of the person."""
    origin = None if file is None else Path(file)

    def place(row: int) -> str:
        return place_of(row + 1, origin)

    with rows_named(place=place):
        table = replace(_coded(data, schema), file=origin)
        if person is not None:
            table = replace(table, person=_persons(data, person))
    check_domain(table.codes, schema, place)
    return table


def _coded(data: pa.Table, schema: Schema) -> Table:
    names = data.column_names
    check_names(names)
    for attribute in (*schema.attributes, *schema.observed):
        for name in attribute.own_columns:
            if name not in names:
                what = "protected attribute" if attribute.protected else "attribute"
                what = f"column {name!r} of {what}" if attribute.columns else what
                raise TableError(f"{what} {attribute.name!r} is not in the table; {choose_from(name, names)}")
    if data.num_rows == 0:
        raise TableError(f"the table has {len(names)} columns but no rows; at least one person is needed.")
    columns = [codes_of_group(data, a) if a.columns else codes_of_column(data[a.name], a) for a in schema.attributes]
    codes = np.column_stack(columns) if columns else np.empty((data.num_rows, 0))
    observed = [_observed(data, attribute) for attribute in schema.observed]
    return Table(
        np.ascontiguousarray(codes),
        target_of(data, schema),
        observed=np.column_stack(observed) if observed else None,
    )


def _observed(data: pa.Table, attribute: Attribute) -> Codes:
    """An attribute that the model does not take: missing values stay missing, all others must be in its domain."""
    if attribute.columns:
        return codes_of_group(data, attribute)
    column = with_nulls(plain(data[attribute.name]))
    there = ~numpy_of(column.is_null())
    codes = np.full(len(column), np.nan)
    if not there.any():
        raise TableError(
            f"protected attribute {attribute.name!r} has no value in any row; leave it out of the subject."
        )
    codes[there] = codes_of_column(column.drop_null(), attribute)
    outside = there & ~attribute.valid(codes)
    if outside.any():
        row = int(np.argmax(outside))
        raise TableError.of_row(
            f"the table leaves the stated domain in {attribute.name} ({outside.sum():,} of {len(codes):,} rows outside "
            f"{attribute.domain_text()}; first: {codes[row]:g} in {ROW}); widen the domain or drop the rows.",
            row,
        )
    return codes


def _persons(data: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """The number of the person of each row, from 0, by the column of their ids."""
    if name not in data.column_names:
        raise TableError(f"person {name!r} is not in the table; {choose_from(name, data.column_names)}")
    column = with_nulls(plain(data[name]))
    if column.null_count:
        raise TableError.of_row(
            f"person {name!r} has {column.null_count:,} missing ids, but each row must be somebody's; the first is "
            f"{ROW}.",
            first_true(column.is_null()),
        )
    return np.unique(np.array(column.to_pylist()), return_inverse=True)[1].astype(np.int64)


def scores_of_column(data: pa.Table, name: str, *, regression: bool) -> npt.NDArray[np.float64]:
    """The scores that a table holds of a model that is not at hand."""
    if name not in data.column_names:
        raise TableError(f"score {name!r} is not in the table; {choose_from(name, data.column_names)}")
    column = plain(data[name])
    if column.null_count:
        raise TableError.of_row(
            f"score {name!r} has {column.null_count:,} missing values; fill or drop those rows; the first is {ROW}.",
            first_true(column.is_null()),
        )
    values = numbers(column, name)
    outside = (values < 0) | (values > 1)
    if outside.any() and not regression:
        row = int(np.argmax(outside))
        raise TableError.of_row(
            f"score {name!r} has {outside.sum():,} values outside 0 to 1 (first: {values[row]:g} in {ROW}); scores of "
            f"a class are probabilities: name that column, or leave the target out.",
            row,
        )
    return values


def check_names(names: list[str]) -> None:
    """Refuse a table with two columns of the same name, since a name must mean one column."""
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise TableError(f"the table has the column {name!r} {count} times; rename all but one.")


def check_target(target: str | None, names: Sequence[str]) -> None:
    """Refuse a target that is no column of the table."""
    if target is not None and target not in names:
        raise TableError(f"target {target!r} is not in the table; {choose_from(target, names)}")


def check_domain(codes: Codes, schema: Schema, place: Callable[[int], str] = lambda row: place_of(row + 1)) -> None:
    """Refuse codes outside the stated domain, saying how many and which."""
    if codes.ndim != 2 or codes.shape[1] != len(schema) or len(codes) == 0:
        raise TableError(
            f"the table needs rows of {len(schema)} codes, one for each attribute, and at least one row, "
            f"but got an array of shape {codes.shape}."
        )
    faults = []
    for i, attribute in enumerate(schema.attributes):
        outside = ~attribute.valid(codes[:, i])
        if outside.any():
            row = int(np.argmax(outside))
            faults.append(
                f"{attribute.name} ({outside.sum():,} of {len(codes):,} rows outside "
                f"{attribute.domain_text()}; first: {codes[row, i]:g} in {place(row)})"
            )
    if faults:
        raise TableError(
            f"the table leaves the stated domain in {'; '.join(faults)}; widen the domain or drop the rows."
        )


def target_of(data: pa.Table, schema: Schema) -> npt.NDArray[np.float64] | None:
    """The target as class positions (or numbers, for a regression); None where the schema names no target."""
    if schema.target is None:
        return None
    if schema.target not in data.column_names:
        raise TableError(
            f"target {schema.target!r} is not in the table; {choose_from(schema.target, data.column_names)}"
        )
    column = plain(data[schema.target])
    if column.null_count:
        raise TableError.of_row(
            f"target {schema.target!r} has {column.null_count:,} missing values; fill or drop those rows; "
            f"the first is {ROW}.",
            first_true(column.is_null()),
        )
    if schema.regression:
        return numbers(column, schema.target)
    values = np.array([text_of(value) for value in column.to_pylist()])
    found, positions = np.unique(values, return_inverse=True)
    places = places_of(schema.classes)
    order = np.array([places.get(str(value), places.get(str(value).strip(), -1)) for value in found])
    if (order < 0).any():
        strange = found[np.argmax(order < 0)]
        raise TableError.of_row(
            f"target {schema.target!r} holds {str(strange)!r} in {ROW}, which is not one of its classes; "
            f"{choose_from(str(strange), schema.classes)}",
            int(np.argmax(values == strange)),
        )
    return order[positions].astype(np.float64)
