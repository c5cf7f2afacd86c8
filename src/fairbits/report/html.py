"""Blocks as one HTML file: no network, no script needed to read it, everything that came from outside escaped.

The glossary is one text for the documentation and for pages, which open offline and link every term of art to it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fairbits import blocks as b
from fairbits._version import __version__
from fairbits.report.figures.palette import stylesheet, variables
from fairbits.report.sections.paperwork import CITATION, DOI
from fairbits.text import harmless, shortened


def render_page(page: b.Page) -> str:
    script = template("report.js")
    draw = _drawing(page.pictures)
    parts = [draw.blocks(part.blocks) for part in page.parts]
    if page.glossary:
        linked = [link_terms(part) for part in parts]
        parts = [Markup(html) for html, _ in linked]  # noqa: S704 - drawn by us
        mentioned = {anchor for _, anchors in linked for anchor in anchors}
        known = {anchor: entry for anchor, entry in terms().items() if anchor in mentioned}
        parts[-1] += draw.blocks([b.Fold("Glossary", [b.Facts([*known.values()], tuple(known))], name="glossary")])
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
            css=Markup(stylesheet() + template("report.css")),  # noqa: S704 - ours
            script=Markup(script),  # noqa: S704 - ours
            script_hash=f"sha256-{digest}",
        )
    )


def render_fragment(found: Iterable[b.Block]) -> str:
    """Blocks for a notebook: the page's look, kept to themselves; dark where a notebook says that it is."""
    light, dark = variables()
    dark_themes = ("body[data-jp-theme-light=false] &", ".vscode-dark &", "[data-theme=dark] &")
    style = f".fairbits.fairbits {{ {light} {', '.join(dark_themes)} {{ {dark} }}\n{template('report.css')}\n"
    style += template("notebook.css") + "\n}"
    return Markup('<style>{}</style><div class="fairbits">{}</div>').format(
        Markup(style),  # noqa: S704 - ours
        _drawing({}).blocks(found),
    )


def _drawing(pictures: dict[str, str]) -> Any:
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


def template(name: str, folder: str = "templates") -> str:
    return resources.files("fairbits.report").joinpath(folder, name).read_text(encoding="utf-8").strip()


#: Words that mean something else more often than not.
_LEFT = ("m", "run")
#: How a term is written otherwise; the others take an s.
_FORMS = {
    "twins": "twins?",
    "bits": "bits?",
    "proxy": "prox(?:y|ies)",
    "class": "class(?:es)?",
    "held-out rows": "held-out",
}
#: Inside of these nothing is linked: links, names from outside, code, what a click opens, pictures.
_CLOSED = ("a", "bdi", "code", "summary", "svg")
_TAG = re.compile(r"(<[^>]+>)")


@cache
def terms() -> dict[str, tuple[str, str]]:
    found = {}
    for entry in template("glossary.md").split("```")[1].removeprefix("{glossary}").strip().split("\n\n"):
        term, *lines = entry.split("\n")
        anchor = re.sub("[^a-z0-9]+", "-", term.lower()).strip("-")
        found[f"term-{anchor}"] = (term, re.sub("[`*]", "", " ".join(line.strip() for line in lines)))
    return found


def link_terms(html: str) -> tuple[str, set[str]]:
    """A part of a page whose first mention of each term leads to the glossary, and which terms these are."""
    pattern, anchors = _mentions()
    seen: set[str] = set()

    def linked(match: re.Match[str]) -> str:
        anchor = anchors[int(str(match.lastgroup)[1:])]
        if anchor in seen:
            return match[0]
        seen.add(anchor)
        return f'<a class="term" href="#{anchor}">{match[0]}</a>'

    pieces, closed = _TAG.split(html), 0
    for i, piece in enumerate(pieces):
        tag = re.match(r"<(/?)(\w+)", piece)
        if tag is not None:
            closed += 0 if tag[2] not in _CLOSED else -1 if tag[1] else 1
        elif not closed:
            pieces[i] = pattern.sub(linked, piece)
    return "".join(pieces), seen


@cache
def _mentions() -> tuple[re.Pattern[str], list[str]]:
    """What a mention of any term looks like, and the anchor of each."""
    names = [(name, anchor) for anchor, (term, _) in terms().items() for name in re.sub(r" \(.*", "", term).split(", ")]
    named = sorted((one for one in names if one[0] not in _LEFT), key=lambda one: -len(one[0]))
    forms = [_FORMS.get(name, re.escape(name) + ("s?" if len(name) > 2 else "")) for name, _ in named]
    forms = [f"(?i:{form})" if len(name) > 2 else form for form, (name, _) in zip(forms, named, strict=True)]
    alternatives = "|".join(f"(?P<t{i}>{form})" for i, form in enumerate(forms))
    return re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])"), [anchor for _, anchor in named]
