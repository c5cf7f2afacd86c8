"""`fairbits debug`: where the bits of a run's cases come from."""

from __future__ import annotations

from dataclasses import replace

from fairbits.cli.arguments import JSON, open_run, run_argument
from fairbits.cli.output import print_json, warn_of_damage
from fairbits.options import DebugOptions, LoadingOptions, arguments_of


def debug(*, run: str = run_argument(), options: DebugOptions, as_json: bool = JSON, loading: LoadingOptions) -> None:
    """Which layer, neurons and attributes the bits come from, and what share of them the data and the training have."""
    from fairbits.cli.progress import working
    from fairbits.engine import available_cores

    # Trainings that were asked for may take minutes: they go to processes of their own, one for each core.
    cores = options.threads or available_cores()
    if not options.many and (options.retrain or options.trainings) and cores > 1:
        options = replace(options, training_workers=min(cores, options.trainings or cores))
    opened = open_run(run, "debug", loading)
    warn_of_damage(opened)
    with working(shown=not as_json) as progress:
        found = opened.debug(progress=progress, **arguments_of(options))
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
    show([*head, *lines, *debug_blocks(found)], f"next  fairbits repair {opened.folder}{loading.typed}")
