"""`fairbits audit`: from a model and a table to one page, in about a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional

import typer

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
    Skip,
    SubjectOrRun,
    Threads,
    Workers,
    audit_of,
    stages_of,
    threads_of,
)
from fairbits.cli.output import print_json
from fairbits.cli.signals import gentle_stop
from fairbits.errors import ContradictionError

if TYPE_CHECKING:
    from fairbits.audit import AuditResult, ScoresAudit
    from fairbits.domain import GrantOptions
    from fairbits.subject import Subject

#: Typer reads annotations at run time, and not in the newer spelling.
_Number = Optional[int]  # noqa: UP045
_Real = Optional[float]  # noqa: UP045
_Text = Optional[str]  # noqa: UP045


@granting
def audit(
    subject: SubjectOrRun = None,
    budget: Annotated[_Text, typer.Option(help="About how long in all, e.g. 30s, 5m.", show_default="60s")] = None,
    out: Out = None,
    skip: Skip = None,
    resume: Resume = None,
    seed: Annotated[
        _Number,
        typer.Option(help="Same seed, same draws; seconds end them elsewhere each time.", show_default="0"),
    ] = None,
    within: Annotated[_Number, typer.Option(help="Stay within so many changed attributes of a real row.")] = None,
    min_plausibility: Annotated[
        _Real, typer.Option(help="Only people as ordinary as this percentile of the rows, 0 to 100.", metavar="P")
    ] = None,
    epsilon: Epsilon = None,
    partition: PartitionOrRun = None,
    measure: MeasureOrRun = None,
    protected: Protected = None,
    threads: Threads = 0,
    workers: Workers = None,
    ray: Ray = None,
    repeats: RepeatsOrRun = None,
    by: Annotated[_Text, typer.Option(help="A column of periods, such as month: figures for each.")] = None,
    as_is: AsIs = False,
    as_json: Json = False,
    data_source: Annotated[_Text, typer.Option(help="For tables to file: where the data come from.")] = None,
    distributed: Annotated[_Text, typer.Option(help="For tables to file: since when the tool is in use.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a run in the folder of --out.")] = False,
    *,
    grants: GrantOptions,
) -> None:
    """Measure, search, debug, repair and report: one command, one page that a reviewer can check."""
    door = audit_of(subject, resume, protected=protected, repeats=repeats, as_is=as_is, grants=grants)
    from fairbits.audit import AuditResult as Whole
    from fairbits.cli.progress import stages
    from fairbits.report import summary_of

    with stages(shown=not as_json, scores_only=door.subject.scores_only) as progress, gentle_stop() as stop:
        found = door.audit(
            budget=budget,
            out=resume or out,
            resume=resume is not None,
            skip=stages_of(skip),
            seed=seed,
            epsilon=epsilon,
            partition=partition,
            measure=measure,
            threads=threads_of(threads),
            workers=workers,
            ray=ray,
            within=within,
            min_plausibility=min_plausibility,
            by=by,
            data_source=data_source,
            distributed=distributed,
            force=force,
            progress=progress,
            stop=stop,
        )
    if not isinstance(found, Whole):
        _show_scores(door.subject, found, as_json=as_json)
        return
    if as_json:
        whole = {"run": str(found.run.folder), "report": str(found.page), "seconds": found.seconds}
        print_json({**whole, "summary": summary_of(found.data)})
    else:
        _show(found)
    if found.data.contradictions:
        raise ContradictionError(found.data.contradictions[0].said())
    if found.stopped:
        raise typer.Exit(130)


def _show(found: AuditResult) -> None:
    """The findings in one look, where the page is, and what to do next."""
    from fairbits.cli import waited
    from fairbits.cli.terminal import show
    from fairbits.report import audit_look

    folder = found.run.folder
    nearby = f"next  fairbits explore {folder} · fairbits gate {folder}"
    if found.stopped:
        nearby = f"next  fairbits audit --resume {folder} (it ended early)"
    look = audit_look(found.data, faults=found.faults, seconds=found.seconds, waited=waited())
    show(look, f"page  {found.page}", nearby)


def _show_scores(subject: Subject, found: ScoresAudit, *, as_json: bool) -> None:
    """A table of scores: groups and indirect bits only."""
    from fairbits.cli.terminal import show
    from fairbits.report import study_look
    from fairbits.store import read_json

    if as_json:
        summary = read_json(found.folder / "summary.json")
        seconds = {"proxies": found.seconds}
        print_json({"run": str(found.folder), "report": str(found.page), "seconds": seconds, "summary": summary})
        return
    show(study_look(subject, found.document), f"page  {found.page}")
