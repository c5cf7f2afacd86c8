"""Options that several commands share, described once."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from fairbits.errors import OptionError

Subject = Annotated[str, typer.Argument(help="A built-in subject (see `fairbits data list`) or a subject.toml.")]
Epsilon = Annotated[
    Optional[float],  # noqa: UP045 - typer reads the annotation at run time
    typer.Option(help="Scores closer than this count as the same.  [default: 0.025]", show_default=False),
]
PartitionName = Annotated[str, typer.Option("--partition", help="constrained, or grid as in the paper's artifact.")]
Protected = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="Protected attributes, separated by commas, instead of the subject's own."),
]
Threads = Annotated[int, typer.Option(help="Threads to use; 0 means all cores.")]
TrustPickle = Annotated[
    bool, typer.Option("--trust-pickle", help="Let the model file run code when it is opened (pickles do).")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else.")]


def threads_of(wanted: int) -> int | None:
    """The number of threads that an option means; None for all cores."""
    if wanted < 0:
        raise OptionError(f"--threads is {wanted}; give a number, or 0 for all cores.")
    return wanted or None


def names_of(text: str, option: str = "--protected") -> list[str]:
    """The names in a comma-separated option."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise OptionError(f"{option} is {text!r}; name at least one attribute.")
    return names
