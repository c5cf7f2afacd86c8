"""`fairbits debug`: where the bits of a run's cases come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from fairbits.cli.options import Json, Ray, RunPlace, Threads, Workers, executor_options_of, granting, threads_of
from fairbits.cli.output import print_json

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
        bool, typer.Option("--retrain", help="Train the same shape from another seed, and without protected columns.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Same seed, same cases.", min=0)] = 0,
    threads: Threads = 0,
    workers: Workers = None,
    ray: Ray = None,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """Which layer, which neurons and which attributes the bits come from, and whether the data or the training."""
    from fairbits.debug import debug_run
    from fairbits.scale import try_out_by
    from fairbits.store import Run

    count = threads_of(threads)
    opened = Run.open(run)
    with _stages(shown=not as_json) as stage:
        found = debug_run(
            opened,
            samples=samples,
            all_layers=all_layers,
            inside=not no_layers,
            retrain=retrain,
            seed=seed,
            threads=count,
            **grants,
            stage=stage,
            try_out=try_out_by(executor_options_of(workers, ray, threads)),
        )
    if as_json:
        from fairbits.store import plain

        figures = {"quality": opened.manifest.get("quality")}
        print_json({"run": str(opened.folder), **figures, **plain(found.summary())})
        return
    from fairbits.cli.render.debug import show

    show(opened, found)


@contextmanager
def _stages(*, shown: bool) -> Iterator[Callable[[str], None] | None]:
    """One line on stderr that says what is being done; nothing where stderr is no terminal."""
    from fairbits.cli.console import Console

    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    with console.status("…") as line:
        yield lambda what: line.update(f"{what} …")
