"""Alternatives to a model in one go: a short search, everything that may be tried, the log, the models, the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fairbits.repair import Alternatives, Proposer, find_alternatives, write_candidates
from fairbits.report import alternatives_of, write_alternatives
from fairbits.scale import search
from fairbits.search import DEFAULT, Budget, Settings
from fairbits.store import Run
from fairbits.subject import Subject

#: People that the search asks about first: repairs are planned by what it finds.
EVALUATIONS = 20_000
#: Settings of the search over hyper-parameters.
TRIALS = 20


def alternatives_to(
    subject: Subject,
    *,
    run: Run | None = None,
    proposals: Sequence[str | Proposer] | None = None,
    trials: int = TRIALS,
    quick: bool = False,
    evaluations: int = EVALUATIONS,
    out: str | Path | None = None,
    force: bool = False,
    seed: int = 0,
    threads: int | None = None,
    command: str = "",
    watch: Callable[[str], None] | None = None,
) -> Alternatives:
    """Every less discriminatory alternative that is known here, judged on the same held-out rows; written as a log.

    Parameters
    ----------
    subject
        The model and its table.
    run
        A search of this subject; None for one of ``evaluations`` people, in the folder ``out``.
    proposals
        Names ("reweigh", …, "mitigators") or objects of your own; None for everything. The guard is always among them.
    trials
        Settings that the search over hyper-parameters tries; 0 leaves it out.
    quick
        Leave out surgery on weights and distilling, which take longest.
    evaluations
        People that the search asks about, where there is no run.
    out
        The folder; by default a new one under runs/.
    force
        Replace a run that is in the folder.
    seed
        Same seed, same candidates.
    threads
        By default all cores.
    command
        What makes it again, for the page.
    watch
        Called with a few words on what is being done.

    Returns
    -------
    Alternatives
        ``front`` are the candidates that no other beats; ``folder`` has the log (candidates.parquet, candidates.csv,
        alternatives.json), the page (alternatives.html, alternatives.md) and the models of the front.
    """
    if run is None:
        if watch is not None:
            watch("searching")
        settings = Settings(Budget(evaluations=evaluations), DEFAULT, {}, seed, threads=threads)
        run = search(subject, settings, out, force=force)
    found = find_alternatives(
        run, subject, proposals=proposals, trials=trials, quick=quick, seed=seed, threads=threads, watch=watch
    )
    write_candidates(found, command=command)
    write_alternatives(alternatives_of({**found.document(), "command": command}), found.folder)
    return found
