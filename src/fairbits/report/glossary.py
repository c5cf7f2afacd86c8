"""The glossary: one text for the documentation and for pages, which open offline and link every term of art to it."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from fairbits.blocks import Facts, Fold

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
    """By anchor: the term and its meaning."""
    text = resources.files("fairbits.report").joinpath("templates", "glossary.md").read_text(encoding="utf-8")
    found = {}
    for entry in text.split("```")[1].removeprefix("{glossary}").strip().split("\n\n"):
        term, *lines = entry.split("\n")
        meaning = " ".join(line.strip() for line in lines)
        anchor = re.sub("[^a-z0-9]+", "-", term.lower()).strip("-")
        found[f"term-{anchor}"] = (term, re.sub("[`*]", "", meaning))
    return found


def glossary_fold(mentioned: set[str]) -> Fold:
    """The terms that a page mentions, folded."""
    known = {anchor: entry for anchor, entry in terms().items() if anchor in mentioned}
    return Fold("Glossary", [Facts(list(known.values()), anchors=tuple(known))], name="glossary")


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
