"""Text as people read it: made safe where it comes from outside, numbers in words, and messages for two readers.

Whoever writes a table, a model or a subject.toml chooses these words. On a terminal they could move the cursor, write
to the clipboard, turn the reading direction or hide: none of the characters that do so gets through.

Messages are written with flags (``--trust-pickle``). The command line shows them as they are; everywhere else a flag
reads as the argument of that name (``trust_pickle=True``). Only flags that exist are touched, so that a file whose name
looks like one keeps it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

REPLACEMENT = "\ufffd"
#: A plain number, with its sign: no spreadsheet takes it for a formula.
NUMBER = r"^[+-]?(\d[\d,]*\.?\d*|\.\d+)([eE][+-]?\d+)?\s?%?$"

#: Everything that is no visible character and no space: controls (C0, C1), marks of reading direction, line
#: separators, invisible fillers and tags, halves of surrogate pairs, and code points that no character has.
_UNSEEN = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
) + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000))
#: Joiners have a meaning within some scripts and emoji; anywhere else they only hide.
_JOINED = "[^\x00-\u02ff\u2000-\u206f\\s]"
_JOINERS = f"(?<!{_JOINED})[\u200c\u200d]|[\u200c\u200d](?!{_JOINED})"
_TRICKY = re.compile(f"[{_UNSEEN}]|{_JOINERS}")
#: The same but for the two that text of several lines is laid out with.
_TRICKY_IN_LINES = re.compile(f"(?![\n\t])[{_UNSEEN}]|{_JOINERS}")


def harmless(text: str) -> str:
    r"""Text of one line in which nothing plays tricks on a terminal or a page.

    Examples
    --------
    >>> harmless("Ma\x1b[31mle\n")
    'Ma�[31mle�'
    """
    return text if text.isascii() and text.isprintable() else _TRICKY.sub(REPLACEMENT, text)


def harmless_lines(text: str) -> str:
    """Text of several lines in which nothing plays tricks on a terminal or a page: line ends and tabs stay."""
    return text if text.isascii() and text.isprintable() else _TRICKY_IN_LINES.sub(REPLACEMENT, text)


def one_line(text: str) -> str:
    r"""A sentence: line breaks and tabs become spaces, whatever else is tricky is replaced.

    Examples
    --------
    >>> one_line("cannot read it:\n  no such file")
    'cannot read it: no such file'
    """
    if "\n" in text or "\r" in text or "\t" in text:
        text = re.sub(r"[^\S\x1c-\x1f\x85\xa0]*[\n\r\t]\s*", " ", text).strip()
    return harmless(text)


def shortened(text: str, max_letters: int) -> str:
    """Harmless text of at most so many characters.

    Examples
    --------
    >>> shortened("Amer-Indian-Eskimo", 10)
    'Amer-Indi…'
    """
    safe = harmless(text)
    return safe if len(safe) <= max_letters else safe[: max_letters - 1].rstrip() + "…"


def joined(names: Sequence[str]) -> str:
    """Names as a person lists them.

    Examples
    --------
    >>> joined(["age", "race", "sex"])
    'age, race and sex'
    """
    return ", ".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"


def quality(*, regression: bool) -> str:
    """The measure of quality on labelled rows: accuracy, or variance explained for a regression."""
    return "variance explained" if regression else "accuracy"


def json_text(document: Any, *, indent: int | None = 2, ascii_only: bool = False) -> str:
    r"""A document as JSON that holds every text exactly and shows nothing tricky: such characters are escaped.

    Examples
    --------
    >>> print(json_text({"job": "\u202eevil"}, indent=None))
    {"job": "\u202eevil"}
    """
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    return text if ascii_only else _TRICKY_IN_LINES.sub(lambda found: json.dumps(found[0])[1:-1], text)


def unsigned_zero(text: str) -> str:
    """A formatted number without the sign that rounding left on a zero.

    Examples
    --------
    >>> unsigned_zero("-0.0"), unsigned_zero("-0.0 %"), unsigned_zero("-0.1"), unsigned_zero("+0.0")
    ('0.0', '0.0 %', '-0.1', '+0.0')
    """
    return text[1:] if text.startswith("-") and not any(digit in text for digit in "123456789") else text


def number(value: float | None, digits: int = 0) -> str:
    """A number with thousands set apart; a dash for None."""
    return "–" if value is None else unsigned_zero(f"{value:,.{digits}f}").replace("-", "−")


def power(value: float) -> str:
    """A very large number as a power of ten.

    Examples
    --------
    >>> power(1.34e14), power(5400)
    ('1.3 × 10¹⁴', '5,400')
    """
    if value < 1e6:
        return number(value)
    digits, exponent = f"{value:.1e}".split("e+")
    return f"{digits} × 10{str(int(exponent)).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage; a dash for None."""
    return "–" if value is None else unsigned_zero(f"{100 * value:.{digits}f} %").replace("-", "−")


