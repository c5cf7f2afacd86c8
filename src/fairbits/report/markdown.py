"""Blocks as Markdown: tables and sentences, no HTML, every label escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from urllib.parse import quote

from fairbits import blocks as b
from fairbits.text import NUMBER, shortened

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|!~$&@])")
#: A cell that begins so is a formula to a spreadsheet, and a list, rule or heading to Markdown.
_FORMULA = re.compile(r"^([=+\-@])")
_NUMBER = re.compile(NUMBER)
#: A figure that we wrote, such as "+0.3 to +0.4": no formula, whatever its sign.
_FIGURE = re.compile(r"^[−+-]?[\d.,]+(?: %| pts)?(?: to [−+-]?[\d.,]+(?: %| pts)?)?$")


#: Lines of a document, and rows of each long table, fewer where it would be longer: the page has all of them. A table
#: that is a few rows longer stays whole: saying that there are more takes two lines as well.
MAX_LINES, ROWS, SLACK = 200, (12, 8, 6, 4, 2), 4


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


def render_markdown_page(page: b.Page) -> str:
    """The whole document, with as many rows of its tables as it has room for."""
    made = (_document(page, rows) for rows in ROWS)
    return next((one for one in made if one.count("\n") <= MAX_LINES), _document(page, ROWS[-1]))


def _document(page: b.Page, rows: int) -> str:
    head = (f"# {text(page.heading or page.title, 160)}", "", f"**{text(b.plain(page.sentence), 600)}**", "")
    lines = [*head, *_lines(page.opening, rows)]
    for part in page.parts:
        kind = f" ({part.kind})" if part.kind else ""
        lines += [f"## {text(part.title)}{kind}", *_lines(part.blocks, rows)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _inline(found: b.Text, most: int = 1000) -> str:  # noqa: PLR0911 - one for each look
    if isinstance(found, tuple):
        return "".join(_inline(piece, most) for piece in found)
    match found:
        case str():
            return found if _FIGURE.match(found) else value_text(found, most)
        case b.Strong():
            bare = found.text.strip()  # a space before the closing stars leaves them stars
            before, _, after = found.text.partition(bare)
            return f"{before}**{_inline(bare, most)}**{after}" if bare else found.text
        case b.Code():
            return f"`{shortened(found.text, most).replace('`', '')}`"
        case b.Small():
            return f" ({_inline(found.text, most)})" if found.text else ""
        case b.Tag():
            return f"({_inline(found.text, most)})"
        case b.Link():
            said = _inline(found.text, most)
            return said if found.target.startswith("#") else f"{said} <{quote(found.target, safe=':/?#&=%')}>"
        case b.Bar():
            return ""


def _table(heads: list[str], rows: Iterable[list[str]], right: Sequence[bool] = ()) -> Iterator[str]:
    yield from (
        f"| {' | '.join(row)} |"
        for row in (heads, ["---:" if one else "---" for one in right or [False] * len(heads)], *rows)
    )


def _lines(found: Iterable[b.Block], rows: int) -> list[str]:
    lines: list[str] = []
    # The page has small remarks too; notes one after another are a list.
    shown = [one for one in found if not (isinstance(one, b.Paragraph) and one.tone.startswith("small"))]
    notes = [isinstance(one, b.Paragraph) and one.tone in ("note", "warning") for one in (*shown, None)]
    for i, block in enumerate(shown):
        listed = notes[i] and (notes[i + 1] or notes[i - 1])
        lines += [f"- {line}" if listed else line for line in _block(block, rows)]
        bullets = isinstance(block, b.Paragraph) and i + 1 < len(shown) and isinstance(shown[i + 1], b.Bullets)
        lines += [] if isinstance(block, b.Heading) or bullets or (listed and notes[i + 1]) else [""]
    return lines


def _spread(rows: list[list[str]], most: int) -> list[list[str]]:
    """So many rows in their order; where the first cell names an attribute, some of every attribute."""
    groups: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(row[0].rpartition(": ")[0], []).append(i)
    kept = [i for some in zip_longest(*groups.values()) for i in some if i is not None]
    return [rows[i] for i in sorted(kept[:most])]


def _block(block: b.Block, most: int) -> Iterable[str]:  # noqa: PLR0911 - one for each kind of block
    match block:
        case b.Heading():
            return [f"### {_inline(block.text, 400)}" + (f" ({block.kind})" if block.kind else "")]
        case b.Paragraph():
            bold = block.tone.partition(" ")[0] in ("verdict", "second")
            said = f"**{text(b.plain(block.text), 1200)}**" if bold else _inline(block.text, 1200)
            return [said + (f" ({block.kind})" if block.kind else "")]
        case b.TableBlock():
            kept = [i for i, column in enumerate(block.columns) if not _drawn(block, i)]
            heads = [_inline(block.columns[i].head) for i in kept]
            rows = [[_inline(row[i], 600 if block.stacked else 220).strip() for i in kept] for row in block.cells()]
            rows = [[f"{row[0]} *", *row[1:]] if i in block.marked else row for i, row in enumerate(rows)]
            caption = [f"{_inline(block.caption, 400)}:", ""] if block.caption else []
            left = ["", f"{len(rows) - most} more rows are on the page."] if len(rows) > most + SLACK else []
            rows = _spread(rows, most) if left else rows
            return [*caption, *_table(heads, rows, [block.columns[i].right for i in kept]), *left]
        case b.Cards():
            rows = [[one.what, one.value, text(one.small, 200), one.kind] for one in block.cards]
            return _table(["figure", "value", "", "kind of figure"], rows)
        case b.Facts():
            return [" · ".join(f"{text(name, 80)}: {_inline(value, 220)}" for name, value in block.pairs)]
        case b.Drawing():
            return []
        case b.Commands():
            return [f"    {shortened(line, 1000)}" for line in block.lines]
        case b.Bullets():
            return [f"- {_inline(item)}" for item in block.items]
        case b.Columns():
            return [line for part in block.parts for line in _lines(part, most)]
        case b.Fold():
            return _fold(block, most)
        case b.People():
            return _people(block)
        case b.Form():
            heads = [*block.fields, block.choice]
            return _table(heads, [[*[""] * len(block.fields), " / ".join(block.options)]])


def _fold(block: b.Fold, most: int) -> list[str]:
    """What it found, after its title."""
    # No explanation of words, and nothing of what is not here.
    findings = [
        one
        for one in block.blocks
        if isinstance(one, b.Commands)
        or (isinstance(one, b.Paragraph) and not one.tone)
        or (isinstance(one, b.Facts) and not one.anchors)
    ]
    title = f"**{_inline(block.title, 400)}**" + (f" ({block.kind})" if block.kind else "")
    lines = _lines(findings, most)
    if findings and not isinstance(findings[0], b.Commands):
        return [f"{title}: {lines[0]}", *lines[1:]]
    return [title, "", *lines] if findings else []


def _drawn(block: b.TableBlock, i: int) -> bool:
    return bool(block.rows) and all(isinstance(row[i], b.Bar | None) for row in block.rows)


def _people(block: b.People) -> Iterable[str]:
    heads = ["", "own values", "k", "bits", "lowest and highest", *(["flips"] if block.decides else []), "who"]
    rows = []
    for one in block.people:
        ends = "; ".join(f"{value} {text(meaning, 160)}" for value, meaning in one.ends)
        who = "; ".join(f"{text(name, 40)} {value_text(value, 60)}" for name, value in one.facts)
        flips = [", ".join(one.tags) or "no"] if block.decides else []
        own = value_text(one.own) if one.own else "–"
        rows.append([str(one.rank), own, one.k, one.bits, ends, *flips, f"{text(one.place)}: {who}"])
    return _table(heads, rows)
