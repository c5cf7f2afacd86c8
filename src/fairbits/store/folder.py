"""The folder of a run: who may write there, and what may be removed."""

from __future__ import annotations

import errno
import re
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from fairbits.errors import FairbitsError, OptionError
from fairbits.store import doubles, parts, tasks
from fairbits.store.files import TEMPORARY
from fairbits.store.location import is_local

if TYPE_CHECKING:
    from filelock import BaseFileLock

#: Held while somebody writes; it belongs to no run, and may be left over.
LOCK = ".lock"
RUN, SUMMARY = "run.json", "summary.json"
_REPAIRED = r"repaired\.\w+|repaired_table\.parquet"
#: What the stages write into the folder of a run: all that --force may remove. A test holds their names against it.
_OWN = re.compile(
    r"(run|summary|measure|debug|repair|certify|certify_rates|proxies|gate|manifest)\.json"
    r"|(layers|neurons|debug_cases|repairs|rows)\.parquet|manifest\.json\.sig|gate\.(md|sarif)|junit\.xml"
    rf"|{_REPAIRED}|report\.(html|md)"
)
#: Folders of a run, and what is in them; repairs have a folder each.
_OWN_INSIDE = {
    "repairs": re.compile(_REPAIRED),
    parts.FOLDER: re.compile(rf"({parts.PART.pattern}|{re.escape(doubles.NAME)})({re.escape(parts.SET_ASIDE)})?"),
    tasks.FOLDER: tasks.RECORD,
}


def prepare(folder: Path, *, force: bool) -> None:
    """Make an empty folder for a new run; with ``force`` an earlier run in its place may be replaced, and
    nothing else.
    """
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{str(folder)!r} is a file; choose another folder for the run.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A writer that was killed before its first run.json leaves nothing but half of it: that is no run.
        files = [path for path in _files(folder) if not (path.name.endswith(TEMPORARY) and _is_own(path, folder))]
        if files and not force:
            raise OptionError(f"{str(folder)!r} is not empty; choose another --out, or add --force to replace a run.")
        if files:
            _check_own(folder, files)
    except OSError as error:
        raise unwritable(folder, error) from None


def clear(folder: Path) -> None:
    """Remove an earlier run (checked by ``prepare``), its run.json last: until then it can be recognised."""
    try:
        for path in sorted(_files(folder), key=lambda path: path.name == RUN):
            path.unlink()
        (folder / parts.FOLDER).mkdir(exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None


def remove_leftovers(folder: Path) -> None:
    """Delete half-written files of a process that was killed."""
    for place in (folder, *(folder / name for name in _OWN_INSIDE)):
        for path in place.glob("*" + TEMPORARY) if place.is_dir() else ():
            if _is_own(path, folder):
                path.unlink()


class Lock:
    """Keeps other writers out of a folder until it is released, or the process is gone."""

    def __init__(self, held: BaseFileLock, path: Path):
        self._held, self._path = held, path

    def release(self) -> None:
        """Let other writers in. The file goes first: whoever got hold of it looks whether it is still there."""
        if self._held.is_locked:
            with suppress(OSError):  # the folder may be gone, or (on Windows) the file in use till the next line
                self._path.unlink()
            self._held.release()


def lock(folder: Path) -> Lock | None:
    """Keep other writers out; there is no lock where the file system has none, or the run is an address."""
    if not is_local(folder):
        return None
    from filelock import FileLock, Timeout

    path = folder / LOCK
    held = FileLock(path, thread_local=False)
    try:
        held.acquire(blocking=False)
    except Timeout:
        raise OptionError(
            f"another process is writing the run in {str(folder)!r}; wait for it, or choose another folder."
        ) from None
    except NotImplementedError:  # some network file systems know no locks; the run is still worth having
        return None
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP):
            return None
        raise unwritable(folder, error) from None
    return Lock(held, path)


def check_present(folder: Path) -> None:
    """Notice a run that was removed, or moved away, while it was being written."""
    if is_local(folder) and not (folder / RUN).is_file():
        raise FairbitsError(
            f"the run in {str(folder)!r} was removed or moved while it was being written, and what it had found went "
            f"with it; start it again."
        )


def check_writable(folder: Path) -> None:
    """Refuse a folder of this machine that cannot be written to, before any work is done."""
    if not is_local(folder):
        return
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OptionError(
            f"cannot write to {str(folder)!r}: {error.strerror or error}; make it writable, or copy the run elsewhere."
        ) from None


def unwritable(folder: Path, error: OSError) -> OptionError:
    """The error about a folder that cannot be written to."""
    return OptionError(f"cannot write to {str(folder)!r}: {error.strerror or error}; choose another folder.")


def _files(folder: Path) -> list[Path]:
    """Everything in the folder; the folders of the parts and of the tasks count by what is in them."""
    found: list[Path] = []
    if not folder.exists():  # an empty folder of a store of objects is none
        return found
    for path in sorted(folder.iterdir()):
        if path.name == LOCK:
            continue
        inner = path.name in _OWN_INSIDE and path.is_dir() and not path.is_symlink()
        found += sorted(one for one in path.rglob("*") if not one.is_dir() or one.is_symlink()) if inner else [path]
    return found


def _check_own(folder: Path, files: list[Path]) -> None:
    foreign = next((path for path in files if not _is_own(path, folder)), None)
    if foreign is not None:
        raise OptionError(
            f"{str(folder)!r} holds {str(foreign.relative_to(folder))!r}, which is not part of a run, "
            f"so --force removes nothing; choose another --out."
        )
    bare = (path for path in files if path.parent == folder and not path.name.endswith(TEMPORARY))
    first = next(bare, None)
    if first is not None and not (folder / RUN).is_file():
        raise OptionError(
            f"{str(folder)!r} holds {first.name!r} but no {RUN}, so it is not a run and --force removes nothing; "
            f"choose another --out."
        )


def _is_own(path: Path, folder: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    pattern = _OWN if path.parent == folder else _OWN_INSIDE[path.relative_to(folder).parts[0]]
    return pattern.fullmatch(path.name.removesuffix(TEMPORARY)) is not None
