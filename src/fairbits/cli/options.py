"""Options that several commands share, described once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from fairbits.errors import OptionError

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions
    from fairbits.scale import ExecutorOptions
    from fairbits.subject import Subject as LoadedSubject

    Place = Path
else:
    # Typer makes a local path of whatever is annotated as one, and a place in a bucket is none (universal-pathlib).
    Place = Any


def read_place(text: str) -> Path:
    """The folder or address, such as s3://bucket/run, that somebody typed.

    Parameters
    ----------
    text
        What was typed.

    Returns
    -------
    Path
        The path.
    """
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
_GRANTS = "What files from outside may do"
TrustPickle = Annotated[
    bool,
    typer.Option(
        "--trust-pickle",
        help="Let the model file run code when it is opened (pickles do).",
        rich_help_panel=_GRANTS,
    ),
]
#: By name in Python: the option, and its default.
_GRANTED: dict[str, tuple[Any, Any]] = {
    "trust_code": (
        Annotated[
            bool,
            typer.Option(
                "--trust-code",
                help="Import the Python code that module:name or factory names.",
                rich_help_panel=_GRANTS,
            ),
        ],
        False,
    ),
    "trust_pickle": (TrustPickle, False),
    "trust": (
        Annotated[bool, typer.Option("--trust", help="Both --trust-code and --trust-pickle.", rich_help_panel=_GRANTS)],
        False,
    ),
    "credential": (
        Annotated[
            Optional[str],  # noqa: UP045
            typer.Option(
                help="Environment variable whose secret the endpoint gets, and no other host.",
                metavar="NAME[@https://HOST]",
                rich_help_panel=_GRANTS,
            ),
        ],
        None,
    ),
    "max_model_bytes": (
        Annotated[
            Optional[int],  # noqa: UP045
            typer.Option(help="Bytes of a model once unpacked.", show_default="536870912", rich_help_panel=_GRANTS),
        ],
        None,
    ),
    "max_rows": (
        Annotated[
            Optional[int],  # noqa: UP045
            typer.Option(help="Rows of a table.", show_default="2000000", rich_help_panel=_GRANTS),
        ],
        None,
    ),
    "max_seconds": (
        Annotated[
            Optional[float],  # noqa: UP045
            typer.Option(
                help="Seconds until a foreign model has answered first.", show_default="12", rich_help_panel=_GRANTS
            ),
        ],
        None,
    ),
}
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


def granting(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter ``grants`` becomes the options that say what files from outside may do.

    Parameters
    ----------
    command
        The function of the command.

    Returns
    -------
    Callable[..., None]
        The function to register.
    """

    @functools.wraps(command)
    def run(*given: Any, **named: Any) -> None:
        grants = {name: named.pop(name, usual) for name, (_, usual) in _GRANTED.items()}
        command(*given, **named, grants={name: value for name, value in grants.items() if value not in (None, False)})

    command.__annotations__.pop("grants")  # known to the type checker alone, while typer evaluates all the others
    stated = inspect.signature(command, eval_str=True).parameters
    kept = [entry for name, entry in stated.items() if name != "grants"]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=usual, annotation=kind)
        for name, (kind, usual) in _GRANTED.items()
    ]
    older = [entry for entry in more if entry.name == "trust_pickle"]  # stands where it always stood
    end = [entry.name for entry in kept].index("as_json") if "as_json" in stated else len(kept)
    order = [*kept[:end], *older, *kept[end:], *(entry for entry in more if entry not in older)]
    every = [entry.replace(kind=inspect.Parameter.KEYWORD_ONLY) for entry in order]
    run.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {entry.name: entry.annotation for entry in every}
    return run


def grants_as_words(grants: GrantOptions) -> list[str]:
    """Grants as they are typed, for the command that makes something again.

    Parameters
    ----------
    grants
        What files from outside may do, as for :func:`~fairbits.load_subject`.

    Returns
    -------
    list[str]
        Options and their values.
    """
    words: list[str] = []
    for name, value in grants.items():
        option = "--" + name.replace("_", "-")
        words += [option] if value is True else [option, str(value)]
    return words


def threads_of(wanted: int) -> int | None:
    """The number of threads that ``--threads`` means.

    Parameters
    ----------
    wanted
        What was typed; 0 means all cores.

    Returns
    -------
    int | None
        The number; None for all cores.

    Raises
    ------
    OptionError
        If it is negative.
    """
    if wanted < 0:
        raise OptionError(f"--threads is {wanted}; give a number, or 0 for all cores.")
    return wanted or None


def stages_of(skip: str | None) -> frozenset[str]:
    """The stages that ``--skip`` names.

    Parameters
    ----------
    skip
        Names with commas between them.

    Returns
    -------
    frozenset[str]
        Names of stages.
    """
    return frozenset(name.strip() for name in (skip or "").split(",") if name.strip())


def executor_options_of(workers: int | None, ray: str | None, threads: int) -> ExecutorOptions:
    """Options of the executor from those of the command line.

    Parameters
    ----------
    workers
        Number of worker processes.
    ray
        A Ray cluster: "local", or its address.
    threads
        What ``--threads`` was given; 0 means all cores.

    Returns
    -------
    ExecutorOptions
        The options.
    """
    from fairbits.scale import ExecutorOptions

    return ExecutorOptions(workers, ray, threads_of(threads))


def names_of(text: str, option: str = "--protected") -> list[str]:
    """The names in a comma-separated option.

    Parameters
    ----------
    text
        What was typed.
    option
        The option, for the message.

    Returns
    -------
    list[str]
        The names.

    Raises
    ------
    OptionError
        If there is none.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise OptionError(f"{option} is {text!r}; name at least one, or leave it out.")
    return names


def named_subject(subject: str, protected: str | None, grants: GrantOptions) -> LoadedSubject:
    """The subject that a command names, with the protected attributes that it names.

    Parameters
    ----------
    subject
        Name or file.
    protected
        Names with commas between them; None keeps the subject's own.
    grants
        What files from outside may do.

    Returns
    -------
    Subject
        The subject; whether its model decides against the labels is not checked yet.
    """
    from fairbits.data import load_subject

    loaded = load_subject(subject, **grants)
    return loaded if protected is None else loaded.with_protected(names_of(protected))
