"""A ``subject.toml`` read whole, every slip named: its model, its table and its schema, made into a subject."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import (
    MAX_TWINS,
    Attribute,
    Encoding,
    GrantOptions,
    RawTable,
    Schema,
    Table,
    check_target,
    is_there,
    people_notes,
    plain,
    read_arrow,
    scores_of_column,
    table_from_arrow,
    text_of,
    with_held,
    with_nulls,
)
from fairbits.errors import OptionError, SchemaError, TableError, choose_from
from fairbits.models import ModelOptions, Recorded, is_reference, is_url, output_order, read_model
from fairbits.subject.infer import infer_classes
from fairbits.subject.subject import Subject, make_subject

#: What `protected` says of an attribute that is in the table and no input of the model.
OBSERVED = "observed"
#: People who stand in the place of rows where there is no table.
DRAWN_ROWS = 256

_KEYS = (
    *("kind", "low", "high", "step", "labels", "values", "ranges", "cuts", "columns", "protected", "immutable"),
    *("missing", "holds"),
)


def attribute_of_section(name: str, fields: object) -> Attribute:
    """The attribute that a section [attributes.NAME] describes."""
    if not isinstance(fields, Mapping):
        raise SchemaError(f"attribute {name!r} must be a section [attributes.{name}], but got {fields!r}.")
    for key in fields:
        if key not in _KEYS:
            raise SchemaError(f"attribute {name!r} has the unknown key {key!r}; {choose_from(key, _KEYS)}")
    for key in ("low", "high", "step"):
        if not _is_number(fields.get(key, 0)):
            raise SchemaError(f"attribute {name!r} has {key} = {fields[key]!r}; it must be a number.")
    for key in ("labels", "values", "columns", "cuts"):
        if not isinstance(fields.get(key, []), list | tuple):
            raise SchemaError(f"attribute {name!r} has {key} = {fields[key]!r}; they must be a list.")
    for key in ("protected", "immutable"):
        if not isinstance(fields.get(key, False), bool) and not (key == "protected" and is_observed(fields)):
            also = ', or "observed" for a column that is no input of the model' if key == "protected" else ""
            raise SchemaError(f"attribute {name!r} has {key} = {fields[key]!r}; use true or false{also}.")
    if "kind" not in fields:
        raise SchemaError(f"attribute {name!r} has no kind; use integer, category or real.")
    given: dict[str, Any] = {key: value for key, value in fields.items() if key not in ("values", "ranges", "cuts")}
    given["protected"] = bool(fields.get("protected", False))
    given["labels"] = tuple(text_of(label) for label in fields.get("labels", ()))
    given["columns"] = tuple(str(column) for column in fields.get("columns", ()))
    attribute = Attribute(name=name, **given)
    allowed = tuple(_code(attribute, value) for value in fields.get("values", ()))
    if "values" in fields and not allowed:
        raise SchemaError(f"attribute {name!r} has values = [], so nobody could have one; list some or drop the key.")
    cuts = tuple(fields.get("cuts", ()))
    if not all(_is_number(cut) for cut in cuts):
        raise SchemaError(f"attribute {name!r} has cuts = {list(cuts)!r}; they must be numbers.")
    return replace(attribute, allowed=allowed, ranges=_ranges(attribute, fields.get("ranges", {})), cuts=cuts)


def is_observed(fields: object) -> bool:
    """Whether a section describes a protected attribute that the model does not take."""
    return isinstance(fields, Mapping) and fields.get("protected") == OBSERVED


def _ranges(attribute: Attribute, stated: object) -> tuple[tuple[str, float], ...]:
    """Named ranges with the value that stands for each; a plain list names each value by itself."""
    if isinstance(stated, list | tuple):
        codes = [_code(attribute, value) for value in stated]
        return tuple((attribute.read(code), code) for code in codes)
    if not isinstance(stated, Mapping):
        raise SchemaError(
            f"attribute {attribute.name!r} has ranges = {stated!r}; "
            f'write them like {{"young" = 21, "old" = 70}}, or as a list of values.'
        )
    return tuple((str(name), _code(attribute, value)) for name, value in stated.items())


def _code(attribute: Attribute, value: object) -> float:
    """A value of a set: a label where it is one, a number otherwise."""
    text = text_of(value)
    if attribute.kind == "category" and text not in attribute.labels:
        raise SchemaError(f"attribute {attribute.name!r} has no value {text!r}; {choose_from(text, attribute.labels)}")
    if isinstance(value, int | float) and attribute.kind != "category":
        return float(value)
    return attribute.code_of(text)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


#: A description of a thousand attributes with a hundred labels each is far smaller.
_MAX_BYTES = 16 << 20
#: Parts of a key, joined by dots: [attributes.NAME] has two. Words are only tried from where they begin.
_KEY_PARTS = 64
_LONG_KEY = re.compile(rf"(?:(?:(?<![\w-])[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*\.[ \t]*){{{_KEY_PARTS}}}")


def read_document(path: str | Path) -> dict[str, Any]:
    """A TOML file as a dictionary."""
    file = Path(path)
    if not file.is_file():
        raise SchemaError(f"the subject file {str(file)!r} does not exist; check the path or run `fairbits data`.")
    if file.stat().st_size > _MAX_BYTES:
        raise SchemaError(f"the subject file {str(file)!r} has more than {_MAX_BYTES:,} bytes; it is no description.")
    try:
        return parse_toml(file.read_bytes())
    except ValueError as error:
        raise SchemaError(f"the subject file {str(file)!r} is not valid TOML: {error}.") from None


def parse_toml(content: bytes) -> dict[str, Any]:
    """TOML from outside as a dictionary."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("it is no text in UTF-8") from None
    if _LONG_KEY.search(text) is not None:  # what a key costs to read grows with the square of its parts
        raise ValueError(f"a key has {_KEY_PARTS} parts or more")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        if re.search(r"\(at [^()]*\)$", said) is not None:
            raise ValueError(said) from None
        raise ValueError("a number is too long" if "digits" in said else "it is nested too deeply") from None


