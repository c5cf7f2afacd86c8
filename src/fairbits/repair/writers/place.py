"""Files of a repaired model on their way into a run: checked, described by a subject file, put into place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import tomlkit

from fairbits.data import load_subject
from fairbits.errors import FairbitsError
from fairbits.repair.records import FileCheck
from fairbits.repair.writers.check import Promise, table_of
from fairbits.repair.writers.checker import TOLERANCE, apart
from fairbits.store import write_whole
from fairbits.subject import (
    Subject,
    document_of_subject,
    encoding_word,
    read_document,
    section_of,
    table_of_subject,
)

NAME = "repaired"
NPZ, ONNX, SUBJECT = ".npz", ".onnx", f"{NAME}.toml"
#: The model that a Python file asks, beside it.
COMPANION = f"{NAME}_model"
#: The table of a subject that has none in a file of its own.
TABLE = f"{NAME}_table.parquet"


@dataclass(frozen=True, slots=True)
class Export:
    """The model files, the subject file about the first of them, in words what could not be done, and the checks."""

    files: tuple[Path, ...]
    subject_file: Path | None
    warnings: tuple[str, ...]
    checks: tuple[FileCheck, ...] = ()


def remove_old(folder: Path, kept: Sequence[str] = ()) -> None:
    """Take away files of an earlier repair, which would pass for this one's."""
    for old in (*folder.glob(f"{NAME}.*"), *folder.glob(f"{COMPANION}.*"), folder / TABLE):
        if old.name not in kept:
            old.unlink(missing_ok=True)


def described(subject: Subject, aside: Path, model: str, promise: Promise, warnings: list[str]) -> list[str]:
    """Write a subject file about a model file beside it, and try it out as a user would; gives the files' names."""
    names = [SUBJECT]
    grants = subject.options.grants()
    if not model.endswith((NPZ, ONNX)):  # our own file, just written
        grants = {**grants, "trust_pickle": True}
    try:
        if not has_table_file(subject):
            pq.write_table(table_of_subject(subject), aside / TABLE, compression="zstd")
            names.append(TABLE)
        (aside / SUBJECT).write_text(subject_text(subject, model, aside), encoding="utf-8")
        found = load_subject(aside / SUBJECT, **grants)
        distance = apart(_seen(found, promise), promise.wanted["rows"])
        if not distance <= TOLERANCE:
            raise FairbitsError(f"its scores differ by {distance:.2g}.")
    except FairbitsError as error:
        why = f"it did not come back as the repaired model: {error}"
        if model.endswith((NPZ, ONNX)) and not says_encoding(subject):
            why = (
                f"{model} takes rows as the encoders of the original make them (it has encoders of its own), which a "
                f"subject file cannot say; feed it what they put out."
            )
        warnings.append(f"{SUBJECT} was left out, because {why}")
        return []
    return names


def _seen(found: Subject, promise: Promise) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """What the model of a subject file says about the rows, in the order of the audited subject's classes."""
    table = table_of(found.model, found, promise.rows, None)
    mine, theirs = found.schema.classes, promise.schema.classes
    if table.shape[1] == len(mine) > 1 and mine != theirs and set(mine) == set(theirs):
        table = table[:, [mine.index(name) for name in theirs]]
    return table


def placed(
    subject: Subject,
    aside: Path,
    folder: Path,
    models: Sequence[str],
    others: Sequence[str],
    warnings: Sequence[str],
    checks: Sequence[FileCheck],
) -> Export:
    """Put files into the run, in place of those of an earlier repair."""
    ready = [*models, *others]
    remove_old(folder, ready)
    for name in ready:
        if name != SUBJECT:
            write_whole(folder / name, (aside / name).read_bytes())
    if SUBJECT in ready:  # written anew: seen from here, the table lies elsewhere
        write_whole(folder / SUBJECT, subject_text(subject, models[0], folder).encode())
    files = tuple(folder / name for name in models)
    return Export(files, folder / SUBJECT if SUBJECT in ready else None, tuple(warnings), tuple(checks))


def has_table_file(subject: Subject) -> bool:
    """Whether the subject came from a subject file, which names its table."""
    return subject.source is not None and Path(subject.source).is_file()


def says_encoding(subject: Subject) -> bool:
    """Whether a subject file can say how people become inputs of a bare network."""
    return encoding_word(subject) is not None


def subject_text(subject: Subject, model: str, folder: Path) -> str:
    """A subject file in ``folder`` about the model file beside it and the subject's own table."""
    about: dict[str, Any] = {"path": model}
    table: dict[str, Any] = {"path": TABLE}
    if has_table_file(subject):
        source = Path(str(subject.source))
        document = read_document(source)
        stated = section_of(document, "table")
        table = {"path": _relative(source.parent / str(stated["path"]), folder)}
        if "delimiter" in stated:
            table["delimiter"] = str(stated["delimiter"])
    word = encoding_word(subject)
    if word is not None:
        about["encoding"] = word
    return tomlkit.dumps(document_of_subject(subject, {**about, **subject.options.section()}, table))


def _relative(path: Path, folder: Path) -> str:
    """Seen from the folder, so that both can be moved together; on another drive, as it is."""
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:
        return path.resolve().as_posix()
