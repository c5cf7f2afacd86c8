"""`fairbits diff`: two models, the same people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.grants import granting
from fairbits.cli.options import (
    Epsilon,
    Json,
    PartitionName,
    Protected,
    Threads,
    names_of,
    threads_of,
)
from fairbits.cli.output import print_json

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions

#: Typer reads annotations at run time, and not in the newer spelling.
_Text = Optional[str]  # noqa: UP045
_Number = Optional[int]  # noqa: UP045
_Place = Optional[Path]  # noqa: UP045
_WHAT = "A run, a subject, or a model (file, address, reference)."


@granting
def diff(
    a: Annotated[str, typer.Argument(help=f"Before. {_WHAT}", show_default=False, metavar="A")],
    b: Annotated[str, typer.Argument(help=f"After. {_WHAT}", show_default=False, metavar="B")],
    subject: Annotated[
        _Text, typer.Option(help="Whose people and schema models get.", show_default="the other side's")
    ] = None,
    html: Annotated[_Place, typer.Option(help="Write a page, too.", metavar="FILE")] = None,
    top: Annotated[int, typer.Option(help="How many of those who got worse to list.", min=0)] = 5,
    people: Annotated[
        _Number,
        typer.Option(help="How many to compare at most.", min=1, show_default="all, or what half a minute allows"),
    ] = None,
    epsilon: Epsilon = None,
    partition: PartitionName = "constrained",
    protected: Protected = None,
    seed: Annotated[int, typer.Option(help="Same seed, same intervals.", min=0)] = 0,
    threads: Threads = 0,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """What changed from A to B: accuracy, bits, flips, decisions, groups, who got worse, and in which layer."""
    from fairbits.audit import diff_models
    from fairbits.store import plain

    found = diff_models(
        a,
        b,
        subject=subject,
        protected=None if protected is None else names_of(protected),
        epsilon=epsilon,
        partition=partition,
        seed=seed,
        threads=threads_of(threads),
        top=top,
        people=people,
        html=html,
        **grants,
    )
    if as_json:
        print_json(plain(found.document()))
        return
    from fairbits.cli.terminal import show_page
    from fairbits.diff import diff_page

    show_page(diff_page(found), *([] if html is None else [f"page  {html}"]))
