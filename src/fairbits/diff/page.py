"""A comparison of two models as one page."""

from __future__ import annotations

from pathlib import Path

from fairbits.diff.records import GroupShift, ModelDiff, Shift
from fairbits.errors import OptionError
from fairbits.measure import Estimate
from fairbits.report import rendered
from fairbits.store import write_whole

_MINUS = str.maketrans("-", "−")


def render_diff(found: ModelDiff) -> str:
    """The whole page."""
    return rendered(
        "diff.html",
        found=found,
        rows=[shift_words(shift) for shift in found.shifts],
        groups=[(one, *group_words(one)) for one in found.groups],
        widest=max((layer.relative for layer in found.layers), default=0.0) or 1.0,
    )


def write_diff(found: ModelDiff, path: Path) -> None:
    """Write the page, whole."""
    try:
        write_whole(path, render_diff(found).encode())
    except OSError as error:
        raise OptionError(f"cannot write {str(path)!r}: {error.strerror or error}; choose another --html.") from None


def shift_words(shift: Shift) -> tuple[str, str, str, str, str, str]:
    """Name, before, after, change, interval and verdict, as people read them."""
    change = shift.change
    plain = "" if change is None else _signed(change.value, share=shift.share)
    between = "" if change is None or change.low == change.high else _between(change, share=shift.share)
    return shift.words, _value(shift.before, shift), _value(shift.after, shift), plain, between, shift.verdict


def group_words(one: GroupShift) -> tuple[str, str, str]:
    """The change of the selection rate, its interval, and the change of mean k."""
    selection = one.selection_change
    change = "" if selection is None else _signed(selection.value, share=True)
    between = "" if selection is None else _between(selection, share=True)
    return change, between, _signed(one.k_change.value, share=False)


def _value(value: float | None, shift: Shift) -> str:
    if value is None:
        return "–"
    if shift.share:
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if shift.name == "k_max" else f"{value:,.2f}"


def _signed(value: float, *, share: bool) -> str:
    text = f"{100 * value:+.1f}" if share else f"{value:+,.2f}"
    text = "0" if float(text.replace(",", "")) == 0 else text
    return text.translate(_MINUS) + (" pts" if share else "")


def _between(change: Estimate, *, share: bool) -> str:
    low, high = (_signed(end, share=share).removesuffix(" pts") for end in (change.low, change.high))
    return f"{low} to {high}"
