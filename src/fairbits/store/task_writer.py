"""How a task keeps its cases: buffered, checked and written as Parquet parts, of which its record says what counts."""

from __future__ import annotations

import errno
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes
from fairbits.errors import FairbitsError
from fairbits.store import folder as places
from fairbits.store import parts, tasks
from fairbits.store.block import Block, Complete, nothing_more
from fairbits.store.cases import Layout
from fairbits.store.tasks import TaskRecord
from fairbits.store.worker import Worker
from fairbits.words import spoken

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

    def __init__(self, sentence: str, errno: int | None = None):
        super().__init__(sentence, errno)
        self.errno = errno

    def __str__(self) -> str:
        return spoken(str(self.args[0]))


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
        complete: Complete = nothing_more,
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
        self._number = 0
        self._flushed_at = clock()
        self._worker = Worker()

    @property
    def cases(self) -> int:
        """Cases so far, those of the attempt before and those that are not on disk yet included."""
        return self.record.rows + self._rows

    def stored_codes(self, *, rows: int = 65_536) -> Iterator[Codes]:
        """Codes of the cases that the attempt before left."""
        names = () if self.before is None else self.before.parts
        found = [parts.Part(self.folder / parts.FOLDER / name, 0) for name in names]
        return parts.codes_in(found, self.layout, rows=rows)

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
            moved = {**figures, "evaluation": numbers + self.offset} if self.offset else figures
            block.add(codes, moved, origin, self._bucket_of(keys))
            self._rows += len(codes)
            self._reach(int(numbers.max()) + 1, float(np.max(figures["seconds"])))
            if block.rows >= BLOCK_ROWS:
                self._do(block.settle)
        self.tick()

    def _bucket_of(self, keys: npt.NDArray[np.uint64] | None) -> Any:
        if self._buckets == 1:
            return 0
        if keys is None:
            raise ValueError("cases of several buckets need the hashes of their people")
        # The high bits, which the filter of those seen before does not share out by.
        return ((keys >> np.uint64(48)) % np.uint64(self._buckets)).astype(np.int16)

    def _reach(self, evaluations: int, seconds: float) -> None:
        if evaluations > self._reached[0]:
            self._reached = evaluations, max(seconds, self._reached[1])

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
        self._worker.wait()
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

    def close(self) -> None:
        """End the writing thread; what was handed over is still written."""
        self._worker.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever ended it: what has been found is put on disk, where that is still possible."""
        try:
            if self._worker.error is None:
                self._hand_over()
        finally:
            self.close()

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
        name = parts.name_of(self.record.number, self.record.token, self._number)
        evaluations, seconds = self._reached

        def job() -> None:
            if blocks:
                batches = [block.batch() for block in blocks]
                parts.write_part(self.folder / parts.FOLDER / name, batches, self.layout, buckets=self._buckets)
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
            (self.folder / tasks.FOLDER / self.before.name).unlink(missing_ok=True)

    def _do(self, job: Callable[[], None]) -> None:
        self._worker.put(job)
        if self._in_step:
            self._worker.wait()

    def _raise_failure(self) -> None:
        error = self._worker.error
        if error is not None:
            raise self._failure(error) from error

    def _failure(self, error: BaseException) -> FairbitsError:
        try:
            places.check_present(self.folder)
        except FairbitsError as gone:
            return gone
        safe = f"{self.record.rows:,} cases are safe" if self.record.rows else "no case had been written yet"
        if isinstance(error, OSError) and error.errno in _FULL:
            what, remedy = f"no space left for the run in {str(self.folder)!r}", "free space"
        else:
            reason = getattr(error, "strerror", None) or repr(error)
            what, remedy = f"cannot write the run in {str(self.folder)!r} ({reason})", "mend that"
        sentence = f"{what}; {safe}; {remedy} and go on with --resume."
        return WriteError(sentence, error.errno) if isinstance(error, OSError) else FairbitsError(sentence)
