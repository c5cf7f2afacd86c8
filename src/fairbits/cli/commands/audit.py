"""`fairbits audit`: from a model and a table to one page, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional, Unpack

import typer

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
    granting,
    names_of,
    stages_of,
    threads_of,
)
from fairbits.cli.output import print_json
from fairbits.cli.signals import gentle_stop
from fairbits.errors import OptionError

if TYPE_CHECKING:
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
    seed: Annotated[_Number, typer.Option(help="Same seed, same audit.", show_default="0")] = None,
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
    *,
    grants: GrantOptions,
) -> None:
    """Measure, search, debug, repair and report: one command, one page that a reviewer can check."""
    given = {
        "seed": seed,
        "epsilon": epsilon,
        "partition": partition,
        "measure": measure,
        "within": within,
        "min_plausibility": min_plausibility,
    }
    papers: dict[str, Any] = {"data_source": data_source, "distributed": distributed}
    chosen = _Chosen(subject, resume, given, protected, repeats)
    loaded = chosen.subject(as_is, **grants)
    if loaded.scores_only:
        return _scores(loaded, resume or out, resume is not None, as_json, by=by, seed=seed, **papers)
    from fairbits.audit import AuditOptions, audit_subject
    from fairbits.cli.render.audit import show, stages
    from fairbits.report import summary_of
    from fairbits.search import seconds_of

    seconds = None if budget is None else seconds_of(budget)
    options = AuditOptions(
        seconds,
        threads=threads_of(threads),
        skip=stages_of(skip),
        workers=workers,
        ray=ray,
        by=by,
        **papers,
        **chosen.settings(),
    )
    with stages(shown=not as_json) as progress, gentle_stop() as stop:
        found = audit_subject(loaded, options, resume or out, resume=resume is not None, progress=progress, stop=stop)
    if as_json:
        whole = {"run": str(found.run.folder), "report": str(found.page), "seconds": found.seconds}
        print_json({**whole, "summary": summary_of(found.data)})
    else:
        show(found)
    if found.stopped:
        raise typer.Exit(130)
    return None


def _scores(subject: Subject, out: Path | None, resume: bool, as_json: bool, **options: Any) -> None:
    """A table of scores: groups and indirect bits only."""
    from fairbits.audit import audit_scores
    from fairbits.cli.render.audit import show_scores
    from fairbits.cli.render.progress import working
    from fairbits.store import read_json

    with working(shown=not as_json) as progress:
        found = audit_scores(subject, out, resume=resume, progress=progress, **options)
    if as_json:
        summary = read_json(found.folder / "summary.json")
        seconds = {"proxies": found.seconds}
        print_json({"run": str(found.folder), "report": str(found.page), "seconds": seconds, "summary": summary})
        return
    show_scores(subject, found)


class _Chosen:
    """What was asked for; a run that goes on keeps its own settings, and refuses others."""

    def __init__(
        self,
        subject: str | None,
        resume: Path | None,
        given: dict[str, Any],
        protected: str | None,
        repeats: int | None,
    ):
        self.given, self.source, self.repeats = given, subject, repeats
        self.protected = None if protected is None else names_of(protected)
        self.kept: dict[str, Any] = {}
        if resume is not None:
            from fairbits.audit import is_scores_audit, read_scores_record
            from fairbits.search import kept_settings
            from fairbits.store import Run

            if is_scores_audit(resume):  # audit_scores holds its few settings against what is asked for
                self.kept = read_scores_record(resume)
                return
            self.kept = Run.open(resume).manifest
            kept_settings(self.kept, {**given, "protected": self.protected, "repeats": repeats})

    def subject(self, as_is: bool, /, **grants: Unpack[GrantOptions]) -> Subject:
        from fairbits.data import load_subject

        source = self.source or self.kept.get("source")
        if source is None:
            raise OptionError("no subject was given; name a built-in (see `fairbits data list`) or a subject.toml.")
        loaded = load_subject(source, **grants)
        names = self.protected or self.kept.get("protected")
        loaded = loaded if names is None else loaded.with_protected(names)
        loaded = loaded.with_repeats(self.repeats or self.kept.get("repeats", 1))
        return loaded.checked(as_is=as_is or bool(self.kept.get("as_is")))

    def settings(self) -> dict[str, Any]:
        chosen = {name: self.kept.get(name) if value is None else value for name, value in self.given.items()}
        return {name: value for name, value in chosen.items() if value is not None}
