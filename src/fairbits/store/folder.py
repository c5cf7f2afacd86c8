"""The folder of a run: who may write there, and what may be removed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import TemporaryFile

from fairbits.errors import OptionError
from fairbits.store import doubles, parts, tasks
from fairbits.store.files import TEMPORARY
from fairbits.store.places import is_local

RUN, SUMMARY = "run.json", "summary.json"
_OWN = re.compile(
    r"(run|summary|measure|debug|repair)\.json|(layers|neurons|debug_cases|repairs)\.parquet"
    r"|repaired\.\w+|repaired_table\.parquet|report\.(html|md)"
)
_OWN_INSIDE = {
    parts.FOLDER: re.compile(rf"({parts.PART.pattern}|{re.escape(doubles.NAME)})({re.escape(parts.SET_ASIDE)})?"),
    tasks.FOLDER: tasks.RECORD,
}


def prepare(folder: Path, *, force: bool) -> None:
    """Make an empty folder for a new run; with ``force`` an earlier run in its place is removed, and nothing else."""
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{str(folder)!r} is a file; choose another folder for the run.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = _files(folder)
        if files and not force:
            raise OptionError(f"{str(folder)!r} is not empty; choose another --out, or add --force to replace a run.")
        if files:
            _check_own(folder, files)
    except OSError as error:
        raise unwritable(folder, error) from None


def clear(folder: Path) -> None:
    """Remove the earlier run (checked by ``prepare``), its run.json last: till then it can still be recognised."""
    try:
        for path in sorted(_files(folder), key=lambda path: path.name == RUN):
            path.unlink()
        (folder / parts.FOLDER).mkdir(exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None


def remove_leftovers(folder: Path) -> None:
    """Delete what a killed writer left half-written."""
    for place in (folder, *(folder / name for name in _OWN_INSIDE)):
        for path in place.glob("*" + TEMPORARY) if place.is_dir() else ():
            if _is_own(path, folder):
                path.unlink()


def lock(folder: Path) -> int | None:
    """Keep other writers out until the handle is closed, or the process gone. No lock where the system has none."""
    if not is_local(folder):
        return None
    try:
        import fcntl
    except ImportError:
        return None
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise unwritable(folder, error) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise OptionError(
            f"another process is writing the run in {str(folder)!r}; wait for it, or choose another folder."
        ) from None
    except OSError:  # some network file systems know no locks; the run is still worth having
        os.close(handle)
        return None
    return handle


def check_writable(folder: Path) -> None:
    """Refuse a folder of this machine that takes no files before the work is done, rather than after it."""
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
    """The sentence about a folder that cannot be written to."""
    return OptionError(f"cannot write to {str(folder)!r}: {error.strerror or error}; choose another folder.")


def _files(folder: Path) -> list[Path]:
    """Everything in the folder; the folders of the parts and of the tasks count by what is in them."""
    found: list[Path] = []
    if not folder.exists():  # an empty folder of a store of objects is none
        return found
    for path in sorted(folder.iterdir()):
        inner = path.name in _OWN_INSIDE and path.is_dir() and not path.is_symlink()
        found += sorted(path.iterdir()) if inner else [path]
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
    pattern = _OWN if path.parent == folder else _OWN_INSIDE[path.parent.name]
    return pattern.fullmatch(path.name.removesuffix(TEMPORARY)) is not None
