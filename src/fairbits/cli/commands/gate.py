"""`fairbits gate`: pass, fail or inconclusive, against a policy, frozen people and an earlier model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from typer.core import TyperGroup

from fairbits.cli.command import StrictCommand
from fairbits.cli.grants import granting
from fairbits.cli.options import (
    AsIs,
    Json,
    Protected,
    Threads,
    names_of,
    threads_of,
)
from fairbits.cli.output import print_json

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions
    from fairbits.gates import GateResult

#: The command that is meant where none is named.
USUAL = "check"
_File = Optional[Path]  # noqa: UP045 - typer reads the annotation at run time
_Number = Optional[int]  # noqa: UP045


class GateGroup(TyperGroup):
    """`fairbits gate SUBJECT` is short for `fairbits gate check SUBJECT`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the usual command before anything that names no command."""
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = [USUAL, *args]
        return super().parse_args(ctx, args)


gate_app = typer.Typer(
    cls=GateGroup,
    help=(
        "Pass, fail or inconclusive: a model against a policy, frozen people and an earlier model.\n\n"
        "`fairbits gate SUBJECT` is short for `fairbits gate check SUBJECT`."
    ),
    no_args_is_help=True,
)

Given = Annotated[
    str, typer.Argument(help="A built-in subject, a subject.toml, or the folder of a run.", show_default=False)
]
PolicyFile = Annotated[
    _File, typer.Option("--policy", help="The policy.", show_default="fairbits.toml here or beside the subject")
]


@granting
def check(
    subject: Given,
    policy: PolicyFile = None,
    suite: Annotated[
        _File, typer.Option(help="The frozen people.", show_default="gate/NAME/suite.parquet, else the table")
    ] = None,
    baseline: Annotated[
        _File, typer.Option(help="An earlier model's answers.", show_default="gate/NAME/baseline.parquet")
    ] = None,
    out: Annotated[
        _File, typer.Option(help="Folder for gate.json.", show_default="the run's own, or gate/NAME")
    ] = None,
    junit: Annotated[_File, typer.Option(help="Write JUnit XML to this file.")] = None,
    sarif: Annotated[_File, typer.Option(help="Write SARIF 2.1.0 to this file.")] = None,
    markdown: Annotated[_File, typer.Option(help="Write Markdown to this file.")] = None,
    update_baseline: Annotated[
        bool, typer.Option("--update-baseline", help="Take this model as the baseline from now on.")
    ] = False,
    frozen: Annotated[
        bool, typer.Option("--frozen", help="Refuse to go on where suite or baseline is missing; write neither.")
    ] = False,
    propose: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Search so long, e.g. 10s, for people to add to the suite.", metavar="DURATION"),
    ] = None,
    protected: Protected = None,
    threads: Threads = 0,
    as_is: AsIs = False,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """Score frozen people again and judge the model: exit 0 pass, 1 fail, 2 misuse, 3 inconclusive, 4 failure.

    The first run without a baseline writes it. Inside GitHub Actions the verdict also goes to the job's summary.
    """
    names = None if protected is None else names_of(protected)
    if propose is not None:
        from fairbits.search import seconds_of

        seconds_of(propose)
    from fairbits.cli.progress import progress_bar
    from fairbits.gates import gate

    with progress_bar("asking again") as progress:
        found = gate(
            subject,
            policy=policy,
            suite=suite,
            baseline=baseline,
            out=out,
            update_baseline=update_baseline,
            frozen=frozen,
            protected=names,
            as_is=as_is,
            threads=threads_of(threads),
            propose=propose,
            progress=progress,
            **grants,
        )
    _write(found, junit, sarif, markdown)
    if as_json:
        print_json(found.document())
    else:
        from fairbits.cli.terminal import show
        from fairbits.report import gate_look

        show(gate_look(found.document()))
    raise typer.Exit(found.exit_code)


def _write(found: GateResult, junit: Path | None, sarif: Path | None, markdown: Path | None) -> None:
    from fairbits.gates import gate_markdown, junit_text, sarif_text, write_text

    for path, make in ((junit, junit_text), (sarif, sarif_text), (markdown, gate_markdown)):
        if path is not None:
            write_text(path, make(found))
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        from fairbits.errors import OptionError

        try:
            with Path(summary).open("a", encoding="utf-8", errors="replace") as file:
                file.write(gate_markdown(found))
        except OSError as error:
            raise OptionError(f"cannot write the job's summary {summary!r}: {error.strerror or error}.") from None


@granting
def freeze(
    run: Given,
    out: Annotated[_File, typer.Option(help="The file.", show_default="gate/NAME/suite.parquet")] = None,
    add: Annotated[_File, typer.Option(help="Add the run's worst cases to this suite.")] = None,
    rows: Annotated[_Number, typer.Option(help="Rows of the table, at most.", min=1, show_default="20000")] = None,
    cases: Annotated[_Number, typer.Option(help="Worst cases, at most.", min=0, show_default="1000")] = None,
    seed: Annotated[_Number, typer.Option(help="Seed of the sample of rows.", min=0, show_default="the run's")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a suite that is there.")] = False,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """Freeze people as a suite: rows of the table and the worst cases of a run, with their protected values."""
    from fairbits.gates import freeze as freeze_people

    suite, path = freeze_people(run, out=out, add=add, rows=rows, cases=cases, seed=seed, force=force, **grants)
    about = suite.description()
    if as_json:
        print_json({"suite": str(path), **about})
        return
    print(path)
    print(f"{about['rows']:,} rows and {about['cases']:,} cases of {suite.subject}, suite {about['id']}.")


def waivers(
    policy: Annotated[_File, typer.Argument(help="The policy.", show_default="fairbits.toml")] = None,
    as_json: Json = False,
) -> None:
    """List who answers for what, until when."""
    from fairbits.errors import OptionError
    from fairbits.gates import find_policy, read_policy, today

    place = policy or find_policy(Path())
    if place is None:
        raise OptionError("there is no fairbits.toml here; name the policy.")
    day = today()
    rows = [
        {**one.document(), "days_left": one.days_left(day), "expired": one.days_left(day) < 0}
        for one in read_policy(place).waivers
    ]
    if as_json:
        print_json(rows)
        return
    from fairbits.cli.terminal import show
    from fairbits.report import waiver_blocks

    show(waiver_blocks(rows), everything=True)


def card(
    run: Annotated[Path, typer.Argument(help="The folder of a run.", show_default=False)],
    out: Annotated[_File, typer.Option(help="A file instead of the terminal.")] = None,
) -> None:
    """A Markdown section for a model card (Hugging Face, skops): figures of a run, and the gate's verdict."""
    from fairbits.gates import card_section, write_text

    text = card_section(run)
    print(text if out is None else write_text(out, text), end="" if out is None else "\n")


for command, summary in (
    (check, "Judge a model: exit 0 pass, 1 fail, 2 misuse, 3 inconclusive, 4 failure."),
    (freeze, "Freeze people of a run, or rows of a table, as a suite."),
    (waivers, "List who answers for what, until when."),
    (card, "A section for a model card: a run's figures, the verdict."),
):
    gate_app.command(short_help=summary, cls=StrictCommand)(command)
