"""One column of a foreign table, or the 0/1 columns of one category, as the codes of an attribute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairbits.domain.arrow import numpy_of
from fairbits.domain.attribute import MISSING, Attribute, Codes
from fairbits.errors import ROW, TableError, choose_from

if TYPE_CHECKING:
    import pyarrow as pa


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


def codes_of_column(column: Any, attribute: Attribute) -> Codes:
    """One column as codes: labels by position, numbers as they are."""
    import pyarrow as pa

    column = with_nulls(plain(column))
    missing = numpy_of(column.is_null())
    if missing.any() and attribute.gap is None:
        raise TableError.of_row(
            f"column {attribute.name!r} has {column.null_count:,} missing values; fill or drop them, or say "
            f'missing = "model" of it, if the model fills its own gaps; the first is in {ROW}.',
            int(np.argmax(missing)),
        )
    if missing.all():
        return np.full(len(column), attribute.gap)
    present = column.drop_null() if missing.any() else column
    spelled = attribute.labels and (pa.types.is_string(column.type) or spells_labels(attribute))
    places = np.flatnonzero(~missing) if missing.any() else None
    try:
        found = _codes_of_labels(present, attribute) if spelled else numbers(present, attribute.name)
    except TableError as error:
        if places is None or error.row is None:
            raise
        row = int(places[error.row])
        raise error.placed(row, f"row {row + 1:,}") from None
    if places is None:
        return found
    codes = np.full(len(column), attribute.gap, dtype=np.float64)
    codes[places] = found
    return codes


def with_nulls(column: Any) -> Any:
    """A column in which NaN counts as missing, as it does in pandas."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(column.type):
        return column
    gone = pc.is_nan(column)
    return pc.if_else(gone, pa.scalar(None, column.type), column) if pc.any(gone).as_py() else column


def spells_labels(attribute: Attribute) -> bool:
    """Whether a column of numbers holds the labels of this category and not its codes.

    The schema decides, not the rows that happen to be there (a CSV reader makes numbers of "1" and "2" only as long as
    no row holds "3+"): a category with a label that is a number is spelled out in the table, and one whose labels are
    all words is there as codes. An integer that carries labels is there as codes.
    """
    return attribute.kind == "category" and any(_is_number(label) for label in attribute.labels)


def plain(column: Any) -> Any:
    """One array of strings or numbers, whatever Arrow made of the column."""
    import pyarrow as pa

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
    return column


def numbers(column: Any, name: str) -> Codes:
    """A numeric column as floats."""
    import pyarrow as pa

    try:
        values: Codes = numpy_of(column.cast(pa.float64(), safe=False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        example = next((v for v in column.to_pylist() if not _is_number(v)), None)
        raise TableError(
            f"column {name!r} holds {example!r}, which is not a number; make it a category or mend the table."
        ) from None
    bad = ~np.isfinite(values)
    if bad.any():
        raise TableError.of_row(
            f"column {name!r} has {bad.sum():,} values that are not finite "
            f"(first: {values[bad][0]} in {ROW}); fill or drop them.",
            int(np.argmax(bad)),
        )
    return values


def first_true(mask: Any) -> int:
    """Where an Arrow array of truth values is true for the first time."""
    return int(np.argmax(numpy_of(mask)))


def text_of(value: object) -> str:
    """A target value as text: 1, 1.0 and True are '1', '1' and 'true', as a CSV reader may deliver either."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _codes_of_labels(column: Any, attribute: Attribute) -> Codes:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type):
        column = pc.dictionary_encode(column)
        spelled = pa.array([_label_of(value, attribute.labels) for value in column.dictionary.to_pylist()], pa.string())
        column = pa.DictionaryArray.from_arrays(column.indices, spelled).dictionary_decode()
    texts = pc.fill_null(column, MISSING)
    places = places_of(attribute.labels)
    known = pa.array(list(places), pa.string())
    positions = pc.index_in(texts, value_set=known)
    if positions.null_count:  # blanks around a cell mean nothing
        positions = pc.coalesce(positions, pc.index_in(pc.utf8_trim_whitespace(texts), value_set=known))
    if positions.null_count and spells_labels(attribute):  # "01" in a table whose schema has 1, and no label "01"
        bare = pc.replace_substring_regex(pc.utf8_trim_whitespace(texts), r"^0+(\d)", r"\1")
        positions = pc.coalesce(positions, pc.index_in(bare, value_set=known))
    if positions.null_count:
        unknown = pc.unique(pc.utf8_trim_whitespace(texts.filter(positions.is_null())))
        first = unknown[0].as_py()
        raise TableError.of_row(
            f"column {attribute.name!r} has {positions.null_count:,} values that are none of its labels "
            f"({len(unknown)} different; first: {first!r} in {ROW}); {choose_from(first, attribute.labels)}",
            first_true(positions.is_null()),
        )
    order = np.array(list(places.values()), dtype=np.float64)
    codes: Codes = attribute.low + order[numpy_of(positions).astype(np.int64)]
    return codes


def _label_of(value: float, labels: Sequence[str]) -> str:
    """The label that spells a number: 1, 1.0 and "1" are the same, whatever the reader made of the column."""
    text = text_of(value)
    if text in labels:
        return text
    return next((label for label in labels if _is_number(label) and float(label) == value), text)


def places_of(labels: tuple[str, ...]) -> dict[str, int]:
    """Where each label stands, as it is written and, unless that means another one, without the blanks around it."""
    exact = {label: place for place, label in enumerate(labels)}
    bare = Counter(label.strip() for label in labels)
    return {label.strip(): place for label, place in exact.items() if bare[label.strip()] == 1} | exact


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return value is None
    return True
