"""`fairbits repair` and `serve`: a model to ship instead, judged on unseen rows, and one behind an address."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fairbits import explore, report
from fairbits import repair as repairs
from fairbits.cli.flags import (
    EITHER,
    FORCE,
    JSON,
    OUT,
    audit_of,
    check_subject,
    is_subject,
    open_run,
    subject_argument,
)
from fairbits.cli.output import answer, warn_of_damage
from fairbits.cli.progress import working
from fairbits.errors import OptionError
from fairbits.options import (
    AcceptOptions,
    LoadingOptions,
    RegionOptions,
    RepairOptions,
    ThreadOptions,
    arguments_of,
    option,
)


def repair(
    *,
    place: str = EITHER,
    options: RepairOptions,
    evaluations: int = option(
        20_000,
        "Without a run a short search comes first: at most so many people asked about.",
        low=1,
        rare=True,
    ),
    about: RegionOptions,
    out: Path | None = OUT,
    force: bool = FORCE,
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """A model to ship instead: guard, neurons, shrunk inputs, training, mitigators; the best is written beside the run.

    Exit 1: no candidate is sure to keep the accuracy budget, and none is written.
    """
    check_subject(place)
    of_run = not is_subject(place)
    if of_run and (about.protected is not None or about.where is not None or out is not None or force):
        raise OptionError(
            "--protected, --where, --out and --force are for an audit file; a run has its own, so leave them out."
        )
    opened = open_run(place, "repair", loading) if of_run else None
    quality = None if opened is None else opened.manifest.get("quality")
    with working(shown=not as_json) as progress:
        if opened is None:
            result = audit_of(place, about, loading).repair(
                evaluations=evaluations, out=out, force=force, progress=progress, **arguments_of(options)
            )
        else:
            result = opened.repair(progress=progress, **arguments_of(options))
            warn_of_damage(opened)
    nearby = f"measure {result.subject_file}" if result.subject_file is not None else f"report {result.folder}"
    answer(
        as_json,
        lambda: {"run": str(result.folder), "quality": quality, **repairs.document(result)},
        lambda: report.titled(
            f"{result.subject}: a model to ship instead", report.quality_lines(quality), report.repair_blocks(result)
        ),
        f"next  fairbits {nearby}{loading.typed}",
    )
    if result.chosen is None:
        raise click.exceptions.Exit(1)


def serve(
    *,
    subject: str = subject_argument(),
    guarantee: int = option(1, "The most classes that anybody may have.", low=1),
    port: int = option(0, "Port to listen on; 0 takes a free one."),
    options: ThreadOptions,
    loading: LoadingOptions,
) -> None:
    """Serve a model behind its guard, to this machine alone. Ctrl-C ends it.

    POST /scores takes {"people": [{"age": "30–39", …}]}; GET / says what is proved.
    """
    with explore.listen(port) as listening:
        audit = audit_of(subject, AcceptOptions(as_is=True), loading)
        guard = repairs.Guard.of(audit.subject, guarantee=guarantee, threads=options.threads)
        print(f"http://{explore.hosts_of(listening)[0]}/", flush=True)
        print(guard.proof, file=sys.stderr)
        print(f"One decision asks the model about {guard.m:,} twins. Ctrl-C ends it.", file=sys.stderr)
        explore.serve(explore.guard_app(guard), listening)
    print("The endpoint has ended.", file=sys.stderr)
