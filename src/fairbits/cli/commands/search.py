"""`fairbits search`: the worst people, found and kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from fairbits.cli import since
from fairbits.cli.grants import granting
from fairbits.cli.options import (
    AsIs,
    Epsilon,
    Json,
    MeasureOrRun,
    Out,
    PartitionOrRun,
    Protected,
    Ray,
    RepeatsOrRun,
    Resume,
    SubjectOrRun,
    Threads,
    Top,
    Workers,
    audit_of,
    executor_options_of,
    threads_of,
)
from fairbits.cli.output import print_json
from fairbits.cli.signals import gentle_stop
from fairbits.errors import OptionError

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions
    from fairbits.search import Budget

#: Typer reads annotations at run time, and not in the newer spelling.
_Number = Optional[int]  # noqa: UP045
_Real = Optional[float]  # noqa: UP045
_Text = Optional[str]  # noqa: UP045


@granting
def search(
    subject: SubjectOrRun = None,
    strategy: Annotated[
        _Text, typer.Option(help="climb, dice, random or a rival, e.g. adf.", show_default="climb")
    ] = None,
    budget: Annotated[_Text, typer.Option(help="How long, e.g. 30s, 15m, 1h.", show_default="60s")] = None,
    evaluations: Annotated[_Number, typer.Option(help="At most so many people asked about.")] = None,
    cases: Annotated[_Number, typer.Option(help="At most so many distinct cases.")] = None,
    queries: Annotated[_Number, typer.Option(help="At most so many scores and gradients asked of the model.")] = None,
    ends: Annotated[
        _Text,
        typer.Option(help="End each task after so many people, as a report of a timed run prints it.", metavar="N,N,…"),
    ] = None,
    seed: Annotated[
        _Number,
        typer.Option(
            help="Same seed, same search; seconds end it elsewhere each time (see --ends).",
            show_default="0",
        ),
    ] = None,
    out: Out = None,
    resume: Resume = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a run in the folder of --out.")] = False,
    within: Annotated[_Number, typer.Option(help="Stay within so many changed attributes of a real row.")] = None,
    min_plausibility: Annotated[
        _Real, typer.Option(help="Only people as ordinary as this percentile of the rows, 0 to 100.", metavar="P")
    ] = None,
    on_data: Annotated[bool, typer.Option("--on-data", help="Only the real rows, all of them: exact.")] = False,
    exhaustive: Annotated[
        _Number, typer.Option(help="1: every change of one attribute of every real row: exact.", metavar="N")
    ] = None,
    option: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="An option of the strategy, e.g. local_moves=200; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    epsilon: Epsilon = None,
    partition: PartitionOrRun = None,
    measure: MeasureOrRun = None,
    protected: Protected = None,
    threads: Threads = 0,
    workers: Workers = None,
    ray: Ray = None,
    shards: Annotated[
        _Number, typer.Option(help="Cut the search into so many shards.", show_default="by budget")
    ] = None,
    batch: Annotated[
        _Number, typer.Option(help="Ask the model about so many people at a time.", show_default="by its speed")
    ] = None,
    repeats: RepeatsOrRun = None,
    top: Top = 10,
    as_is: AsIs = False,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """Search for the people whose twins are treated most differently, and keep every case on disk."""
    began = since()
    exact = _exact(on_data, exhaustive, strategy)
    limits = {"evaluations": evaluations, "cases": cases, "queries": queries, "ends": _ends(ends)}
    limit = _budget(budget, limits)
    door = audit_of(subject, resume, protected=protected, repeats=repeats, as_is=as_is, grants=grants)
    settings = door.settings(
        budget=limit,
        strategy=strategy if exact is None else "exhaustive",
        seed=seed,
        epsilon=epsilon,
        partition=partition,
        within=within,
        min_plausibility=min_plausibility,
        measure=measure,
        threads=threads_of(threads),
        batch=batch,
        run=resume,
        **(_options(option) if exact is None else {"distance": exact}),
    )
    from fairbits.cli.progress import live

    with live(settings, shown=not as_json) as progress, gentle_stop() as stop:
        run = door.search_with(
            settings,
            resume or out,
            executor_options=executor_options_of(workers, ray, threads),
            shards=shards,
            resume=resume is not None,
            force=force,
            progress=progress,
            stop=stop,
            began=began,
        )
        stopped = stop() and run.status == "interrupted"
    summary = run.summary or {}
    if as_json:
        print_json({"run": str(run.folder), "status": run.status, **summary})
    else:
        from fairbits.cli.terminal import show
        from fairbits.report import search_look

        notes = (*door.subject.notes, *summary.get("notes", ()))
        look = search_look(run, top=top, lines=door.subject.asked_lines(), notes=notes)
        show(look, f"next  fairbits cases {run.folder} · fairbits debug {run.folder} · fairbits report {run.folder}")
    if stopped:
        raise typer.Exit(130)


def _exact(on_data: bool, exhaustive: int | None, strategy: str | None) -> int | None:
    """How far from real rows an exact search goes, if one was asked for."""
    if not on_data and exhaustive is None:
        return None
    if strategy is not None or (on_data and exhaustive is not None):
        raise OptionError("--strategy, --on-data and --exhaustive exclude each other; choose one.")
    return 0 if on_data else exhaustive


def _options(texts: list[str] | None) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for text in texts or []:
        name, mark, value = (part.strip() for part in text.partition("="))
        if not (name and mark and value):
            raise OptionError(f"--option {text!r} is not NAME=NUMBER or NAME=WORD, e.g. local_moves=200 or mode=semi.")
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = value  # a word
    return options


def _ends(text: str | None) -> list[int] | None:
    """Where each task ends."""
    if text is None:
        return None
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise OptionError(f"--ends is {text!r}; give whole numbers between commas, e.g. 250000,181324.") from None


def _budget(seconds: str | None, limits: dict[str, Any]) -> Budget | None:
    """The limits that were typed; None where there are none."""
    given = {name: value for name, value in limits.items() if value is not None}
    if seconds is None and not given:
        return None
    from fairbits.search import Budget, seconds_of

    return Budget(**given) if seconds is None else Budget(seconds=seconds_of(seconds), **given)
