"""The section on indirect bits: what proxies.json says, in sentences and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.proxies import WHAT_A_BIT_IS, details, told
from fairbits.report.markup import table, text
from fairbits.report.section import Section
from fairbits.store import read_json
from fairbits.subject import Subject

if TYPE_CHECKING:
    from fairbits.report.record import ReportData

NAME = "proxies.json"
#: Groups of one table on the page; all are in proxies.json.
MAX_GROUPS = 40


def proxies_of(folder: Path, subject: Subject) -> dict[str, Any] | None:
    """The study beside a run, if it is one of this subject."""
    path = folder / NAME
    if not path.is_file():
        return None
    document = read_json(path)
    fits = document.get("subject") == subject.name and document.get("rows") == len(subject.table)
    return document if fits and "attributes" in document else None


def lead(document: Mapping[str, Any] | None, blind: bool) -> str:
    """What the page begins with for a model that takes no protected attribute; nothing for all others."""
    if document is None or not blind:
        return ""
    known = [one for one in document["attributes"] if one["bits"] is not None and " × " not in one["attribute"]]
    if not known:
        return ""
    most = max(known, key=lambda one: one["bits_low"])
    sentence = told(most)
    return f"{sentence[:1].upper()}{sentence[1:]}. "


def sentences(document: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """For every attribute its main sentence, and the others."""
    for entry in document["attributes"]:
        sentence = told(entry).rstrip(".")
        yield f"{sentence[:1].upper()}{sentence[1:]}.", tuple(_full(line) for line in details(entry))


def _full(line: str) -> str:
    return f"{line[:1].upper()}{line[1:]}."


def _indirect(document: Mapping[str, Any]) -> Iterator[str]:
    yield "## Without the columns: indirect bits and groups"
    yield ""
    yield text(WHAT_A_BIT_IS, 400)
    for sentence, more in sentences(document):
        yield ""
        yield f"**{text(sentence, 400)}** " + " ".join(text(line, 600) for line in more)
    for one in document["groups"]:
        yield ""
        yield f"{text(one['attribute'])}: {one['people']:,} people, {one['unknown']:,} of unknown group."
        yield ""
        heads = ["group", "people", "base rate", "selected", "impact ratio", "above median", "TPR", "FPR", "precision"]
        rows = (_group(group) for group in one["groups"][:MAX_GROUPS])
        yield from table([*heads, "calibration"], rows, right=1)
    yield ""
    yield "Groups of fewer than 30 people get no ratio. Four fifths is a rule of thumb, not a verdict."


def _group(one: Mapping[str, Any]) -> list[str]:
    rates = [_between(one, name) for name in ("base_rate", "selection_rate")]
    others = [_between(one, name) for name in ("scoring_rate", "tpr", "fpr", "precision")]
    ratio = "under 30 people" if one["small"] else "–" if one["impact_ratio"] is None else f"{one['impact_ratio']:.2f}"
    gap = "–" if one["calibration"] is None else f"{one['calibration']:+.3f}".replace("-", "−")
    few = " (under 2 %)" if one["under_two_percent"] else ""
    return [text(one["group"]) + few, f"{one['people']:,}", *rates, ratio, *others, gap]


def _between(one: Mapping[str, Any], name: str) -> str:
    if one.get(name) is None:
        return "–"
    return f"{one[name]:.1%} ({one[f'{name}_low']:.1%} to {one[f'{name}_high']:.1%})"


def _markdown(data: ReportData) -> Iterator[str]:
    assert data.proxies is not None  # noqa: S101 - asked by `shown`
    return _indirect(data.proxies)


def _values(data: ReportData) -> dict[str, Any]:
    return {"indirect": list(sentences(data.proxies or {"attributes": []})), "what_a_bit_is": WHAT_A_BIT_IS}


SECTION = Section(
    "indirect",
    "Without the columns",
    '{% include "proxies.html" %}',
    _markdown,
    shown=lambda data: data.proxies is not None,
    values=_values,
    first=lambda data: data.about.blind,  # what was found leads, where twins cannot differ
)

__all__ = ["MAX_GROUPS", "NAME", "SECTION", "WHAT_A_BIT_IS", "lead", "proxies_of", "sentences"]
