"""Writing a run: its folder, lock, manifest and tasks, as its coordinator keeps them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from fairbits.domain import Codes, Schema
from fairbits.store import folder as places
from fairbits.store import manifest as manifests
from fairbits.store import parts, tasks
from fairbits.store.cases import Layout
from fairbits.store.files import write_json
from fairbits.store.location import place_of, reaching
from fairbits.store.rows import write_rows
from fairbits.store.tasks import TaskRecord


class RunWriter:
    """The record of one run, held by whoever coordinates it. Make it with ``create`` or ``resume``."""

    def __init__(self, folder: Path, record: dict[str, Any], handle: places.Lock | None, *, new: bool):
        self.folder, self.new = folder, new
        self.schema = manifests.schema_of(record)
        self.records: dict[int, TaskRecord] = {}
        self._record = record
        self._handle = handle

    @classmethod
    def create(
        cls,
        folder: str | Path,
        manifest: Mapping[str, Any],
        schema: Schema,
        *,
        force: bool = False,
        people: Codes | None = None,
    ) -> Self:
        """Start a run in a new or empty place."""
        place = place_of(folder)
        record = manifests.new_record(manifest, schema)
        with _opening(place):
            places.prepare(place, force=force)
        writer = cls(place, record, places.lock(place), new=True)
        with _opening(place, writer):
            places.clear(place)
            (place / tasks.FOLDER).mkdir(exist_ok=True)
            write_json(place / places.RUN, record)
            if people is not None:
                write_rows(place, schema, people)
        return writer

    @classmethod
    def resume(cls, folder: str | Path, manifest: Mapping[str, Any]) -> Self:
        """Go on with a run that was made with the same settings (only what ``manifests.MAY_DIFFER`` names may differ).

        Tasks whose parts are missing or damaged are begun again.
        """
        place = place_of(folder)
        with _opening(place):
            record = manifests.read_record(place)
        manifests.check_same(manifests.manifest_of(record), manifest)
        record |= {name: value for name, value in manifest.items() if name in manifests.MAY_DIFFER}
        record["content"] = None  # until the search has ended again
        writer = cls(place, record, places.lock(place), new=False)
        with _opening(place, writer):
            places.remove_leftovers(place)
            for name in (parts.FOLDER, tasks.FOLDER):
                (place / name).mkdir(exist_ok=True)
            writer._restore()
            writer.write("running")
        return writer

    def _restore(self) -> None:
        self.records = tasks.read_records(self.folder)
        names = [name for record in self.records.values() for name in record.parts]
        _, damaged = parts.check_parts(self.folder, names, Layout(self.schema), deep=True)
        for name in damaged:
            part = self.folder / parts.FOLDER / name
            if part.is_file():
                part.rename(part.with_name(name + parts.SET_ASIDE))
        broken = {number: one for number, one in self.records.items() if set(one.parts) & set(damaged)}
        if broken:
            tasks.redo(self.folder, broken)
            self.records = tasks.read_records(self.folder)

    @property
    def status(self) -> str:
        """How it stands, as run.json says or would say."""
        return str(self._record["status"])

    @property
    def facts(self) -> dict[str, Any]:
        """What is on record about how the run is carried out."""
        return dict(self._record["scale"])

    def note(self, fault: Mapping[str, Any] | None = None, **facts: Any) -> None:
        """Put a fault, or facts about how the run is executed, on record."""
        self._record["scale"] |= facts
        if fault is not None:
            self._record["scale"]["faults"].append({**fault, "when": manifests.timestamp()})

    def amend(self, **settings: Any) -> None:
        """Settle what the manifest of a new run had left open."""
        self._record |= settings

    def write(self, status: str) -> None:
        """Bring run.json up to date."""
        written = sum(len(record.parts) for record in self.records.values())
        self._record |= {"status": status, "updated": manifests.timestamp(), "parts": written}
        write_json(self.folder / places.RUN, self._record)

    def finish(self, status: str, summary: Mapping[str, Any] | None = None) -> None:
        """Write the summary and, last, the status."""
        if status not in manifests.STATUSES:
            raise ValueError(f"status is one of {', '.join(manifests.STATUSES)}, not {status!r}")
        try:
            if summary is not None:
                self._record["cases"] = summary.get("cases", 0)
                self._record["content"] = summary.get("content")
                write_json(self.folder / places.SUMMARY, summary)
            self.write(status)
        finally:
            self.close()

    def withdraw(self) -> None:
        """Leave the place as it was found: nothing has been searched."""
        try:
            places.clear(self.folder)
            for name in (parts.FOLDER, tasks.FOLDER):
                if (self.folder / name).is_dir():
                    (self.folder / name).rmdir()
        finally:
            self.close()

    def close(self) -> None:
        """Release the lock: another writer may open the run."""
        if self._handle is not None:
            self._handle.release()
            self._handle = None


@contextmanager
def _opening(place: Path, writer: RunWriter | None = None) -> Iterator[None]:
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
