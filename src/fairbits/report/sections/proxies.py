"""The section on indirect bits: what proxies.json says, in sentences and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fairbits.proxies import WHAT_A_BIT_IS, details, told
from fairbits.store import read_json
from fairbits.subject import Subject

NAME = "proxies.json"
#: Groups of one table on the page; all are in proxies.json.
MAX_GROUPS = 40


def proxies_of(folder: Path, subject: Subject) -> dict[str, Any] | None:
    """The study of proxies in a run's folder, if it is about this subject.

    Parameters
    ----------
    folder
        Folder of the run.
    subject
        The model, its table and its schema.

    Returns
    -------
    dict[str, Any] | None
        Content of proxies.json, or None.
    """
    path = folder / NAME
    if not path.is_file():
        return None
    document = read_json(path)
    fits = document.get("subject") == subject.name and document.get("rows") == len(subject.table)
    return document if fits and "attributes" in document else None


def lead(document: Mapping[str, Any] | None, blind: bool) -> str:
    """The first sentence of the page for a model that takes no protected attribute.

    Parameters
    ----------
    document
        Content of proxies.json, or None.
    blind
        Whether the model takes no protected attribute.

    Returns
    -------
    str
        The sentence; "" for all other models.
    """
    if document is None or not blind:
        return ""
    known = [one for one in document["attributes"] if one["bits"] is not None and " × " not in one["attribute"]]
    if not known:
        return ""
    most = max(known, key=lambda one: one["bits_low"])
    sentence = told(most)
    return f"{sentence[:1].upper()}{sentence[1:]}. "


def sentences(document: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """For every attribute its main sentence, and the others.

    Parameters
    ----------
    document
        Content of proxies.json.

    Yields
    ------
    Iterator[tuple[str, tuple[str, ...]]]
        Main sentence and further sentences.
    """
    for entry in document["attributes"]:
        sentence = told(entry).rstrip(".")
        yield f"{sentence[:1].upper()}{sentence[1:]}.", tuple(_full(line) for line in details(entry))


def _full(line: str) -> str:
    return f"{line[:1].upper()}{line[1:]}."


__all__ = ["MAX_GROUPS", "NAME", "WHAT_A_BIT_IS", "lead", "proxies_of", "sentences"]
