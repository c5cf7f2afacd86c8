"""The protected values of the table's rows, beside the cases: so that cases can be asked by the row they came from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from fairbits.domain import Codes, Schema
from fairbits.store.cases import FIGURES, WORDS
from fairbits.store.files import read_parquet, write_parquet

ROWS = "rows.parquet"


def row_names(schema: Schema) -> dict[str, str]:
    """Names under which a filter knows the protected attributes of a case's row."""
    taken = {name.casefold() for name in (*FIGURES, *WORDS)}
    taken |= {schema.attributes[i].name.casefold() for i in schema.person_columns}
    names = {}
    for name in schema.protected:
        shown = name
        while shown.casefold() in taken:
            shown = f"row_{shown}"
        taken.add(shown.casefold())
        names[name] = shown
    return names


def write_rows(folder: Path, schema: Schema, people: Codes) -> None:
    """Keep the protected values of the table's rows, as labels, by their position in the table."""
    columns: dict[str, pa.Array] = {"seed_row": pa.array(np.arange(len(people), dtype=np.int32))}
    for name, shown in row_names(schema).items():
        attribute, codes = schema[name], people[:, schema.column(name)]
        if attribute.labels:
            found, place = np.unique(codes, return_inverse=True)
            labels = pa.array([attribute.read(code) for code in found], pa.string())
            columns[shown] = labels.take(pa.array(place))
        else:
            columns[shown] = pa.array(codes, mask=None if attribute.gap is None else codes == attribute.gap)
    write_parquet(folder / ROWS, pa.table(columns))


def read_rows(folder: Path) -> pa.Table | None:
    """The protected values that ``write_rows`` kept."""
    file = folder / ROWS
    if not file.is_file():
        return None
    return read_parquet(file, remedy="restore it from a copy, or search again")
