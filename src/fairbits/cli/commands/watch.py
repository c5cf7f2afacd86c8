"""`fairbits gate` and `fleet`: one model against a policy and an earlier one, and many models ranked."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from fairbits import audit, gates, report
from fairbits.cli.flags import JSON, argument, check_subject
from fairbits.cli.output import answer, print_json
from fairbits.cli.progress import progress_bar
from fairbits.cli.signals import FAILED, INTERRUPTED, gentle_stop
from fairbits.errors import OptionError, on_disk
from fairbits.options import (
    AcceptOptions,
    AuditOptions,
    FreezeOptions,
    GateOptions,
    LoadingOptions,
    ProtectedOptions,
    arguments_of,
    option,
)


def gate(
    *,
    subject: str | None = argument(None, "A built-in name, an audit file, or the folder of a run.", metavar="MODEL"),
    options: GateOptions,
    out: Path | None = option(
        None, "Folder of gate.json; with --freeze the suite.", metavar="PLACE", shown="the run's own, or gate/NAME"
    ),
    junit: Path | None = option(None, "Write JUnit XML to this file.", metavar="FILE"),
    sarif: Path | None = option(None, "Write SARIF 2.1.0 to this file.", metavar="FILE"),
    markdown: Path | None = option(None, "Write Markdown to this file.", metavar="FILE"),
    freeze: bool = option(False, "Freeze the people as a suite, and judge nothing."),
    waivers: bool = option(False, "List the policy's waivers, and judge nothing."),
    about: ProtectedOptions,
    as_json: bool = JSON,
    freezing: FreezeOptions,
    loading: LoadingOptions,
) -> None:
    """Score frozen people again and judge the model: exit 0 pass, 1 fail, 2 misuse, 3 inconclusive, 4 failure.

    The first run without a baseline writes it. Inside GitHub Actions the verdict also goes to the job's summary.
    """
    if freeze and waivers:
        raise OptionError("--freeze and --waivers do not go together; give one of them.")
    if waivers:
        return _waivers(options.policy or subject, as_json=as_json)
    if subject is None:
        raise OptionError("nothing to judge was given; name a built-in, a subject.toml or the folder of a run.")
    check_subject(subject)
    if freeze:
        return _freeze(subject, out, freezing, loading, as_json=as_json)
    if freezing != FreezeOptions():
        raise OptionError("--add, --rows, --cases, --seed and --force say what is frozen; add --freeze.")
    asked: dict[str, Any] = {**arguments_of(options), "protected": about.protected, "as_is": about.as_is}
    with progress_bar("asking again") as progress:
        result = gates.gate(subject, out=out, progress=progress, **asked, **loading.given())
    _write(result, junit, sarif, markdown)
    judged = (Path(subject) / "run.json").is_file()  # the page of a run shows the verdict
    nearby = f"next  fairbits {'report' if judged else 'audit'} {subject}{loading.typed}"
    answer(as_json, result.document, lambda: report.gate_look(result.document()), nearby)
    raise click.exceptions.Exit(result.exit_code)


def _write(result: gates.GateResult, junit: Path | None, sarif: Path | None, markdown: Path | None) -> None:
    for path, make in ((junit, gates.junit_text), (sarif, gates.sarif_text), (markdown, gates.gate_markdown)):
        if path is not None:
            gates.write_text(path, make(result))
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with (
            on_disk(f"cannot write the job's summary {summary!r}"),
            Path(summary).open("a", encoding="utf-8", errors="replace") as file,
        ):
            file.write(gates.gate_markdown(result))


def _freeze(run: str, out: Path | None, options: FreezeOptions, loading: LoadingOptions, *, as_json: bool) -> None:
    """Freeze people as a suite: rows of the table and the worst cases of a run, with their protected values."""
    suite, path = gates.freeze(run, out=out, **arguments_of(options), **loading.given())
    about = suite.description()
    if as_json:
        print_json({"suite": str(path), **about})
        return
    print(path)
    print(f"{about['rows']:,} rows and {about['cases']:,} cases of {suite.subject}, suite {about['id']}.")


def _waivers(policy: str | None, *, as_json: bool) -> None:
    """List who answers for what, until when."""
    place = gates.find_policy(Path()) if policy is None else Path(policy)
    if place is None:
        raise OptionError("there is no fairbits.toml here; name the policy.")
    day = gates.today()
    rows = [
        {**waiver.document(), "days_left": waiver.days_left(day), "expired": waiver.days_left(day) < 0}
        for waiver in gates.read_policy(place).waivers
    ]
    answer(as_json, lambda: rows, lambda: report.waiver_blocks(rows))


def fleet(
    *,
    folder: Path = argument(help="A folder with audit files (subject.toml), in it or below."),
    options: AuditOptions,
    out: Path | None = option(None, "Folder of the page and all runs.", metavar="FOLDER", shown="runs/…"),
    rank: str = option(
        "people", "Order by people affected, found or proved k, or bits: people, found, proved, bits.", metavar="WORD"
    ),
    about: AcceptOptions,
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """Audit many models in one go and rank them by severity; one that fails never stops the others.

    A budget is that of each model.
    """
    with gentle_stop() as stop:
        ranked, page = audit.audit_fleet(
            folder,
            options,
            out,
            as_is=about.as_is,
            rank=rank,
            **loading.given(),
            progress=None if as_json else _say,
            stop=stop,
        )
        stopped = stop()
    document = {"page": str(page), **ranked.document()}
    answer(as_json, lambda: document, lambda: audit.fleet_page(ranked), f"page  {page}")
    if stopped:
        raise click.exceptions.Exit(INTERRUPTED)
    if ranked.failed:
        raise click.exceptions.Exit(FAILED)


def _say(done: int, total: int, entry: audit.FleetMember | None) -> None:
    """A line on stderr for every subject that has ended."""
    if entry is None:
        print(f"{total} audit files", file=sys.stderr)
    else:
        bits = "scores only" if entry.bits is None else f"{entry.bits:.2f} of {entry.bits_limit:.2f} bits"
        how = "failed" if entry.error is not None else bits
        print(f"{done:>4} of {total}  {entry.name[:50]}: {how}", file=sys.stderr)
