"""`fairbits debug`: where the bits of a run's cases come from."""

from __future__ import annotations

from dataclasses import replace

from fairbits import report, store
from fairbits.cli.arguments import JSON, RUN, open_run
from fairbits.cli.output import answer, warn_of_damage
from fairbits.cli.progress import working
from fairbits.options import DebugOptions, LoadingOptions, arguments_of


def debug(*, run: str = RUN, options: DebugOptions, as_json: bool = JSON, loading: LoadingOptions) -> None:
    """Which layer, neurons and attributes the bits come from, and what share of them the data and the training have."""
    from fairbits.engine import available_cores

    # Trainings that were asked for may take minutes: they go to processes of their own, one for each core.
    cores = options.threads or available_cores()
    if not options.many and (options.retrain or options.trainings) and cores > 1:
        options = replace(options, training_workers=min(cores, options.trainings or cores))
    opened = open_run(run, "debug", loading)
    warn_of_damage(opened)
    with working(shown=not as_json) as progress:
        found = opened.debug(progress=progress, **arguments_of(options))
    quality = opened.manifest.get("quality")
    answer(
        as_json,
        lambda: {"run": str(opened.folder), "quality": quality, **store.plain(found.summary())},
        lambda: report.titled(
            f"{found.subject}: where the bits come from", report.quality_lines(quality), report.debug_blocks(found)
        ),
        f"next  fairbits repair {opened.folder}{loading.typed}",
    )
