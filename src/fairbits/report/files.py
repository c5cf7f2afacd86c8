"""The files of a report: report.html, report.md, summary.json and manifest.json, each there whole or not at all."""

from __future__ import annotations

from pathlib import Path

from fairbits.errors import OptionError
from fairbits.report.html import render_html
from fairbits.report.manifest import FACES, write_manifest
from fairbits.report.markdown import render_markdown
from fairbits.report.record import ReportData
from fairbits.report.summary import summary_of
from fairbits.store import write_json, write_whole

HTML, MARKDOWN, SUMMARY = FACES


def write_report(data: ReportData, folder: Path) -> Path:
    """Write report.html, report.md, summary.json and the manifest of the folder; an older signature is removed.

    Parameters
    ----------
    data
        The record of the report.
    folder
        Where to; made where it is missing.

    Returns
    -------
    Path
        Path of report.html.

    Raises
    ------
    OptionError
        If the folder cannot be written to.
    """
    page, document, summary = render_html(data), render_markdown(data), summary_of(data)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / HTML, page.encode())
        write_whole(folder / MARKDOWN, document.encode())
        write_json(folder / SUMMARY, summary)
        about = {"subject": data.about.subject, "identity": data.remaking.identity, "run": data.remaking.created}
        write_manifest(folder, about=about)
    except OSError as error:
        raise OptionError(
            f"cannot write to {str(folder)!r}: {error.strerror or error}; choose another --out."
        ) from None
    return folder / HTML
