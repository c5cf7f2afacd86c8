"""What a section of the page is: its words for HTML and Markdown, and whether a report has it.

A section is one file under ``sections/``: its record (or where it comes from), its words, its template, and a line in
``sections/registry.py``. Nothing else knows about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError

from fairbits.errors import FairbitsError
from fairbits.text import shortened

if TYPE_CHECKING:
    from fairbits.report.record import ReportData


def _nothing(_: ReportData) -> Mapping[str, Any]:
    """Default: the template needs no values but those that all share."""
    return {}


def _always(_: ReportData) -> bool:
    """Default: every report has it."""
    return True


def twins_differ(data: ReportData) -> bool:
    """Whether anybody's twins can score differently: without that there is nobody to rank, and nothing to count."""
    return not data.about.blind


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a report: its name, its title, its template and its text in Markdown."""

    name: str
    title: str
    template: str
    markdown: Callable[[ReportData], Iterable[str]]
    shown: Callable[[ReportData], bool] = _always
    values: Callable[[ReportData], Mapping[str, Any]] = _nothing
    first: Callable[[ReportData], bool] = lambda _: False


@contextmanager
def writing(section: Section) -> Iterator[None]:
    """Name the section that cannot be written, because of what a file of the run says or by a fault of ours."""
    try:
        yield
    except FairbitsError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, TemplateError) as error:
        raise FairbitsError(
            f"the section {section.title!r} cannot be written ({shortened(str(error), 120)}): a file that it rests on "
            f"is damaged, or fairbits has a fault; make that stage of the run again, and tell us if it does not help."
        ) from error
