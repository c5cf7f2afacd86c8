"""`fairbits compare`: all strategies on one subject."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.options import (
    Epsilon,
    Json,
    PartitionName,
    Protected,
    Ray,
    Subject,
    Threads,
    Workers,
    executor_options_of,
    granting,
    grants_as_words,
    named_subject,
    threads_of,
)
from fairbits.cli.output import print_json

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions
    from fairbits.paper import Contest

FIGURES, DOCUMENT, PAGE = "compare.csv", "compare.json", "compare.html"


@granting
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
    workers: Workers = None,
    ray: Ray = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Folder of page, figures and finished runs, to go on from.", show_default="runs/…"),
    ] = None,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """Which strategy finds more, how fast, how different: equal seconds, one oracle, all counted."""
    loaded = named_subject(subject, protected, grants)
    from fairbits.cli.render.compare import show, steps
    from fairbits.paper import Contest
    from fairbits.paper import compare as run
    from fairbits.report import contest_of, write_contest
    from fairbits.search import Budget, seconds_of
    from fairbits.store import new_folder, write_json

    seconds = seconds_of(budget)
    contest = Contest(Budget(seconds=seconds), repeats, seed, epsilon, partition, threads_of(threads))
    wanted = None if strategies.strip() == "all" else [s.strip() for s in strategies.split(",") if s.strip()]
    place = out or new_folder(loaded.name, "compare")
    with steps(seconds, shown=not as_json) as progress:
        found = run(
            loaded,
            contest,
            wanted,
            folder=place,
            executor_options=executor_options_of(workers, ray, threads),
            **grants,
            progress=progress,
        )
    document = found.as_dict()
    write_json(place / DOCUMENT, document)
    command = _command(subject, strategies, protected, contest, budget, grants=grants)
    write_contest(contest_of(document, command=command), place / PAGE)
    if as_json:
        print_json(document)
        return
    show(found)
    print(f"Page with plots: {place / PAGE}\nAll figures beside it, in {FIGURES} and {DOCUMENT}.")


def _command(
    subject: str, strategies: str, protected: str | None, contest: Contest, budget: str, *, grants: GrantOptions
) -> str:
    """What to type to compare again."""
    words = ["fairbits", "compare", subject, "--strategies", strategies, "--budget", budget]
    words += ["--repeats", str(contest.repeats), "--seed", str(contest.seed), "--partition", contest.partition]
    words += [] if protected is None else ["--protected", protected]
    words += [] if contest.epsilon is None else ["--epsilon", f"{contest.epsilon:g}"]
    words += grants_as_words(grants)
    return shlex.join(words)
