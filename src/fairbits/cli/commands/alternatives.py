"""`fairbits alternatives`: every less discriminatory alternative that is known here, as a log and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.grants import granting
from fairbits.cli.options import (
    AsIs,
    Json,
    Out,
    Protected,
    Subject,
    Threads,
    audit_of,
    names_of,
    threads_of,
)
from fairbits.cli.output import print_json
from fairbits.cli.render.progress import working

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions
    from fairbits.repair import Alternatives

#: Typer reads annotations at run time, and not in the newer spelling.
_Text = Optional[str]  # noqa: UP045
_Path = Optional[Path]  # noqa: UP045
Seed = Annotated[int, typer.Option(help="Same seed, same candidates.", min=0)]
Force = Annotated[bool, typer.Option("--force", help="Replace a run that is in the folder.")]
Evaluations = Annotated[int, typer.Option(help="People that the search before it asks about.", min=1)]


@granting
def alternatives(
    subject: Subject,
    proposals: Annotated[
        _Text,
        typer.Option(help="What to try, by commas: weights, reweigh, … or mitigators.", show_default="everything"),
    ] = None,
    trials: Annotated[int, typer.Option(help="Settings of the model's own training to try; 0 for none.", min=0)] = 20,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out surgery on weights, which takes longest.")] = False,
    run: Annotated[_Path, typer.Option(help="A run of this subject, in place of a new search.", metavar="RUN")] = None,
    evaluations: Evaluations = 20_000,
    protected: Protected = None,
    out: Out = None,
    force: Force = False,
    seed: Seed = 0,
    threads: Threads = 0,
    as_is: AsIs = False,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """Less discriminatory alternatives: guard, repairs, mitigators and other settings on one front, filed."""
    names = None if proposals is None else names_of(proposals, "--proposals")
    audit = audit_of(subject, protected=protected, as_is=as_is, grants=grants)
    with working(shown=not as_json) as progress:
        found = audit.alternatives(
            run=run,
            proposals=names,
            trials=trials,
            quick=quick,
            evaluations=evaluations,
            out=out,
            force=force,
            seed=seed,
            threads=threads_of(threads),
            progress=progress,
        )
    print_alternatives(found, as_json=as_json)


def print_alternatives(found: Alternatives, *, as_json: bool) -> None:
    """Print what was found."""
    if as_json:
        print_json({"run": str(found.folder), **found.document()})
        return
    from fairbits.cli.render.alternatives import show

    show(found)
