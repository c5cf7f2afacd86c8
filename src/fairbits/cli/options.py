"""Options that several commands share, described once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from fairbits.errors import OptionError

if TYPE_CHECKING:
    from fairbits.audit import Audit
    from fairbits.domain import GrantOptions
    from fairbits.scale import ExecutorOptions

    Place = Path
else:
    # Typer makes a local path of whatever is annotated as one, and a place in a bucket is none (universal-pathlib).
    Place = Any


def read_place(text: str) -> Path:
    """The folder or address, such as s3://bucket/run, that somebody typed."""
    from fairbits.store import place_of

    return place_of(text)


Subject = Annotated[str, typer.Argument(help="A built-in subject (see `fairbits data list`) or a subject.toml.")]
#: For commands that can also go on with a run, which knows its own subject and settings.
SubjectOrRun = Annotated[
    Optional[str],  # noqa: UP045 - typer reads the annotation at run time
    typer.Argument(help="A built-in subject or a subject.toml.", show_default=False),
]
PartitionOrRun = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--partition", help="constrained (default), or grid as in the paper's artifact."),
]
Epsilon = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(help="Scores closer than this count as the same.", show_default="0.025"),
]
PartitionName = Annotated[str, typer.Option("--partition", help="constrained, or grid as in the paper's artifact.")]
MeasureOrRun = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--measure",
        help="What the search raises, and debug and repair lower: q_inf (log2 k) or q_1 (Shannon).",
        show_default="q_inf",
    ),
]
Protected = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="Protected attributes, separated by commas, instead of the subject's own."),
]
Threads = Annotated[int, typer.Option(help="Threads to use; 0 means all cores.")]
RunPlace = Annotated[
    Place,
    typer.Argument(help="The folder (or address) of a run.", show_default=False, parser=read_place, metavar="RUN"),
]
Out = Annotated[
    Optional[Place],  # noqa: UP045
    typer.Option(help="Folder (or address) of the run.", show_default="runs/…", parser=read_place, metavar="PLACE"),
]
Resume = Annotated[
    Optional[Place],  # noqa: UP045
    typer.Option(help="Go on with the run in this place.", parser=read_place, metavar="RUN"),
]
Skip = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="Stages to leave out: search, debug, repair, certify; separated by commas."),
]
Top = Annotated[int, typer.Option(help="How many of the worst people to list.", min=0)]
Workers = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(help="Processes that share the work, with one thread each unless --threads says more."),
]
Ray = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="Let a Ray cluster do the work: local, auto, or its address.", metavar="ADDRESS"),
]
AsIs = Annotated[bool, typer.Option("--as-is", help="Go on with a model that decides against the labels of its table.")]
Repeats = Annotated[
    int, typer.Option(help="Score a twin by the mean of so many answers, for models that vary.", min=1, metavar="R")
]
#: For commands that can also go on with a run, which knows its own.
RepeatsOrRun = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--repeats",
        help="Score a twin by the mean of so many answers, for models that vary.",
        min=1,
        metavar="R",
        show_default="1",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else.")]


def threads_of(wanted: int) -> int | None:
    """The number of threads that ``--threads`` means."""
    if wanted < 0:
        raise OptionError(f"--threads is {wanted}; give a number, or 0 for all cores.")
    return wanted or None


def stages_of(skip: str | None) -> frozenset[str]:
    """The stages that ``--skip`` names."""
    return frozenset(name.strip() for name in (skip or "").split(",") if name.strip())


def executor_options_of(workers: int | None, ray: str | None, threads: int) -> ExecutorOptions:
    """Options of the executor from those of the command line."""
    from fairbits.scale import ExecutorOptions

    return ExecutorOptions(workers=workers, ray=ray, threads=threads_of(threads))


def names_of(text: str, option: str = "--protected") -> list[str]:
    """The names in a comma-separated option."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise OptionError(f"{option} is {text!r}; name at least one, or leave it out.")
    return names


def audit_of(
    subject: str | None,
    resume: Path | None = None,
    *,
    protected: str | None = None,
    repeats: int | None = None,
    as_is: bool = False,
    grants: GrantOptions,
) -> Audit:
    """The audit that a command is about: of the subject that it names, or of the run that it goes on with."""
    from fairbits.audit import Audit

    names = None if protected is None else names_of(protected)
    if resume is not None:
        return Audit.of_run(resume, subject, protected=names, repeats=repeats, as_is=as_is, **grants)
    if subject is None:
        raise OptionError("no subject was given; name a built-in (see `fairbits data list`) or a subject.toml.")
    return Audit.of(subject, protected=names, repeats=repeats, as_is=as_is, **grants)
