"""Who, in words: the rules that tell whose decision flips, what they are worth, and how to look at these people alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import Block, Code, Paragraph, TableBlock, between, figure, label, share
from fairbits.text import number, percent

if TYPE_CHECKING:
    from fairbits.debug import Description


def who_blocks(found: Description | None) -> Iterator[Block]:
    """The rules as a table, beside the base rate, and the command that restricts a search to the first of them."""
    if found is None:
        return
    yield Paragraph(found.words, kind="statistical" if found.base is not None else "")
    if not found.rules or found.base is None or found.together is None:
        return
    lines = [*found.rules, *([found.together] if len(found.rules) > 1 else [])]
    rows = [
        (
            one.text if place < len(found.rules) else "any of these",
            one.people,
            one.share.value,
            one.precision.value,
            (one.precision.low, one.precision.high),
            one.coverage.value,
            (one.coverage.low, one.coverage.high),
        )
        for place, one in enumerate(lines)
    ]
    such = "flip" if found.target == "flips" else f"k above {found.above}"
    columns = [label("people with"), figure("rows"), share("of all", 0), share(f"{such}", 0), between("95 %", _whole)]
    columns += [share("coverage", 0), between("95 %", _whole)]
    caption = (
        f"Learned on {number(found.learned)} rows, judged on {number(found.judged)} others, of whom "
        f"{percent(found.base.value, 0)} are people {found.what}; coverage is the share of these"
    )
    yield TableBlock(columns, rows, caption)
    command = found.command("search", found.rules[0])
    if command is not None:
        yield Paragraph(
            (Code(command), " looks at the first of them alone; so do measure, certify and repair."), tone="small"
        )


def _whole(value: float | None) -> str:
    return percent(value, 0)
