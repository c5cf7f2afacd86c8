"""`fairbits diff`: two models, the same people."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.options import (
    Epsilon,
    Json,
    PartitionName,
    Protected,
    Threads,
    granting,
    grants_as_words,
    names_of,
    threads_of,
)
from fairbits.cli.output import print_json
from fairbits.errors import OptionError

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
    if html is not None and not html.parent.is_dir():
        raise OptionError(f"the folder {str(html.parent)!r} does not exist; make it, or choose another --html.")
    from fairbits.diff import diff_subjects, sides_of, write_diff
    from fairbits.store import plain

    sides = sides_of(a, b, subject=subject, **grants)
    names = None if protected is None else names_of(protected)
    before, after = (one if names is None else one.with_protected(names) for one in sides)
    words = ["fairbits", "diff", a, b, "--seed", str(seed), "--partition", partition, "--top", str(top)]
    for option, value in (("--subject", subject), ("--protected", protected), ("--epsilon", epsilon)):
        words += [] if value is None else [option, str(value)]
    found = diff_subjects(
        before,
        after,
        epsilon=epsilon,
        partition=partition,
        seed=seed,
        threads=threads_of(threads),
        top=top,
        people=people,
        command=shlex.join([*words, *grants_as_words(grants)]),
    )
    if found.rows < found.rows_total:  # the clock had a say in it: the command names the number
        found = replace(found, command=f"{found.command} --people {found.rows}")
    if html is not None:
        write_diff(found, html)
    if as_json:
        print_json(plain(found.document()))
        return
    from fairbits.cli.render.diff import show

    show(found)
    if html is not None:
        print(f"page  {html}")
