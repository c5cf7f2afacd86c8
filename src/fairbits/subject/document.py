"""A subject.toml, read whole: its model, its table and its schema, made into a subject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairbits.domain import (
    Encoding,
    GrantOptions,
    RawTable,
    Schema,
    check_target,
    is_there,
    people_notes,
    plain,
    read_arrow,
    scores_of_column,
    table_from_arrow,
    with_held,
    with_nulls,
)
from fairbits.errors import OptionError, SchemaError, TableError, choose_from
from fairbits.models import ModelOptions, Recorded, is_reference, is_url, output_order, read_model
from fairbits.subject.infer import infer_classes
from fairbits.subject.subject import Subject, make_subject
from fairbits.subject.toml import read_document, schema_of_document, section_of

_SECTIONS = ("name", "rules", "justified", "model", "table", "limits", "attributes")
_TABLE_KEYS = (
    *("path", "target", "favourable", "classes", "threshold", "scores", "score", "justified", "delimiter", "missing"),
    "person",
)
#: Trust is not among them: it is the word of whoever runs fairbits, not of whoever wrote the file.
_MODEL_KEYS = (
    *(
        "path",
        "encoding",
        "columns",
        "output",
        "score_of",
        "input_format",
        "inputs",
        "eats",
        "factory",
        "layers",
        "batch",
    ),
    *(
        "authorization_env",
        "credential_header",
        "headers",
        "timeout",
        "retries",
        "wait",
        "concurrency",
        "rate",
        "cache",
    ),
)
_ENCODINGS = ("codes", "one-hot", "columns")


def subject_of_toml(file: Path, grants: GrantOptions) -> Subject:
    """The subject that a ``subject.toml`` describes."""
    document = read_document(file)
    _known_keys(document, _SECTIONS, f"subject file {str(file)!r}")
    model_section, table_section = section_of(document, "model"), section_of(document, "table")
    _known_keys(model_section, _MODEL_KEYS, "[model]")
    _known_keys(table_section, _TABLE_KEYS, "[table]")
    place = _path(table_section, "table", file)
    max_rows = ModelOptions.of(grants).max_rows
    data = read_arrow(place, delimiter=str(table_section.get("delimiter", ",")), max_rows=max_rows)
    target = table_section.get("target")
    if target is not None and not isinstance(target, str):
        raise SchemaError(f"[table] target is {str(target)[:40]!r}; it must be the name of a column, in quotes.")
    _check_described(document, target, data.column_names, file)
    check_target(target, data.column_names)
    person = table_section.get("person")
    if person is not None and not isinstance(person, str):
        raise SchemaError(f"[table] person is {str(person)[:40]!r}; it must be the name of a column, in quotes.")
    schema = schema_of_document(document, classes=() if target is None else infer_classes(data[target]))
    schema = _with_missing(schema, table_section.get("missing"), data)
    if "score" in table_section:
        return _of_scores(document, data, schema, place, file)
    options = _options(model_section, grants)
    source = _source(model_section, file)
    output_order(schema, None, options)  # what score_of cannot mean is said before the rows are read
    table = table_from_arrow(data, schema, file=place, person=person)
    raw = RawTable(place, data, delimiter=str(table_section.get("delimiter", ",")))
    schema = with_held(schema, table.codes, raw)
    loaded = read_model(source, schema, options)
    encoding = _stated_encoding(model_section.get("encoding"), schema, options, data.column_names)
    notes = _outside_notes(file, source, table_section)
    if loaded.encoding is not None:  # it names its columns, or encodes them itself: another encoding would be a mistake
        encoding = None
        if model_section.get("encoding") in ("codes", "one-hot"):
            notes += (
                f"encoding = {model_section['encoding']!r} under [model] is not used: the model itself says how it "
                f"takes its columns.",
            )
    name = str(document.get("name", file.stem))
    return make_subject(
        name,
        loaded,
        schema,
        table,
        encoding=encoding,
        options=options,
        notes=notes,
        source=str(file.resolve()),
        original=source,
        raw=raw,
    )


def _with_missing(schema: Schema, stated: object, data: Any) -> Schema:
    """[table] missing = "model": every column with holes is left to the model."""
    if stated is None:
        return schema
    if stated != "model":
        raise SchemaError(f'[table] missing is {str(stated)[:40]!r}; say "model", or leave it out.')
    holes = {name for name in data.column_names if with_nulls(plain(data[name])).null_count}
    attributes = tuple(
        replace(a, missing="model") if a.name in holes and a.missing is None and a.gap is None and not a.columns else a
        for a in schema.attributes
    )
    return replace(schema, attributes=attributes)


def _of_scores(document: Any, data: Any, schema: Schema, place: Path, file: Path) -> Subject:
    """A subject whose model is not at hand: the table holds its scores."""
    section, column = section_of(document, "model"), section_of(document, "table")["score"]
    if not isinstance(column, str):
        raise SchemaError(f"[table] score is {str(column)[:40]!r}; it must be the name of a column, in quotes.")
    if section:
        key = next(iter(section))
        raise SchemaError(
            f"[table] score is {column!r}, so the model is not asked, but [model] has {key!r}; leave one of both out."
        )
    if column in (schema.target, *schema.names, *(one.name for one in schema.observed)):
        raise SchemaError(f"[table] score is {column!r}, which is an attribute or the target too; name another column.")
    if len(schema.classes) > 2:
        raise SchemaError(
            f"[table] score is {column!r}, but the target has {len(schema.classes)} classes, and one score does not "
            f"decide between them; give the model, or leave the target out."
        )
    table = table_from_arrow(data, schema, file=place, person=section_of(document, "table").get("person"))
    # Without a target the scores may be probabilities or not: nothing is decided then.
    table = replace(table, scores=scores_of_column(data, column, regression=schema.regression))
    return Subject(
        str(document.get("name", file.stem)),
        schema,
        Recorded(len(schema)),
        Encoding(()),
        table,
        notes=("the model is not at hand: the scores are those of the table.", *people_notes(schema, table)),
        source=str(file.resolve()),
    )


def _check_described(document: Any, target: Any, columns: list[str], file: Path) -> None:
    """A file with none of the described columns is no table of this subject: what it holds is not repeated."""
    described = section_of(document, "attributes")
    wanted = {str(target), *described}
    for fields in described.values():
        if isinstance(fields, Mapping) and isinstance(fields.get("columns"), list):
            wanted |= {str(column) for column in fields["columns"]}
    if described and not wanted & set(columns):
        raise TableError(
            f"the table of {str(file)!r} has {len(columns):,} columns, and none of them is described there; check the "
            f"path and the delimiter under [table]."
        )


def _outside_notes(file: Path, source: str | Path, table_section: Any) -> tuple[str, ...]:
    """Files that a subject file reaches outside its own folder: whoever runs it should know."""
    home = file.parent.resolve()
    paths = [("model", source), ("table", _path(table_section, "table", file))]
    found = [(name, path.resolve()) for name, path in paths if isinstance(path, Path)]
    return tuple(
        f"the {name} lies outside the folder of the subject file: {str(path)!r}."
        for name, path in found
        if not path.is_relative_to(home)
    )


def _options(section: Any, grants: GrantOptions) -> ModelOptions:
    given = {key: value for key, value in section.items() if key not in {"path", "encoding"}}
    granted = ModelOptions.of(grants)
    try:
        stated = ModelOptions.of(given)
    except OptionError as error:
        raise SchemaError(f"[model] is wrong: {error}") from None
    return replace(stated, **granted.grants())


def _source(section: Any, file: Path) -> str | Path:
    """Code and addresses as they stand, files beside the subject file."""
    stated = section.get("path")
    if isinstance(stated, str) and (is_url(stated) or (is_reference(stated) and not is_there(file.parent / stated))):
        return stated
    return _path(section, "model", file)


def _path(section: Any, name: str, file: Path) -> Path:
    path = section.get("path")
    if not isinstance(path, str):
        other = ', or score = "COLUMN" under [table] where the table holds its scores' if name == "model" else ""
        raise SchemaError(f'{str(file)!r} does not say where the {name} is; write path = "…" under [{name}]{other}.')
    return file.parent / path


def _stated_encoding(stated: object, schema: Schema, options: ModelOptions, columns: list[str]) -> Encoding | None:
    """By its name. A table that is one-hot encoded already is what its network takes, column by column."""
    if stated == "columns" or (
        stated is None and options.columns is None and any(attribute.columns for attribute in schema.attributes)
    ):
        return Encoding.of_columns(schema, columns)
    if stated is None:
        return None
    if stated not in _ENCODINGS:
        raise SchemaError(f"[model] encoding is {stated!r}; {choose_from(str(stated), _ENCODINGS)}")
    make = Encoding.identity if stated == "codes" else Encoding.one_hot
    return make(schema, columns=options.columns)


def _known_keys(section: Any, known: tuple[str, ...], where: str) -> None:
    for key in section:
        if key not in known:
            raise SchemaError(f"{where} has the unknown key {key!r}; {choose_from(key, known)}")
