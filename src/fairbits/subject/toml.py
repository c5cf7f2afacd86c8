"""A ``subject.toml`` read whole, every slip named: its model, its table and its schema, made into a subject."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, time
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fairbits.domain import (
    MAX_TWINS,
    Attribute,
    Chances,
    Encoding,
    GrantOptions,
    RawTable,
    Schema,
    Table,
    people_notes,
    plain,
    read_arrow,
    scores_of_column,
    table_from_arrow,
    text_of,
    with_held,
)
from fairbits.errors import SchemaError, TableError, choose_from
from fairbits.models import ModelOptions, Recorded, is_reference, is_url, output_order, read_model
from fairbits.shape import Keys, check_section, fits
from fairbits.subject.infer import infer_classes
from fairbits.subject.subject import Subject, make_subject
from fairbits.subject.texts import CHAT_KEYS, subject_of_texts
from fairbits.subject.twins import subject_of_twins

#: What `protected` says of an attribute that is in the table and no input of the model, and of one that is known as
#: probabilities of its groups only.
OBSERVED, PROBABILITIES = "observed", "probabilities"
#: People who stand in the place of rows where there is no table.
DRAWN_ROWS = 256
#: The group of what probabilities leave of 1.
REST = "(rest)"


_NUMBER, _TEXT, _TRUTH = (int | float, "it must be a number."), (str, "it must be text in quotes."), "use true or false"
_ATTRIBUTE: Keys = {
    **dict.fromkeys(("low", "high", "step"), _NUMBER),
    **dict.fromkeys(("labels", "columns"), (list[Any], "they must be a list.")),
    "values": (list[Any], "they must be a list, or nobody could have one."),
    "cuts": (list[int | float], "they must be a list of numbers."),
    "protected": (
        bool | Literal["observed"],
        f'{_TRUTH}, "observed" for a column that is no input of the model, or "probabilities".',
    ),
    "immutable": (bool, f"{_TRUTH}."),
    **dict.fromkeys(("kind", "ranges", "missing", "holds"), (Any, "")),
}


def attribute_of_section(name: str, fields: Mapping[str, Any]) -> Attribute:
    """The attribute that a section [attributes.NAME] describes."""
    check_section(fields, _ATTRIBUTE, f"attribute {name!r}")
    if fields.get("values") == []:
        raise SchemaError(f"attribute {name!r} has values = []; {_ATTRIBUTE['values'][1]}")
    given: dict[str, Any] = {key: value for key, value in fields.items() if key not in ("values", "ranges", "cuts")}
    given["protected"] = bool(fields.get("protected", False))
    given["labels"] = tuple(text_of(label) for label in fields.get("labels", ()))
    given["columns"] = tuple(str(column) for column in fields.get("columns", ()))
    attribute = Attribute(name=name, **given)
    if not fields.keys() & {"values", "ranges", "cuts"}:
        return attribute
    return replace(
        attribute,
        allowed=tuple(_code(attribute, value) for value in fields.get("values", ())),
        ranges=_ranges(attribute, fields.get("ranges", {})),
        cuts=tuple(fields.get("cuts", ())),
    )


def chances_of_section(name: str, fields: Mapping[str, Any]) -> Chances:
    """The attribute that a section describes by columns of probabilities; what they leave of 1 is a group too."""
    check_section(fields, ("kind", "protected", "columns", "labels"), f"attribute {name!r}, known as probabilities,")
    columns = fields.get("columns", [])
    labels = fields.get("labels", columns)
    if not fits(columns, list[str]) or not fits(labels, list[Any]) or not 0 < len(columns) == len(labels):
        raise SchemaError(
            f"attribute {name!r} is known as probabilities; name their columns, and as many labels if any: "
            f'columns = ["p_black", "p_white"].'
        )
    return Chances(name, tuple(columns), (*(text_of(label) for label in labels), REST))


def _ranges(attribute: Attribute, stated: object) -> tuple[tuple[str, float], ...]:
    """Named ranges with the value that stands for each; a plain list names each value by itself."""
    if isinstance(stated, list | tuple):
        return tuple((attribute.read(code), code) for code in (_code(attribute, value) for value in stated))
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


#: A description of a thousand attributes with a hundred labels each is far smaller.
_MAX_BYTES = 16 << 20
#: Parts of a key, joined by dots: [attributes.NAME] has two. Words are only tried from where they begin.
_KEY_PARTS = 64
_LONG_KEY = re.compile(rf"(?:(?:(?<![\w-])[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*\.[ \t]*){{{_KEY_PARTS}}}")


def read_document(path: str | Path, *, what: str = "audit file") -> dict[str, Any]:
    """A TOML file from outside as a dictionary."""
    file = Path(path)
    found = f"the {what} {str(file)!r}"
    if not file.is_file():
        raise SchemaError(f"{found} does not exist; check the path.")
    if file.stat().st_size > _MAX_BYTES:
        raise SchemaError(f"{found} has more than {_MAX_BYTES:,} bytes; it is no description.")
    try:
        text = file.read_bytes().decode("utf-8-sig")
        if _LONG_KEY.search(text) is not None:  # what a key costs to read grows with the square of its parts
            raise SchemaError(f"{found} is not valid TOML: a key has {_KEY_PARTS} parts or more.")
        return tomllib.loads(text)
    except UnicodeDecodeError:
        why = "it is no text in UTF-8"
    except (ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        why = "a number is too long" if "digits" in said else "it is nested too deeply"
        why = said if re.search(r"\(at [^()]*\)$", said) is not None else why
    raise SchemaError(f"{found} is not valid TOML: {why}.")


def schema_of_document(document: Mapping[str, Any], data: Any = None) -> Schema:
    """The schema in an audit file; an Arrow table gives the target's values where the document names none."""
    section, described = section_of(document, "table", _TABLE), section_of(document, "attributes")
    limits = section_of(document, "limits", {"twins": (int, "it must be a whole number, 1 or more.")})
    read, chances = {}, []
    for name in described:
        fields = section_of(described, name, within="attributes.")
        if fields.get("protected") == PROBABILITIES:
            chances.append(chances_of_section(name, fields))
        else:
            read[name] = attribute_of_section(name, fields)
    watched = {name for name in read if described[name].get("protected") == OBSERVED}
    if "score" in section:  # nobody knows what a model that is not there takes
        watched |= {name for name, attribute in read.items() if attribute.protected}
    if not read:
        raise SchemaError("the audit file has no attributes; describe each column under [attributes.NAME].")
    spread = [name for one in read.values() for name in one.columns] + [name for one in chances for name in one.columns]
    wanted = {section.get("target"), *described, *spread}
    if data is not None and wanted.isdisjoint(data.column_names):  # another file: what it holds is not repeated
        raise TableError(
            f"the table has {data.num_columns:,} columns, and the audit file describes none of them; check the path "
            f"and the delimiter under [table]."
        )
    if "split" in section and "test" in section:
        raise SchemaError("[table] has both split and test; leave one of both out.")
    if "missing" in section and data is not None:  # every column with holes is left to the model
        holes = {name for name in data.column_names if plain(data[name]).null_count}
        known = {name: one for name, one in read.items() if one.gap is None and not one.columns}
        read |= {name: replace(one, missing="model") for name, one in known.items() if name in holes - watched}
    lists = {key: document.get(key, section.get(key, [])) for key in ("rules", "plausible", "justified")}
    for key, texts in lists.items():
        if not fits(texts, list[str]):
            must = "names of attributes" if key == "justified" else "texts in quotes"
            raise SchemaError(f"{key} is {str(texts)[:80]}; it must be a list of {must}.")
    target, classes, favourable = section.get("target"), section.get("classes", ()), section.get("favourable")
    return Schema(
        tuple(attribute for name, attribute in read.items() if name not in watched),
        target=target,
        classes=tuple(text_of(value) for value in classes) or (() if data is None else infer_classes(data, target)),
        favourable=None if favourable is None else text_of(favourable),
        rules=tuple(lists["rules"]),  # as text; the schema parses them
        plausible=tuple(lists["plausible"]),
        scores=section.get("scores", "favourable"),
        max_twins=limits.get("twins", MAX_TWINS),
        threshold=section.get("threshold"),
        order_guessed=not classes,
        observed=(
            *(attribute for name, attribute in read.items() if name in watched),
            *(chance.likely_group for chance in chances),
        ),
        chances=tuple(chances),
        justified=tuple(lists["justified"]),
    )


