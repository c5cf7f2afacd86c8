"""`fairbits proxies`: what reaches the score without the protected columns."""

from __future__ import annotations

from pathlib import Path

from fairbits.cli.arguments import JSON, audit_of, subject_argument
from fairbits.cli.output import print_json
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
    if as_json:
        print_json({**found.document(), "filing": found.filing().document()})
        return
    from fairbits.cli.terminal import show, show_page
    from fairbits.report import filing_page, render_page, study_look
    from fairbits.store import write_whole

    if not filing:
        show(study_look(found.subject, found.document()), f"next  fairbits audit {subject}{loading.typed}")
        return
    page = filing_page(found.document(), found.filing().date)
    place = None if out is None else out / "filing.html"
    if place is not None:
        write_whole(place, render_page(page).encode())
    show_page(page, *([] if place is None else [f"page  {place}"]))
