"""What every page shares: one file, no network, its own look and script, everything from outside escaped."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from fairbits._version import __version__
from fairbits.domain import harmless, shortened
from fairbits.numerals import number, percent, signed
from fairbits.report import words
from fairbits.report.figures.palette import stylesheet


def rendered(template: str, **values: Any) -> str:
    """A template as a whole page, with style and script inside."""
    script = _text("report.js")
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    return (
        _environment()
        .get_template(template)
        .render(
            **values,
            citation=words.CITATION,
            doi=words.DOI,
            version=__version__,
            css=Markup(stylesheet() + _text("report.css")),  # noqa: S704 - ours
            script=Markup(script),  # noqa: S704 - ours
            script_hash=f"sha256-{digest}",
        )
    )


def part(template: str, **values: Any) -> Markup:
    """A piece of a page from the text of a template, which sees the macros as ``p``."""
    return Markup(_part(template).render(**values, citation=words.CITATION, doi=words.DOI))  # noqa: S704 - escaped by the template


@cache
def _part(template: str) -> Template:
    """A section's template, which is compiled once."""
    return _environment().from_string('{% import "parts.html" as p with context %}' + template)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("fairbits.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_safe,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["short"] = shortened
    made.globals |= {
        "number": number,
        "percent": percent,
        "signed": signed,
        "by_kind": words.by_kind,
    }
    return made


def _safe(value: Any) -> Any:
    """Every value that a template prints goes through here: escaping is Jinja's, tricks with direction are ours."""
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _text(name: str) -> str:
    return resources.files("fairbits.report").joinpath("templates", name).read_text(encoding="utf-8").strip()
