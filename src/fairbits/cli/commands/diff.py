"""`fairbits diff`: two models, the same people."""

from __future__ import annotations

from pathlib import Path

from fairbits.cli.arguments import JSON
from fairbits.cli.flags import argument
from fairbits.cli.output import print_json
from fairbits.options import DiffOptions, LoadingOptions, option, protected_option

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
    from fairbits.audit import diff_models
    from fairbits.store import plain

    found = diff_models(a, b, options, subject=subject, protected=protected, html=html, **loading.given())
    if as_json:
        print_json(plain(found.document()))
        return
    from fairbits.cli.terminal import show_page
    from fairbits.diff import diff_page

    show_page(diff_page(found), *([] if html is None else [f"page  {html}"]))
