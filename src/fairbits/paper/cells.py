"""Experiments are made of cells; each is a JSON file, so that an experiment that was ended goes on where it was.

A cell is plain data that says what it is called, what its figures depend on, and how they are made: here, one after the
other, or by many workers. Whoever makes it, it is kept as soon as it is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fairbits._version import __version__
from fairbits.data import load_subject
from fairbits.errors import FairbitsError, OptionError
from fairbits.scale import ExecutorOptions, Fault, Job, Portable, Signals, carry_out, open_executor
from fairbits.store import write_json
from fairbits.subject import Subject

#: Called before each cell with (cells made, cells to make, what comes now).
Progress = Callable[[int, int, str], None]
Made = TypeVar("Made")


class Desk:
    """What a process keeps between cells: the subjects, and what the cell before needed."""

    def __init__(self, shared: Subject | Portable | None = None):
        self._shared, self._subjects = shared, dict[str | None, Subject]()
        self._last: tuple[Any, Any] = (None, None)

    def subject(self, name: str | None, protected: str | None = None) -> Subject:
        """A subject by name or file, or the one that all cells share, with all or one of its protected attributes."""
        if name not in self._subjects:
            shared = self._shared.open() if isinstance(self._shared, Portable) else self._shared
            found = shared if name is None else load_subject(name)
            if found is None:
                raise ValueError("cells without a name need a shared subject")
            self._subjects[name] = found
        subject = self._subjects[name]
        return subject if protected is None else subject.with_protected([protected])

    def latest(self, key: Any, make: Callable[[], Made]) -> Made:
        """Something dear: made anew unless the cell before had the same."""
        if self._last[0] != key:
            self._last = key, make()
        found: Made = self._last[1]
        return found


class Shard(Protocol):
    """One cell: plain data, which goes to a worker as it is."""

    @property
    def label(self) -> str:
        """The name of its file."""

    def identity(self, desk: Desk) -> dict[str, Any]:
        """What its figures depend on."""

    def figures(self, desk: Desk) -> dict[str, Any]:
        """Make it."""


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


def figures_of(
    shards: Sequence[Shard],
    cells: Cells,
    desk: Desk,
    *,
    executor_options: ExecutorOptions | None = None,
    shared: Subject | Portable | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """The figures of all cells, those made that are not kept yet; other cells go on when a worker fails at one."""
    missing = [one for one in shards if cells.ready(one.label, one.identity(desk)) is None]
    many = executor_options is not None and executor_options.many
    if many and missing:
        _by_workers(missing, cells, desk, cells_job(shared), executor_options or ExecutorOptions(), progress)
    done, found = 0, []
    for one in shards:
        if one in missing and not many and progress is not None:
            progress(done, len(missing), str(one))
        done += one in missing
        found.append(cells.get(one.label, one.identity(desk), lambda one=one: one.figures(desk)))  # type: ignore[misc]
    return found


def cells_job(shared: Subject | Portable | None = None) -> Job:
    """The job of making cells, those without a name of a shared subject."""
    return Job(Desk, _perform, shared)


def _perform(desk: Desk, shard: Shard, signals: Signals) -> dict[str, Any]:  # noqa: ARG001 - a cell is not cut short
    return shard.figures(desk)


def _by_workers(
    shards: Sequence[Shard],
    cells: Cells,
    desk: Desk,
    job: Job,
    executor_options: ExecutorOptions,
    progress: Progress | None,
) -> None:
    done = 0

    def kept(number: int, figures: dict[str, Any]) -> None:
        nonlocal done
        done += 1
        cells.get(shards[number].label, shards[number].identity(desk), lambda: figures)
        if progress is not None and done < len(shards):
            progress(done, len(shards), f"{executor.slots} at a time, {shards[number]} done")

    with open_executor(executor_options, job) as executor:
        if progress is not None:
            progress(0, len(shards), f"{executor.slots} at a time")
        lost = carry_out(executor, enumerate(shards), on_done=kept).lost
    if lost:
        raise _given_up(shards, lost)


def _given_up(shards: Sequence[Any], lost: dict[int, Fault]) -> FairbitsError:
    number, fault = next(iter(lost.items()))
    others = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    return FairbitsError(
        f"cell {str(shards[number])!r}{others} was given up: {fault.words}; finished cells are kept: mend that and "
        f"run the same command again."
    )
