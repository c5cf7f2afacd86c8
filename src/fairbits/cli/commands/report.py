"""`fairbits report`: one page that a reviewer can open, read, check and sign."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.grants import granting
from fairbits.cli.options import Json, RunPlace, Threads, Workers, threads_of
from fairbits.cli.output import print_json, warn_of_damage
from fairbits.errors import ContradictionError, OptionError

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions

_Place = Optional[Path]  # noqa: UP045 - typer reads the annotation at run time
_SIGNED = "Signed files"


@granting
def report(
    run: RunPlace,
    out: Annotated[_Place, typer.Option(help="Folder for the files.", show_default="the run's own")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Make the run again and compare: exit 0 where both are the same, else 1.")
    ] = False,
    sign: Annotated[
        _Place,
        typer.Option(
            help="Sign manifest.json with this private SSH key.",
            metavar="KEY",
            rich_help_panel=_SIGNED,
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Compare all files with manifest.json, and that with its signature: exit 0 or 1.",
            rich_help_panel=_SIGNED,
        ),
    ] = False,
    key: Annotated[
        _Place,
        typer.Option(help="The public key that must have signed.", metavar="PUB", rich_help_panel=_SIGNED),
    ] = None,
    threads: Threads = 0,
    workers: Workers = None,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """Write report.html, report.md, summary.json and manifest.json from whatever the run has; sign and verify them."""
    chosen = [name for name, wanted in (("--check", check), ("--sign", sign), ("--verify", verify)) if wanted]
    if len(chosen) > 1:
        raise OptionError(f"{' and '.join(chosen)} do not go together; give one of them.")
    if key is not None and not verify:
        raise OptionError(f"--key is {str(key)!r}, which says whose signature --verify must find; add --verify.")
    if verify:
        _verify(out or run, key, as_json=as_json)
        return
    if check:
        _check(run, threads, workers, as_json=as_json, grants=grants)
        return
    from fairbits.report import open_key

    opened_key = None if sign is None else open_key(sign)  # before anything is written
    from fairbits.audit import is_scores_audit

    if is_scores_audit(run):
        _scores(run, out, opened_key, as_json=as_json, grants=grants)
        return
    from fairbits.audit import AuditRun
    from fairbits.cli.progress import progress_bar
    from fairbits.store import read_json

    opened = AuditRun.open(run, **grants)
    warn_of_damage(opened)
    with progress_bar("measuring") as progress:
        page = opened.report(out=out, threads=threads_of(threads), progress=progress)
    fingerprint = None if opened_key is None else _sign(page.parent, opened_key)
    summary = read_json(page.parent / "summary.json")
    if as_json:
        signed = {} if fingerprint is None else {"signed": fingerprint}
        print_json({"report": str(page), **signed, "summary": summary})
    else:
        print(page)
        if fingerprint is not None:
            print(f"Signed with {fingerprint}.")
    for words in summary["report"]["contradictions"]:
        raise ContradictionError(words["words"])


def _scores(run: Path, out: Path | None, key: Path | None, *, as_json: bool, grants: GrantOptions) -> None:
    """The report of a table of scores, which has no cases."""
    from fairbits.audit import report_scores
    from fairbits.store import read_json

    page = report_scores(run, out=out, **grants)
    signed = {} if key is None else {"signed": _sign(page.parent, key)}
    if as_json:
        print_json({"report": str(page), **signed, "summary": read_json(page.parent / "summary.json")})
        return
    print(page)
    if signed:
        print(f"Signed with {signed['signed']}.")


def _sign(folder: Path, key: Path) -> str:
    """Sign the manifest of a folder; gives the fingerprint of the key."""
    from fairbits.report import MANIFEST, SIGNATURE, sign

    return sign(folder / MANIFEST, key, folder / SIGNATURE)


def _verify(folder: Path, key: Path | None, *, as_json: bool) -> None:
    """Say whether the files are those of the manifest, and whose signature it has."""
    from fairbits.report import verify

    found = verify(folder, key=key)
    if as_json:
        print_json({"folder": str(folder), **found.document()})
    else:
        files = f"{found.files:,} files"
        if found.good:
            print(f"{files} are as {'signed' if found.signed else 'the manifest says'}.")
        for line in found.faults():
            print(line)
        if found.fingerprint and not found.signature:
            whose = "the key given" if key is not None else "whose that is, is for you to check (or give --key PUB)"
            print(f"Signed with {found.fingerprint}: {whose}.")
        elif not found.signed:
            print("Not signed: whoever changed a file could have changed the manifest too.")
    if not found.good:
        raise typer.Exit(1)


def _check(run: Path, threads: int, workers: int | None, *, as_json: bool, grants: GrantOptions) -> None:
    """Make the run again, say whether it came out the same, and with what it was made."""
    from dataclasses import asdict

    from fairbits.audit import AuditRun, settings_again
    from fairbits.cli.progress import live
    from fairbits.cli.signals import gentle_stop

    opened = AuditRun.open(run, **grants)
    with live(settings_again(opened)[0], shown=not as_json) as progress, gentle_stop() as stop:
        found = opened.check(threads=threads_of(threads), workers=workers, progress=progress, stop=stop)
        stopped = stop()
    if stopped:
        raise typer.Exit(130)
    if as_json:
        print_json({"run": str(opened.folder), **asdict(found)})
    elif found.equal:
        print(f"The same again: {len(opened):,} cases, content {found.before}.")
    else:
        print(f"Not the same again: {'; '.join(found.differences)}.")
    if not found.equal:
        raise typer.Exit(1)
