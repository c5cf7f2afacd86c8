"""`fairbits debug`: where the bits of a run's cases come from."""

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
    threads_of,
)
from fairbits.cli.output import print_json, warn_of_damage

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions


@granting
def debug(
    run: RunPlace,
    all_layers: Annotated[bool, typer.Option("--all-layers", help="Neurons of all hidden layers.")] = False,
    samples: Annotated[int, typer.Option(help="How many cases: the worst fifth, the others at random.")] = 1000,
    no_layers: Annotated[
        bool, typer.Option("--no-layers", help="Only attributes and labels: for models that give scores only.")
    ] = False,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train again from other seeds, however long that takes.")
    ] = False,
    trainings: Annotated[
        Optional[int],  # noqa: UP045 - typer reads the annotation at run time
        typer.Option(
            help="How many models to train for data or training; 0: none.", show_default="8, or 4 on large tables"
        ),
    ] = None,
    rule: Annotated[
        str, typer.Option(help="spread, or paper: layers and neurons as the paper's public code finds them.")
    ] = "spread",
    seed: Annotated[int, typer.Option(help="Same seed, same cases.", min=0)] = 0,
    threads: Threads = 0,
    workers: Workers = None,
    ray: Ray = None,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """Which layer, neurons and attributes the bits come from, and what share of them the data and the training have."""
    from fairbits.audit import AuditRun
    from fairbits.cli.progress import working
    from fairbits.engine import available_cores

    count = threads_of(threads)
    # Trainings that were asked for may take minutes: they go to processes of their own, one for each core.
    cores = count or available_cores()
    apart = workers is None and ray is None and (retrain or trainings) and cores > 1
    opened = AuditRun.open(run, **grants)
    warn_of_damage(opened)
    with working(shown=not as_json) as progress:
        found = opened.debug(
            samples=samples,
            all_layers=all_layers,
            inside=not no_layers,
            retrain=retrain,
            rule=rule,
            trainings=trainings,
            seed=seed,
            threads=count,
            workers=workers,
            ray=ray,
            training_workers=min(cores, trainings or cores) if apart else None,
            progress=progress,
        )
    if as_json:
        from fairbits.store import plain

        figures = {"quality": opened.manifest.get("quality")}
        print_json({"run": str(opened.folder), **figures, **plain(found.summary())})
        return
    from fairbits.blocks import Paragraph, Strong, paragraphs
    from fairbits.cli.terminal import show
    from fairbits.report import debug_blocks, quality_lines

    head = [Paragraph(Strong(f"{found.subject}: where the bits come from"))]
    lines = paragraphs(quality_lines(opened.manifest.get("quality")), "small")
    show(
        [*head, *lines, *debug_blocks(found)],
        f"next  fairbits repair {opened.folder} · fairbits report {opened.folder}",
    )
