"""Blocks as one HTML file: no network, no script needed to read it, everything that came from outside escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from fairbits import blocks as b
from fairbits._version import __version__
from fairbits.domain import harmless, shortened
from fairbits.report.figures.palette import stylesheet, variables
from fairbits.report.glossary import glossary_fold, link_terms
from fairbits.report.sections.paperwork import CITATION, DOI

#: Letters of one cell or label, and of one paragraph: a hostile label fills no page.
MAX_CELL, MAX_WORDS = 220, 1200
#: From more columns on, a table is set smaller on paper.
MANY = 7
Pictures = dict[str, str]


def render_page(page: b.Page) -> str:
    """The whole page, with style and script inside."""
    script = _file("report.js")
    parts = [_all(part.blocks, page.pictures) for part in page.parts]
    if page.glossary:
        linked = [link_terms(part) for part in parts]
        parts = [Markup(html) for html, _ in linked]  # noqa: S704 - drawn by us
        parts[-1] += _fold(glossary_fold(set[str]().union(*(mentioned for _, mentioned in linked))), {})
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=shortened(page.title, 120),
            subject=shortened(page.subject, 80),
            command=page.command,
            sentence=inline(page.sentence, 600),
            opening=_all(page.opening, page.pictures),
            parts=[(part, inline_kind(part.kind), html) for part, html in zip(page.parts, parts, strict=True)],
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
        _all(found, {}),
    )


def inline(text: b.Text, most: int = MAX_WORDS) -> Markup:  # noqa: PLR0911 - one for each look
    """A text with its looks; strings are cut, cleaned of tricks with direction, and escaped."""
    if isinstance(text, tuple):
        return Markup("").join(inline(piece, most) for piece in text)
    match text:
        case str():
            return escape(shortened(text, most))
        case b.Strong():
            return Markup("<b>{}</b>").format(inline(text.text, most))
        case b.Code():
            return Markup('<code class="hash">{}</code>').format(inline(text.text, most))
        case b.Tag():
            return inline_kind(text.text)
        case b.Small():
            return Markup('<span class="remark">{}</span>').format(inline(text.text, most))
        case b.Link():
            return Markup('<a href="{}" rel="noreferrer">{}</a>').format(harmless(text.target), inline(text.text, most))
        case b.Bar():
            if not text.middle:
                return Markup('<span class="bar" aria-hidden="true"><i style="width: {:.0f}%"></i></span>').format(
                    100 * min(max(text.share, 0.0), 1.0)
                )
            side = "down" if text.share < 0 else "up"
            width = 50 * min(abs(text.share), 1.0)
            return Markup(
                '<span class="zero" aria-hidden="true"><i class="{}" style="width: {:.0f}%"></i></span>'
            ).format(side, width)


def inline_kind(kind: str) -> Markup:
    """The mark that says what kind of figure it is; nothing for none."""
    if not kind:
        return Markup("")
    return Markup('<span class="tag {}">{}</span>').format(kind.replace(" ", "-"), shortened(kind, 40))


def _label(text: str, most: int = MAX_CELL) -> Markup:
    """A name or value from outside, which keeps its own direction of writing to itself."""
    return Markup("<bdi>{}</bdi>").format(shortened(text, most))


def _all(found: Iterable[b.Block], pictures: Pictures) -> Markup:
    return Markup("\n").join(piece for piece in (_DRAW[type(block)](block, pictures) for block in found) if piece)


def _heading(block: b.Heading, _: Pictures) -> Markup:
    return Markup("<h3>{} {}</h3>").format(inline(block.text, 400), inline_kind(block.kind))


def _paragraph(block: b.Paragraph, _: Pictures) -> Markup:
    tone = Markup(' class="{}"').format(block.tone) if block.tone else ""
    return Markup("<p{}>{} {}</p>").format(tone, inline(block.text), inline_kind(block.kind))


def _table(block: b.TableBlock, _: Pictures) -> Markup:
    right = [column.right for column in block.columns]
    heads = Markup("").join(
        Markup('<th scope="col"{}>{}</th>').format(_number(n), inline(column.head, 80))
        for n, column in zip(right, block.columns, strict=True)
    )
    rows = Markup("\n").join(
        Markup("<tr{}>{}</tr>").format(
            Markup(' class="chosen"') if i in block.marked else "",
            Markup("").join(_cell(cell, right[j], first=j == 0) for j, cell in enumerate(row)),
        )
        for i, row in enumerate(block.cells())
    )
    caption = Markup('<caption class="small">{}</caption>').format(inline(block.caption, 400)) if block.caption else ""
    looks = f"{' stacked' if block.stacked else ''}{' many' if len(block.columns) > MANY else ''}"
    return Markup('<div class="table{}"><table>{}<thead><tr>{}</tr></thead>\n<tbody>{}</tbody></table></div>').format(
        looks, caption, heads, rows
    )


def _cell(cell: b.Text, right: bool, *, first: bool) -> Markup:
    text = _label(cell) if isinstance(cell, str) and not right else inline(cell, MAX_CELL)
    if isinstance(cell, b.Bar):
        return Markup('<td class="gap">{}</td>').format(text)
    frame = Markup('<th scope="row"{}>{}</th>') if first else Markup("<td{}>{}</td>")
    return frame.format(_number(right), text)


def _number(right: bool) -> Markup:
    return Markup(' class="n"') if right else Markup("")


def _cards(block: b.Cards, _: Pictures) -> Markup:
    one = Markup('<li><p class="what">{}</p><p class="big">{}</p>{}{}</li>')
    small = Markup('<p class="small">{}</p>')
    return Markup('<ul class="cards">{}</ul>').format(
        Markup("\n").join(
            one.format(
                inline(card.what),
                inline(card.value),
                inline_kind(card.kind),
                small.format(inline(card.small)) if card.small else "",
            )
            for card in block.cards
        )
    )


def _facts(block: b.Facts, _: Pictures) -> Markup:
    found = Markup("")
    for i, (name, value) in enumerate(block.pairs):
        hashed = isinstance(value, tuple) and any(isinstance(piece, b.Code) for piece in value)
        anchor = Markup(' id="{}"').format(block.anchors[i]) if block.anchors else ""
        found += Markup("<div{}{}><dt>{}</dt><dd>{}</dd></div>\n").format(
            Markup(' class="hashed"') if hashed else "",
            anchor,
            _label(name, 80),
            _label(value, 400) if isinstance(value, str) else inline(value, MAX_CELL),
        )
    return Markup('<dl class="facts{}">{}</dl>').format(" glossary" if block.anchors else "", found)


def _picture(block: b.Drawing, pictures: Pictures) -> Markup:
    svg = pictures.get(block.name)
    if svg is None:
        return Markup("")
    caption = Markup("<figcaption>{}</figcaption>").format(inline(block.caption)) if block.caption else ""
    reads = Markup('<output id="neuron" aria-live="polite"></output>') if 'class="part"' in svg else ""
    key = Markup("").join(
        Markup('<span><i style="background:var(--{})"></i>{}</span>').format(colour, inline(meaning))
        for colour, meaning in block.key
    )
    shown = Markup('<p class="key">{}</p>').format(key) if block.key else ""
    return Markup('<figure class="{}">{}{}{}</figure>{}').format(block.size, shown, Markup(svg), caption, reads)  # noqa: S704 - made by us


def _commands(block: b.Commands, _: Pictures) -> Markup:
    lines = "\n".join(f"$ {shortened(line, 1000)}" for line in block.lines)
    return Markup("<pre><code>{}\n</code></pre>").format(lines)


def _bullets(block: b.Bullets, _: Pictures) -> Markup:
    items = Markup("\n").join(Markup("<li>{}</li>").format(inline(item)) for item in block.items)
    return Markup("<ul>{}</ul>").format(items)


def _columns(block: b.Columns, pictures: Pictures) -> Markup:
    drawn = [part for part in (_all(part, pictures) for part in block.parts) if part]
    return Markup('<div class="two">{}</div>').format(
        Markup("\n").join(Markup("<div>{}</div>").format(p) for p in drawn)
    )


def _fold(block: b.Fold, pictures: Pictures) -> Markup:
    inside = _all(block.blocks, pictures)
    name = Markup(' class="detail" id="{}"').format(block.name) if block.name else ""
    opened = Markup(" open") if block.open else ""
    title = inline(block.title, 400) + Markup(" ") + inline_kind(block.kind)
    return Markup("<details{}{}><summary>{}</summary>\n{}</details>").format(name, opened, title, inside)


def _people(block: b.People, pictures: Pictures) -> Markup:
    return Markup('<ol class="people">{}</ol>').format(
        Markup("\n").join(_person(one, pictures) for one in block.people)
    )


def _person(one: b.PersonCard, pictures: Pictures) -> Markup:
    own = Markup("<b>{}</b> · ").format(_label(one.own, 100)) if one.own else ""
    tags = Markup("").join(Markup('<span class="tag flips">{}</span>').format(inline(tag, 60)) for tag in one.tags)
    ends = Markup("").join(
        Markup("<span><b>{}</b> {}</span>").format(value, _label(meaning, 120)) for value, meaning in one.ends
    )
    fact = Markup("<div{}><dt>{}</dt><dd>{}</dd></div>\n")
    facts = Markup("").join(
        fact.format(Markup(' class="own"'), _label(n, 80), _label(v, 120)) for n, v in one.own_facts
    )
    facts += Markup("").join(fact.format("", _label(n, 60), _label(v, 120)) for n, v in one.facts)
    drawn = Markup("").join(_picture(picture, pictures) for picture in one.pictures)
    summary = Markup(
        '<span class="rank">{}</span><span class="k">{}</span><span class="bits">{}</span>'
        '<span class="where">{}{}</span><span class="tags">{}</span><span class="ends">{}</span>'
    ).format(one.rank, one.k, one.bits, own, _label(one.place, 120), tags, ends)
    inside = Markup('<dl class="facts">{}</dl>').format(facts)
    inside += Markup('<div class="two">{}</div>').format(drawn) if drawn else ""
    inside += Markup('<p class="small">{}</p>').format(inline(one.small)) if one.small else ""
    return Markup(
        '<li><details class="person" id="{}"{}><summary>{}</summary><div class="inside">{}</div></details></li>'
    ).format(one.id, Markup(" open") if one.open else "", summary, inside)


def _form(block: b.Form, _: Pictures) -> Markup:
    lines = Markup("").join(
        Markup('<div class="line {}"><span>{}</span></div>').format(name.lower(), name) for name in block.fields
    )
    boxes = Markup("").join(Markup('<span class="box">{}</span>').format(one) for one in block.options)
    choice = Markup('<div class="line choice"><span>{}</span><p>{}</p></div>').format(block.choice, boxes)
    remark = Markup('<div class="line conditions"><span>{}</span></div>').format(block.remark) if block.remark else ""
    return Markup('<div class="signing">{}{}{}</div>').format(lines, choice, remark)


_DRAW: dict[type[Any], Callable[[Any, Pictures], Markup]] = {
    b.Heading: _heading,
    b.Paragraph: _paragraph,
    b.TableBlock: _table,
    b.Cards: _cards,
    b.Facts: _facts,
    b.Drawing: _picture,
    b.Commands: _commands,
    b.Bullets: _bullets,
    b.Columns: _columns,
    b.Fold: _fold,
    b.People: _people,
    b.Form: _form,
}


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("fairbits.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _file(name: str) -> str:
    return resources.files("fairbits.report").joinpath("templates", name).read_text(encoding="utf-8").strip()
