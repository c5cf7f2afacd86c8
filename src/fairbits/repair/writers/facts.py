"""What a written file says about a model: how its owner asks it, the classes with their types, the twins."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import (
    MISSING,
    Attribute,
    Category,
    Codes,
    Decoder,
    Encoding,
    Lookup,
    Numeric,
    Schema,
    Twins,
    Unseen,
    spells_labels,
    table_columns,
    text_of,
    values_of,
)
from fairbits.errors import MissingDependencyError
from fairbits.models import Network, names_of
from fairbits.models import attribute as attribute_of
from fairbits.subject import Subject

About = dict[str, Any]


def rows_of(subject: Subject, codes: Codes) -> Any:
    """People as the owner's table has them: a frame with its types; without pandas, columns of values by name."""
    decoder = Decoder(subject.schema)
    try:
        return decoder.frame(codes)
    except MissingDependencyError:
        return decoder.mapping(codes)


def class_values(subject: Subject, model: Any = None) -> list[Any]:
    """The classes in the schema's order, with the types that the model or the table gives them."""
    classes = subject.schema.classes
    if not classes:
        return []
    for known in (attribute_of(model, "classes_"), attribute_of(subject.original, "classes_")):
        own = {} if known is None else {text_of(one): plain(one) for one in np.ravel(known).tolist()}
        if set(own) == set(classes):
            return [own[name] for name in classes]
    found: list[Any] = values_of(Category(name="class", labels=classes)).tolist()
    return found


def plain(value: Any) -> Any:
    """A value as JSON holds it."""
    return value.item() if isinstance(value, np.generic) else value


def attribute_facts(attribute: Attribute, part: Numeric | Lookup | Unseen | None = None) -> About:
    """How the values of one attribute are read as codes, and what these become among the inputs."""
    labels = {label: float(attribute.low + i) for i, label in enumerate(attribute.labels) if label != MISSING}
    facts: About = {
        "name": attribute.name,
        "columns": list(attribute.columns) or None,
        "labels": labels if attribute.labels else None,
        "coded": bool(attribute.labels) and not spells_labels(attribute),
        "allowed": list(attribute.allowed),
        "low": float(attribute.low),
        "high": float(attribute.upper),
        "whole": attribute.discrete,
        "gap": attribute.gap,
        "lacking": None if attribute.missing == "value" else attribute.gap,
        "part": None,
    }
    if isinstance(part, Numeric):
        facts["part"] = {name: getattr(part, name) for name in ("column", "shift", "scale", "gap")}
    elif isinstance(part, Lookup):
        facts["part"] = {"columns": part.columns.tolist(), "table": part.table.tolist(), "low": part.low}
    return facts


def protected_facts(schema: Schema) -> list[About]:
    """The protected attributes, as a guard reads them."""
    return [attribute_facts(schema.attributes[column]) for column in schema.protected_columns]


def twin_columns(schema: Schema, twins: Twins) -> tuple[list[str], list[list[Any]]]:
    """The table's columns of protected attributes, and what each twin has in them."""
    someone = np.array([[attribute.first for attribute in schema.attributes]])
    shown = Decoder(schema).mapping(twins.expand(someone)[0])
    names = [name for column in twins.columns for name in schema.attributes[column].own_columns]
    values = [_listed(shown[name]) for name in names]
    return names, [list(row) for row in zip(*values, strict=True)]


def _listed(values: Any) -> list[Any]:
    if values.dtype.kind == "M":
        return [str(one) for one in np.datetime_as_string(values, unit="D")]
    return [plain(one) for one in values.tolist()]


def asked(schema: Schema, classes: list[Any], **facts: Any) -> About:
    """How a model is asked, with what most leave out filled in."""
    return {
        **{
            "network": None,
            "file": None,
            "trusted": False,
            "give": "",
            "classes": classes,
            "columns": [],
            "names": None,
        },
        **{"categories": {}, "attributes": [], "fixed": {}, "width": len(schema), "dtype": "float64", "form": "inputs"},
        **{"call": "call", "read": {"link": None, "order": list(range(len(classes))), "speaks": 1}},
        **facts,
    }


def by_inputs(schema: Schema, encoding: Encoding, classes: list[Any], **facts: Any) -> About:
    """Asked with inputs that the attributes become by an encoding."""
    parts = zip(schema.attributes, encoding.parts, strict=True)
    return asked(
        schema,
        classes,
        attributes=[attribute_facts(attribute, part) for attribute, part in parts],
        fixed={str(column): value for column, value in encoding.fixed.items()},
        width=int(encoding.width),
        dtype=np.dtype(encoding.dtype).name,
        **facts,
    )


def embedded(network: Network, schema: Schema, encoding: Encoding, classes: list[Any]) -> About:
    """A native network in the file itself."""
    held = io.BytesIO()
    arrays = {f"W{i}": w for i, w in enumerate(network.weights)} | {f"b{i}": b for i, b in enumerate(network.biases)}
    np.savez_compressed(held, **arrays)  # type: ignore[arg-type]  # NumPy's stub does not take ** of arrays
    about = {
        "arrays": base64.b64encode(held.getvalue()).decode(),
        "activations": [(a.name, a.alpha) for a in network.activations_after],
        "head": network.head,
    }
    return by_inputs(schema, encoding, classes, network=about)


def ways(subject: Subject, model: Any, classes: list[Any], *, encodings: Iterable[Encoding] = ()) -> list[About]:
    """How the model's owner may ask it, likeliest first: whichever gives back the audited scores is the one."""
    schema, options = subject.schema, subject.options
    names = None if isinstance(model, Path) else names_of(model)
    known = table_columns(schema)
    columns = [str(name) for name in names or options.columns or known]
    found: list[About] = []
    if set(columns) <= set(known):
        tables = {
            attribute.name: [plain(one) for one in values_of(attribute).tolist()]
            for attribute in schema.attributes
            if attribute.kind == "category" and not attribute.columns and attribute.name in columns
            if values_of(attribute).dtype.kind not in "bM"  # neither is ever a category
        }
        frame = asked(schema, classes, form="frame", columns=columns)
        found = [frame, {**frame, "categories": tables}] if tables else [frame]
        array = asked(schema, classes, form="array", columns=columns)
        found = [*found, array] if names is not None else [array, *found]
    seen = [a.name for a in schema.attributes if set(a.own_columns) & set(columns)] or list(schema.names)
    coded = Encoding.identity(schema, columns=seen, dtype=np.float64).with_gaps(schema)
    for encoding in (*encodings, subject.encoding, coded):
        inputs = by_inputs(schema, encoding, classes)
        own = [str(name) for name in names or ()]
        found += [{**inputs, "names": own}, inputs] if len(own) == encoding.width else [inputs]
    if options.input_format == "codes":
        found = found[::-1]
    return found
