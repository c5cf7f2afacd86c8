"""Cells made by many workers: each is a shard. The coordinator keeps what is made, as it keeps any cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Unpack

from fairbits.data import load_subject
from fairbits.domain import GrantOptions
from fairbits.errors import FairbitsError
from fairbits.paper.arena import Arena
from fairbits.paper.cells import Cells
from fairbits.paper.contest import Contest
from fairbits.scale import ExecutorOptions, Fault, Job, Portable, Signals, carry_out, open_executor
from fairbits.subject import Subject

#: Called before each run with (runs done, runs in all, what comes now).
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class CellShard:
    """One run of one strategy: plain data. A subject that is not built in is shared by all cells."""

    subject: str | None
    protected: str | None
    strategy: str
    repeat: int

    def __str__(self) -> str:
        what = " ".join(filter(None, (self.subject, self.protected, self.strategy)))
        return f"{what}, run {self.repeat + 1}"


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms that all cells of an experiment share."""

    contest: Contest
    subject: Subject | Portable | None = None


@dataclass(slots=True)
class _Desk:
    """A worker's own: the arena that it was last in, since cells of one subject follow each other."""

    terms: Terms
    arenas: dict[tuple[str | None, str | None], Arena] = field(default_factory=dict)

    def arena(self, shard: CellShard) -> Arena:
        where = shard.subject, shard.protected
        if where not in self.arenas:
            self.arenas.clear()
            self.arenas[where] = Arena(_subject(self.terms, shard), self.terms.contest)
        return self.arenas[where]


def cells_job(
    contest: Contest, executor_options: ExecutorOptions, subject: Subject | None = None, **grants: Unpack[GrantOptions]
) -> Job:
    """The job of making cells on these terms, with as many threads as one worker has."""
    packed = Portable.of(subject, **grants) if subject is not None and executor_options.elsewhere else subject
    return Job(_prepare, _perform, Terms(replace(contest, threads=executor_options.each), packed))


class Shard(Protocol):
    """A cell that is made from its own fields alone: plain data, which goes to a worker as it is."""

    @property
    def subject(self) -> str:
        """The name of its subject."""

    @property
    def label(self) -> str:
        """The name of its file."""

    def identity(self, subject: Subject) -> dict[str, Any]:
        """What its figures depend on."""


def make_missing(
    executor_options: ExecutorOptions,
    perform: Callable[[None, Any, Signals], dict[str, Any]],
    wanted: Sequence[Shard],
    cells: Cells,
    subjects: Mapping[str, Subject],
    progress: Progress | None = None,
) -> None:
    """Have those cells made that are not kept yet, several at a time."""
    shards = [one for one in wanted if cells.ready(one.label, one.identity(subjects[one.subject])) is None]

    def keep(shard: Shard, figures: dict[str, Any]) -> None:
        cells.get(shard.label, shard.identity(subjects[shard.subject]), lambda: figures)

    make_all(executor_options, Job(_share_nothing, perform, None), shards, keep, progress)


def _share_nothing(_: None) -> None:
    """Workers read subjects by name or from their files."""


def make_all(
    executor_options: ExecutorOptions,
    job: Job,
    shards: Sequence[Any],
    keep: Callable[[Any, dict[str, Any]], None],
    progress: Progress | None = None,
) -> None:
    """Have all cells made, and each kept as soon as it is there; other cells go on when one fails."""
    if not shards:
        return
    done = 0

    def kept(number: int, figures: dict[str, Any]) -> None:
        nonlocal done
        done += 1
        keep(shards[number], figures)
        if progress is not None and done < len(shards):
            progress(done, len(shards), f"{executor.slots} at a time, {shards[number]} done")

    with open_executor(executor_options, job) as executor:
        if progress is not None:
            progress(0, len(shards), f"{executor.slots} at a time")
        lost = carry_out(executor, enumerate(shards), on_done=kept).lost
    if lost:
        raise _given_up(shards, lost)


def _prepare(terms: Terms) -> _Desk:
    return _Desk(terms)


def _perform(desk: _Desk, shard: CellShard, signals: Signals) -> dict[str, Any]:  # noqa: ARG001 - a cell is not cut short
    return desk.arena(shard).run(shard.strategy, shard.repeat)


def _subject(terms: Terms, shard: CellShard) -> Subject:
    if shard.subject is None:
        shared = terms.subject
        subject = shared.open() if isinstance(shared, Portable) else shared
        if subject is None:
            raise ValueError("cells without a name need a shared subject")
    else:
        subject = load_subject(shard.subject)
    return subject if shard.protected is None else subject.with_protected([shard.protected])


def _given_up(shards: Sequence[Any], lost: dict[int, Fault]) -> FairbitsError:
    number, fault = next(iter(lost.items()))
    others = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    return FairbitsError(
        f"cell {str(shards[number])!r}{others} was given up: {fault.words}; finished cells are kept: mend that and "
        f"run the same command again."
    )
