"""Numbers as people read them: thousands apart, shares in percent, signs shown, a dash where nothing is known."""

from __future__ import annotations


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


def signed(value: float | None, digits: int = 2) -> str:
    """A number that shows its sign; a dash for None."""
    return "–" if value is None else unsigned_zero(f"{value:+,.{digits}f}").replace("-", "−")
