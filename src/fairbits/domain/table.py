"""A table of people as codes, how a foreign table becomes one, column by column, and whose rows belong together.

A table may hold a person several times (a row a month, a row an application). Such rows are no independent evidence:
1,000 people of 12 rows each are 1,000 people. With ``[table] person = "id"`` the table says whose a row is. Without it,
rows that repeat in every column are taken for one person, unless people of other protected values have the same
unprotected ones too: those are evidently different people who are alike, and so may the others be. Rates and means stay
those of rows; their intervals, splits and tests draw people.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import Attribute, Codes, Integers, is_number
from fairbits.domain.schema import Chances, Schema
from fairbits.errors import ROW, TableError, choose_from, rows_named

if TYPE_CHECKING:
    import pyarrow as pa


def numpy_of(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """The values of a numeric or Boolean column, as an array of its own.

    Arrow's own ``to_numpy`` imports pandas, which takes longer than reading most tables.
    """
    import pyarrow as pa

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_boolean(array.type):
        if array.null_count:
            raise ValueError("a column of truth values has gaps.")
        packed = np.frombuffer(array.buffers()[1] or b"", np.uint8)  # a cast would import all of Arrow's functions
        return np.unpackbits(packed, bitorder="little")[array.offset : array.offset + len(array)].astype(np.bool_)
    if array.null_count:
        array = array.cast(pa.float64(), safe=False).fill_null(np.nan)
    return np.asarray(np.from_dlpack(array).copy())


def codes_of_group(data: pa.Table, attribute: Attribute) -> Codes:
    """Several 0/1 columns as one category: the position of the 1, or of the dropped value where there is none."""
    import pyarrow as pa

    truths = {name: pa.types.is_boolean(data[name].type) for name in attribute.own_columns}
    values = np.column_stack(
        [numbers(data[n].cast(pa.int8()) if truths[n] else plain(data[n]), n) for n in attribute.own_columns]
    )
    dropped = "" in attribute.columns
    enough = (0, 1) if dropped else (1,)
    wrong = ~(np.isin(values, (0.0, 1.0)).all(axis=1) & np.isin(values.sum(axis=1), enough))
    if wrong.any():
        raise TableError.of_row(
            f"the columns of {attribute.name!r} must hold {'at most ' if dropped else ''}one 1 and otherwise 0, "
            f"but {wrong.sum():,} rows do not (first: {ROW}); mend them, or describe the columns one by one.",
            int(np.argmax(wrong)),
        )
    places = np.array([i for i, column in enumerate(attribute.columns) if column])
    codes = places[np.argmax(values, axis=1)]
    if dropped:
        codes = np.where(values.any(axis=1), codes, attribute.columns.index(""))
    return codes.astype(np.float64)


def codes_of_column(column: Any, attribute: Attribute, *, observed: bool = False) -> Codes:
    """One column as codes, labels by position and numbers as they are; a missing value has the code for that, or is NaN
    where the attribute is only observed.

    A column of numbers holds the labels of a category that has numbers among its labels, and codes of any other.
    """
    import pyarrow as pa

    column = plain(column)
    if attribute.labels and (pa.types.is_string(column.type) or attribute.numeric_labels):
        codes = attribute.low + places_of(column, attribute.labels, f"column {attribute.name!r}", "labels")
    else:
        codes = numbers(column, attribute.name)
    missing = np.isnan(codes)
    if observed:
        return codes
    if attribute.gap is not None:
        return np.where(missing, attribute.gap, codes)
    if missing.any():
        raise TableError.of_row(
            f"column {attribute.name!r} has no value in {missing.sum():,} of {len(missing):,} rows; fill or drop them, "
            f'or say missing = "model" of it, if the model fills its own gaps; the first is in {ROW}.',
            int(np.argmax(missing)),
        )
    return codes


def plain(column: Any) -> Any:
    """One array of strings or numbers, whatever Arrow made of the column; NaN counts as missing, as in pandas."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        if pa.types.is_string_view(column.type.value_type):  # Arrow decodes no views
            values = column.dictionary.cast(pa.string())
            column = pa.DictionaryArray.from_arrays(column.indices, values)
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        return column.cast(pa.float64())
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        raise TableError(f"a column of the table holds {str(column.type)[:60]}; make it text or numbers, or drop it.")
    if pa.types.is_temporal(column.type):
        try:
            column = column.cast(pa.string())
        except pa.ArrowException:
            raise TableError(f"a column of {str(column.type)[:60]} holds times that do not exist; mend them.") from None
    kinds = (pa.types.is_boolean, pa.types.is_large_string, pa.types.is_string_view)
    if any(kind(column.type) for kind in kinds):
        column = column.cast(pa.string())
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    return column


