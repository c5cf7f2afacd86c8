"""The files of the run with their hashes, and how the page is checked later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import Block, Code, Fold, Paragraph, TableBlock, figure, label
from fairbits.numerals import number
from fairbits.report.manifest import MANIFEST, SIGNATURE
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData


def _blocks(data: ReportData) -> Iterator[Block]:
    yield Paragraph(
        (
            Code(MANIFEST),
            " beside this page holds the hash of every file of the run, this page included. ",
            Code("fairbits report RUN --sign KEY"),
            f" signs it ({SIGNATURE}), and ",
            Code("fairbits report RUN --verify"),
            " names every file that was changed, added or removed since.",
        ),
        tone="lead",
    )
    rows = [(one.path, one.bytes, Code(one.sha256)) for one in data.files]
    title = f"{number(len(data.files))} files that the page was made from, with their hashes"
    yield Fold(title, [TableBlock([label("file"), figure("bytes"), label("SHA-256")], rows)])


SECTION = Section("files", "Files", _blocks, shown=lambda data: bool(data.files))