def section_of(
    document: Mapping[str, Any], name: str, keys: Keys | Iterable[str] | None = None, *, within: str = ""
) -> Mapping[str, Any]:
    """A section of a document, or within one, with no other keys than these; empty where it is missing."""
    section = document.get(name, {}) if isinstance(document, Mapping) else document
    if not isinstance(section, Mapping):
        raise SchemaError(
            f"[{within}{name}] must be a section, but the audit file says {name} = {str(section)[:40]!r}."
        )
    if keys is not None:
        check_section(section, keys, f"[{within}{name}]")
    return section


_SECTIONS = (
    *("name", "kind", "about", "text", "rules", "plausible", "justified", "model", "table", "limits", "attributes"),
)
_ABOUT: Keys = dict.fromkeys(("purpose", "owner", "version"), _TEXT)
_SCALAR = str | bool | int | float | date | time
_TABLE: Keys = {
    **dict.fromkeys(("target", "scores", "score", "person", "split", "test", "weight"), _TEXT),
    "classes": (
        list[_SCALAR] | tuple[_SCALAR, ...],
        "they must be a list of the target's values, in the order of the outputs.",
    ),
    "favourable": (_SCALAR, "it must be one of the target's values."),
    "missing": (Literal["model"], 'say "model", or leave it out.'),
    **dict.fromkeys(("path", "threshold", "justified", "delimiter"), (Any, "")),
}
_COLUMN = (str, "it must be the name of a column.")
_TWINS: Keys = {
    "person": _COLUMN,
    "score": _COLUMN,
    "protected": (list[str], 'it must be a list, e.g. ["sex", "race"].'),
    **dict.fromkeys(("path", "threshold"), (Any, "")),
}
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
    document = {"name": file.stem, **read_document(file)}
    check_section(document, _SECTIONS, f"audit file {str(file)!r}")
    if not isinstance(document["name"], str):
        raise SchemaError(f"name is {str(document['name'])[:40]!r} in {str(file)!r}; it must be a text.")
    kind = document.get("kind", "table")
    if kind not in _KINDS:
        raise SchemaError(f"kind is {str(kind)[:40]!r} in {str(file)!r}; {choose_from(str(kind), _KINDS)}")
    about = section_of(document, "about", _ABOUT)
    return replace(_KINDS[kind](document, file, grants), about=about)


