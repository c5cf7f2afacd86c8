"""`fairbits cases`: what a search found, worst first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.options import Json, RunPlace
from fairbits.cli.output import print_json, warn_of_damage

if TYPE_CHECKING:
    from fairbits.store import Case, Run

#: How many cases a terminal shows when nothing is said. A file gets all of them.
SHOWN = 20


def cases(
    run: RunPlace,
    top: Annotated[
        Optional[int],  # noqa: UP045 - typer reads the annotation at run time
        typer.Option(help="How many cases.", show_default=f"{SHOWN}, in a file all"),
    ] = None,
    where: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Only cases for which this SQL condition holds, e.g. \"k >= 8 and occupation = 'Sales'\"."),
    ] = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write them to a file: .csv, .parquet or .json."),
    ] = None,
    time_limit: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="How long the condition of --where may take, e.g. 60s.", show_default="15s"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --out if there is one.")] = False,
    as_json: Json = False,
) -> None:
    """The cases of a run, ranked by severity: the most classes first, then the widest span."""
    from fairbits.audit import AuditRun

    opened = AuditRun.open(run)
    if out is not None:
        rows = opened.export(out, where=where, top=top, time_limit=time_limit, force=force)
        if as_json:
            print_json({"cases": rows, "out": str(out)}, indent=None)
        else:
            print(f"{rows:,} cases in {out}")
    else:
        _list(opened, top, where, time_limit, as_json=as_json)
    warn_of_damage(opened)


def _list(run: Run, top: int | None, where: str | None, limit: str | None, *, as_json: bool) -> None:
    """Cases on stdout, as many as were asked for."""
    from fairbits.search import seconds_of
    from fairbits.store import SECONDS, time_limit

    run.verify()
    wanted = SHOWN if top is None else top
    with time_limit(SECONDS if limit is None else seconds_of(limit)):
        if as_json:
            print_json(run.cases(where=where, top=wanted).to_pylist())
        else:
            _show(run, run.worst(wanted, where=where), where, everything=top is not None)


def _show(run: Run, found: list[Case], where: str | None, *, everything: bool) -> None:
    from fairbits.blocks import Paragraph, People, Strong, paragraphs
    from fairbits.cli.terminal import show
    from fairbits.report import case_card, quality_lines

    blocks = paragraphs(quality_lines(run.manifest.get("quality")), "small")
    if not found:
        reason = f"of the {len(run):,} cases, none fits {where!r}." if where else "the run has no cases."
        show([*blocks, Paragraph(reason)])
        return
    chosen = " that fit" if where else ""
    cards = [case_card(case, rank) for rank, case in enumerate(found, 1)]
    title = Paragraph(Strong(f"Treated most differently{chosen}, of {len(run):,} cases"))
    people = People(cards, not run.schema.regression)
    show([title, *blocks, people], f"next  fairbits explore {run.folder}", everything=everything or None)
