"""Writing a run: cases are buffered, written as whole parts by a thread of their own, and never lost once flushed.

What a case needs besides (its distance to real people, say) is worked out in that thread too, many rows at a time.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from fairbits.domain import Schema
from fairbits.domain.attribute import Codes
from fairbits.errors import FairbitsError
from fairbits.store import folder as places
from fairbits.store import manifest as manifests
from fairbits.store import parts
from fairbits.store.block import Block, Complete, nothing_more
from fairbits.store.files import read_json, write_json
from fairbits.store.places import place_of
from fairbits.store.records import Layout
from fairbits.store.worker import Worker

#: A part is written when it has so many rows, or when so many seconds have passed.
PART_ROWS = 262_144
FLUSH_SECONDS = 4.0
#: Rows that are completed together, well before their part is due: the last flush of a run shall not take long.
BLOCK_ROWS = 16_384

_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class RunWriter:
    """One run being written. Make it with ``create`` or ``resume``; end it with ``finish``, or as a context manager."""

    def __init__(
        self,
        folder: Path,
        record: dict[str, Any],
        handle: places.Lock | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        part_rows: int = PART_ROWS,
        complete: Complete = nothing_more,
        in_step: bool = False,
    ):
        self.folder = folder
        self.schema = manifests.schema_of(record)
        self.layout = Layout(self.schema)
        self.last_checkpoint: dict[str, Any] | None = None
        self.damaged: dict[str, str] = {}
        self.cases = 0  # appended so far, those of the resumed run included
        self._stored: list[parts.Part] = []
        self._record = record
        self._handle = handle
        self._clock = clock
        self._part_rows = part_rows
        self._complete = complete
        self._in_step = in_step
        self._buffer: list[Block] = []
        self._rows = 0
        self._state: dict[str, Any] | None = None
        self._job: Callable[[], None] | None = None
        self._number = 0
        self._safe = 0
        self._flushed_at = clock()
        self._raised = False
        self._worker = Worker()

    @classmethod
    def create(
        cls,
        folder: str | Path,
        manifest: Mapping[str, Any],
        schema: Schema,
        *,
        force: bool = False,
        **how: Any,
    ) -> Self:
        """Start a run in a new or empty folder; with ``force`` an earlier run there is replaced.

        ``complete`` gives the figures that an append leaves out. ``in_step`` makes appending wait for the writing
        thread, so that never more than one of the two works.
        """
        place = place_of(folder)
        record = manifests.new_record(manifest, schema)
        places.prepare(place, force=force)
        writer = cls(place, record, places.lock(place), **how)
        with writer._opening():
            places.clear(place)
            write_json(place / places.RUN, record)
        return writer

    @classmethod
    def resume(
        cls,
        folder: str | Path,
        manifest: Mapping[str, Any],
        **how: Any,
    ) -> Self:
        """Go on with a run that was made with the same settings (only the budget and the hands may differ).

        ``last_checkpoint`` is what the search last knew to be complete, ``stored_codes`` gives what is already there,
        and ``damaged`` names parts that had to be set aside: their cases are found again only as far as the search
        repeats the rounds after the checkpoint.
        """
        place = place_of(folder)
        record = manifests.read_record(place)
        manifests.check_same(manifests.manifest_of(record), manifest)
        record |= {name: value for name, value in manifest.items() if name in manifests.MAY_DIFFER}
        writer = cls(place, record, places.lock(place), **how)
        with writer._opening():
            places.remove_leftovers(place)
            (place / parts.FOLDER).mkdir(exist_ok=True)
            writer._restore()
            writer._write_record("running")
        return writer

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Whatever goes wrong before the first case: let go of the folder, and say why."""
        try:
            yield
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise places.unwritable(self.folder, error) from None
            raise

    def _restore(self) -> None:
        self._stored, self.damaged = parts.find_parts(self.folder, self.layout, deep=True)
        for name in self.damaged:
            path = self.folder / parts.FOLDER / name
            if path.is_file() and not name.endswith(parts.SET_ASIDE):
                path.rename(path.with_name(name + parts.SET_ASIDE))
        numbers = [part.number for part in self._stored] + [parts.number_of(name) for name in self.damaged]
        self._number = max([*numbers, int(self._record["parts"]) - 1], default=-1) + 1
        self.cases = self._safe = sum(part.rows for part in self._stored)
        if (self.folder / places.CHECKPOINT).is_file():
            self.last_checkpoint = read_json(self.folder / places.CHECKPOINT)

    def stored_codes(self, *, rows: int = 65_536) -> Iterator[Codes]:
        """Codes of the cases that were there on resuming, as full rows (protected attributes at their lowest value)."""
        return parts.codes_in(self._stored, self.layout, rows=rows)

    def append(self, codes: Codes, figures: Mapping[str, Any], origin: Any) -> None:
        """Keep some cases. They are on disk after the next flush, which comes by itself within a few seconds."""
        self._raise_failure()
        if len(codes):
            if not self._buffer or self._buffer[-1].rows >= BLOCK_ROWS:
                self._buffer.append(Block(self.layout, self._complete))
            block = self._buffer[-1]
            block.add(codes, figures, origin)
            self.cases += len(codes)
            self._rows += len(codes)
            if block.rows >= BLOCK_ROWS:
                self._do(block.settle)
        self.tick()

    def checkpoint(self, state: Mapping[str, Any]) -> None:
        """Note how far the search is. It reaches the disk with the next flush, after the cases that it speaks of."""
        self._raise_failure()
        self._state = dict(state)
        self.tick()

    def tick(self) -> None:
        """Hand rows to the writing thread if there are enough of them, or if it is time. Call it when waiting."""
        if self._rows >= self._part_rows or self._clock() - self._flushed_at >= FLUSH_SECONDS:
            self._hand_over()

    def flush(self) -> None:
        """Wait until everything appended so far is on disk."""
        self._hand_over()
        self._worker.wait()
        self._raise_failure()

    def finish(self, status: str, summary: Mapping[str, Any] | None = None) -> None:
        """Flush, write the summary and, last, the status."""
        if status not in manifests.STATUSES:
            raise ValueError(f"status is one of {', '.join(manifests.STATUSES)}, not {status!r}")
        try:
            if not self._raised:
                self._flush_or_note_failure()
            if summary is not None:
                write_json(self.folder / places.SUMMARY, summary)
            self._write_record(status)
        except OSError as error:
            if not self._raised:  # a full disk was already reported; what is safe stays safe without this status
                raise self._failure(error) from error
        finally:
            self.close()

    def _flush_or_note_failure(self) -> None:
        try:
            self.flush()
        except FairbitsError:
            with suppress(OSError):
                self._write_record("failed")
            raise

    def close(self) -> None:
        """End the thread and let other writers in, without a status: what was handed over is still written."""
        self._worker.stop()
        if self._handle is not None:
            self._handle.release()
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """A run that was not finished by hand ends as what happened to it."""
        if self._record["status"] != "running":
            return
        if kind is None:
            self.finish("finished")
        else:
            self.finish("interrupted" if issubclass(kind, KeyboardInterrupt) else "failed")

    def _hand_over(self) -> None:
        # Interrupted between two of these lines (Ctrl-C), the job is handed over again, which writes the same
        # part again under the same number: nothing is lost and nothing doubled.
        if self._job is None and (self._buffer or self._state is not None):
            job, after = self._job_of(self._buffer, self._state), self._number + bool(self._buffer)
            self._job, self._number, self._buffer, self._rows, self._state = job, after, [], 0, None
        self._flushed_at = self._clock()
        if self._job is not None:
            self._do(self._job)
            self._job = None

    def _do(self, job: Callable[[], None]) -> None:
        self._worker.put(job)
        if self._in_step:
            self._worker.wait()

    def _job_of(self, blocks: list[Block], state: dict[str, Any] | None) -> Callable[[], None]:
        number, safe = self._number, self.cases

        def job() -> None:
            if blocks:
                batches = [block.batch() for block in blocks]
                parts.write_part(self.folder / parts.FOLDER / parts.name_of(number), batches, self.layout)
                self._record["parts"] = number + 1
                self._safe = safe
            # A checkpoint promises that everything before it is there: hence after the part, never before.
            if state is not None:
                write_json(self.folder / places.CHECKPOINT, state)
            self._write_record("running")

        return job

    def _write_record(self, status: str) -> None:
        self._record |= {"status": status, "updated": manifests.timestamp(), "cases": self._safe}
        write_json(self.folder / places.RUN, self._record)

    def _raise_failure(self) -> None:
        error = self._worker.error
        if error is None:
            return
        self._raised = True
        raise self._failure(error) from error

    def _failure(self, error: BaseException) -> FairbitsError:
        if isinstance(error, OSError) and error.errno in _FULL:
            what = f"no space left for the run in {str(self.folder)!r}"
        else:
            what = f"cannot write the run in {str(self.folder)!r} ({getattr(error, 'strerror', None) or error!r})"
        try:
            places.check_present(self.folder)
        except FairbitsError as gone:
            return gone
        last = int(self._record["parts"]) - 1
        safe = f"{self._safe:,} cases up to part {last} are safe" if last >= 0 else "no case had been written yet"
        remedy = "free space" if what.startswith("no space") else "mend that"
        return FairbitsError(f"{what}; {safe}; {remedy} and go on with --resume.")
