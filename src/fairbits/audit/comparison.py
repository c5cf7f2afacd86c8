"""Strategies against each other, and two models about the same people, with the command that compares them again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from fairbits import diff, domain, paper, report, search, store
from fairbits.audit.audit import SubjectOrigin
from fairbits.errors import OptionError
from fairbits.options import CompareOptions, DiffOptions, LoadingOptions, flag_words, seconds_of
from fairbits.subject import Subject


def command_of(command: str, places: Sequence[str | None], options: Any, origin: SubjectOrigin) -> str:
    """The command line that does something again, as one would type it; nothing where a place has no name.

    Examples
    --------
    >>> loans = SubjectOrigin(name="my loan.toml", grants={"trust": True})
    >>> command_of("paper compare", ("my loan.toml", "--strategies", "climb"), CompareOptions(seed=3), loans)
    "fairbits paper compare 'my loan.toml' --strategies climb --seed 3 --trust"
    """
    if any(place is None for place in places):
        return ""
    words = [*command.split(), *map(str, places), *flag_words(options)]
    words += ["--protected", ",".join(origin.protected)] if origin.protected else []
    return shlex.join(["fairbits", *words, *flag_words(LoadingOptions(**origin.grants))])


def compare_strategies(
    subject: Subject,
    options: CompareOptions,
    strategies: Sequence[str] | None = None,
    *,
    origin: SubjectOrigin,
    out: str | Path | None = None,
    progress: paper.ContestProgress | None = None,
) -> paper.StrategyComparison:
    """Compare strategies, and write what was found: figures, document, page."""
    budget = options.budget
    timed = not isinstance(options.budget, search.Budget)
    contest = paper.Contest(
        budget=search.Budget(seconds=seconds_of(budget)) if timed else budget,
        repeats=options.repeats,
        seed=options.seed,
        epsilon=options.epsilon,
        partition=options.partition,
        threads=options.threads,
    )
    place = store.new_folder(subject.name, "compare") if out is None else Path(out)
    found = paper.compare(
        subject,
        contest,
        strategies,
        folder=place,
        executor_options=options.executor,
        progress=progress,
        **origin.grants,
    )
    named = () if strategies is None else ("--strategies", ",".join(strategies))
    # A budget that is not one of time has no command.
    command = command_of("paper compare", (origin.name if timed else None, *named), options, origin)
    document = found.as_dict()
    store.write_json(place / paper.DOCUMENT, document)
    report.write_contest(document, place / paper.PAGE, command=command)
    return replace(found, folder=place, command=command)


def diff_models(
    a: str | Path,
    b: str | Path,
    options: DiffOptions | None = None,
    *,
    subject: str | Path | None = None,
    protected: Iterable[str] | None = None,
    html: str | Path | None = None,
    **grants: Unpack[domain.GrantOptions],
) -> diff.ModelDiff:
    """What changes for the same people from one model to another: runs, subjects or models."""
    check_page(html)
    sides = diff.sides_of(a, b, subject=subject, **grants)
    names = None if protected is None else tuple(protected)
    before, after = (one if names is None else one.with_protected(names) for one in sides)
    places = (str(a), str(b), *(() if subject is None else ("--subject", str(subject))))
    origin = SubjectOrigin(protected=names, grants=grants)
    return diff_sides((before, after), places, origin, options or DiffOptions(), html=html)


def diff_sides(
    sides: tuple[Subject, Subject],
    places: Sequence[str | None],
    origin: SubjectOrigin,
    options: DiffOptions,
    *,
    html: str | Path | None = None,
) -> diff.ModelDiff:
    """Compare two subjects, and write the page where one is wanted."""
    found = diff.diff_subjects(
        *sides,
        command=command_of("diff", places, options, origin),
        epsilon=options.epsilon,
        partition=options.partition,
        seed=options.seed,
        threads=options.threads,
        top=options.top,
        people=options.people,
    )
    if html is not None:
        diff.write_diff(found, Path(html))
    return found


def check_page(html: str | Path | None) -> None:
    """Refuse a page that could not be written, before anything is computed."""
    if html is not None and not Path(html).parent.is_dir():
        raise OptionError(f"the folder {str(Path(html).parent)!r} does not exist; make it, or choose another --html.")
