"""What one shard of a search leaves on disk: parts with its cases, and a record that says that it is complete.

``cases/shard-000012-1f3a9c20-0003.parquet`` is part 3 of one attempt at shard 12; ``shards/000012.json`` is written
after the last part and names them all. Attempts at a shard ask about the same people in the same order, so whoever
reads a run takes the attempt that came furthest: the complete one, and where the clock or a person cut a search short,
the one that found most. So a shard that is tried twice, even at the same time, is never seen twice, and nothing that
was written is lost.
"""

from __future__ import annotations

import re
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fairbits.domain.attribute import Codes
from fairbits.store import parts
from fairbits.store.block import Block, Complete, nothing_more
from fairbits.store.files import read_json, write_json
from fairbits.store.places import is_local
from fairbits.store.records import Layout
from fairbits.store.worker import Worker

FOLDER = "shards"
RECORD = re.compile(r"(\d{6,})\.json")
PART = re.compile(r"shard-(\d{6,})-([0-9a-f]{8})-(\d{4,})\.parquet")
#: A part is written when it has so many rows, or when so many seconds have passed.
PART_ROWS, FLUSH_SECONDS = 262_144, 10.0
#: Rows that are completed together, well before their part is due.
BLOCK_ROWS = 32_768
#: Files that are opened at the same time where each of them costs a journey over the network.
JOURNEYS = 16


class ShardWriter:
    """Takes the cases of one attempt at a shard. They count once ``commit`` has returned."""

    def __init__(
        self,
        folder: Path,
        layout: Layout,
        number: int,
        *,
        offset: int = 0,
        complete: Complete = nothing_more,
        in_step: bool = False,
        part_rows: int = PART_ROWS,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.folder, self.layout, self.number, self.offset = folder, layout, number, offset
        self.token = uuid.uuid4().hex[:8]  # no other attempt, on whatever machine, writes to the same names
        self._part_rows, self._clock = part_rows, clock
        self._complete, self._in_step = complete, in_step
        self._buffer: list[Block] = []
        self._rows = 0
        self._written: list[dict[str, Any]] = []
        self._flushed_at = clock()
        self._worker = Worker()

    def append(self, codes: Codes, figures: Mapping[str, Any], origin: Any) -> None:
        """Keep some cases; their evaluations are numbered from the shard's own offset."""
        self._raise_failure()
        if len(codes):
            if not self._buffer or self._buffer[-1].rows >= BLOCK_ROWS:
                self._buffer.append(Block(self.layout, self._complete))
            block = self._buffer[-1]
            block.add(codes, {**figures, "evaluation": figures["evaluation"] + self.offset}, origin)
            self._rows += len(codes)
            if block.rows >= BLOCK_ROWS:
                self._do(block.settle)
        if self._rows >= self._part_rows or (self._rows and self._clock() - self._flushed_at >= FLUSH_SECONDS):
            self._hand_over()

    def flush(self) -> None:
        """Wait until everything appended so far is on disk."""
        if self._rows:
            self._hand_over()
        self._worker.wait()
        self._raise_failure()

    def commit(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Say that the shard is complete. Gives the record as it was written."""
        self.flush()
        record = {"number": self.number, "token": self.token, "parts": self._written, **document}
        write_json(self.folder / FOLDER / record_name(self.number), record)
        return record

    def close(self) -> None:
        """End the writing thread."""
        self._worker.stop()

    def _hand_over(self) -> None:
        blocks, rows = self._buffer, self._rows
        name = f"shard-{self.number:06d}-{self.token}-{len(self._written):04d}.parquet"
        self._written.append({"name": name, "rows": rows})
        self._buffer, self._rows, self._flushed_at = [], 0, self._clock()
        path = self.folder / parts.FOLDER / name
        self._do(lambda: parts.write_part(path, [block.batch() for block in blocks], self.layout))

    def _do(self, work: Callable[[], None]) -> None:
        """In the writing thread; ``in_step`` makes the search wait for it, so that a worker keeps to one core."""
        self._worker.put(work)
        if self._in_step:
            self._worker.wait()

    def _raise_failure(self) -> None:
        if self._worker.error is not None:
            raise self._worker.error


def record_name(number: int) -> str:
    """The file that says that a shard is complete."""
    return f"{number:06d}.json"


def read_records(folder: Path) -> dict[int, dict[str, Any]]:
    """The records of all shards that are complete, by number."""
    place = folder / FOLDER
    if not place.is_dir():
        return {}
    found = {int(match[1]): path for path in place.iterdir() if (match := RECORD.fullmatch(path.name))}
    return dict(zip(found, spread(read_json, list(found.values()), folder), strict=True))


def find_parts(folder: Path, layout: Layout, *, deep: bool = False) -> tuple[list[parts.Part], dict[str, str]]:
    """The parts that count, in the order of the shards, and those of them that cannot be read with the reason."""
    records = read_records(folder)
    there = [path for path in (folder / parts.FOLDER).iterdir() if PART.fullmatch(path.name)]
    wanted = {part["name"] for record in records.values() for part in record["parts"]}
    damaged = dict.fromkeys(sorted(wanted - {path.name for path in there}), "it is missing")
    there.sort(key=lambda path: path.name)
    faults = spread(lambda path: parts.fault_of(path, layout, deep=deep), there, folder)
    good = []
    for path, (fault, rows) in zip(there, faults, strict=True):
        if not fault:
            good.append(parts.Part(path, rows))
        elif path.name in wanted or number_of(path.name) not in records:
            damaged[path.name] = fault
    return _furthest(good, records), damaged


def number_of(name: str) -> int:
    """The shard that a part belongs to; -1 for any other file."""
    match = PART.fullmatch(name.removesuffix(parts.SET_ASIDE))
    return int(match[1]) if match else -1


def spread(work: Callable[[Path], Any], paths: list[Path], folder: Path) -> list[Any]:
    """Look at many files, several at a time where they are far away."""
    if is_local(folder) or len(paths) < 2:
        return [work(path) for path in paths]
    with ThreadPoolExecutor(JOURNEYS) as pool:
        return list(pool.map(work, paths))


def _furthest(found: list[parts.Part], records: Mapping[int, Any]) -> list[parts.Part]:
    """Of the attempts at each shard, the one with the most cases; of equals, the one that the record names."""
    attempts: dict[int, dict[str, list[parts.Part]]] = defaultdict(lambda: defaultdict(list))
    for part in found:
        match = PART.fullmatch(part.path.name)
        assert match is not None  # noqa: S101 - only such names were looked at
        attempts[int(match[1])][match[2]].append(part)
    kept = []
    for number in sorted(attempts):
        tried, named = attempts[number], records.get(number, {}).get("token")
        rows = {token: sum(part.rows for part in one) for token, one in tried.items()}
        kept += tried[max(tried, key=lambda token: (rows[token], token == named))]
    return kept
