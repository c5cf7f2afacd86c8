"""Alternatives to a model in one go: a short search, everything that may be tried, the log, the models, the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fairbits.errors import OptionError
from fairbits.repair import Alternatives, Proposer, find_alternatives, write_candidates
from fairbits.report import alternatives_of, write_alternatives
from fairbits.scale import search
from fairbits.search import DEFAULT, Budget, Settings
from fairbits.store import Run, subject_of
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
    progress: Callable[[str], None] | None = None,
) -> Alternatives:
    """Every less discriminatory alternative that is known here, judged on the same held-out rows; written as a log."""
    if run is None:
        if progress is not None:
            progress("searching")
        settings = Settings(budget=Budget(evaluations=evaluations), strategy=DEFAULT, seed=seed, threads=threads)
        run = search(subject, settings, out, force=force)
    found = find_alternatives(
        run, subject, proposals=proposals, trials=trials, quick=quick, seed=seed, threads=threads, watch=progress
    )
    write_candidates(found, command=command)
    write_alternatives(alternatives_of({**found.document(), "command": command}), found.folder)
    return found


def run_to_use(run: Run | str | Path | None, subject: Subject, *, out: object, force: bool) -> Run | None:
    """The run that alternatives are planned by, opened and known to be about this subject."""
    if run is None:
        return None
    if out is not None or force:
        raise OptionError("--run writes into the folder of that run; leave --out and --force out.")
    opened = run if isinstance(run, Run) else Run.open(run)
    subject_of(opened, subject)
    return opened
