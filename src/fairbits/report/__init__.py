"""HTML, Markdown and JSON from a run: computed once as one record, then drawn."""

from fairbits.report.computing import compute_report
from fairbits.report.html import render_html
from fairbits.report.markdown import render_markdown
from fairbits.report.record import ReportData
from fairbits.report.summary import json_schema, summary_of
from fairbits.report.writing import write_report

__all__ = [
    "ReportData",
    "compute_report",
    "json_schema",
    "render_html",
    "render_markdown",
    "summary_of",
    "write_report",
]
