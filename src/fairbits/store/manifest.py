"""run.json: what was run, how far it got, and whether it may go on."""

from __future__ import annotations

import getpass
import platform
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from fairbits._version import __version__
from fairbits.domain import Schema
from fairbits.errors import OptionError
from fairbits.shape import check_fields, check_record, reading
from fairbits.store.files import plain, read_json, write_json
from fairbits.store.folder import RUN
from fairbits.subject import Quality, document_of_schema, schema_of_document

FORMAT = 3
STATUSES = ("running", "finished", "interrupted", "failed")
#: What the store itself says in run.json, beside the manifest.
OWN = ("format", "status", "created", "updated", "parts", "cases", "content", "versions", "schema", "scale")
#: What the values of run.json are, where anything depends on it.
FIELDS: dict[str, Any] = {
    "status": Literal["running", "finished", "interrupted", "failed"],
    **dict.fromkeys(("created", "updated", "subject", "strategy", "partition", "measure", "made_by"), str),
    **dict.fromkeys(("parts", "cases", "seed", "repeats"), int),
    **dict.fromkeys(("content", "source", "ray"), str | None),
    **dict.fromkeys(("identity", "options", "schema", "scale", "checks"), dict[str, Any]),
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
#: ``search/resume.py``).
MAY_DIFFER = ("budget", "threads", "workers", "ray", "quality", "as_is")
#: What is compared in another way (scores within rounding), or was measured afresh.
JUDGED = ("identity", "noise")
#: Stands where run.json would, for the audit of a table of scores.
SCORES_RECORD = "scores.json"


def new_record(manifest: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The first run.json of a run."""
    taken = sorted(set(manifest) & set(OWN))
    if taken:
        raise ValueError(f"the manifest must not use the names {', '.join(taken)}")
    now = timestamp()
    return {
        "format": FORMAT,
        "status": "running",
        "created": now,
        "updated": now,
        "parts": 0,
        "cases": 0,
        "content": None,
        **plain(manifest),
        "made_by": _user(),
        "versions": _versions(),
        "schema": plain(document_of_schema(schema).unwrap()),
        "scale": {"faults": []},
    }


def provenance() -> dict[str, Any]:
    """When something is made, by whom and with what, as run.json and scores.json say it."""
    return {"created": timestamp(), "made_by": _user(), "versions": _versions()}


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
    if record.get("quality") is not None:
        with reading(folder / RUN, "restore it from a copy"):
            check_record(Quality.of_figures(record["quality"]))
    counts = [record["parts"], record["cases"], record.get("buckets", 1) - 1]
    if min(counts) < 0 or max(counts) > MAX_COUNT or counts[-1] >= MAX_BUCKETS or not record.get("epsilon", 1.0) > 0:
        raise OptionError(f"{str(folder / RUN)!r} is damaged (one of its counts cannot be); restore it from a copy.")
    return record


def manifest_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """The part of run.json that the search wrote."""
    return {name: value for name, value in record.items() if name not in (*OWN, "made_by", "checks")}


def note_checks(folder: Path, **checks: Any) -> None:
    """Put checks (round trip, written file, contradictions) on record in the run.json of a run that nobody writes."""
    if not (folder / RUN).is_file():
        return
    record = read_json(folder / RUN)
    known = {**record.get("checks", {}), **plain(checks)}
    if record.get("status") != "running" and known != record.get("checks"):
        with suppress(OSError):  # a folder that may only be read: the page says it all the same
            write_json(folder / RUN, record | {"checks": known})


def schema_of(record: Mapping[str, Any]) -> Schema:
    """The schema that the run was made with."""
    return schema_of_document(record["schema"])


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
    text = str(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _user() -> str:
    """Who is at work, as the system calls them; a container may know nobody."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "fairbits": __version__}
    for package in ("numpy", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
