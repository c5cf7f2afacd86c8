"""Writing a run that many hands search: what the coordinator keeps, while shards write their cases by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from fairbits.domain import Schema
from fairbits.errors import OptionError
from fairbits.store import folder as places
from fairbits.store import manifest as manifests
from fairbits.store import parts, shards
from fairbits.store.files import write_json
from fairbits.store.places import place_of, reaching
from fairbits.store.records import Layout


class ShardedWriter:
    """The record of one run. Make it with ``create`` or ``resume``; ``complete`` are the shards that need no work."""

    def __init__(self, folder: Path, record: dict[str, Any], handle: places.Lock | None, *, new: bool):
        self.folder, self.new = folder, new
        self.schema = manifests.schema_of(record)
        self.complete: dict[int, dict[str, Any]] = {}
        self._record = record
        self._handle = handle

    @classmethod
    def create(cls, folder: str | Path, manifest: Mapping[str, Any], schema: Schema, *, force: bool = False) -> Self:
        """Start a run in a new or empty place; with ``force`` an earlier run there is replaced."""
        place = place_of(folder)
        record = manifests.new_record(manifest, schema) | {"scale": {"faults": []}}
        with _opening(place):
            places.prepare(place, force=force)
        writer = cls(place, record, places.lock(place), new=True)
        with _opening(place, writer):
            places.clear(place)
            (place / shards.FOLDER).mkdir(exist_ok=True)
            write_json(place / places.RUN, record)
        return writer

    @classmethod
    def resume(cls, folder: str | Path, manifest: Mapping[str, Any]) -> Self:
        """Go on with a run that was made with the same settings (only the budget of time and the hands may differ).

        Shards whose parts are missing or damaged are no longer complete: they are done again.
        """
        place = place_of(folder)
        with _opening(place):
            record = manifests.read_record(place)
        stored = manifests.manifest_of(record)
        manifests.check_same(stored, manifest)
        _check_budget(stored["budget"], manifest["budget"])
        record |= {name: value for name, value in manifest.items() if name in manifests.MAY_DIFFER}
        writer = cls(place, record, places.lock(place), new=False)
        with _opening(place, writer):
            places.remove_leftovers(place)
            (place / shards.FOLDER).mkdir(exist_ok=True)
            writer._restore()
            writer.write("running")
        return writer

    def _restore(self) -> None:
        _, damaged = shards.find_parts(self.folder, Layout(self.schema), deep=True)
        for name in damaged:
            (self.folder / shards.FOLDER / shards.record_name(shards.number_of(name))).unlink(missing_ok=True)
            part = self.folder / parts.FOLDER / name
            if part.is_file():
                part.rename(part.with_name(name + parts.SET_ASIDE))
        self.complete = shards.read_records(self.folder)

    @property
    def status(self) -> str:
        """How it stands, as run.json says or would say."""
        return str(self._record["status"])

    @property
    def facts(self) -> dict[str, Any]:
        """What is on record about how the run is carried out."""
        return dict(self._record["scale"])

    def note(self, fault: Mapping[str, Any] | None = None, **facts: Any) -> None:
        """Put something on record: a fault, or facts about how the run is carried out."""
        self._record["scale"] |= facts
        if fault is not None:
            self._record["scale"]["faults"].append({**fault, "when": manifests.timestamp()})

    def write(self, status: str) -> None:
        """Bring run.json up to date."""
        written = sum(len(record["parts"]) for record in self.complete.values())
        self._record |= {"status": status, "updated": manifests.timestamp(), "parts": written}
        write_json(self.folder / places.RUN, self._record)

    def finish(self, status: str, summary: Mapping[str, Any] | None) -> None:
        """Write the summary and, last, the status."""
        if status not in manifests.STATUSES:
            raise ValueError(f"status is one of {', '.join(manifests.STATUSES)}, not {status!r}")
        try:
            if summary is not None:
                self._record["cases"] = summary["cases"]
                write_json(self.folder / places.SUMMARY, summary)
            self.write(status)
        finally:
            self.close()

    def withdraw(self) -> None:
        """Leave the place as it was found: nothing has been searched."""
        try:
            places.clear(self.folder)
            for name in (parts.FOLDER, shards.FOLDER):
                if (self.folder / name).is_dir():
                    (self.folder / name).rmdir()
        finally:
            self.close()

    def close(self) -> None:
        """Let other writers in."""
        if self._handle is not None:
            self._handle.release()
            self._handle = None


def _check_budget(was: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Shards are cut from the budget: only the time may be another."""
    for name in ("evaluations", "cases", "queries"):
        if was.get(name) != now.get(name):
            raise OptionError(
                f"this run cannot go on with a budget of {now.get(name)} {name}: its shards were cut from "
                f"{was.get(name)}; repeat that budget, or start a new run."
            )


@contextmanager
def _opening(place: Path, writer: ShardedWriter | None = None) -> Iterator[None]:
    """Whatever goes wrong before the first case: let go of the place, and say why in one sentence."""
    try:
        with reaching(place):
            yield
    except BaseException as error:
        if writer is not None:
            writer.close()
        if isinstance(error, OSError):
            raise places.unwritable(place, error) from None
        raise