def _of_table(document: Mapping[str, Any], file: Path, grants: GrantOptions) -> Subject:
    """A model, and the people of a table."""
    stated, about = section_of(document, "model", _MODEL_KEYS), section_of(document, "table")
    options = ModelOptions.of({key: stated[key] for key in stated if key not in ("path", "encoding")} | {**grants})
    if not {"path", "score", "test", "split"} & set(about) and "path" in stated:
        return _without_table(document, options, file)
    place, delimiter = Path(_source(about, "table", file)), str(about.get("delimiter", ","))
    data = read_arrow(place, delimiter=delimiter, max_rows=options.max_rows)
    schema = schema_of_document(document, data)
    for key in ("split", "score", "weight"):
        name = about.get(key, "")
        if name in (schema.target, *schema.names, *(one.name for one in schema.observed)):
            raise SchemaError(
                f"[table] {key} is {name!r}, which is an attribute or the target too; name another column."
            )
    aside = {key: about[key] for key in ("person", "weight") if key in about}
    if "score" in about:
        table = table_from_arrow(data, schema, file=place, split=about.get("split"), **aside)
        return _of_scores(document, data, schema, table, file)
    source = _source(stated, "model", file)
    output_order(schema, None, options)  # what score_of cannot mean is said before the rows are read
    table, test, raw = table_from_arrow(data, schema, file=place, split=about.get("split"), **aside), None, None
    if not (isinstance(source, Path) and source.suffix.lower() == ".npz"):  # bare layers take codes, and no values
        raw = RawTable(place, data, delimiter=delimiter)
        schema = with_held(schema, table.codes, raw)
    read = {"model": source, "table": place}
    if "test" in about:
        read["test table"] = apart = file.parent / about["test"]
        found = read_arrow(apart, delimiter=delimiter, max_rows=options.max_rows)
        test = table_from_arrow(found, schema, file=apart, **aside)
    loaded = read_model(source, schema, options)
    encoding = _stated_encoding(stated.get("encoding"), schema, options, data.column_names)
    home = file.parent.resolve()
    notes = tuple(  # whoever runs an audit file should know what it reaches
        f"the {name} lies outside the folder of the audit file: {str(path.resolve())!r}."
        for name, path in read.items()
        if isinstance(path, Path) and not path.resolve().is_relative_to(home)
    )
    if loaded.encoding is not None:  # it names its columns, or encodes them itself: another encoding would be a mistake
        encoding = None
        if stated.get("encoding") in ("codes", "one-hot"):
            notes += (
                f"encoding = {stated['encoding']!r} under [model] is not used: the model itself says how it takes its "
                f"columns.",
            )
    return make_subject(
        document["name"],
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


def _without_table(document: Any, options: ModelOptions, file: Path) -> Subject:
    """A model and its bounds: enough to certify. People drawn from the domain stand where rows are asked for."""
    section = section_of(document, "model")
    schema, source = schema_of_document(document), _source(section, "model", file)
    rng = np.random.default_rng(0)
    codes = [
        rng.uniform(one.low, one.upper, DRAWN_ROWS)
        if not (one.discrete or one.allowed)
        else rng.choice(one.domain_values(), DRAWN_ROWS)
        for one in schema.attributes
    ]
    return make_subject(
        document["name"],
        read_model(source, schema, options),
        schema,
        Table(np.stack(codes, axis=1), drawn=True),
        encoding=_stated_encoding(section.get("encoding"), schema, options, list(schema.names)),
        options=options,
        notes=("There is no table: only certify has something to say, about everybody within the bounds.",),
        source=str(file.resolve()),
        original=source,
    )


def _of_twins(document: Any, file: Path, grants: GrantOptions) -> Subject:
    """Twins that somebody else made: the table says whose, of which protected values, and with which score."""
    check_section(document, ("name", "kind", "about", "table"), "an audit file of twins")
    section = section_of(document, "table", _TWINS)
    lost = next((key for key in _TWINS if key not in (*section, "threshold", "path")), None)
    if lost is not None:
        raise SchemaError(f"[table] has no {lost} in {str(file)!r}; {_TWINS[lost][1]}")
    return subject_of_twins(
        _source(section, "table", file),
        person=section["person"],
        protected=section["protected"],
        score=section["score"],
        threshold=section.get("threshold"),
        name=document["name"],
        source=str(file.resolve()),
        options=ModelOptions.of(grants),
    )


def _of_texts(document: Any, file: Path, grants: GrantOptions) -> Subject:
    """People put into words, and a decider about texts."""
    check_section(document, ("name", "kind", "about", "text", "model", "table"), "an audit file of texts")
    known = {key: _TABLE[key] for key in ("path", "threshold", "target", "split", "person", "weight", "favourable")}
    model = dict(section_of(document, "model", (*_MODEL_KEYS, *CHAT_KEYS, "favourable", "encoder", "tokenizer")))
    table = section_of(document, "table", known)
    decider = _source(model, "model", file)
    encoder, tokenizer = (
        _source({"path": model.pop(key)}, "model", file) if key in model else None for key in ("encoder", "tokenizer")
    )
    chat = {key: model.pop(key) for key in CHAT_KEYS if key in model}
    favourable = model.pop("favourable", table.get("favourable"))
    return subject_of_texts(
        decider,
        _source(table, "table", file),
        section_of(document, "text"),
        folder=file.parent,
        chat=chat,
        favourable=None if favourable is None else str(favourable),
        threshold=table.get("threshold"),
        **{key: table.get(key) for key in ("target", "split", "person", "weight")},
        encoder=encoder,
        tokenizer=tokenizer,
        name=document["name"],
        source=str(file.resolve()),
        answers=file.with_suffix(".answers.jsonl"),
        options=ModelOptions.of({key: model[key] for key in model if key not in ("path", "encoding")} | {**grants}),
    )


def _of_scores(document: Any, data: Any, schema: Schema, table: Table, file: Path) -> Subject:
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
    # Without a target the scores may be probabilities or not: nothing is decided then.
    table = replace(table, scores=scores_of_column(data, column, regression=schema.regression))
    return Subject(
        document["name"],
        schema,
        Recorded(len(schema)),
        Encoding(()),
        table,
        notes=("the model is not at hand: the scores are those of the table.", *people_notes(schema, table)),
        source=str(file.resolve()),
    )


def _source(section: Any, name: str, file: Path) -> str | Path:
    """Where a model or table is: code and addresses of a model as they stand, files beside the audit file."""
    path = section.get("path")
    if not isinstance(path, str):
        other = ', or score = "COLUMN" under [table] where the table holds its scores' if name == "model" else ""
        raise SchemaError(f'{str(file)!r} does not say where the {name} is; write path = "…" under [{name}]{other}.')
    place = file.parent / path
    if name == "table" or os.path.exists(place):
        return place
    return path if is_url(path) or is_reference(path) else place


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


#: What an audit file is about: a model and a table, a table of twins, or people put into words.
_KINDS: dict[str, Callable[[Mapping[str, Any], Path, GrantOptions], Subject]] = {
    "table": _of_table,
    "twins": _of_twins,
    "text": _of_texts,
}
