"""A table of people as codes, and how a foreign table becomes one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import MISSING, Attribute, Codes
from fairbits.domain.schema import Schema
from fairbits.errors import TableError, choose_from

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """People as rows of codes; their target, where known; and which rows the model was not trained on.

    ``labels`` holds positions in ``schema.classes``, or the target itself for a regression.
    """

    codes: Codes
    labels: npt.NDArray[np.float64] | None = None
    held_out: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def rows(self, chosen: npt.NDArray[Any] | slice) -> Table:
        """Some of the rows."""
        return Table(
            self.codes[chosen],
            None if self.labels is None else self.labels[chosen],
            None if self.held_out is None else self.held_out[chosen],
        )

    def training(self) -> Table:
        """The rows that the model was trained on (all, when nothing is held out)."""
        return self if self.held_out is None else replace(self.rows(~self.held_out), held_out=None)

    def unseen(self) -> Table | None:
        """The rows that the model was not trained on, where some are held out."""
        return None if self.held_out is None else replace(self.rows(self.held_out), held_out=None)


def table_from_arrow(data: pa.Table, schema: Schema) -> Table:
    """Codes of a table with the schema's columns; other columns are left alone."""
    names = data.column_names
    check_names(names)
    for attribute in schema.attributes:
        for name in attribute.own_columns:
            if name not in names:
                what = "protected attribute" if attribute.protected else "attribute"
                what = f"column {name!r} of {what}" if attribute.columns else what
                raise TableError(f"{what} {attribute.name!r} is not in the table; {choose_from(name, names)}")
    if data.num_rows == 0:
        raise TableError(f"the table has {len(names)} columns but no rows; at least one person is needed.")
    codes = np.column_stack(
        [codes_of_group(data, a) if a.columns else codes_of_column(data[a.name], a) for a in schema.attributes]
    )
    check_domain(codes, schema)
    return Table(np.ascontiguousarray(codes), target_of(data, schema))


def check_names(names: list[str]) -> None:
    """Refuse a table with two columns of the same name: nobody could say which one is meant."""
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise TableError(f"the table has the column {name!r} {count} times; rename all but one.")


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
        raise TableError(
            f"the columns of {attribute.name!r} must hold {'at most ' if dropped else ''}one 1 and otherwise 0, "
            f"but {wrong.sum():,} rows do not (first: row {int(np.argmax(wrong)) + 1}); mend them, "
            f"or describe the columns one by one."
        )
    places = np.array([i for i, column in enumerate(attribute.columns) if column])
    codes = places[np.argmax(values, axis=1)]
    if dropped:
        codes = np.where(values.any(axis=1), codes, attribute.columns.index(""))
    return codes.astype(np.float64)


def codes_of_column(column: Any, attribute: Attribute) -> Codes:
    """One column as codes: labels by position, numbers as they are."""
    import pyarrow as pa

    column = plain(column)
    if column.null_count and not (attribute.kind == "category" and MISSING in attribute.labels):
        raise TableError(
            f"column {attribute.name!r} has {column.null_count:,} missing values; "
            f"fill or drop them" + (f", or add the label {MISSING!r}." if attribute.kind == "category" else ".")
        )
    if attribute.labels and (pa.types.is_string(column.type) or _all_labels(column, attribute)):
        return _codes_of_labels(column, attribute)
    return numbers(column, attribute.name)


def plain(column: Any) -> Any:
    """One array of strings or numbers, whatever Arrow made of the column."""
    import pyarrow as pa

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        raise TableError(f"a column of the table holds {str(column.type)[:60]}; make it text or numbers, or drop it.")
    if pa.types.is_temporal(column.type):
        try:
            column = column.cast(pa.string())
        except pa.ArrowException:
            raise TableError(f"a column of {str(column.type)[:60]} holds times that do not exist; mend them.") from None
    if pa.types.is_boolean(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.string())
    return column


def numbers(column: Any, name: str) -> Codes:
    """A numeric column as floats."""
    import pyarrow as pa

    try:
        values: Codes = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        example = next((v for v in column.to_pylist() if not _is_number(v)), None)
        raise TableError(
            f"column {name!r} holds {example!r}, which is not a number; make it a category or mend the table."
        ) from None
    bad = ~np.isfinite(values)
    if bad.any():
        raise TableError(
            f"column {name!r} has {bad.sum():,} values that are not finite "
            f"(first: {values[bad][0]} in row {int(np.argmax(bad)) + 1}); fill or drop them."
        )
    return values


def check_domain(codes: Codes, schema: Schema) -> None:
    """Refuse codes outside the stated domain, saying how many and which."""
    faults = []
    for i, attribute in enumerate(schema.attributes):
        outside = ~attribute.valid(codes[:, i])
        if outside.any():
            row = int(np.argmax(outside))
            faults.append(
                f"{attribute.name} ({outside.sum():,} of {len(codes):,} rows outside "
                f"{attribute.domain_text()}; first: {codes[row, i]:g} in row {row + 1})"
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
        raise TableError(f"target {schema.target!r} has {column.null_count:,} missing values; fill or drop those rows.")
    if schema.regression:
        return numbers(column, schema.target)
    values = np.array([text_of(value) for value in column.to_pylist()])
    found, positions = np.unique(values, return_inverse=True)
    strange = next((value for value in found if value not in schema.classes), None)
    if strange is not None:
        raise TableError(
            f"target {schema.target!r} holds {str(strange)!r}, which is not one of its classes; "
            f"{choose_from(str(strange), schema.classes)}"
        )
    order = np.array([schema.classes.index(str(value)) for value in found])
    return order[positions].astype(np.float64)


def text_of(value: object) -> str:
    """A target value as text: 1, 1.0 and True are '1', '1' and 'true', as a CSV reader may deliver either."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _codes_of_labels(column: Any, attribute: Attribute) -> Codes:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.fill_null(column.cast(pa.string()), MISSING)
    texts = pc.utf8_trim_whitespace(texts)
    positions = pc.index_in(texts, value_set=pa.array(list(attribute.labels), pa.string()))
    if positions.null_count:
        unknown = pc.unique(texts.filter(positions.is_null()))
        first = unknown[0].as_py()
        raise TableError(
            f"column {attribute.name!r} has {positions.null_count:,} values that are none of its labels "
            f"({len(unknown)} different; first: {first!r}); {choose_from(first, attribute.labels)}"
        )
    codes: Codes = attribute.low + positions.to_numpy(zero_copy_only=False).astype(np.float64)
    return codes


def _all_labels(column: Any, attribute: Attribute) -> bool:
    """Whether a numeric category column spells its labels (labels '1', '2') and not codes (0, 1)."""
    import pyarrow.compute as pc

    if attribute.kind != "category":
        return False
    return all(text_of(v) in attribute.labels for v in pc.unique(column).to_pylist() if v is not None)


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return value is None
    return True
