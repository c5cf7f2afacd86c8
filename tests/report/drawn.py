"""Whole reports as one text, as the files of a report hold them."""

from __future__ import annotations

from fairbits.report import ReportData, render_page
from fairbits.report.figures.charts import pictures_of
from fairbits.report.markdown import render_markdown_page
from fairbits.report.page import page_of


def render_html(data: ReportData) -> str:
    return render_page(page_of(data, pictures_of(data)))


def render_words(data: ReportData) -> str:
    """The page before its pictures are drawn, which takes longer than everything else on it."""
    return render_page(page_of(data))


def render_markdown(data: ReportData) -> str:
    return render_markdown_page(page_of(data))
