"""What a section of the page is: its blocks, and whether a report has it.

A section is one file under ``sections/`` and a line in ``sections/registry.py``. Nothing else knows about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairbits.blocks import Block, PagePart
from fairbits.errors import FairbitsError
from fairbits.text import shortened

if TYPE_CHECKING:
    from fairbits.report.record import ReportData


def twins_differ(data: ReportData) -> bool:
    """Whether anybody's twins can score differently: without that there is nobody to rank, and nothing to count."""
    return not data.about.blind


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a report: its name for links, its title, and what it says.

    ``first`` puts it before the others. ``kind`` is the kind of its figures, ``remark`` a few words beside the title.
    """

    name: str
    title: str
    blocks: Callable[[ReportData], Iterable[Block]]
    shown: Callable[[ReportData], bool] = lambda _: True
    first: Callable[[ReportData], bool] = lambda _: False
    kind: Callable[[ReportData], str] = lambda _: ""
    remark: str = ""

    def part(self, data: ReportData) -> PagePart:
        """The section as it is drawn; where it cannot be, its name is in the message."""
        try:
            return PagePart(self.name, self.title, tuple(self.blocks(data)), self.kind(data), self.remark)
        except FairbitsError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise FairbitsError(
                f"the section {self.title!r} cannot be written ({shortened(str(error), 120)}): a file that it rests on "
                "is damaged, or fairbits has a fault; make that stage of the run again, and tell us if that does not "
                "help."
            ) from error
