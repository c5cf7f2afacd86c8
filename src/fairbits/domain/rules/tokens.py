"""A rule's text as tokens, each with the place where it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from fairbits.domain.rules.tree import KEYWORDS
from fairbits.errors import SchemaError

_TOKEN = re.compile(
    r"""
    (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<quoted>`(?:[^`\\]|\\.)*`)
  | (?P<word>[^\W\d]\w*)
  | (?P<sign>->|=>|==|!=|<=|>=|[=<>+\-*(){},])
    """,
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*")
#: Signs that people type out of habit, and what they mean here.
_HABITS = {
    "&": "and",
    "|": "or",
    "!": "not",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "→": "->",
    "[": "{…} for a set of values",
    "/": "* with a fraction",
}


@dataclass(frozen=True, slots=True)
class Token:
    """``kind`` is number, text, name, end, or the keyword or sign itself."""

    kind: str
    text: str
    at: int


def complain(rule: str, at: int, what: str) -> NoReturn:
    """Raise the error about a rule: which rule, where, what."""
    raise SchemaError(f"rule {shown(rule)!r}, character {at + 1}: {what}")


def shown(rule: str, *, max_letters: int = 100) -> str:
    """A rule in a message: short, and on one line."""
    line = " ".join(rule.split())
    return line if len(line) <= max_letters else line[: max_letters - 1] + "…"


def tokens_of(rule: str) -> list[Token]:
    """All tokens of a rule, and one that marks the end."""
    found = []
    at = _after_space(rule, 0)
    while at < len(rule):
        match = _TOKEN.match(rule, at)
        if match is None:
            _strange(rule, at)
        found.append(_token(rule, str(match.lastgroup), match.group(), at))
        at = _after_space(rule, match.end())
    return [*found, Token("end", "the end", len(rule.rstrip()))]


def _after_space(rule: str, at: int) -> int:
    space = _SPACE.match(rule, at)
    return space.end() if space else at


def _token(rule: str, group: str, text: str, at: int) -> Token:
    if group in ("text", "quoted"):
        plain = re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
        return Token("text" if group == "text" else "name", plain, at)
    if group == "word":
        return Token(text.lower(), text, at) if text.lower() in KEYWORDS else Token("name", text, at)
    if text == "=>":
        complain(rule, at, '\'=>\' means nothing here; use -> for "then" or >= for "at least".')
    if group == "sign":
        return Token("=" if text == "==" else text, text, at)
    return Token(group, text, at)


def _strange(rule: str, at: int) -> NoReturn:
    character = rule[at]
    if character in "\"'`":
        complain(rule, at, f"the quotation that begins here has no end; close it with {character}.")
    hint = f"; use {_HABITS[character]}" if character in _HABITS else ""
    complain(rule, at, f"{character!r} means nothing here{hint}.")
