"""The files of a report: report.html, report.md, summary.json and manifest.json, each there whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairbits.errors import OptionError
from fairbits.report.manifest import FACES, write_manifest
from fairbits.report.page import render_html, render_markdown
from fairbits.report.record import ReportData
from fairbits.report.summary import summary_of
from fairbits.store import write_json, write_whole

HTML, MARKDOWN, SUMMARY = FACES


def write_report(data: ReportData, folder: Path) -> Path:
    """Write report.html, report.md, summary.json and the manifest of the folder; an older signature is removed."""
    return write_faces(folder, data, page=render_html(data), markdown=render_markdown(data), summary=summary_of(data))


def write_faces(folder: Path, data: ReportData, *, page: str, markdown: str, summary: Mapping[str, Any]) -> Path:
    """Write the three faces of a report, and the manifest of its folder last."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / HTML, page.encode())
        write_whole(folder / MARKDOWN, markdown.encode())
        write_json(folder / SUMMARY, summary)
        about = {"subject": data.about.subject, "identity": data.remaking.identity, "run": data.remaking.created}
        write_manifest(folder, about=about)
    except OSError as error:
        raise OptionError(
            f"cannot write to {str(folder)!r}: {error.strerror or error}; choose another --out."
        ) from None
    return folder / HTML
