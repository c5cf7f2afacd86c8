"""A block to sign: name, role, date, decision. It prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import Block, Code, Form, Paragraph
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData

FIELDS = ("Name", "Role", "Date", "Signature")
DECISIONS = ("approved", "approved with conditions", "not approved")


def _blocks(_: ReportData) -> Iterator[Block]:
    yield Paragraph(
        (
            "Whoever decides about this model on the grounds of this page signs here, on paper; a signature under the "
            "files is made with ",
            Code("fairbits report RUN --sign KEY"),
            ".",
        ),
        tone="lead",
    )
    yield Form(FIELDS, "Decision", DECISIONS, "Conditions, and until when")


SECTION = Section("sign-off", "Sign-off", _blocks)
