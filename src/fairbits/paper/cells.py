"""Experiments are made of cells; each is a JSON file, so that an experiment that was ended goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any

from fairbits._version import __version__
from fairbits.errors import OptionError
from fairbits.store import write_json


class Cells:
    """Finished cells in a folder, by name. A cell that was made with other settings is made again."""

    def __init__(self, folder: Path):
        nearest = next(place for place in (folder, *folder.parents) if place.exists())
        if not nearest.is_dir():  # said before the first hour of work, not after it
            raise OptionError(f"{str(nearest)!r} is a file; choose another folder with --out.")
        self.folder = folder

    def ready(self, name: str, settings: dict[str, Any]) -> dict[str, Any] | None:
        """The figures of a finished cell, if it was made with these settings."""
        path = self._path(name)
        if not path.is_file():
            return None
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError:
            return None  # the machine went down while it was written: make it again
        same = kept.get("settings") == json.loads(json.dumps(_stamped(settings)))
        return dict(kept["figures"]) if same else None

    def get(self, name: str, settings: dict[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The figures of a cell: from disk, or computed and stored."""
        found = self.ready(name, settings)
        if found is None:
            found = make()
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(self._path(name), {"settings": _stamped(settings), "figures": found})
        return found

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"


@cache
def content_of(*packages: str) -> str:
    """A hash of the source of some of our packages: what was computed by other code is not kept."""
    home = Path(str(files("fairbits")))
    found = blake2b(digest_size=16)
    for file in sorted(path for name in packages for path in (home / name).rglob("*.py")):
        found.update(file.relative_to(home).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()


def _stamped(settings: dict[str, Any]) -> dict[str, Any]:
    """Another version may find other people: its cells are not ours."""
    return {**settings, "version": __version__}
