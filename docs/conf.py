"""Sphinx: Markdown pages, one theme, nothing else."""

project = "fairbits"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "fairbits"
exclude_patterns = ["_build"]
myst_heading_anchors = 3
