"""Writing a run: its coordinator keeps folder, lock, manifest and tasks; every task buffers its cases and has a thread
write them as parts, of which its record says what counts.
"""

from __future__ import annotations

import errno
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairbits.domain import Codes, Schema
from fairbits.errors import FairbitsError
from fairbits.store.files import place_of, reaching, write_json
from fairbits.store.folder import (
    MAY_DIFFER,
    RUN,
    SUMMARY,
    TASKS,
    TaskRecord,
    check_present,
    check_same,
    clear,
    lock,
    manifest_of,
    new_record,
    prepare,
    read_record,
    read_records,
    redo,
    remove_leftovers,
    timestamp,
    unwritable,
)
from fairbits.store.parts import BUCKET, CASES, SET_ASIDE, Layout, Part, check_parts, codes_in, write_part, write_rows
from fairbits.subject import schema_of_document

Figures = Mapping[str, Any]
#: Gives the figures of people that follow from their codes alone.
Complete = Callable[[Codes], Figures]


class Block:
    """Rows as they were appended, and as a batch.

    Making that is the expensive part and can happen in another thread, for all rows at once: ``complete`` is asked
    there for the figures that the search has no need of.
    """

    def __init__(self, layout: Layout, complete: Complete):
        self.rows = 0
        self._layout, self._complete = layout, complete
        self._pieces: list[tuple[Codes, dict[str, npt.NDArray[Any]]]] = []
        self._batch: pa.RecordBatch | None = None

    def add(self, codes: Codes, figures: Figures) -> None:
        """Copy some rows; a single figure counts for all of them."""
        columns = {name: np.array(np.broadcast_to(value, len(codes))) for name, value in figures.items()}
        self._pieces.append((np.array(codes), columns))
        self.rows += len(codes)

    def batch(self) -> pa.RecordBatch:
        """The rows as they are stored, made once."""
        if self._batch is None:
            codes = np.concatenate([piece for piece, _ in self._pieces])
            names = self._pieces[0][1]
            figures = {name: np.concatenate([columns[name] for _, columns in self._pieces]) for name in names}
            self._batch, self._pieces = self._layout.batch(codes, {**figures, **self._complete(codes)}), []
        return self._batch


#: Jobs that may wait. One more, and the search waits: memory stays bounded however slow the disk is.
WAITING = 2
#: A part is written when it has so many rows, or when so many seconds have passed.
PART_ROWS = 262_144
FLUSH_SECONDS = 4.0
#: Rows that are completed together, well before their part is due: the last flush of a run shall not take long.
BLOCK_ROWS = 16_384
#: Rows of a part for every bucket, where there are many: row groups must not become too small.
ROWS_PER_BUCKET = 8_192
_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class WriteError(FairbitsError):
    """A disk or a store that takes nothing more; trying again later may help."""

    errno: int | None = None


