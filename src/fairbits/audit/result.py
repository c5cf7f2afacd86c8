"""What came of an audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fairbits.audit.run import AuditRun
from fairbits.report import ReportData


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The run, its report, and how long each stage took (None: skipped, kept from before, or not possible).

    Parameters
    ----------
    run
        The run on disk, with its model.
    data
        The record that all faces of the report show.
    page
        The HTML page.
    seconds
        By stage; None where it was skipped, kept from before, or not possible.
    faults
        By stage that failed: the sentence that says why.
    stopped
        Whether a person ended the audit early.
    """

    run: AuditRun
    data: ReportData
    page: Path
    seconds: dict[str, float | None] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    stopped: bool = False

    def __repr__(self) -> str:
        done = ", ".join(name for name, seconds in self.seconds.items() if seconds is not None)
        return f"<AuditResult {str(self.page)!r}: {done or 'nothing done anew'}>"
