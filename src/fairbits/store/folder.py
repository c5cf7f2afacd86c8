"""The folder of a run: who may write there, what may be removed, run.json, which says what was run and how far, and
what one task of a search leaves beside its cases: a record that says which parts count, and how far it is.

``cases/part-000012-1f3a9c20-0003.parquet`` is part 3 of one attempt at task 12; ``tasks/000012-1f3a9c20.json`` is
written after every part, and names all that count. An attempt that goes on from an earlier one names its parts too.
Attempts at a task ask about the same people in the same order, so a reader takes the record that came furthest: a task
that is tried twice, even at the same time, is never seen twice, and nothing that was written is lost.
"""

from __future__ import annotations

import errno
import getpass
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal, Self

from fairbits._version import __version__
from fairbits.domain import Schema
from fairbits.errors import FairbitsError, OptionError
from fairbits.shape import check_fields, reading
from fairbits.store.files import (
    RESTORE,
    TEMPORARY,
    is_local,
    plain,
    read_json,
    record_from_json,
    write_json,
)
from fairbits.store.parts import CASES, DOUBLES, PART, SET_ASIDE, spread
from fairbits.subject import Quality, document_of_schema

TASKS = "tasks"
RECORD = re.compile(r"(\d{6,})-([0-9a-f]{8})\.json")
#: Held while somebody writes; it belongs to no run, and may be left over.
LOCK = ".lock"
RUN, SUMMARY = "run.json", "summary.json"
_REPAIRED = r"repaired(_model)?\.\w+|repaired_table\.parquet"
#: What the stages write into the folder of a run: all that --force may remove. A test holds their names against it.
_OWN = re.compile(
    r"(run|summary|measure|debug|repair|certify|certify_rates|proxies|gate|manifest|words)\.json"
    r"|(layers|neurons|debug_cases|repairs|rows)\.parquet|manifest\.json\.sig|gate\.(md|sarif)|junit\.xml"
    rf"|{_REPAIRED}|report\.(html|md|docx)|(filing|profile)\.html|bom\.cdx\.json|model-card\.md|statement\.intoto\.json"
)
#: Folders of a run, and what is in them; repairs have a folder each.
_OWN_INSIDE = {
    "repairs": re.compile(_REPAIRED),
    CASES: re.compile(rf"({PART.pattern}|{re.escape(DOUBLES)})({re.escape(SET_ASIDE)})?"),
    TASKS: RECORD,
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
        (folder / CASES).mkdir(exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None


def remove_leftovers(folder: Path) -> None:
    """Delete half-written files of a process that was killed."""
    for place in (folder, *(folder / name for name in _OWN_INSIDE)):
        for path in place.glob("*" + TEMPORARY) if place.is_dir() else ():
            if _is_own(path, folder):
                path.unlink()


def lock(folder: Path) -> Callable[[], None]:
    """Keep other writers out until what is returned is called, or the process is gone; there is no lock where the file
    system has none, or the run is an address.
    """
    if not is_local(folder):
        return lambda: None
    from filelock import FileLock, Timeout

    path = folder / LOCK
    held = FileLock(path, thread_local=False)
    try:
        held.acquire(blocking=False)
    except Timeout:
        raise OptionError(
            f"another process is writing the run in {str(folder)!r}; wait for it, or choose another folder."
        ) from None
    except (NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise unwritable(folder, error) from None
        return lambda: None  # some network file systems know no locks; the run is still worth having

    def release() -> None:
        # The file goes first: whoever got hold of it looks whether it is still there.
        if held.is_locked:
            with suppress(OSError):  # the folder may be gone, or (on Windows) the file in use till the next line
                path.unlink()
            held.release()

    return release


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
    there = folder.iterdir() if folder.exists() else ()  # an empty folder of a store of objects is none
    for path in sorted(path for path in there if path.name != LOCK):
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
    bare = [path.name for path in files if path.parent == folder and not path.name.endswith(TEMPORARY)]
    if bare and not (folder / RUN).is_file():
        raise OptionError(
            f"{str(folder)!r} holds {bare[0]!r} but no {RUN}, so it is not a run and --force removes nothing; "
            f"choose another --out."
        )


def _is_own(path: Path, folder: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    pattern = _OWN if path.parent == folder else _OWN_INSIDE[path.relative_to(folder).parts[0]]
    return pattern.fullmatch(path.name.removesuffix(TEMPORARY)) is not None


FORMAT = 3
#: What the store itself says in run.json, beside the manifest.
OWN = ("format", "status", "created", "updated", "parts", "cases", "content", "versions", "schema", "scale")
#: What the values of run.json are, where anything depends on it.
FIELDS: dict[str, Any] = {
    "status": Literal["running", "finished", "interrupted", "failed"],
    **dict.fromkeys(("created", "updated", "subject", "strategy", "partition", "measure", "made_by"), str),
    **dict.fromkeys(("parts", "cases", "seed", "repeats"), int),
    **dict.fromkeys(("content", "source", "ray", "where"), str | None),
    **dict.fromkeys(("identity", "options", "schema", "scale"), dict[str, Any]),
    "versions": dict[str, str],
    "budget": dict[str, float | list[int] | None],
    "noise": dict[str, float] | None,
    "quality": dict[str, float | str | None] | None,
    **dict.fromkeys(("within", "batch", "threads", "workers", "shards"), int | None),
    "protected": list[str],
    "checks": dict[str, Any],
    "epsilon": float,
    "min_plausibility": float | None,
    "as_is": bool,
    "buckets": int,
}
#: What the run.json of every search has.
SEARCHED = ("subject", "protected", "strategy", "options", "seed", "epsilon", "partition", "budget")
#: Cases are cut into far fewer buckets, and no run has more cases than its columns can number.
MAX_BUCKETS, MAX_COUNT = 65_536, 2**62
#: What may differ when a run goes on: how long it may take, who does it, and what only tells about the model (see
#: ``search/shards.py``).
MAY_DIFFER = ("budget", "threads", "workers", "ray", "quality", "as_is")
#: What is compared in another way (scores within rounding), or was measured afresh.
JUDGED = ("identity", "noise")
#: Stands where run.json would, for the audit of a table of scores.
SCORES_RECORD = "scores.json"


def new_record(manifest: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The first run.json of a run."""
    made = provenance()
    return {
        "format": FORMAT,
        "status": "running",
        "created": made["created"],
        "updated": made["created"],
        "parts": 0,
        "cases": 0,
        "content": None,
        **plain(manifest),
        "made_by": made["made_by"],
        "versions": made["versions"],
        "schema": plain(document_of_schema(schema).unwrap()),
        "scale": {"faults": []},
    }


def provenance() -> dict[str, Any]:
    """When something is made, by whom and with what, as run.json and scores.json say it."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may know nobody
        user = "unknown"
    found = {"python": platform.python_version(), "fairbits": __version__}
    for package in ("numpy", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return {"created": timestamp(), "made_by": user, "versions": found}


def read_record(folder: Path) -> dict[str, Any]:
    """run.json of an existing run."""
    if not (folder / RUN).is_file():
        if (folder / SCORES_RECORD).is_file():
            raise OptionError(
                f"{str(folder)!r} is the audit of a table of scores: it has groups and indirect bits (report.html, "
                f"proxies.json), and no cases."
            )
        what = "has no run.json, so it is not a run" if folder.is_dir() else "does not exist"
        raise OptionError(f"{str(folder)!r} {what}; give the folder that `fairbits search --out` wrote.")
    record = read_json(folder / RUN)
    if record.get("format") != FORMAT:
        raise OptionError(
            f"the run in {str(folder)!r} has format {record.get('format')!r}, but this fairbits reads {FORMAT}; "
            f"use the version that wrote it, or search again."
        )
    searched = SEARCHED if "strategy" in record or "identity" in record else ()
    check_fields(record, FIELDS, folder / RUN, needed=(*OWN, *searched))
    check_fields(record["scale"], {"done": int}, folder / RUN)
    if record.get("quality") is not None:
        with reading(folder / RUN, RESTORE):
            record_from_json(Quality, record["quality"])
    counts = [record["parts"], record["cases"], record.get("buckets", 1) - 1]
    if min(counts) < 0 or max(counts) > MAX_COUNT or counts[-1] >= MAX_BUCKETS or not record.get("epsilon", 1.0) > 0:
        raise OptionError(f"{str(folder / RUN)!r} is damaged (one of its counts cannot be); restore it from a copy.")
    return record


def manifest_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """The part of run.json that the search wrote."""
    return {name: value for name, value in record.items() if name not in (*OWN, "made_by", "checks")}


def note_checks(folder: Path, **checks: Any) -> dict[str, Any]:
    """Put checks (round trip, written file, contradictions, stages that could not be done) on record in the run.json of
    a run that nobody writes; gives all that are known.
    """
    if not (folder / RUN).is_file():
        return checks
    record = read_json(folder / RUN)
    known = {**record.get("checks", {}), **plain(checks)}
    if record.get("status") != "running" and known != record.get("checks"):
        with suppress(OSError):  # a folder that may only be read: the page says it all the same
            write_json(folder / RUN, record | {"checks": known})
    return known


def check_same(stored: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse to go on with other settings."""
    differences = list(_differences(stored, plain(asked)))
    if differences:
        raise OptionError(
            f"this run cannot go on, because it was made with {'; '.join(differences)}; "
            f"repeat the same settings, or start a new run."
        )


def timestamp() -> str:
    """Now, in a form that sorts."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _differences(stored: Mapping[str, Any], asked: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for name in dict.fromkeys((*stored, *asked)):
        if not path and name in (*MAY_DIFFER, *JUDGED, "checks"):
            continue
        was, now = stored.get(name), asked.get(name)
        if isinstance(was, Mapping) and isinstance(now, Mapping):
            yield from _differences(was, now, f"{path}{name}.")
        elif was != now:
            yield f"{path}{name} {_shown(was)}, but {_shown(now)} was asked for"


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value) or "nothing"
    return str(value) if len(str(value)) <= 60 else str(value)[:59] + "…"


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """How far a task is."""

    number: int
    token: str
    parts: tuple[str, ...] = ()
    rows: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    state: dict[str, Any] | None = None
    ended: str | None = None
    tally: dict[str, Any] = field(default_factory=dict)
    findings: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the file that the record is kept in."""
        return f"{self.number:06d}-{self.token}.json"

    def write(self, folder: Path) -> None:
        """Write the record, whole or not at all."""
        write_json(folder / TASKS / self.name, plain(self))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the record in a file."""
        remedy = f"{RESTORE}, or delete it and go on with --resume, which finds its cases again"
        document = read_json(path, remedy=remedy)
        with reading(path, remedy):
            if set(document) != {one.name for one in fields(cls)}:
                raise ValueError("it is no record of a task")
            record = record_from_json(cls, document)
            if min(record.number, record.rows, record.evaluations) < 0 or len(set(record.parts)) < len(record.parts):
                raise ValueError("its counts or its parts cannot be")
        return record


def read_records(folder: Path, number: int | None = None) -> dict[int, TaskRecord]:
    """The furthest record of every task, or of one."""
    found = all_records(folder, number)
    found.sort(key=lambda one: (one.number, one.evaluations, one.rows, one.ended is not None, one.token))
    return {record.number: record for record in found}  # the last of each stays


def all_records(folder: Path, number: int | None = None) -> list[TaskRecord]:
    """Every record there is, of all attempts."""
    place = folder / TASKS
    if not place.is_dir():
        return []
    found = [(match, path) for path in place.iterdir() if (match := RECORD.fullmatch(path.name))]
    paths = sorted(path for match, path in found if number is None or int(match[1]) == number)
    return spread(TaskRecord.read, paths)


def redo(folder: Path, numbers: Mapping[int, TaskRecord]) -> None:
    """Have tasks whose parts are damaged done again: how far they got stays on record, so that no time is lost."""
    for number, record in numbers.items():
        for other in all_records(folder, number):
            (folder / TASKS / other.name).unlink(missing_ok=True)
        TaskRecord(number, record.token, evaluations=record.evaluations, seconds=record.seconds).write(folder)