class TaskWriter:
    """Takes the cases of one attempt at a task. Whatever has been flushed counts, whatever happens afterwards."""

    def __init__(
        self,
        folder: Path,
        layout: Layout,
        number: int,
        *,
        offset: int = 0,
        buckets: int = 1,
        before: TaskRecord | None = None,
        complete: Complete = lambda _: {},
        in_step: bool = False,
        part_rows: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.folder, self.layout, self.offset = folder, layout, offset
        token = uuid.uuid4().hex[:8]  # no other attempt, on whatever machine, writes to the same names
        self.before = before
        self.record = TaskRecord(number, token) if before is None else replace(before, token=token, ended=None)
        self._buckets = buckets
        self._part_rows = part_rows or max(PART_ROWS, buckets * ROWS_PER_BUCKET)
        self._clock, self._complete, self._in_step = clock, complete, in_step
        self._buffer: list[Block] = []
        self._rows = 0
        self._state: dict[str, Any] | None = None
        self._reached = (self.record.evaluations, self.record.seconds)
        self._job: Callable[[], None] | None = None
        self._number, self._flushed_at = 0, clock()
        # Jobs are done in order; after the first that fails, whose error is kept, the others are dropped.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fairbits-store")
        self._jobs: deque[Future[None]] = deque()
        self._error: BaseException | None = None

    def stored_codes(self, *, rows: int = 65_536) -> Iterator[Codes]:
        """Codes of the cases that the attempt before left."""
        names = () if self.before is None else self.before.parts
        return codes_in([Part(self.folder / CASES / name, 0) for name in names], self.layout, rows=rows)

    def append(
        self,
        codes: Codes,
        figures: Mapping[str, Any],
        origin: Any,
        *,
        keys: npt.NDArray[np.uint64] | None = None,
    ) -> None:
        """Keep some cases; they are on disk after the next flush, which comes by itself within a few seconds."""
        self._raise_failure()
        if len(codes):
            if not self._buffer or self._buffer[-1].rows >= BLOCK_ROWS:
                self._buffer.append(Block(self.layout, self._complete))
            block = self._buffer[-1]
            numbers = np.asarray(figures["evaluation"])
            # The high bits, which the filter of those seen before does not share out by.
            high = 0 if self._buckets == 1 else (np.asarray(keys) >> np.uint64(48)) % np.uint64(self._buckets)
            own = {
                "evaluation": numbers + self.offset,
                "origin": np.asarray(origin, dtype=np.str_),
                BUCKET: np.asarray(high, np.int16),
            }
            block.add(codes, {**figures, **own})
            self._rows += len(codes)
            evaluations, seconds = self._reached
            if numbers.max() >= evaluations:
                self._reached = int(numbers.max()) + 1, max(float(np.max(figures["seconds"])), seconds)
            if block.rows >= BLOCK_ROWS:
                self._do(block.batch)
        self.tick()

    def checkpoint(self, state: Mapping[str, Any]) -> None:
        """Note the state of the search at the end of a round; it reaches the disk with the next flush, after
        its cases.
        """
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
        self._wait(0)
        self._raise_failure()

    def commit(
        self, ended: str, *, evaluations: int, seconds: float, tally: Mapping[str, Any], findings: Mapping[str, Any]
    ) -> TaskRecord:
        """Write down that the task has ended."""
        self.flush()
        self.record = replace(
            self.record,
            evaluations=evaluations,
            seconds=seconds,
            ended=ended,
            tally=dict(tally),
            findings=dict(findings),
        )
        self._write_record()
        return self.record

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever ended it: what has been found is put on disk, where that is still possible."""
        try:
            if self._error is None:
                self._hand_over()
        finally:
            self._thread.shutdown()

    def _hand_over(self) -> None:
        # Interrupted between two of these lines (Ctrl-C), the job is handed over again, which writes the same
        # part again under the same name: nothing is lost and nothing doubled.
        if self._job is None and (self._buffer or self._state is not None):
            job, after = self._job_of(self._buffer, self._rows, self._state), self._number + bool(self._buffer)
            self._job, self._number, self._buffer, self._rows, self._state = job, after, [], 0, None
        self._flushed_at = self._clock()
        if self._job is not None:
            self._do(self._job)
            self._job = None

    def _job_of(self, blocks: list[Block], rows: int, state: dict[str, Any] | None) -> Callable[[], None]:
        # The task, the attempt at it, and its place in that attempt.
        name = f"part-{self.record.number:06d}-{self.record.token}-{self._number:04d}.parquet"
        evaluations, seconds = self._reached

        def job() -> None:
            if blocks:
                batches = [block.batch() for block in blocks]
                write_part(self.folder / CASES / name, batches, self.layout, buckets=self._buckets)
            # The record promises that everything it names is there: hence after the part, never before.
            listed = self.record.parts if name in self.record.parts or not blocks else (*self.record.parts, name)
            kept = self.record.rows + (rows if listed is not self.record.parts else 0)
            self.record = replace(
                self.record,
                parts=listed,
                rows=kept,
                evaluations=evaluations,
                seconds=seconds,
                state=state or self.record.state,
            )
            self._write_record()

        return job

    def _write_record(self) -> None:
        self.record.write(self.folder)
        if self.before is not None and self.before.token != self.record.token:
            # What it said is in the new record now.
            (self.folder / TASKS / self.before.name).unlink(missing_ok=True)

    def _do(self, job: Callable[[], object]) -> None:
        self._jobs.append(self._thread.submit(self._unless_failed, job))
        self._wait(0 if self._in_step else WAITING)

    def _unless_failed(self, job: Callable[[], object]) -> None:
        try:
            if self._error is None:
                job()
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that appends
            self._error = error

    def _wait(self, jobs: int) -> None:
        """Wait until no more than so many jobs are left to do."""
        while len(self._jobs) > jobs:
            self._jobs[0].result()
            self._jobs.popleft()

    def _raise_failure(self) -> None:
        if self._error is not None:
            raise self._failure(self._error) from self._error

    def _failure(self, error: BaseException) -> FairbitsError:
        try:
            check_present(self.folder)
        except FairbitsError as gone:
            return gone
        safe = f"{self.record.rows:,} cases are safe" if self.record.rows else "no case had been written yet"
        if isinstance(error, OSError) and error.errno in _FULL:
            what, remedy = f"no space left for the run in {str(self.folder)!r}", "free space"
        else:
            reason = getattr(error, "strerror", None) or repr(error)
            what, remedy = f"cannot write the run in {str(self.folder)!r} ({reason})", "mend that"
        sentence = f"{what}; {safe}; {remedy} and go on with --resume."
        failure = WriteError(sentence)
        failure.errno = getattr(error, "errno", None)  # pickled with the error, where this is a worker
        return failure


class RunWriter:
    """The record of one run, held by whoever coordinates it. Make it with ``create`` or ``resume``."""

    def __init__(self, folder: Path, record: dict[str, Any], release: Callable[[], None], *, new: bool):
        self.folder, self.new, self.schema = folder, new, schema_of_document(record["schema"])
        self.records: dict[int, TaskRecord] = {}
        #: What run.json says, or will say.
        self.record = record
        #: Lets go of the lock: another writer may open the run.
        self.close = release

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
        record = new_record(manifest, schema)
        with _opening(place):
            prepare(place, force=force)
        writer = cls(place, record, lock(place), new=True)
        with _opening(place, writer):
            clear(place)
            (place / TASKS).mkdir(exist_ok=True)
            write_json(place / RUN, record)
            if people is not None:
                write_rows(place, schema, people)
        return writer

    @classmethod
    def resume(cls, folder: str | Path, manifest: Mapping[str, Any]) -> Self:
        """Go on with a run that was made with the same settings (only what ``MAY_DIFFER`` names may differ).

        Tasks whose parts are missing or damaged are begun again.
        """
        place = place_of(folder)
        with _opening(place):
            record = read_record(place)
        check_same(manifest_of(record), manifest)
        record |= {name: value for name, value in manifest.items() if name in MAY_DIFFER}
        record["content"] = None  # until the search has ended again
        writer = cls(place, record, lock(place), new=False)
        with _opening(place, writer):
            remove_leftovers(place)
            for name in (CASES, TASKS):
                (place / name).mkdir(exist_ok=True)
            writer._restore()
            writer.write("running")
        return writer

    def _restore(self) -> None:
        self.records = read_records(self.folder)
        names = [name for record in self.records.values() for name in record.parts]
        _, damaged = check_parts(self.folder, names, Layout(self.schema), deep=True)
        for name in damaged:
            part = self.folder / CASES / name
            if part.is_file():
                part.rename(part.with_name(name + SET_ASIDE))
        broken = {number: one for number, one in self.records.items() if set(one.parts) & set(damaged)}
        if broken:
            redo(self.folder, broken)
            self.records = read_records(self.folder)

    def note(self, fault: Mapping[str, Any] | None = None, **facts: Any) -> None:
        """Put a fault, or facts about how the run is executed, on record."""
        self.record["scale"] |= facts
        if fault is not None:
            self.record["scale"]["faults"].append({**fault, "when": timestamp()})

    def write(self, status: str) -> None:
        """Bring run.json up to date."""
        written = sum(len(record.parts) for record in self.records.values())
        self.record |= {"status": status, "updated": timestamp(), "parts": written}
        write_json(self.folder / RUN, self.record)

    def finish(self, status: str, summary: Mapping[str, Any] | None = None) -> None:
        """Write the summary and, last, the status."""
        try:
            if summary is not None:
                self.record["cases"] = summary.get("cases", 0)
                self.record["content"] = summary.get("content")
                write_json(self.folder / SUMMARY, summary)
            self.write(status)
        finally:
            self.close()

    def withdraw(self) -> None:
        """Leave the place as it was found: nothing has been searched."""
        try:
            clear(self.folder)
            for name in (CASES, TASKS):
                if (self.folder / name).is_dir():
                    (self.folder / name).rmdir()
        finally:
            self.close()


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
            raise unwritable(place, error) from None
        raise
