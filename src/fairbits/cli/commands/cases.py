"""`fairbits cases`: what a search found, worst first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fairbits.cli.arguments import JSON, open_run, run_argument
from fairbits.cli.output import print_json, warn_of_damage
from fairbits.options import option

if TYPE_CHECKING:
    from fairbits.store import Case, Run

#: How many cases a terminal shows when nothing is said. A file gets all of them.
SHOWN = 20


def cases(
    *,
    run: str = run_argument(),
    top: int | None = option(None, "How many cases.", shown=f"{SHOWN}, in a file all"),
    where: str | None = option(
        None, "Only cases for which this SQL condition holds, e.g. \"k >= 8 and occupation = 'Sales'\"."
    ),
    out: Path | None = option(None, "Write them to a file: .csv, .parquet or .json.", metavar="FILE"),
    time_limit: str | None = option(
        None,
        "How long the condition of --where may take, e.g. 60s.",
        metavar="DURATION",
        shown="15s",
        rare=True,
    ),
    force: bool = option(False, "Replace the file of --out if there is one."),
    as_json: bool = JSON,
) -> None:
    """The cases of a run, ranked by severity: the most classes first, then the widest span."""
    opened = open_run(run, "cases")
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
