"""`fairbits report`, `cases`, `explore` and `diff`: what was found, to read, check, sign, try and compare."""

from __future__ import annotations

import secrets
import sys
import webbrowser
from dataclasses import asdict
from pathlib import Path

import click

from fairbits import audit as audits
from fairbits import diff as comparison
from fairbits import explore as explorers
from fairbits import report as pages
from fairbits import store
from fairbits.cli.flags import JSON, RUN, argument, open_run
from fairbits.cli.output import answer, print_json, warn_of_damage
from fairbits.cli.progress import live, progress_bar
from fairbits.cli.signals import INTERRUPTED, gentle_stop
from fairbits.errors import ContradictionError, OptionError
from fairbits.options import (
    DiffOptions,
    LoadingOptions,
    ThreadOptions,
    names_of,
    option,
    protected_option,
    seconds_of,
)

_SIGNED = "Signed files"


def report(
    *,
    run: str = RUN,
    out: Path | None = option(None, "Folder for the files.", metavar="PLACE", shown="the run's own"),
    card: bool = option(False, "What is now --form card.", rare=True),
    form: tuple[str, ...] = option(
        (),
        "Forms to write too: bom (CycloneDX), statement (in-toto), card (Hugging Face), profile (bias profile), word.",
        metavar="A,B",
        read=lambda text: names_of(text, "--form"),
        shown="none",
    ),
    check: bool = option(False, "Make the run again and compare: exit 0 where both are the same, else 1."),
    sign: Path | None = option(None, "Sign manifest.json with this private SSH key.", metavar="KEY", group=_SIGNED),
    verify: bool = option(
        False, "Compare all files with manifest.json, and that with its signature: exit 0 or 1.", group=_SIGNED
    ),
    key: Path | None = option(None, "The public key that must have signed.", metavar="PUB", group=_SIGNED),
    options: ThreadOptions,
    workers: int | None = option(None, "Processes that share the work of --check.", rare=True),
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """Write report.html, report.md, summary.json and manifest.json from whatever the run has; sign and verify them."""
    chosen = [name for name, wanted in {"--check": check, "--sign": sign, "--verify": verify}.items() if wanted]
    if len(chosen) > 1:
        raise OptionError(f"{' and '.join(chosen)} do not go together; give one of them.")
    if key is not None and not verify:
        raise OptionError(f"--key is {str(key)!r}, which says whose signature --verify must find; add --verify.")
    if card:
        print("fairbits: `fairbits report --card` is now `fairbits report --form card`.", file=sys.stderr)
        form = tuple(dict.fromkeys((*form, "card")))
    place = store.place_of(run)
    if verify:
        return _verify(out or place, key, as_json=as_json)
    if check:
        return _check(run, options.threads, workers, loading, as_json=as_json)
    opened_key = None if sign is None else pages.open_key(sign)  # before anything is written
    if audits.is_scores_audit(place):
        page = audits.report_scores(place, out=out, forms=form, **loading.given())
    else:
        opened = open_run(run, "report", loading)
        warn_of_damage(opened)
        with progress_bar("measuring") as progress:
            page = opened.report(out=out, forms=form, threads=options.threads, progress=progress)
    made, folder = {"report": str(page)}, page.parent
    if opened_key is not None:
        made["signed"] = pages.sign(folder / pages.MANIFEST, opened_key, folder / pages.SIGNATURE)
    summary = store.read_json(page.parent / "summary.json")
    if as_json:
        print_json({**made, "summary": summary})
    else:
        print(page)
        if "signed" in made:
            print(f"Signed with {made['signed']}.")
    for words in summary.get("report", {}).get("contradictions", ()):
        raise ContradictionError(words["words"])


def _verify(folder: Path, key: Path | None, *, as_json: bool) -> None:
    """Say whether the files are those of the manifest, and whose signature it has."""
    verification = pages.verify(folder, key=key)
    if as_json:
        print_json({"folder": str(folder), **verification.document()})
    else:
        files = f"{verification.files:,} files"
        if verification.good:
            print(f"{files} are as {'signed' if verification.signed else 'the manifest says'}.")
        for line in verification.faults():
            print(line)
        if verification.fingerprint and not verification.signature:
            whose = "the key given" if key is not None else "whose that is, is for you to check (or give --key PUB)"
            print(f"Signed with {verification.fingerprint}: {whose}.")
        elif not verification.signed:
            print("Not signed: whoever changed a file could have changed the manifest too.")
    if not verification.good:
        raise click.exceptions.Exit(1)


def _check(run: str, threads: int | None, workers: int | None, loading: LoadingOptions, *, as_json: bool) -> None:
    """Make the run again, say whether it came out the same, and with what it was made."""
    opened = open_run(run, "report", loading)
    with live(shown=not as_json) as progress, gentle_stop() as stop:
        reproduction = opened.check(threads=threads, workers=workers, progress=progress, stop=stop)
        stopped = stop()
    if stopped:
        raise click.exceptions.Exit(INTERRUPTED)
    if as_json:
        print_json({"run": str(opened.folder), **asdict(reproduction)})
    elif reproduction.equal:
        print(f"The same again: {len(opened):,} cases, content {reproduction.before}.")
    else:
        print(f"Not the same again: {'; '.join(reproduction.differences)}.")
    if not reproduction.equal:
        raise click.exceptions.Exit(1)


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
                lambda: pages.cases_look(opened, opened.worst(wanted, where=where), where),
                f"next  fairbits explore {opened.folder}",
                everything=top is not None or None,
            )
    warn_of_damage(opened)


