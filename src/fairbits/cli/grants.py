"""The options that say what files from outside may do, added to every command that opens such files."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Optional

import typer

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


def granting(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter ``grants`` becomes the options that say what files from outside may do."""

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
