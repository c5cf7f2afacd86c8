"""All strategies on one subject, through the same oracle, at equal seconds."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from fairbits.domain import GrantOptions
from fairbits.paper.arena import Arena
from fairbits.paper.cells import Cells
from fairbits.paper.contest import TABLE, Contest, ContestProgress, Entry, StrategyComparison
from fairbits.paper.significance import against_one
from fairbits.scale import ExecutorOptions
from fairbits.subject import Subject

#: What the others are tested against.
BASELINE = "dice"


def compare(
    subject: Subject,
    contest: Contest,
    strategies: Sequence[str] | None = None,
    *,
    folder: str | Path | None = None,
    executor_options: ExecutorOptions | None = None,
    progress: ContestProgress | None = None,
    **grants: Unpack[GrantOptions],
) -> StrategyComparison:
    """Run strategies against each other on equal terms."""
    arena = Arena(subject, contest)
    names, left_out = arena.entrants(strategies)
    cells = None if folder is None else Cells(Path(folder) / "cells")
    if executor_options is not None and executor_options.many:
        with tempfile.TemporaryDirectory(prefix="fairbits-") as place:
            kept = cells or Cells(Path(place))
            _spread(arena, names, kept, executor_options, progress, **grants)
            return _compared(arena, names, left_out, kept, folder, None)
    return _compared(arena, names, left_out, cells, folder, progress)


def _compared(
    arena: Arena,
    names: list[str],
    left_out: dict[str, str],
    cells: Cells | None,
    folder: str | Path | None,
    progress: ContestProgress | None,
) -> StrategyComparison:
    """One run after the other, as far as they are not kept."""
    contest = arena.contest
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    total, done = len(names) * contest.repeats, 0
    for repeat in range(contest.repeats):  # in turns, so that a noisy minute of the machine hits everybody
        for name in names:
            if progress is not None:
                progress(done, total, f"{name}, run {repeat + 1} of {contest.repeats}")
            found[name].append(arena.run(name, repeat, cells))
            done += 1
    ids = {name: [run["id_cases"] for run in runs] for name, runs in found.items()}
    verdicts = against_one(ids, BASELINE) if BASELINE in ids else {}
    entries = [Entry(name, runs, verdicts.get(name)) for name, runs in found.items()]
    quality = arena.subject.checked(as_is=True).quality
    result = StrategyComparison(arena.subject.name, contest, entries, left_out, quality)
    if folder is not None:
        result.write_csv(Path(folder) / TABLE)
    return result


def _spread(
    arena: Arena,
    names: list[str],
    cells: Cells,
    executor_options: ExecutorOptions,
    progress: ContestProgress | None,
    **grants: Unpack[GrantOptions],
) -> None:
    """Have the missing runs made by many workers, and keep them."""
    from fairbits.paper.spread import CellShard, cells_job, make_all

    shards = [
        CellShard(None, None, name, repeat)
        for repeat in range(arena.contest.repeats)
        for name in names
        if not arena.is_kept(name, repeat, cells)
    ]
    make_all(
        executor_options,
        cells_job(arena.contest, executor_options, arena.subject, **grants),
        shards,
        lambda shard, figures: arena.keep(shard.strategy, shard.repeat, cells, figures),
        progress,
    )
