"""A small table in HTML, for objects that show themselves in a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from fairbits.domain.words import shortened


def html_table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """A title and pairs of name and value, all of it escaped.

    Examples
    --------
    >>> html_table("a < b", [("k", "3")])
    '<table><caption>a &lt; b</caption><tr><th scope="row">k</th><td>3</td></tr></table>'
    """
    lines = "".join(f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>' for name, value in rows)
    return f"<table><caption>{_text(title)}</caption>{lines}</table>"


def _text(text: str) -> str:
    return escape(shortened(text, 200))
