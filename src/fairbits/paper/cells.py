"""Experiments are made of cells; each is a JSON file, so that an experiment that was ended goes on where it was.

A cell is plain data that says what it is called, what its figures depend on, and how they are made: here, one after the
other, or by many workers. Whoever makes it, it is kept as soon as it is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, cast

from fairbits._version import __version__
from fairbits.data import load_subject
from fairbits.errors import FairbitsError, OptionError
from fairbits.scale import ExecutorOptions, Job, Listener, Portable, carry_out
from fairbits.store import write_json
from fairbits.subject import Subject

#: Called before each cell with (cells made, cells to make, what comes now).
Progress = Callable[[int, int, str], None]
Made = TypeVar("Made")


class Desk:
    """What a process keeps between cells: the subjects, and what the cell before needed."""

    def __init__(self, shared: Subject | Portable | None = None):
        opened = shared.open() if isinstance(shared, Portable) else shared
        self._subjects: dict[str | None, Subject] = {} if opened is None else {None: opened}
        self._last: tuple[Any, Any] = (None, None)

    def subject(self, name: str | None, protected: str | None = None) -> Subject:
        """A subject by name or file, or the one that all cells share, with all or one of its protected attributes."""
        if name is not None and name not in self._subjects:
            self._subjects[name] = load_subject(name)
        subject = self._subjects[name]
        return subject if protected is None else subject.with_protected([protected])

    def latest(self, key: Any, make: Callable[[], Made]) -> Made:
        """Something dear: made anew unless the cell before had the same."""
        if self._last[0] != key:
            self._last = key, make()
        return cast(Made, self._last[1])


@dataclass(frozen=True, slots=True)
class ExperimentCell:
    """One cell: plain data, which goes to a worker as it is."""

    label: str  # the name of its file
    title: str  # for progress
    make: Callable[[Desk, ExperimentCell], dict[str, Any]]  # a function of a module, which workers find by its name
    given: Any  # whatever the function needs
    terms: Mapping[str, Any]  # what the figures depend on, beside the subject
    subject: str | None = None
    protected: str | None = None

    def identity(self, desk: Desk) -> dict[str, Any]:
        """What its figures depend on; another version may find other people."""
        subject = desk.subject(self.subject, self.protected).identity.id
        return {"subject": subject, "version": __version__, **self.terms}


class Cells:
    """Finished cells in a folder, by name. A cell that was made with other settings is made again."""

    def __init__(self, folder: Path):
        nearest = next(place for place in (folder, *folder.parents) if place.exists())
        if not nearest.is_dir():  # said before the first hour of work, not after it
            raise OptionError(f"{str(nearest)!r} is a file; choose another folder with --out.")
        self.folder = folder

    def ready(self, name: str, settings: dict[str, Any]) -> dict[str, Any] | None:
        """The figures of a finished cell, if it was made with these settings."""
        try:
            kept = json.loads(self._path(name).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None  # not made, or the machine went down while it was written
        same = kept.get("settings") == json.loads(json.dumps(settings))
        return dict(kept["figures"]) if same else None

    def keep(self, name: str, settings: dict[str, Any], figures: dict[str, Any]) -> None:
        """Store the figures of a cell."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self._path(name), {"settings": settings, "figures": figures})

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"


@cache
def content_of(*packages: str) -> str:
    """A hash of the source of some of our packages: what was computed by other code is not kept."""
    home = Path(str(files("fairbits")))
    digest = blake2b(digest_size=16)
    for file in sorted(path for name in packages for path in (home / name).rglob("*.py")):
        digest.update(file.relative_to(home).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def figures_of(
    wanted: Sequence[ExperimentCell],
    cells: Cells,
    desk: Desk,
    *,
    executor_options: ExecutorOptions | None = None,
    shared: Subject | Portable | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """The figures of all cells, those made that are not kept yet; other cells go on when a worker fails at one."""
    executor_options = executor_options or ExecutorOptions()
    kept = {cell.label: cells.ready(cell.label, cell.identity(desk)) for cell in wanted}
    missing = [cell for cell in wanted if kept[cell.label] is None]
    slots = done = 0

    def tell() -> None:
        if progress is not None and done < len(missing):
            progress(done, len(missing), missing[done].title if slots == 1 else f"{slots} at a time")

    def started(_: str, count: int) -> None:
        nonlocal slots
        slots = count
        tell()

    def keep(number: int, figures: dict[str, Any]) -> None:
        nonlocal done
        done += 1
        kept[missing[number].label] = figures
        cells.keep(missing[number].label, missing[number].identity(desk), figures)
        tell()

    if missing:
        job = Job(
            lambda given: given if isinstance(given, Desk) else Desk(given),
            lambda desk, cell, _: cell.make(desk, cell),
            shared if executor_options.elsewhere else desk,
        )
        lost = carry_out(executor_options, job, enumerate(missing), Listener(started=started, done=keep)).lost
        others = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        for number, fault in lost.items():
            raise FairbitsError(
                f"cell {missing[number].title!r}{others} was given up: {fault.words}; finished cells are kept: mend "
                f"that and run the same command again."
            )
    return [kept[cell.label] or {} for cell in wanted]
