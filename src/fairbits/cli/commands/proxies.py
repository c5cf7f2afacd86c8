"""`fairbits proxies`: what a score tells about protected attributes, and through which columns."""

from __future__ import annotations

from pathlib import Path

from fairbits import report, store
from fairbits.cli.arguments import JSON, audit_of, subject_argument
from fairbits.cli.output import answer
from fairbits.cli.progress import working
from fairbits.options import AcceptOptions, LoadingOptions, ProxiesOptions, arguments_of, option


def proxies(
    *,
    subject: str = subject_argument(),
    options: ProxiesOptions,
    filing: bool = option(False, "The tables of New York City's Local Law 144; with --out as filing.html, too."),
    out: Path | None = option(None, "A folder for proxies.json.", metavar="FOLDER"),
    about: AcceptOptions,
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """What the score tells about protected attributes, also those that the model never sees, and through what."""
    audit = audit_of(subject, about, loading)
    with working(shown=not as_json) as progress:
        found = audit.proxies(out=out, progress=progress, **arguments_of(options))
    study, filed = found.document(), found.filing()
    nearby = f"next  fairbits audit {subject}{loading.typed}"
    page = report.filing_page(study, filed.date) if filing else None
    if page is not None and out is not None and not as_json:
        store.write_whole(out / "filing.html", report.render_page(page).encode())
        nearby = f"page  {out / 'filing.html'}"
    answer(
        as_json,
        lambda: {**study, "filing": filed.document()},
        lambda: page or report.study_look(found.subject, study),
        nearby,
    )
