"""`fairbits compare`: all strategies on one subject."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Optional

import typer

from fairbits.cli.options import Epsilon, Json, PartitionName, Protected, Subject, Threads, names_of, threads_of


def compare(
    subject: Subject,
    strategies: Annotated[str, typer.Option(help="Strategies, separated by commas, or 'all'.")] = "all",
    budget: Annotated[str, typer.Option(help="How long each run may take, e.g. 15s.")] = "15s",
    repeats: Annotated[int, typer.Option(help="Runs of each strategy, each with another seed.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the first run.", min=0)] = 0,
    protected: Protected = None,
    epsilon: Epsilon = None,
    partition: PartitionName = "constrained",
    threads: Threads = 0,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Folder for compare.csv and the finished runs' figures, to go on from."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Which strategy finds more, how fast, how different: equal seconds, one oracle, all counted."""
    from fairbits.data import load_subject

    loaded = load_subject(subject)
    if protected is not None:
        loaded = loaded.with_protected(names_of(protected))
    from fairbits.cli.compare_text import show, steps
    from fairbits.paper import Contest
    from fairbits.paper import compare as run
    from fairbits.search import Budget, seconds_of

    seconds = seconds_of(budget)
    contest = Contest(Budget(seconds=seconds), repeats, seed, epsilon, partition, threads_of(threads))
    wanted = None if strategies.strip() == "all" else [s.strip() for s in strategies.split(",") if s.strip()]
    with steps(seconds, shown=not as_json) as progress:
        found = run(loaded, contest, wanted, folder=out, progress=progress)
    if as_json:
        print(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
        return
    show(found)
    if out is not None:
        print(f"Figures in {out / 'compare.csv'}")
