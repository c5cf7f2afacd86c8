"""Blocks as one HTML file: no network, no script needed to read it, everything that came from outside escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fairbits import blocks as b
from fairbits._version import __version__
from fairbits.report.figures.palette import stylesheet, variables
from fairbits.report.glossary import glossary_fold, link_terms
from fairbits.report.sections.paperwork import CITATION, DOI
from fairbits.text import harmless, shortened

Pictures = dict[str, str]


def render_page(page: b.Page) -> str:
    """The whole page, with style and script inside."""
    script = _file("report.js")
    draw = _drawing(page.pictures)
    parts = [draw.blocks(part.blocks) for part in page.parts]
    if page.glossary:
        linked = [link_terms(part) for part in parts]
        parts = [Markup(html) for html, _ in linked]  # noqa: S704 - drawn by us
        parts[-1] += draw.blocks([glossary_fold(set[str]().union(*(mentioned for _, mentioned in linked)))])
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=shortened(page.title, 120),
            subject=shortened(page.subject, 80),
            command=page.command,
            sentence=draw.say(page.sentence, 600),
            opening=draw.blocks(page.opening),
            parts=[(part, draw.tag(part.kind), html) for part, html in zip(page.parts, parts, strict=True)],
            made_from=page.made_from,
            citation=CITATION,
            doi=DOI,
            version=__version__,
            css=Markup(stylesheet() + _file("report.css")),  # noqa: S704 - ours
            script=Markup(script),  # noqa: S704 - ours
            script_hash=f"sha256-{digest}",
        )
    )


def render_fragment(found: Iterable[b.Block]) -> str:
    """Blocks for a notebook: the page's look, kept to themselves; dark where a notebook says that it is."""
    light, dark = variables()
    dark_themes = ("body[data-jp-theme-light=false] &", ".vscode-dark &", "[data-theme=dark] &")
    style = f".fairbits.fairbits {{ {light} {', '.join(dark_themes)} {{ {dark} }}\n{_file('report.css')}\n"
    style += _file("notebook.css") + "\n}"
    return Markup('<style>{}</style><div class="fairbits">{}</div>').format(
        Markup(style),  # noqa: S704 - ours
        _drawing({}).blocks(found),
    )


def _drawing(pictures: Pictures) -> Any:
    """The macros that draw blocks, with the pictures that they may show."""
    return _environment().get_template("blocks.html").make_module({"pictures": pictures})


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("fairbits.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"cut": shortened, "harmless": harmless, "kind": lambda value: type(value).__name__}
    return made


def _file(name: str) -> str:
    return resources.files("fairbits.report").joinpath("templates", name).read_text(encoding="utf-8").strip()
