"""A subject: a model, the people it decides about, and the words to read both."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomlkit

from fairbits.data.networks import load_network
from fairbits.data.registry import BUILT_IN, load_stored
from fairbits.domain import Encoding, Schema, Table
from fairbits.domain.consistency import check_rules
from fairbits.domain.infer import infer_classes
from fairbits.domain.reading import read_arrow
from fairbits.domain.table import table_from_arrow
from fairbits.domain.toml import document_of_schema, read_document, schema_of_document, section_of
from fairbits.errors import ModelError, SchemaError, TableError, choose_from
from fairbits.models import Model, Network, load_model

_SECTIONS = ("name", "rules", "model", "table", "limits", "attributes")
_TABLE_KEYS = ("path", "target", "favourable", "classes", "scores", "delimiter")
_MODEL_KEYS = ("path", "encoding")
_ENCODINGS = ("codes", "one-hot", "columns")


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """What a run is about. ``test`` holds people whom the model has never seen, where there is such a table."""

    name: str
    schema: Schema
    model: Model
    encoding: Encoding
    table: Table
    test: Table | None = None
    notes: tuple[str, ...] = ()
    source: str | None = None  # what load_subject was given, where it was

    def with_protected(self, names: Iterable[str]) -> Subject:
        """The same subject with exactly these attributes protected."""
        return replace(self, schema=self.schema.with_protected(names))

    def fingerprint(self) -> str:
        """A short name for exactly this schema, model and table: the same in every process and on every machine."""
        digest = hashlib.sha256(tomlkit.dumps(document_of_schema(self.schema)).encode())
        if isinstance(self.model, Network):
            for array in (*self.model.weights, *self.model.biases):
                digest.update(array.tobytes())
        digest.update(self.table.codes.tobytes())
        return digest.hexdigest()[:16]


def load_subject(name_or_toml: str | Path) -> Subject:
    """A built-in subject by its name, or your own from a ``subject.toml``."""
    text = str(name_or_toml)
    if text in BUILT_IN:
        return _built_in(text)
    if text.endswith(".toml") or Path(text).exists():
        return _from_toml(Path(text))
    raise SchemaError(
        f"subject {text!r} is neither a file nor built in; {choose_from(text, BUILT_IN)}"
        f" For your own model give a subject.toml."
    )


def make_subject(
    name: str, model: Model, schema: Schema, table: Table, *, encoding: Encoding | None = None, **rest: Any
) -> Subject:
    """A subject whose parts fit each other."""
    if isinstance(model, Network):
        model = _fitting_head(model, schema)
    encoding = encoding or Encoding.fitting(schema, model.inputs)
    if encoding.width != model.inputs:
        raise ModelError(
            f"the network takes {model.inputs} inputs, but the attributes make {encoding.width}; "
            f"check that the model belongs to this table."
        )
    rest["notes"] = (*rest.get("notes", ()), *check_rules(schema, table.codes))
    return Subject(name, schema, model, encoding, table, **rest)


def _fitting_head(network: Network, schema: Schema) -> Network:
    if schema.target is not None and network.classes != len(schema.classes):
        kinds = [f"{n} classes" if n else "a number" for n in (network.classes, len(schema.classes))]
        raise ModelError(f"the network predicts {kinds[0]}, but target {schema.target!r} is {kinds[1]}.")
    return network.with_favourable(schema.favourable_index) if schema.classes else network


def _built_in(name: str) -> Subject:
    entry, stored = BUILT_IN[name], load_stored(name)
    table, test = stored.table(), None
    if entry.own_test_rows:
        table, test = table.training(), table.unseen()
    notes = (f"these people are {stored.origin}.",) if entry.synthetic else ()
    return make_subject(
        name, load_network(name), entry.schema, table, encoding=entry.encoding(), test=test, notes=notes, source=name
    )


def _from_toml(file: Path) -> Subject:
    document = read_document(file)
    _known_keys(document, _SECTIONS, f"subject file {str(file)!r}")
    model_section, table_section = section_of(document, "model"), section_of(document, "table")
    _known_keys(model_section, _MODEL_KEYS, "[model]")
    _known_keys(table_section, _TABLE_KEYS, "[table]")
    data = read_arrow(_path(table_section, "table", file), delimiter=str(table_section.get("delimiter", ",")))
    target = table_section.get("target")
    if target is not None and target not in data.column_names:
        raise TableError(f"target {target!r} is not in the table; {choose_from(str(target), data.column_names)}")
    schema = schema_of_document(document, classes=() if target is None else infer_classes(data[target]))
    model = load_model(_path(model_section, "model", file))
    encoding = _stated_encoding(model_section.get("encoding"), schema, data.column_names)
    name = str(document.get("name", file.stem))
    return make_subject(
        name, model, schema, table_from_arrow(data, schema), encoding=encoding, source=str(file.resolve())
    )


def _path(section: Any, name: str, file: Path) -> Path:
    path = section.get("path")
    if not isinstance(path, str):
        raise SchemaError(f'{str(file)!r} does not say where the {name} is; write path = "…" under [{name}].')
    return file.parent / path


def _stated_encoding(stated: object, schema: Schema, columns: list[str]) -> Encoding | None:
    """By its name. A table that is one-hot encoded already is what its network takes, column by column."""
    if stated == "columns" or (stated is None and any(attribute.columns for attribute in schema.attributes)):
        return Encoding.of_columns(schema, columns)
    if stated is None:
        return None
    if stated not in _ENCODINGS:
        raise SchemaError(f"[model] encoding is {stated!r}; {choose_from(str(stated), _ENCODINGS)}")
    return Encoding.identity(schema) if stated == "codes" else Encoding.one_hot(schema)


def _known_keys(section: Any, known: tuple[str, ...], where: str) -> None:
    for key in section:
        if key not in known:
            raise SchemaError(f"{where} has the unknown key {key!r}; {choose_from(key, known)}")