def explore(
    *,
    run: str = RUN,
    out: Path | None = option(
        None, "Write one file that opens from disk, without a server: networks and trees.", metavar="FILE"
    ),
    port: int = option(0, "Port to listen on; 0 takes a free one."),
    browser: bool | None = option(None, "Open the page.", flag="--browser/--no-browser"),
    loading: LoadingOptions,
) -> None:
    """Serve a page, to this machine alone, where people can be changed and neurons switched. Ctrl-C ends it."""
    opened = open_run(run, "explore", loading)
    if out is not None:
        print(explorers.write_page(explorers.Explorer(opened, subject=opened.subject), out))
        print("It holds the model and the people listed; open it in any browser.", file=sys.stderr)
        return
    with explorers.listen(port) as listening:
        explorer = explorers.Explorer(opened, subject=opened.subject)
        explorer.warm_up()
        token = secrets.token_urlsafe(24)
        hosts = explorers.hosts_of(listening)
        address = f"http://{hosts[0]}/?token={token}"
        print(address, flush=True)
        print("Only this machine can open it. Ctrl-C ends it; nothing in the run is changed.", file=sys.stderr)
        if (sys.stdout.isatty() if browser is None else browser) and not webbrowser.open(address):
            print("No browser could be started; open the address yourself.", file=sys.stderr)
        explorers.serve(explorers.build_app(explorer, token=token, hosts=hosts), listening)
    print("The explorer has ended.", file=sys.stderr)


_WHAT = "A run, an audit file, a built-in name, or a model (file, address, reference)."


def diff(
    *,
    a: str = argument(help=f"Before. {_WHAT}"),
    b: str = argument(help=f"After. {_WHAT}"),
    options: DiffOptions,
    subject: str | None = option(None, "Whose people and schema models get.", shown="the other side's"),
    protected: tuple[str, ...] | None = protected_option(),
    html: Path | None = option(None, "Write a page, too.", metavar="FILE"),
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """What changed from A to B: accuracy, bits, flips, decisions, groups, who got worse, and in which layer."""
    difference = audits.diff_models(a, b, options, subject=subject, protected=protected, html=html, **loading.given())
    nearby = f"next  fairbits diff {a} {b} --html diff.html" if html is None else f"page  {html}"
    answer(as_json, lambda: store.plain(difference.document()), lambda: comparison.diff_page(difference), nearby)