def schema_of_document(document: Mapping[str, Any], *, classes: Iterable[str] = ()) -> Schema:
    """The schema in a subject document. ``classes`` are the target's values where the document names none."""
    section = section_of(document, "table")
    described = section_of(document, "attributes")
    read = {name: attribute_of_section(name, fields) for name, fields in described.items()}
    watched = {name for name, fields in described.items() if is_observed(fields)}
    if "score" in section:  # nobody knows what a model that is not there takes
        watched |= {name for name, attribute in read.items() if attribute.protected}
    attributes = tuple(attribute for name, attribute in read.items() if name not in watched)
    if not read:
        raise SchemaError("the subject has no attributes; describe each column under [attributes.NAME].")
    stated = section.get("classes", [])
    if not isinstance(stated, list | tuple) or any(isinstance(value, list | Mapping) for value in stated):
        raise SchemaError("[table] classes must be a list of the target's values, in the order of the outputs.")
    _check_texts(section)
    justified = document.get("justified", section.get("justified", []))
    if not isinstance(justified, list | tuple) or any(not isinstance(name, str) for name in justified):
        raise SchemaError(f"justified is {str(justified)[:40]!r}; it must be a list of names of attributes.")
    named = tuple(text_of(value) for value in stated) or tuple(classes)
    favourable = section.get("favourable")
    if isinstance(favourable, list | Mapping):
        raise SchemaError("[table] favourable is a list or a section; it must be one of the target's values.")
    return Schema(
        attributes,
        target=section.get("target"),
        classes=named,
        favourable=None if favourable is None else text_of(favourable),
        rules=_rules(document.get("rules", [])),  # type: ignore[arg-type]  # the schema parses them
        scores=section.get("scores", "favourable"),
        max_twins=_max_twins(section_of(document, "limits")),
        threshold=section.get("threshold"),
        order_guessed=not section.get("classes"),
        observed=tuple(attribute for name, attribute in read.items() if name in watched),
        justified=tuple(justified),
    )


