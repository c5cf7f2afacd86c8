"""HTML, Markdown and JSON from a run: computed once as one record, then drawn."""

from fairbits.report.computing import compute_report
from fairbits.report.contest import ContestData, contest_of, render_contest, write_contest
from fairbits.report.html import render_html
from fairbits.report.markdown import render_markdown
from fairbits.report.record import ReportData
from fairbits.report.summary import json_schema, summary_of
from fairbits.report.writing import write_report

__all__ = [
    "ContestData",
    "ReportData",
    "compute_report",
    "contest_of",
    "json_schema",
    "render_contest",
    "render_html",
    "render_markdown",
    "summary_of",
    "write_contest",
    "write_report",
]