def from_to(low: float, high: float, digits: int = 1) -> str:
    """The ends of an interval of shares, with one unit.

    Examples
    --------
    >>> print(from_to(0.468, 0.921, 0))
    47 to 92 %
    """
    return f"{percent(low, digits).removesuffix(' %')} to {percent(high, digits)}"


def signed(value: float | None, digits: int = 2) -> str:
    """A number that shows its sign; a dash for None."""
    return "–" if value is None else unsigned_zero(f"{value:+,.{digits}f}").replace("-", "−")


#: Whether the command line is being used, which alone says so: see ``for_the_shell``.
_shell = False

#: Flags that stand for themselves, and what they are called in Python.
_SWITCHES = {
    "all-layers": "all_layers=True",
    "allow-inverted": "as_is=True",
    "as-is": "as_is=True",
    "exhaustive": "exhaustive=True",
    "force": "force=True",
    "no-layers": "inside=False",
    "no-retrain": "retrain=False",
    "resume": "resume=True",
    "retrain": "retrain=True",
    "trust": "trust=True",
    "trust-code": "trust_code=True",
    "trust-pickle": "trust_pickle=True",
}
#: Flags that take a value: in Python the argument of the same name.
_VALUED = (
    *("batch", "budget", "by", "choose", "columns", "credential", "eats", "epsilon", "factory", "favourable", "html"),
    *("input-format", "k", "max-accuracy-loss", "max-model-bytes", "max-rows", "max-seconds", "max-twins"),
    *("min-plausibility", "out", "output", "partition", "people", "port", "protected", "rank", "ray", "repeats", "run"),
    *("samples", "score-of", "seed", "shards", "strategy", "subject", "target", "threads", "threshold", "time-limit"),
    *("where", "within", "workers"),
)
_OTHERS = {"eats": "input_format", "in-use-since": "distributed", "with": "proposals"}
_PYTHON = {**{name: name.replace("-", "_") for name in _VALUED}, **_OTHERS, **_SWITCHES}
_NAMES = "|".join(sorted(_PYTHON, key=len, reverse=True))
#: A whole command, what somebody else wrote (quoted), or a flag.
_FLAG = re.compile(
    rf"`fairbits [^`]*`|: fairbits .*|(?<!\w)'[^']*'|(?<!\w)\"[^\"]*\"|(?<![\w/-])--({_NAMES})(?![\w-]|\.\w)"
)


@contextmanager
def for_the_shell() -> Iterator[None]:
    """Messages read within name flags: the command line is being used."""
    global _shell  # noqa: PLW0603 - a fact about this process
    before, _shell = _shell, True
    try:
        yield
    finally:
        _shell = before


def for_reader(text: str) -> str:
    """A message for whoever reads it now.

    Examples
    --------
    >>> for_reader("a pickle runs code; if you trust it, add --trust-pickle.")
    'a pickle runs code; if you trust it, add trust_pickle=True.'
    >>> for_reader("give --out, or the folder that `fairbits search --out` wrote.")
    'give out, or the folder that `fairbits search --out` wrote.'
    >>> for_reader("it was not begun; do it with: fairbits repair run --trust-pickle")
    'it was not begun; do it with: fairbits repair run --trust-pickle'
    """
    if _shell or "--" not in text:
        return text
    return _FLAG.sub(lambda found: found[0] if found[1] is None else _PYTHON[found[1]], text)
