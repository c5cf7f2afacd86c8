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
        _list(opened, SHOWN if top is None else top, where, time_limit, as_json=as_json)
    warn_of_damage(opened)


def _list(run: Run, top: int, where: str | None, limit: str | None, *, as_json: bool) -> None:
    """Cases on stdout, as many as were asked for."""
    from fairbits.search import seconds_of
    from fairbits.store import SECONDS, time_limit

    run.verify()
    with time_limit(SECONDS if limit is None else seconds_of(limit)):
        if as_json:
            print_json(run.cases(where=where, top=top).to_pylist())
        else:
            _show(run, run.worst(top, where=where), where)


def _show(run: Run, found: list[Case], where: str | None) -> None:
    from rich.text import Text

    from fairbits.cli.console import Console
    from fairbits.cli.render.people import harmless, people_text, quality_lines

    console = Console(highlight=False)
    for line in quality_lines(run.manifest.get("quality")):
        console.print(Text(line, style="dim"))
    if not found:
        reason = f"of the {len(run):,} cases, none fits {where!r}." if where else "the run has no cases."
        console.print(Text(harmless(reason)))
        return
    chosen = " that fit" if where else ""
    title = f"The worst{chosen}, of {len(run):,} cases" if len(found) > 1 else f"The worst case{chosen}"
    console.print(people_text(title, [(case, place_of(case), origin_of(case)) for case in found]))


def place_of(case: Case) -> str:
    """How far a case is from real people."""
    if case.changed == 0:
        return "a real row"
    if case.changed < 0:
        return "distance unknown"
    return f"{case.changed} attribute{'s' if case.changed > 1 else ''} from a real row"


def origin_of(case: Case) -> str:
    """How a case was found, with span and plausibility."""
    from fairbits.cli.render.people import harmless

    start = f" from row {case.seed_row + 1}" if case.seed_row >= 0 else ""
    figures = f"span {case.span:.3f}, plausibility {case.plausibility:.0f}"
    return f"{figures}; evaluation {case.evaluation:,}, {harmless(case.origin)}{start}"
