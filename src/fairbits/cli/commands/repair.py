"""`fairbits repair`: a model to ship instead, and everything else that could have been, judged on unseen rows."""

from __future__ import annotations

from pathlib import Path

import click

from fairbits.cli.arguments import (
    JSON,
    audit_of,
    check_subject,
    either_argument,
    force_option,
    is_subject,
    open_run,
    out_option,
)
from fairbits.cli.output import print_json, warn_of_damage
from fairbits.errors import OptionError
from fairbits.options import LoadingOptions, RegionOptions, RepairOptions, arguments_of, option


def repair(
    *,
    place: str = either_argument(),
    options: RepairOptions,
    evaluations: int = option(
        20_000,
        "Without a run a short search comes first: at most so many people asked about.",
        low=1,
        rare=True,
    ),
    about: RegionOptions,
    out: Path | None = out_option(),
    force: bool = force_option(),
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """A model to ship instead: guard, neurons, shrunk inputs, training, mitigators; the best is written beside the run.

    Exit 1: no candidate is sure to keep the accuracy budget, and none is written.
    """
    from fairbits.cli.progress import working
    from fairbits.repair import document

    check_subject(place)
    of_run = not is_subject(place)
    if of_run and (about.protected is not None or about.where is not None or out is not None or force):
        flags = "--protected, --where, --out and --force"
        raise OptionError(f"{flags} are for an audit file; a run has its own, so leave them out.")
    opened = open_run(place, "repair", loading) if of_run else None
    quality = None
    with working(shown=not as_json) as progress:
        if opened is None:
            audit = audit_of(place, about, loading)
            result = audit.repair(
                evaluations=evaluations, out=out, force=force, progress=progress, **arguments_of(options)
            )
        else:
            result = opened.repair(progress=progress, **arguments_of(options))
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
        show([*head, *lines, *repair_blocks(result)], f"next  fairbits {nearby}{loading.typed}")
    if result.chosen is None:
        raise click.exceptions.Exit(1)
