"""`fairbits cases`: what a search found, worst first."""

from __future__ import annotations

from pathlib import Path

from fairbits import report, store
from fairbits.cli.arguments import JSON, RUN, open_run
from fairbits.cli.output import answer, print_json, warn_of_damage
from fairbits.options import option, seconds_of

#: How many cases a terminal shows when nothing is said. A file gets all of them.
SHOWN = 20


def cases(
    *,
    run: str = RUN,
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
        opened.verify()
        wanted = SHOWN if top is None else top
        with store.time_limit(store.SECONDS if time_limit is None else seconds_of(time_limit)):
            answer(
                as_json,
                lambda: opened.cases(where=where, top=wanted).to_pylist(),
                lambda: report.cases_look(opened, opened.worst(wanted, where=where), where),
                f"next  fairbits explore {opened.folder}",
                everything=top is not None or None,
            )
    warn_of_damage(opened)
