"""`fairbits repair`: a repaired model from a run, judged on what no repair has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.grants import granting
from fairbits.cli.options import (
    Json,
    Ray,
    RunPlace,
    Threads,
    Workers,
    names_of,
    threads_of,
)
from fairbits.cli.output import print_json, warn_of_damage

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions
    from fairbits.search import Budget


@granting
def repair(
    run: RunPlace,
    max_accuracy_loss: Annotated[float, typer.Option(help="Accuracy that may be lost: 0.02 is two points.")] = 0.02,
    guarantee: Annotated[
        Optional[int],  # noqa: UP045 - typer reads the annotation at run time
        typer.Option(help="Take the guard under which nobody has more than so many classes, proved.", min=1),
    ] = None,
    choose: Annotated[
        Optional[str],  # noqa: UP045 - typer reads the annotation at run time
        typer.Option(help="Take this repair, e.g. blind.", show_default="the lowest proved k within the budget"),
    ] = None,
    no_retrain: Annotated[bool, typer.Option("--no-retrain", help="Leave out repairs by further training.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out what takes long: distilling, sets of neurons, training.")
    ] = False,
    also: Annotated[
        Optional[str],  # noqa: UP045 - typer reads the annotation at run time
        typer.Option(help="Mitigators to try beside the repairs, by commas: reweigh, … or mitigators for all."),
    ] = None,
    attack_budget: Annotated[
        str, typer.Option(help="How long a fresh search attacks: 3s, 20000 people (as 20000), or 0 for none.")
    ] = "3s",
    seed: Annotated[int, typer.Option(help="Same seed, same repair.")] = 0,
    threads: Threads = 0,
    workers: Workers = None,
    ray: Ray = None,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """Repair the model of a run: guard, neurons, shrunk inputs, training; the best is written beside the run.

    Exit 1: no repair keeps the accuracy budget, and none is written.
    """
    budget = _attack_budget(attack_budget)
    from fairbits.audit import AuditRun
    from fairbits.cli.render.repair import show, watching
    from fairbits.repair import document

    opened = AuditRun.open(run, **grants)
    with watching(shown=not as_json) as progress:
        result = opened.repair(
            max_accuracy_loss=max_accuracy_loss,
            guarantee=guarantee,
            choose=choose,
            retrain=not no_retrain,
            quick=quick,
            proposals=[] if also is None else names_of(also, "--also"),
            attack_budget=budget,
            seed=seed,
            threads=threads_of(threads),
            workers=workers,
            ray=ray,
            progress=progress,
        )
    warn_of_damage(opened)
    quality = opened.manifest.get("quality")
    if as_json:
        print_json({"run": str(run), "quality": quality, **document(result)})
    else:
        show(result, quality)
    if result.chosen is None:
        raise typer.Exit(1)


def _attack_budget(text: str) -> Budget | None:
    """Seconds with a unit, people without one, nothing for 0."""
    from fairbits.search import Budget, seconds_of

    plain = text.strip()
    if plain.isascii() and plain.isdigit():
        return Budget(evaluations=int(plain)) if int(plain) else None
    return Budget(seconds=seconds_of(plain))
