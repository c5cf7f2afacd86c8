"""Periods by name and in the order of time: dates, months by number or name, quarters, weeks, years."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence

#: Dates of more different days than this are taken by month, those of more months by year.
MAX_DATES = 60
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_LENGTHS = {"day": 10, "month": 7, "year": 4}
_TOKENS = re.compile(r"\d+|[^\W\d_]+")
_YEARS = range(1900, 2200)
_MONTHS = {
    name.lower(): number for names in (calendar.month_name, calendar.month_abbr) for number, name in enumerate(names)
}


def dated_periods(texts: Sequence[str | None]) -> tuple[list[str | None], str | None]:
    """Dates and times (ISO 8601) as days, months or years, whichever is finest and gives no more than 60 periods."""
    found = list(texts)
    if not any(found) or not all(_DATE.match(text) for text in found if text is not None):
        return found, None
    unit = "day"
    for unit, length in _LENGTHS.items():  # noqa: B007 - the last one is asked for below
        found = [None if text is None else text[:length] for text in texts]
        if len(set(found) - {None}) <= MAX_DATES:
            break
    return found, unit


def in_time_order(names: Sequence[str]) -> list[str]:
    """Names of periods as a reader expects them one after the other."""
    numbers = {name: _number(name) for name in names}
    if all(number is not None for number in numbers.values()):
        return sorted(names, key=lambda name: (numbers[name] or 0.0, name))
    words = [word.lower() for name in names for word in _TOKENS.findall(name) if not word.isdecimal()]
    months = bool(words) and all(word in _MONTHS for word in words)
    return sorted(names, key=lambda name: (_key(name, months=months), name))


def _number(name: str) -> float | None:
    try:
        found = float(name)
    except ValueError:
        return None
    return found if abs(found) < float("inf") else None


def _key(name: str, *, months: bool) -> tuple[int, list[tuple[int, int, str]]]:
    """The year first, then the other tokens: numbers before words."""
    tokens = _TOKENS.findall(name)
    years = [i for i, token in enumerate(tokens) if len(token) == 4 and token.isdecimal() and int(token) in _YEARS]
    year = int(tokens.pop(years[0])) if years else 0
    parts = []
    for token in tokens:
        if token.isdecimal():
            parts.append((0, int(token), ""))
        elif months:
            parts.append((0, _MONTHS[token.lower()], ""))
        else:
            parts.append((1, 0, token.lower()))
    return year, parts
