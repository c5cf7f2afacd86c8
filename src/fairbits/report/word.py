"""Blocks as a Word document (extra ``word``): text and tables in Word's own styles, for offices that file it."""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from fairbits import blocks as b
from fairbits.errors import MissingDependencyError
from fairbits.text import harmless, shortened

_STYLES = {"warning": "Intense Quote", "verdict": "Intense Quote", "note": "Quote"}


def render_word(page: b.Page) -> bytes:
    """The whole document."""
    try:
        from docx import Document
    except ImportError:
        raise MissingDependencyError("python-docx", "word", "writing a Word document") from None
    document = Document()
    document.core_properties.title = _clean(page.title)
    document.core_properties.author = "fairbits"
    # Word files carry dates; a fixed one makes the same report the same file.
    document.core_properties.created = document.core_properties.modified = datetime(2000, 1, 1, tzinfo=UTC)
    document.add_heading(_clean(page.heading or page.title), 0)
    document.add_paragraph(style="Intense Quote").add_run(_clean(b.plain(page.sentence))).bold = True
    _add(document, page.opening)
    for part in page.parts:
        document.add_heading(_titled(part.title, part.kind), 1)
        _add(document, part.blocks)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def _add(document: Any, found: Iterable[b.Block]) -> None:
    for block in found:
        _block(document, block)


def _block(document: Any, block: b.Block) -> None:  # noqa: PLR0912 - one for each kind of block
    match block:
        case b.Heading():
            document.add_heading(_titled(block.text, block.kind), 2)
        case b.Paragraph():
            style = _STYLES.get(block.tone.partition(" ")[0])
            document.add_paragraph(_titled(block.text, block.kind), style=style)
        case b.TableBlock():
            if block.caption:
                document.add_paragraph(_clean(b.plain(block.caption)), style="Caption")
            _table(document, [column.head for column in block.columns], block.cells())
        case b.Cards():
            rows = [[one.what, one.value, one.kind, one.small] for one in block.cards]
            _table(document, ["figure", "value", "kind", ""], rows)
        case b.Facts():
            _table(document, None, block.pairs)
        case b.Commands():
            for line in block.lines:
                document.add_paragraph(_clean(line), style="No Spacing")
        case b.Bullets():
            for item in block.items:
                document.add_paragraph(_clean(b.plain(item)), style="List Bullet")
        case b.Columns():
            for part in block.parts:
                _add(document, part)
        case b.Fold():
            document.add_heading(_titled(block.title, block.kind), 3)
            _add(document, block.blocks)
        case b.People():
            rows = [
                [
                    str(one.rank),
                    one.own,
                    one.k,
                    one.bits,
                    "; ".join(f"{value} {said}" for value, said in one.ends),
                    one.place,
                ]
                for one in block.people
            ]
            _table(document, ["", "own values", "k", "bits", "lowest and highest", "who"], rows)
        case b.Form():
            rows = [[name, ""] for name in block.fields] + [
                [block.choice, "  ".join(f"☐ {one}" for one in block.options)]
            ]
            _table(document, None, rows + ([[block.remark, ""]] if block.remark else []))
        case b.Drawing():
            document.add_paragraph(_clean(f"Figure on the page: {block.caption or block.name}"), style="Caption")


def _table(document: Any, heads: Iterable[b.Text] | None, rows: Iterable[Iterable[b.Text]]) -> None:
    cells = [[_clean(b.plain(cell)) for cell in row] for row in ([] if heads is None else [heads])]
    cells += [[_clean(b.plain(cell)) for cell in row] for row in rows]
    if not cells:
        return
    table = document.add_table(
        len(cells), len(cells[0]), style="Light Grid Accent 1" if heads is not None else "Table Grid"
    )
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            table.cell(i, j).text = cell


def _titled(text: b.Text, kind: str) -> str:
    return _clean(b.plain(text)) + (f" ({kind})" if kind else "")


def _clean(text: str) -> str:
    """Nothing that XML cannot hold, and no hostile length."""
    return harmless(shortened(text, 1200))
