"""`fairbits proxies`: what reaches the score without the protected columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from fairbits.cli.grants import granting
from fairbits.cli.options import AsIs, Json, Subject, audit_of, names_of
from fairbits.cli.output import print_json
from fairbits.cli.progress import working

if TYPE_CHECKING:
    from fairbits.domain import GrantOptions

#: Typer reads annotations at run time, and not in the newer spelling.
_Text = Optional[str]  # noqa: UP045
_Path = Optional[Path]  # noqa: UP045


@granting
def proxies(
    subject: Subject,
    justified: Annotated[_Text, typer.Option(help="Attributes that may decide, separated by commas.")] = None,
    by: Annotated[_Text, typer.Option(help="A column of periods, such as month: figures for each.")] = None,
    filing: Annotated[bool, typer.Option("--filing", help="The tables of New York City's Local Law 144.")] = False,
    data_source: Annotated[_Text, typer.Option(help="For the filing: where the data come from.")] = None,
    distributed: Annotated[_Text, typer.Option(help="For the filing: the tool's distribution date.")] = None,
    out: Annotated[_Path, typer.Option(help="A folder for proxies.json.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same figures.", min=0)] = 0,
    as_is: AsIs = False,
    as_json: Json = False,
    *,
    grants: GrantOptions,
) -> None:
    """What the score tells about protected attributes, also those that the model never sees, and through what."""
    names = None if justified is None else names_of(justified, "--justified")
    audit = audit_of(subject, as_is=as_is, grants=grants)
    with working(shown=not as_json) as progress:
        found = audit.proxies(
            justified=names,
            by=by,
            seed=seed,
            out=out,
            progress=progress,
            data_source=data_source,
            distributed=distributed,
        )
    if as_json:
        print_json({**found.document(), "filing": found.filing().document()})
        return
    from fairbits.cli.terminal import show, show_page
    from fairbits.report import filing_page, render_page, study_look
    from fairbits.store import write_whole

    if not filing:
        show(study_look(found.subject, found.document()), f"next  fairbits audit {subject}")
        return
    page = filing_page(found.document(), found.filing().date)
    place = None if out is None else out / "filing.html"
    if place is not None:
        write_whole(place, render_page(page).encode())
    show_page(page, *([] if place is None else [f"page  {place}"]))