def section_of(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A section of a document; empty where it is missing."""
    section = document.get(name, {}) if isinstance(document, Mapping) else document
    if not isinstance(section, Mapping):
        raise SchemaError(f"[{name}] must be a section, but the subject says {name} = {str(section)[:40]!r}.")
    return section


def _rules(stated: object) -> tuple[str, ...]:
    if not isinstance(stated, list | tuple):
        raise SchemaError(f"rules must be a list of texts, but the subject says rules = {stated!r}.")
    strange = next((rule for rule in stated if not isinstance(rule, str)), None)
    if strange is not None:
        raise SchemaError(f"a rule must be text in quotes, but the subject has the rule {strange!r}.")
    return tuple(str(rule) for rule in stated)


def _max_twins(section: Mapping[str, Any]) -> int:
    for key in section:
        if key != "twins":
            raise SchemaError(f"[limits] has the unknown key {key!r}; {choose_from(key, ['twins'])}")
    max_twins = section.get("twins", MAX_TWINS)
    if isinstance(max_twins, bool) or not isinstance(max_twins, int) or max_twins < 1:
        raise SchemaError(f"[limits] twins is {max_twins!r}; it must be a whole number, 1 or more.")
    return max_twins


_SECTIONS = ("name", "rules", "justified", "model", "table", "limits", "attributes")
_TABLE_KEYS = (
    *("path", "target", "favourable", "classes", "threshold", "scores", "score", "justified", "delimiter", "missing"),
    *("person", "split", "test"),
)
#: Trust is not among them: it is the word of whoever runs fairbits, not of whoever wrote the file.
_MODEL_KEYS = (
    *("path", "encoding", "columns", "output", "score_of", "input_format", "eats", "factory", "layers", "batch"),
    "inputs",
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
    _check_texts(table_section)
    if not {"path", "score", "test", "split"} & set(table_section) and "path" in model_section:
        return _without_table(document, model_section, file, grants)
    place, delimiter = _path(table_section, "table", file), str(table_section.get("delimiter", ","))
    max_rows = ModelOptions.of(grants).max_rows
    data = read_arrow(place, delimiter=delimiter, max_rows=max_rows)
    target = table_section.get("target")
    _check_described(document, target, data.column_names, file)
    check_target(target, data.column_names)
    schema = schema_of_document(document, classes=() if target is None else infer_classes(data[target]))
    schema = _with_missing(schema, table_section.get("missing"), data)
    if "score" in table_section:
        return _of_scores(document, data, schema, place, file)
    options = _options(model_section, grants)
    source = _source(model_section, file)
    output_order(schema, None, options)  # what score_of cannot mean is said before the rows are read
    table, test = _coded(data, schema, place, table_section), None
    raw = RawTable(place, data, delimiter=delimiter)
    schema = with_held(schema, table.codes, raw)
    if "test" in table_section:
        apart = file.parent / table_section["test"]
        found = read_arrow(apart, delimiter=delimiter, max_rows=max_rows)
        test = table_from_arrow(found, schema, file=apart, person=table_section.get("person"))
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
        test=test,
        encoding=encoding,
        options=options,
        notes=notes,
        source=str(file.resolve()),
        original=source,
        raw=raw,
    )


def _without_table(document: Any, section: Any, file: Path, grants: GrantOptions) -> Subject:
    """A model and its bounds: enough to certify. People drawn from the domain stand where rows are asked for."""
    schema, options, source = schema_of_document(document), _options(section, grants), _source(section, file)
    rng = np.random.default_rng(0)
    codes = [
        rng.uniform(one.low, one.upper, DRAWN_ROWS)
        if not (one.discrete or one.allowed)
        else rng.choice(one.domain_values(), DRAWN_ROWS)
        for one in schema.attributes
    ]
    return make_subject(
        str(document.get("name", file.stem)),
        read_model(source, schema, options),
        schema,
        Table(np.stack(codes, axis=1), drawn=True),
        encoding=_stated_encoding(section.get("encoding"), schema, options, list(schema.names)),
        options=options,
        notes=("There is no table: only certify has something to say, about everybody within the bounds.",),
        source=str(file.resolve()),
        original=source,
    )


def _check_texts(section: Any) -> None:
    """Keys of [table] that are names or paths."""
    for key in ("target", "scores", "score", "person", "split", "test"):
        if not isinstance(section.get(key, ""), str):
            raise SchemaError(f"[table] {key} is {str(section[key])[:40]!r}; it must be text in quotes.")
    if "split" in section and "test" in section:
        raise SchemaError("[table] has both split and test; leave one of both out.")


def _coded(data: Any, schema: Schema, place: Path, section: Any) -> Table:
    """The table's people, with what [table] says about its rows."""
    for key in ("split", "score"):
        if key in section and section[key] in (schema.target, *schema.names, *(one.name for one in schema.observed)):
            raise SchemaError(
                f"[table] {key} is {section[key]!r}, which is an attribute or the target too; name another column."
            )
    return table_from_arrow(data, schema, file=place, person=section.get("person"), split=section.get("split"))


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
    if section:
        key = next(iter(section))
        raise SchemaError(
            f"[table] score is {column!r}, so the model is not asked, but [model] has {key!r}; leave one of both out."
        )
    if len(schema.classes) > 2:
        raise SchemaError(
            f"[table] score is {column!r}, but the target has {len(schema.classes)} classes, and one score does not "
            f"decide between them; give the model, or leave the target out."
        )
    table = _coded(data, schema, place, section_of(document, "table"))
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
    paths += [("test table", file.parent / table_section["test"])] if "test" in table_section else []
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