def numbers(column: Any, name: str) -> Codes:
    """A numeric column as floats, NaN where a value is missing."""
    import pyarrow as pa

    try:
        values: Codes = numpy_of(column.cast(pa.float64(), safe=False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        example = next((v for v in column.to_pylist() if v is not None and not is_number(v)), None)
        raise TableError(
            f"column {name!r} holds {example!r}, which is not a number; make it a category or mend the table."
        ) from None
    bad = ~np.isfinite(values) & numpy_of(column.is_valid())
    if bad.any():
        raise TableError.of_row(
            f"column {name!r} has {bad.sum():,} values that are not finite "
            f"(first: {values[bad][0]} in {ROW}); fill or drop them.",
            int(np.argmax(bad)),
        )
    return values


def text_of(value: object) -> str:
    """A target value as text: 1, 1.0 and True are '1', '1' and 'true', as a CSV reader may deliver either."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


#: What pandas and Arrow read as truth values, which are "true" and "false" from then on.
TRUTHS = frozenset(("True", "TRUE", "true", "False", "FALSE", "false"))


def places_of(column: Any, labels: tuple[str, ...], what: str, kind: str) -> Codes:
    """The position of each value among some labels, NaN where it is missing.

    Blanks around a value mean nothing, unless they tell labels apart. 1, 1.0, "1" and, where no label is so spelled,
    "01" are the same, and so are True and "true", whatever the reader made of the column.
    """
    bare = Counter(label.strip() for label in labels)
    places = {label.strip(): place for place, label in enumerate(labels) if bare[label.strip()] == 1}
    places |= {label: place for place, label in enumerate(labels)}
    places = {label.lower(): place for label, place in places.items() if label in TRUTHS} | places
    coded = column.dictionary_encode()
    values = coded.dictionary.to_pylist()
    texts = [text_of(value) for value in values]
    found = [places.get(text, places.get(text.strip(), -1)) for text in texts]
    if -1 in found and (amounts := {float(label): label for label in reversed(labels) if is_number(label)}):
        for place, value in enumerate(values):
            if found[place] < 0:
                text = texts[place]
                spelled = re.sub(r"^0+(?=\d)", "", text.strip()) if isinstance(value, str) else amounts.get(value, text)
                found[place] = places.get(spelled, -1)
    codes = np.full(len(column), np.nan)
    there = numpy_of(column.is_valid())
    codes[there] = np.array(found, dtype=np.float64)[numpy_of(coded.indices.drop_null())]
    if -1 in found:
        row = int(np.argmax(codes == -1))
        first, strange = text_of(column[row].as_py()).strip(), int((codes == -1).sum())
        raise TableError.of_row(
            f"{what} holds {first!r} in {ROW}, which is none of its {kind}"
            f"{f' ({strange:,} rows have such values, {found.count(-1)} different)' * (strange > 1)}; "
            f"{choose_from(first, labels)}",
            row,
        )
    return codes


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
    weight
        How many people of the population each row stands for, in any unit, (n,); None where rows count alike.
    chances
        For each attribute that is known as probabilities only: those of its groups, (n, groups); NaN where unknown.
    library
        "pandas", "polars", "pyarrow" or "modin" where the owner's table is a frame: what ``to_frame()`` returns.
    drawn
        Whether nobody gave a table, and people drawn from the domain stand in its place: only `certify` takes those.
    origin
        Where the rows come from, in words, where somebody said so.
    """

    codes: Codes
    labels: npt.NDArray[np.float64] | None = None
    held_out: npt.NDArray[np.bool_] | None = None
    numbers: npt.NDArray[np.int64] | None = None
    file: Path | None = None
    observed: Codes | None = None
    scores: npt.NDArray[np.float64] | None = None
    index: npt.NDArray[Any] | None = None
    person: npt.NDArray[np.int64] | None = None
    library: str | None = None
    weight: npt.NDArray[np.float64] | None = None
    chances: tuple[npt.NDArray[np.float64], ...] = ()
    drawn: bool = False
    origin: str = ""

    def __len__(self) -> int:
        return len(self.codes)

    def rows(self, chosen: npt.NDArray[Any] | slice) -> Table:
        """A table of some of the rows, with their labels, row numbers and everything else that belongs to them.

        Parameters
        ----------
        chosen
            Row positions, truth values, or a slice.
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
            self.library,
            None if self.weight is None else self.weight[chosen],
            tuple(one[chosen] for one in self.chances),
            origin=self.origin,
        )

    def names(self) -> npt.NDArray[Any]:
        """What the owner's table calls each row: its index, or the position from 0 as pandas counts, (n,)."""
        if self.index is not None:
            return self.index
        return np.arange(len(self)) if self.numbers is None else self.numbers - 1

    def place(self, row: int) -> str:
        """The name of a row for messages, as in the table that was given: "row 1,201, line 1,202 of loan.csv".

        Parameters
        ----------
        row
            Position of the row, counted from 0.

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
    line = None
    if file.suffix.lower() not in BINARY:
        # Below the header, empty lines passed over as the reader does; a file that was moved since has its rows anyway
        with suppress(OSError), file.open("rb") as lines:
            filled = (line for line, text in enumerate(lines, 1) if text.strip(b"\r\n"))
            line = next(islice(filled, number, None), None)
    return f"row {number:,}" + (f" of {file.name}" if line is None else f", line {line:,} of {file.name}")


def table_from_arrow(
    data: pa.Table,
    schema: Schema,
    *,
    file: str | Path | None = None,
    person: str | None = None,
    split: str | None = None,
    weight: str | None = None,
) -> Table:
    """Codes of a table with the schema's columns; of the others the person's id, who was held out, and the weight."""
    import pyarrow as pa
    import pyarrow.compute as pc

    origin = None if file is None else Path(file)

    def place(row: int) -> str:
        return place_of(row + 1, origin)

    names = data.column_names
    soft = {one.likely for one in schema.chances}
    for attribute in (*schema.attributes, *(one for one in schema.observed if one.name not in soft)):
        for name in attribute.own_columns:
            if name not in names:
                what = "protected attribute" if attribute.protected else "attribute"
                what = f"column {name!r} of {what}" if attribute.columns else what
                raise TableError(f"{what} {attribute.name!r} is not in the table; {choose_from(name, names)}")
    if data.num_rows == 0:
        raise TableError(f"the table has {len(names)} columns but no rows; at least one person is needed.")
    with rows_named(place=place):
        columns = [
            codes_of_group(data, one) if one.columns else codes_of_column(data[one.name], one)
            for one in schema.attributes
        ]
        chances = {one.likely: _chances(data, one) for one in schema.chances}
        observed = [
            _likeliest(chances[one.name]) if one.name in chances else _observed(data, one) for one in schema.observed
        ]
        labels = None
        if schema.target is not None:
            target, what = whole_column(data, schema.target, "target"), f"target {schema.target!r}"
            known = schema.classes
            labels = places_of(target, known, what, "classes") if known else numbers(target, schema.target)
        held_out = None
        if split is not None:
            marks = whole_column(data, split, "split")
            marks = pc.utf8_lower(marks) if pa.types.is_string(marks.type) else marks
            held_out = places_of(marks, _MARKS, f"split {split!r}", _MARKED) < _MARKS.index("false")
        table = Table(
            np.ascontiguousarray(np.column_stack(columns) if columns else np.empty((data.num_rows, 0))),
            labels,
            file=origin,
            observed=np.column_stack(observed) if observed else None,
            person=None if person is None else _persons(data, person),
            held_out=held_out,
            weight=None if weight is None else _weights(data, weight),
            chances=tuple(chances.values()),
        )
    check_domain(table.codes, schema, place)
    return table


#: What says that the model was not trained on a row, and that it was.
_MARKS = ("true", "1", "test", "false", "0", "train")
_MARKED = "marks (true, 1 or test: not trained on; false, 0 or train: trained on)"
#: Probabilities of one person may exceed 1 together by so much, from rounding.
_ROUNDED = 0.01


def _chances(data: pa.Table, about: Chances) -> Codes:
    """The probabilities of each person's groups, the rest as the last one; NaN where one of them is missing."""
    found = np.full((data.num_rows, len(about.labels)), np.nan)
    for place, name in enumerate(about.columns):
        if name not in data.column_names:
            raise TableError(
                f"column {name!r} of protected attribute {about.attribute!r} is not in the table; "
                f"{choose_from(name, data.column_names)}"
            )
        found[:, place] = numbers(plain(data[name]), name)
    given = found[:, : len(about.columns)]
    known = ~np.isnan(given).any(axis=1)
    total = given.sum(axis=1)
    wrong = known & ((given < 0).any(axis=1) | (total > 1 + _ROUNDED))
    if wrong.any() or not known.any():
        row = int(np.argmax(wrong)) if wrong.any() else 0
        raise TableError.of_row(
            f"the probabilities of {about.attribute!r} ({', '.join(about.columns)}) are "
            f"{', '.join(f'{value:g}' for value in given[row])} in {ROW}; each must be 0 or more and they must add up "
            f"to at most 1.",
            row,
        )
    found[:, -1] = np.where(total < 1 - _ROUNDED, 1 - total, 0.0)
    found[~known] = np.nan
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _likeliest(chances: Codes) -> Codes:
    """The group of probability one half or more; NaN where there is none."""
    known = np.nan_to_num(chances)
    return np.where(known.max(axis=1) >= 0.5, known.argmax(axis=1), np.nan)


def _observed(data: pa.Table, attribute: Attribute) -> Codes:
    """An attribute that the model does not take: missing values stay missing, all others must be in its domain."""
    if attribute.columns:
        return codes_of_group(data, attribute)
    codes = codes_of_column(data[attribute.name], attribute, observed=True)
    there = ~np.isnan(codes)
    if not there.any():
        raise TableError(
            f"protected attribute {attribute.name!r} has no value in any row; leave it out of the audit file."
        )
    outside = there & ~attribute.valid(codes)
    if outside.any():
        row = int(np.argmax(outside))
        raise TableError.of_row(
            f"the table leaves the stated domain in {attribute.name} ({outside.sum():,} of {len(codes):,} rows outside "
            f"{attribute.domain_text()}; first: {codes[row]:g} in {ROW}); widen the domain or drop the rows.",
            row,
        )
    return codes


def whole_column(data: pa.Table, name: str, what: str) -> Any:
    """A column in which nothing may be missing."""
    if name not in data.column_names:
        raise TableError(f"{what} {name!r} is not in the table; {choose_from(name, data.column_names)}")
    column = plain(data[name])
    if column.null_count:
        raise TableError.of_row(
            f"{what} {name!r} has no value in {column.null_count:,} of {len(column):,} rows; fill or drop those; the "
            f"first is {ROW}.",
            int(np.argmax(numpy_of(column.is_null()))),
        )
    return column


def _persons(data: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """The number of the person of each row, from 0, by the column of their ids."""
    coded = whole_column(data, name, "person").dictionary_encode()
    order = np.unique(np.array(coded.dictionary.to_pylist()), return_inverse=True)[1]
    return order[numpy_of(coded.indices)].astype(np.int64)


def _weights(data: pa.Table, name: str) -> npt.NDArray[np.float64]:
    """The survey weight of each row."""
    values = numbers(whole_column(data, name, "weight"), name)
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise TableError.of_row(f"weight {name!r} is {values[row]:g} in {ROW}; it must be 0 or more.", row)
    if not values.any():
        raise TableError(f"weight {name!r} is 0 in every row, so nobody counts; name another column.")
    if not 1e-99 < values.max() < 1e99:  # weights are squared and added up
        raise TableError(f"weight {name!r} goes up to {values.max():g}; divide all weights by one number.")
    return values


def scores_of_column(data: pa.Table, name: str, *, regression: bool) -> npt.NDArray[np.float64]:
    """The scores that a table holds of a model that is not at hand."""
    values = numbers(whole_column(data, name, "score"), name)
    outside = (values < 0) | (values > 1)
    if outside.any() and not regression:
        row = int(np.argmax(outside))
        raise TableError.of_row(
            f"score {name!r} has {outside.sum():,} values outside 0 to 1 (first: {values[row]:g} in {ROW}); scores of "
            f"a class are probabilities: name that column, or leave the target out.",
            row,
        )
    return values


def check_domain(codes: Codes, schema: Schema, place: Callable[[int], str] = lambda row: place_of(row + 1)) -> None:
    """Refuse codes outside the stated domain, saying how many and which."""
    wanted = len(schema.attributes)
    if codes.ndim != 2 or codes.shape[1] != wanted or len(codes) == 0:
        raise TableError(
            f"the table needs rows of {wanted} codes, one for each attribute, and at least one row, "
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


#: Where a larger share of the rows than this repeats others in all unprotected columns, it is noticed.
NOTICED = 0.01


def people_of(schema: Schema, table: Table) -> Integers | None:
    """The number of the person of each row, from 0; None where every row is somebody else."""
    return _people(schema, table)[0]


def _people(schema: Schema, table: Table) -> tuple[Integers | None, int]:
    """The person of each row, and how many rows repeat others in all unprotected columns; 0 where it is not noticed."""
    if table.person is not None:
        own, repeated = table.person, 0
    else:
        columns = [table.codes[:, i] for i in schema.free_columns]
        keys = row_keys([*columns, *(() if table.scores is None else (table.scores,))], len(table))
        free = np.unique(keys, return_inverse=True)[1]
        sizes = np.bincount(free)
        repeated = int(sizes[sizes > 1].sum())
        if repeated <= NOTICED * len(table):
            return None, 0
        guarded = [table.codes[:, i] for i in schema.protected_columns]
        whole = row_keys([free, *guarded, *(() if table.observed is None else table.observed.T)], len(table))
        # A kind of unprotected values that comes with one kind of protected ones only: its rows look like one person.
        first = np.empty(len(sizes), dtype=np.uint64)
        first[free[::-1]] = whole[::-1]
        mixed = np.bincount(free, weights=first[free] != whole, minlength=len(sizes)) > 0
        own = np.where(mixed[free], len(sizes) + np.arange(len(free)), free)
    codes = np.unique(own, return_inverse=True)[1].astype(np.int64)
    return None if codes.max(initial=-1) + 1 == len(codes) else codes, repeated


def people_notes(schema: Schema, table: Table) -> tuple[str, ...]:
    """What must be known about rows and people to read intervals."""
    people, repeated = _people(schema, table)
    count = len(table) if people is None else int(people.max()) + 1
    notes = []
    if table.weight is not None:
        worth = table.weight.sum() ** 2 / (table.weight**2).sum()
        notes.append(
            f"rates and means are weighted: {len(table):,} rows are worth {worth:,.0f} of equal weight (effective "
            f"sample size); bits in the score are about rows drawn by their weight, and repairs, debugging and what a "
            f"search finds are not weighted."
        )
    if table.person is not None:
        notes.append(
            f"the table has {len(table):,} rows of {count:,} people: rates and means are those of rows, and their "
            f"intervals, splits and tests draw people."
        )
    elif repeated:
        taken = (
            f"those that repeat in every column count once in intervals and splits ({count:,} different rows)"
            if people is not None
            else "so do people of other protected values, so they are taken for different people"
        )
        notes.append(
            f"{repeated:,} of {len(table):,} rows repeat in all unprotected columns; {taken}. If the table says whose "
            f'rows they are, name that column: person = "…" under [table].'
        )
    return tuple(notes)


def one_row_each(
    people: Integers | None, n: int, rng: np.random.Generator, weight: npt.NDArray[np.float64] | None = None
) -> Integers:
    """A row of every person, by lot, in the order of the rows; all rows where each is somebody else.

    With weights, rows are drawn by theirs and people kept by that of their rows together, the heaviest for certain: a
    sample in which people count alike, nobody twice, so that halves of it tell nothing about each other.
    """
    if people is None and weight is None:
        return np.arange(n)
    # Whoever comes first: a race of exponential times, the faster the heavier a row is.
    order = rng.permutation(n)
    if weight is not None:
        order = np.argsort(np.log(rng.standard_exponential(n)) - np.log(np.maximum(weight, 1e-300)))
    own = np.arange(n) if people is None else np.unique(people, return_inverse=True)[1]
    drawn = order[np.unique(own[order], return_index=True)[1]]
    if weight is not None:
        together = np.bincount(own, weight)
        drawn = drawn[rng.random(len(together)) * together.max() < together]
    return np.sort(drawn)


Keys = npt.NDArray[np.uint64]


def row_keys(columns: Iterable[npt.NDArray[Any]], n: int) -> Keys:
    """A number for each row, the same for equal ones: a hash of 64 bits (a million rows: 3 in 10⁸ collide)."""
    found = np.zeros(n, dtype=np.uint64)
    for column in columns:
        bits = (np.asarray(column, dtype=np.float64) + 0.0).view(np.uint64)  # 0 and −0 are the same
        found = (found ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(29)
        found *= np.uint64(0xBF58476D1CE4E5B9)
        found ^= found >> np.uint64(32)
    return found
