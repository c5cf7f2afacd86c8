"""A subject as files that anybody can look into: the table, the model, and the subject.toml between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tomlkit

from fairbits.domain import DEFAULT_THRESHOLD, MAX_TWINS, Attribute, Codes, Encoding, Schema
from fairbits.errors import OptionError
from fairbits.models import CanSave, require
from fairbits.subject.subject import Subject
from fairbits.subject.toml import OBSERVED, PROBABILITIES

if TYPE_CHECKING:
    import pyarrow as pa

_COMMENTS = {
    "classes": "in the order of the network's outputs",
    "threshold": "a decision is favourable from this probability on",
}
TABLE, TEST, MODEL, SUBJECT = "table.csv", "test.csv", "model.npz", "subject.toml"


def table_of_attribute(attribute: Attribute, *, observed: bool = False) -> tomlkit.items.Table:
    """The section [attributes.NAME] of an attribute; ``observed`` where the model does not take it."""
    number, category = float if attribute.kind == "real" else int, attribute.kind == "category"
    stepped = attribute.stride != 1 or attribute.kind == "real"  # a real's default is a share of its range, not 1
    ranges = tomlkit.inline_table()
    ranges.update({name: number(code) for name, code in attribute.ranges})
    cuts = () if attribute.cuts_named else attribute.cuts
    said: dict[str, Any] = {
        "kind": attribute.kind,
        "low": None if category else number(attribute.low),
        "high": None if category else number(attribute.upper),
        "step": None if category or not stepped else number(attribute.stride),
        "labels": list(attribute.labels) or None,
        "columns": list(attribute.columns) or None,
        "values": [attribute.read(c) if category else number(c) for c in attribute.allowed] or None,
        "ranges": ranges if attribute.ranges else None,
        "cuts": [int(cut) if cut.is_integer() else cut for cut in cuts] or None,
        "missing": attribute.missing,
        "holds": attribute.holds,
        "protected": (OBSERVED if observed else True) if attribute.protected else None,
        "immutable": attribute.immutable or None,
    }
    table = tomlkit.table()
    table.update({key: _quick(value) for key, value in said.items() if value is not None})
    return table


def _quick(value: Any) -> Any:
    """A list as tomlkit's array, in linear time: given as it is, ten thousand labels take half a minute."""
    if not isinstance(value, list):
        return value
    array = tomlkit.array()
    array.add_line(*value[:-1], indent="", newline=False)
    array.append(value[-1])
    return array


def document_of_schema(schema: Schema) -> tomlkit.TOMLDocument:
    """The sections of a subject file about people: rules, [table], [limits] and [attributes]."""
    document = tomlkit.document()
    for key, rules in (("rules", schema.rules), ("plausible", schema.plausible)):
        if rules:
            texts = tomlkit.array()
            texts.extend(rule.text for rule in rules)
            document.add(key, texts.multiline(True))
    if schema.justified:
        document.add("justified", list(schema.justified))
    said = {
        "target": schema.target,
        "classes": list(schema.classes) or None,
        "favourable": schema.favourable,
        "threshold": None if schema.threshold == DEFAULT_THRESHOLD else schema.threshold,
        "scores": None if schema.scores == "favourable" else schema.scores,
    }
    table = tomlkit.table()
    for key, value in said.items():
        if value is not None:
            table.add(key, value)
            if key in _COMMENTS:
                table[key].comment(_COMMENTS[key])
    document.add("table", table)
    if schema.max_twins != MAX_TWINS:
        document.add("limits", {"twins": schema.max_twins})
    attributes = tomlkit.table(is_super_table=True)
    for attribute in schema.attributes:
        attributes.add(attribute.name, table_of_attribute(attribute))
    soft = {one.likely for one in schema.chances}
    for attribute in schema.observed:
        if attribute.name not in soft:
            attributes.add(attribute.name, table_of_attribute(attribute, observed=True))
    for one in schema.chances:
        described = {"protected": PROBABILITIES, "columns": list(one.columns), "labels": list(one.labels[:-1])}
        attributes.add(one.attribute, described)
    document.add("attributes", attributes)
    return document


