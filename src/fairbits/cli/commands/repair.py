"""`fairbits repair`: a model to ship instead, and everything else that could have been, judged on unseen rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from fairbits.cli.grants import granting
from fairbits.cli.options import (
    AsIs,
    Json,
    Out,
    Protected,
    Ray,
    Threads,
    Workers,
    audit_of,
    names_of,
    read_place,
    threads_of,
)
from fairbits.cli.output import print_json, warn_of_damage
from fairbits.errors import OptionError

if TYPE_CHECKING:
    from fairbits.audit import AuditRun
    from fairbits.domain import GrantOptions
    from fairbits.search import Budget


@granting
def repair(
    place: Annotated[
        str,
        typer.Argument(
            help="The folder of a run, or a subject, which is searched shortly first.",
            show_default=False,
            metavar="RUN|SUBJECT",
        ),
    ],
    max_accuracy_loss: Annotated[float, typer.Option(help="Accuracy that may be lost: 0.02 is two points.")] = 0.02,
    guarantee: Annotated[
        Optional[int],  # noqa: UP045 - typer reads the annotation at run time
        typer.Option(help="Take the cheapest under which nobody has more than so many classes, proved.", min=1),
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
        typer.Option(
            "--with",
            "--also",
            help="What else to try, by commas: mitigators (or reweigh, …), settings.",
            metavar="NAMES",
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="Settings to try, with --with settings.", min=1)] = 20,
    write_all: Annotated[
        bool, typer.Option("--write-all", help="Also write every model that no other candidate beats.")
    ] = False,
    attack_budget: Annotated[
        str, typer.Option(help="How long a fresh search attacks: 3s, 20000 people (as 20000), or 0 for none.")
    ] = "3s",
    evaluations: Annotated[int, typer.Option(help="At most so many people asked about.", min=1)] = 20_000,
    protected: Protected = None,
    out: Out = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a run in the folder of --out.")] = False,
    seed: Annotated[int, typer.Option(help="Same seed, same repair.")] = 0,
    threads: Threads = 0,
    workers: Workers = None,
    ray: Ray = None,
    as_is: AsIs = False,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """A model to ship instead: guard, neurons, shrunk inputs, training, mitigators; the best is written beside the run.

    Exit 1: no candidate is sure to keep the accuracy budget, and none is written.
    """
    budget = _attack_budget(attack_budget)
    from fairbits.cli.progress import working
    from fairbits.repair import document

    options: dict[str, Any] = {
        "max_accuracy_loss": max_accuracy_loss,
        "guarantee": guarantee,
        "choose": choose,
        "retrain": not no_retrain,
        "quick": quick,
        "proposals": [] if also is None else names_of(also, "--with"),
        "trials": trials,
        "write_all": write_all,
        "attack_budget": budget,
        "seed": seed,
        "threads": threads_of(threads),
        "workers": workers,
        "ray": ray,
    }
    opened = _run_of(place, grants, protected=protected, out=out, force=force)
    with working(shown=not as_json) as progress:
        if opened is None:
            audit = audit_of(place, protected=protected, as_is=as_is, grants=grants)
            result = audit.repair(evaluations=evaluations, out=out, force=force, progress=progress, **options)
        else:
            result = opened.repair(progress=progress, **options)
    quality = None
    if opened is not None:
        warn_of_damage(opened)
        quality = opened.manifest.get("quality")
    if as_json:
        print_json({"run": str(result.folder), "quality": quality, **document(result)})
    else:
        from fairbits.blocks import Paragraph, Strong, paragraphs
        from fairbits.cli.terminal import show
        from fairbits.report import quality_lines, repair_blocks

        head = [Paragraph(Strong(f"{result.subject}: a model to ship instead"))]
        lines = paragraphs(quality_lines(quality), "small")
        nearby = f"measure {result.subject_file}" if result.subject_file is not None else f"report {result.folder}"
        show([*head, *lines, *repair_blocks(result)], f"next  fairbits {nearby}")
    if result.chosen is None:
        raise typer.Exit(1)


def _run_of(text: str, grants: GrantOptions, *, protected: str | None, out: Any, force: bool) -> AuditRun | None:
    """The run that is meant; None where a subject is."""
    from fairbits.audit import AuditRun
    from fairbits.data import BUILT_IN

    if text in BUILT_IN or text.endswith(".toml"):
        return None
    if protected is not None or out is not None or force:
        raise OptionError("--protected, --out and --force are for a subject; a run has its own, so leave them out.")
    return AuditRun.open(read_place(text), **grants)


def _attack_budget(text: str) -> Budget | None:
    """Seconds with a unit, people without one, nothing for 0."""
    from fairbits.search import Budget, seconds_of

    plain = text.strip()
    if plain.isascii() and plain.isdigit():
        return Budget(evaluations=int(plain)) if int(plain) else None
    return Budget(seconds=seconds_of(plain))
