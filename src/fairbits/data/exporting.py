"""A subject as files that anybody can look into: the table, the model, and the subject.toml between them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tomlkit

from fairbits.data.subject import Subject
from fairbits.domain import Attribute, Encoding
from fairbits.domain.attribute import Codes
from fairbits.domain.toml import document_of_schema
from fairbits.errors import OptionError
from fairbits.models import CanSave, require

TABLE, MODEL, SUBJECT = "table.csv", "model.npz", "subject.toml"


def export_subject(subject: Subject, folder: Path, *, codes: bool = False, force: bool = False) -> list[Path]:
    """Write the three files; gives their paths."""
    require(subject.model, CanSave, "exporting a subject")
    if not any(subject.encoding.same_as(make(subject.schema)) for make in (Encoding.identity, Encoding.one_hot)):
        raise OptionError("the model has encoders of its own, which model.npz cannot hold; pass on its own file.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())) and not force:
        raise OptionError(f"{str(folder)!r} exists and is not an empty folder; choose another --out or add --force.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_table(subject, folder / TABLE, codes=codes)
        (folder / SUBJECT).write_text(tomlkit.dumps(_document(subject)), encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write to {str(folder)!r}: {error.strerror or error}.") from None
    subject.model.save(folder / MODEL)  # type: ignore[attr-defined]  # required above
    return [folder / name for name in (TABLE, MODEL, SUBJECT)]


def _document(subject: Subject) -> tomlkit.TOMLDocument:
    document = tomlkit.document()
    document.add("name", subject.name)
    document.add("model", {"path": MODEL, "encoding": "codes" if _takes_codes(subject) else "one-hot"})
    for key, section in document_of_schema(subject.schema).items():
        document.add(key, section)
    document["table"].add("path", TABLE)
    return document


def _takes_codes(subject: Subject) -> bool:
    return subject.encoding.width == len(subject.schema)


def _write_table(subject: Subject, path: Path, *, codes: bool) -> None:
    import pyarrow as pa
    from pyarrow import csv

    columns = {
        attribute.name: _column(attribute, subject.table.codes[:, i], codes_only=codes)
        for i, attribute in enumerate(subject.schema.attributes)
    }
    if subject.schema.target is not None and subject.table.labels is not None:
        classes = np.array(subject.schema.classes, dtype=object)
        columns[subject.schema.target] = (
            classes[subject.table.labels.astype(np.int64)] if len(classes) else subject.table.labels
        )
    csv.write_csv(pa.table(columns), path)


def _column(attribute: Attribute, codes: Codes, *, codes_only: bool = False) -> object:
    if attribute.kind == "category" and not codes_only:
        return np.array(attribute.labels, dtype=object)[codes.astype(np.int64)]
    return codes.astype(np.int64) if attribute.discrete else codes
