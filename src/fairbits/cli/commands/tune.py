"""`fairbits tune`: a search over the training of the subject's own kind of model, with bits among the objectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairbits.cli.commands.alternatives import Evaluations, Force, Seed, find
from fairbits.cli.options import AsIs, Json, Out, Protected, Subject, Threads, granting, threads_of

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
    find(
        subject,
        ["tune", "--trials", str(trials)],
        as_json=as_json,
        as_is=as_is,
        protected=protected,
        grants=grants,
        proposals=["tune"],
        trials=trials,
        quick=True,
        evaluations=evaluations,
        out=out,
        force=force,
        seed=seed,
        threads=threads_of(threads),
    )
