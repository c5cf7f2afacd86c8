"""`fairbits diff`: two models, the same people."""

from __future__ import annotations

from pathlib import Path

from fairbits import audit, store
from fairbits import diff as comparison
from fairbits.cli.arguments import JSON
from fairbits.cli.flags import argument
from fairbits.cli.output import answer
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
    found = audit.diff_models(a, b, options, subject=subject, protected=protected, html=html, **loading.given())
    nearby = f"next  fairbits diff {a} {b} --html diff.html" if html is None else f"page  {html}"
    answer(as_json, lambda: store.plain(found.document()), lambda: comparison.diff_page(found), nearby)
