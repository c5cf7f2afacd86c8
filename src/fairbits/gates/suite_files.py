"""A suite as a file: written whole, read and checked against the schema of the subject at hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import MAX_ROWS, Schema, Table, check_domain, joined
from fairbits.errors import FairbitsError, OptionError
from fairbits.gates.container import column_of, damaged, read_container, write_container
from fairbits.measure import check_partition
from fairbits.store import timestamp
from fairbits.subject import Subject

if TYPE_CHECKING:
    pass
from fairbits.gates.suite import CASE, ROW, SCHEMA_PARTS, Suite, numbers_of, schema_parts

_WORDS = {"protected_values": "protected values", "compared": "compared scores", "favourable": "favourable class"}


def write_suite(suite: Suite, path: Path) -> None:
    """Write a suite to a .parquet file, whole."""
    table = suite.table
    columns: dict[str, npt.NDArray[Any]] = {f"attribute:{i}": table.codes[:, i] for i in range(table.codes.shape[1])}
    if table.observed is not None:
        columns |= {f"observed:{i}": table.observed[:, i] for i in range(table.observed.shape[1])}
    if table.labels is not None:
        columns["label"] = table.labels
    if table.held_out is not None:
        columns["held_out"] = table.held_out
    if table.person is not None:
        columns["person"] = table.person
    columns |= {"number": numbers_of(table), "origin": suite.origin}
    described = suite.description()
    kept = {name: described[name] for name in described if name not in ("people", "rows", "cases")}
    write_container(path, "suite", columns, {**kept, "schema": dict(suite.schema), "created": timestamp()})


def read_suite(path: Path, subject: Subject, *, max_rows: int = MAX_ROWS) -> Suite:
    """The suite in a file, for a subject of the same schema."""
    table, about = read_container(path, "suite", max_rows=max_rows)
    stored = about.get("schema")
    fields: dict[str, Any] = {"epsilon": float, "repeats": int, "seed": int}
    texts = ("id", "subject", "partition", "version", "source")
    if not isinstance(stored, dict) or any(not isinstance(about.get(name), str) for name in texts):
        raise damaged(path, "suite", "its description is not complete")
    for name, kind in fields.items():
        value = about.get(name)
        if isinstance(value, bool) or not isinstance(value, int | kind) or not abs(value) < 2**63:
            raise damaged(path, "suite", f"its {name} is no number")
    _check_schema(path, stored, subject)
    people = _people(table, path, subject.schema)
    origin = column_of(table, "origin", path, "suite", whole=True)
    if not np.isin(origin, (ROW, CASE)).all():
        raise damaged(path, "suite", "column 'origin' holds something else than it should")
    if about["repeats"] < 1 or not about["epsilon"] > 0:
        raise damaged(path, "suite", "its tolerance or its repeats cannot be")
    suite = Suite(
        people,
        origin,
        {name: str(stored.get(name, "")) for name in SCHEMA_PARTS},
        about["subject"],
        float(about["epsilon"]),
        check_partition(about["partition"]),
        int(about["repeats"]),
        int(about["seed"]),
        about["version"],
        about["source"],
    )
    if suite.id != about["id"]:
        raise OptionError(
            f"the suite {str(path)!r} has the identity {suite.id}, but was frozen as {about['id'][:16]!r}: it was "
            f"changed since; restore it from a copy, or freeze it again."
        )
    return suite


def _check_schema(path: Path, stored: Mapping[str, Any], subject: Subject) -> None:
    here = schema_parts(subject)
    other = [_WORDS.get(name, name) for name in SCHEMA_PARTS if stored.get(name) != here[name]]
    if other:
        raise OptionError(
            f"the suite {str(path)!r} was frozen for another schema (other {joined(other)}); freeze one from a run of "
            f"this subject, or name the same attributes with --protected."
        )


def _people(table: Any, path: Path, schema: Schema) -> Table:
    """The columns of a suite as people, every value checked."""
    codes = np.column_stack([column_of(table, f"attribute:{i}", path, "suite") for i in range(len(schema))])
    observed = None
    if schema.observed:
        columns = [column_of(table, f"observed:{i}", path, "suite", gaps=True) for i in range(len(schema.observed))]
        observed = np.column_stack(columns)
    labels = column_of(table, "label", path, "suite", gaps=True) if "label" in table.column_names else None
    if labels is not None and schema.classes:
        given = labels[~np.isnan(labels)]
        if not np.isin(given, np.arange(len(schema.classes))).all():
            raise damaged(path, "suite", "column 'label' holds something else than classes")
    held_out = column_of(table, "held_out", path, "suite", truth=True) if "held_out" in table.column_names else None
    numbers = column_of(table, "number", path, "suite", whole=True)
    person = column_of(table, "person", path, "suite", whole=True) if "person" in table.column_names else None
    try:
        check_domain(codes, schema)
    except FairbitsError as error:
        raise damaged(path, "suite", str(error).rstrip(".")) from None
    return Table(codes, labels, held_out, numbers, None, observed, person=person)
