"""The network in a subject, to be repaired; and the subject file that speaks about the repaired one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import tomlkit

from fairbits.errors import CapabilityError
from fairbits.models import HasActivations, Network, kind_of
from fairbits.subject import Subject, document_of_subject, encoding_word, read_document, section_of

#: The table of a subject that has none in a file of its own.
TABLE = "repaired_table.parquet"


def network_of(subject: Subject) -> Network:
    """The network to be repaired, or what can be done instead."""
    if isinstance(subject.model, Network):
        return subject.model
    kind = kind_of(subject.model)
    if isinstance(subject.model, HasActivations):
        raise CapabilityError(
            f"repair changes the weights of chains of dense layers, and this {kind!r} is none: its path branches, or "
            f"it has other layers; debug and cases say what to mend, and its own training is the place for it."
        )
    raise CapabilityError(
        f"repair changes weights, which {kind!r} does not show; measure, search and cases work for it, and holding the "
        f"protected inputs constant before it is asked ends their direct use."
    )


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
