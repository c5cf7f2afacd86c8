"""The note on models that do not name their columns: which column goes into which of them is then a guess."""

from __future__ import annotations

from collections.abc import Sequence

from fairbits.domain import Encoding, Schema, table_columns
from fairbits.models.options import ModelOptions

#: Columns that the note lists; of more, the first ones and the last.
_SHOWN = 8


def column_note(columns: Sequence[str], options: ModelOptions, *, how: str = "") -> tuple[str, ...]:
    """A note on columns that go into a model by their order alone."""
    if options.columns is not None or len(columns) < 2:
        return ()
    shown = [str(name) for name in columns]
    if len(shown) > _SHOWN:
        shown = [*shown[: _SHOWN - 1], "…", shown[-1]]
    return (
        f"the model does not name its columns, so the table's go in by their order ({', '.join(shown)})"
        f"{', ' * bool(how)}{how}; if it was trained otherwise, list them in its order under [model] columns.",
    )


def plain_note(encoding: Encoding, schema: Schema, options: ModelOptions) -> tuple[str, ...]:
    """A note on the plain encoding that was chosen by the number of a model's inputs."""
    if any(a.columns for a in schema.attributes) and encoding.width == len(table_columns(schema)):
        return column_note(table_columns(schema), options)
    how = "categories as codes" if encoding.width == len(schema) else "categories one-hot"
    return column_note(schema.names, options, how=how if any(a.kind == "category" for a in schema.attributes) else "")