def export_subject(subject: Subject, folder: Path, *, codes: bool = False, force: bool = False) -> list[Path]:
    """Write tables, model and subject file into a folder; held-out rows stay marked, or in a table of their own."""
    from pyarrow import csv

    require(subject.model, CanSave, "exporting a model with its table")
    word = encoding_word(subject)
    if word is None:
        raise OptionError("the model has encoders of its own, which model.npz cannot hold; pass on its own file.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())) and not force:
        raise OptionError(f"{str(folder)!r} exists and is not an empty folder; choose another --out or add --force.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        model = {"path": MODEL, "encoding": word, **subject.options.section()}
        about = {"path": TABLE} | ({"split": split_name(subject)} if subject.table.held_out is not None else {})
        tables = {TABLE: subject}
        if subject.test is not None:
            tables[TEST] = replace(subject, table=subject.test)
            about["test"] = TEST
        for file, one in tables.items():
            csv.write_csv(table_of_subject(one, codes=codes), folder / file)
        document = document_of_subject(subject, model, about)
        (folder / SUBJECT).write_text(tomlkit.dumps(document), encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write to {str(folder)!r}: {error.strerror or error}.") from None
    subject.model.save(folder / MODEL)  # type: ignore[attr-defined]  # required above
    return [folder / name for name in (*tables, MODEL, SUBJECT)]


def document_of_subject(subject: Subject, model: Mapping[str, Any], table: Mapping[str, Any]) -> tomlkit.TOMLDocument:
    """The content of a subject file: its schema, and the sections about model and table."""
    document = tomlkit.document()
    document.add("name", subject.name)
    if subject.about:
        document.add("about", dict(subject.about))
    document.add("model", dict(model))
    for key, section in document_of_schema(subject.schema).items():
        document.add(key, section)
    for key, value in table.items():
        document["table"].add(key, value)
    return document


def encoding_word(subject: Subject) -> str | None:
    """What a subject file calls the subject's encoding; None where the model brings its own."""
    schema, columns = subject.schema, subject.options.columns
    # The table's columns in the order of the model's inputs, as far as one input is one column.
    parts = zip(schema.attributes, subject.encoding.parts, strict=True)
    places = dict(pair for one, part in parts for pair in zip(one.own_columns, map(int, part.columns), strict=False))
    ways = {
        "codes": Encoding.identity(schema, columns=columns),
        "one-hot": Encoding.one_hot(schema, columns=columns),
        "columns": Encoding.of_columns(schema, sorted(places, key=places.__getitem__)),
    }
    return next((word for word, made in ways.items() if subject.encoding.same_as(made)), None)


def table_of_subject(subject: Subject, *, codes: bool = False) -> pa.Table:
    """The subject's table with labels, or with codes."""
    import pyarrow as pa

    columns: dict[str, object] = {}
    watched = np.empty((len(subject.table), 0)) if subject.table.observed is None else subject.table.observed
    held = (*zip(subject.schema.attributes, subject.table.codes.T, strict=True),)
    soft = {one.likely for one in subject.schema.chances}
    for attribute, own in (*held, *zip(subject.schema.observed, watched.T, strict=False)):
        for label, name in enumerate(attribute.columns):
            if name:
                columns[name] = (own == label).astype(np.int64)
        if not attribute.columns and attribute.name not in soft:
            columns[attribute.name] = _column(attribute, own, codes_only=codes)
    for about, chances in zip(subject.schema.chances, subject.table.chances, strict=False):
        columns |= {name: pa.array(chances[:, i], from_pandas=True) for i, name in enumerate(about.columns)}
    if subject.table.held_out is not None:
        columns[split_name(subject)] = subject.table.held_out.astype(np.int64)
    if subject.schema.target is not None and subject.table.labels is not None:
        classes = np.array(subject.schema.classes, dtype=object)
        columns[subject.schema.target] = (
            classes[subject.table.labels.astype(np.int64)] if len(classes) else subject.table.labels
        )
    return pa.table(columns)


def split_name(subject: Subject) -> str:
    """The column that marks held-out rows in :func:`table_of_subject`."""
    taken = {*(name for one in subject.schema.attributes for name in one.own_columns), subject.schema.target}
    return "held_out" if "held_out" not in taken else "held_out_rows"


def _column(attribute: Attribute, codes: Codes, *, codes_only: bool = False) -> pa.Array:
    """A column as it was, with nothing where a value is missing: no code of a gap, no NaN."""
    import pyarrow as pa

    lacking = np.isnan(codes) if attribute.gap is None else np.isnan(codes) | (codes == attribute.gap)
    if attribute.kind == "category" and not codes_only:
        labels = np.array(attribute.labels, dtype=object)[np.where(lacking, 0, codes).astype(np.int64)]
        return pa.array(labels, pa.string(), mask=lacking)
    values = np.where(lacking, attribute.low, codes)
    return pa.array(values.astype(np.int64) if attribute.discrete else values, mask=lacking)
