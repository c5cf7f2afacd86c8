"""Text as Markdown: nothing in it is markup, a link, or a formula for a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fairbits.domain import NUMBER, shortened

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|!~$&])")
#: A cell that begins so is a formula to a spreadsheet, and a list, rule or heading to Markdown.
_FORMULA = re.compile(r"^([=+\-@])")
_NUMBER = re.compile(NUMBER)


def text(value: str, max_length: int = 120) -> str:
    r"""Any text as Markdown text: nothing in it is markup, a link, or a formula for a spreadsheet.

    Examples
    --------
    >>> print(text("<b>=1+1|*x*"), text("=HYPERLINK(1)"))
    \<b\>=1+1\|\*x\* '=HYPERLINK(1)
    """
    safe = _FORMULA.sub(r"'\1", shortened(value, max_length))
    # A full stop or a colon inside a word makes some readers see an address.
    return _SPECIAL.sub(r"\\\1", safe).replace("://", ":\u2060//")


def value_text(value: str, max_length: int = 120) -> str:
    """The value of an attribute as Markdown text: a number is no formula, whatever its sign.

    Examples
    --------
    >>> print(value_text("-710"), value_text("-1+1"))
    -710 '-1+1
    """
    return value if _NUMBER.match(value) and len(value) <= max_length else text(value, max_length)


def table(heads: list[str], rows: Iterable[Iterable[str]], *, right: int = 99) -> Iterator[str]:
    """A table; columns from ``right`` on are set to the right."""
    yield "| " + " | ".join(heads) + " |"
    yield "| " + " | ".join("---:" if i >= right else "---" for i in range(len(heads))) + " |"
    for row in rows:
        yield "| " + " | ".join(row) + " |"
