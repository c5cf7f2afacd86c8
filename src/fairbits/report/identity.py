"""Whether what the other stages left in a run's folder is about the subject of the run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairbits.errors import OptionError
from fairbits.store import json_of
from fairbits.subject import Identity, check_identity

#: The files of stages, and how they are made again.
STAGES = {
    "debug.json": "fairbits debug",
    "repair.json": "fairbits repair",
    "certify.json": "fairbits certify",
    "proxies.json": "fairbits proxies",
}


def check_stages(folder: Path, here: Identity) -> None:
    """Refuse a stage's file that is about another model, schema or table, naming what differs."""
    for name, command in STAGES.items():
        path = folder / name
        if path.is_file():
            _check(path, command, here)


def _check(path: Path, command: str, here: Identity) -> None:
    try:
        document = json_of(path)
    except OptionError:
        return  # whoever reads it says what is wrong with it
    for entry in document if isinstance(document, list) else [document]:
        if not isinstance(entry, dict):
            continue
        stored = stored_identity(entry)
        if isinstance(stored, Mapping):
            if path.name == "proxies.json":
                stored = _but_protected(stored, here)
            check_identity({"identity": stored}, here, what=f"{str(path)!r}")
        elif isinstance(stored, str) and stored and stored != here.id:
            raise OptionError(
                f"{str(path)!r} is about another model, schema or table (identity {stored[:40]}, this run's is "
                f"{here.id}); delete it, or make it again with: {command}"
            )


def _but_protected(stored: Mapping[str, Any], here: Identity) -> dict[str, Any]:
    """The same identity, whatever was protected: a study of proxies looks at all protected attributes of a subject."""
    return {**stored, "ingredients": {**stored.get("ingredients", {}), "protected": here.ingredients["protected"]}}


def stored_identity(entry: Mapping[str, Any]) -> Any:
    """The identity in a stage's document: with its ingredients where they are kept, else its short name."""
    return entry.get("made_with") or entry.get("identity")
