"""`fairbits tune`: a search over the training of the subject's own kind of model, with bits among the objectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairbits.cli.commands.alternatives import Evaluations, Force, Seed, print_alternatives
from fairbits.cli.grants import granting
from fairbits.cli.options import (
    AsIs,
    Json,
    Out,
    Protected,
    Subject,
    Threads,
    audit_of,
    threads_of,
)
from fairbits.cli.render.progress import working

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions


@granting
def tune(
    subject: Subject,
    trials: Annotated[int, typer.Option(help="Settings to try.", min=1)] = 30,
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
    """Other settings of the same kind of model: accuracy, group gap and bits at once, beside the guard on one front."""
    audit = audit_of(subject, protected=protected, as_is=as_is, grants=grants)
    with working(shown=not as_json) as progress:
        found = audit.tune(
            trials=trials,
            evaluations=evaluations,
            out=out,
            force=force,
            seed=seed,
            threads=threads_of(threads),
            progress=progress,
        )
    print_alternatives(found, as_json=as_json)
