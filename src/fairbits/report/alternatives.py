"""Alternatives as one page: the record of it, read from alternatives.json, as HTML and Markdown.

Which candidates there are, repair knows; the page sees only the document that it writes, as it would from a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairbits.blocks import (
    Block,
    Bullets,
    Code,
    Columns,
    Commands,
    Drawing,
    Page,
    PagePart,
    Paragraph,
    Small,
    TableBlock,
    Tag,
    label,
    paragraphs,
    shown,
)
from fairbits.numerals import number, percent
from fairbits.report.figures.alternatives import FrontPoint, fronts
from fairbits.report.figures.svg import inline_svg
from fairbits.report.html import render_page
from fairbits.report.markdown import render_markdown_page
from fairbits.store import write_whole
from fairbits.subject import Quality

PAGE, MARKDOWN = "alternatives.html", "alternatives.md"
AS_IS = "as it is"
_FAMILIES = {"guard": "guard", "weights": "repair", "tune": "tuned", AS_IS: AS_IS}

Estimated = Mapping[str, float] | None


@dataclass(frozen=True, slots=True)
class AlternativesData:
    """Everything on the page of alternatives."""

    subject: str
    quality: str
    regression: bool
    candidates: Sequence[Mapping[str, Any]]
    evidence: Mapping[str, Any]
    left_out: Sequence[Mapping[str, str]]
    warnings: Sequence[str]
    seed: int
    epsilon: float
    command: str
    agreement: Quality | None = None

    @property
    def front(self) -> list[Mapping[str, Any]]:
        """Candidates that no other one dominates."""
        return [one for one in self.candidates if one["on_front"]]

    @property
    def as_is(self) -> Mapping[str, Any]:
        """The model before any change."""
        return next(one for one in self.candidates if one["name"] == AS_IS)

    @property
    def sentence(self) -> str:
        """The page in one sentence."""
        before = self.as_is
        floor = before["accuracy"]["low"]
        others = [one for one in self.candidates if one["name"] != AS_IS]
        kept = [one for one in others if one["accuracy"]["value"] >= floor]
        best = min(kept, key=lambda one: (one["bits"]["value"], -one["accuracy"]["value"]), default=None)
        tried = f"{number(len(others))} alternatives were tried"
        if best is None or best["bits"]["value"] >= before["bits"]["value"]:
            return f"{tried}; none uses fewer bits directly at an {self.quality} within the interval of today's."
        return (
            f"{tried}; {best['name']} uses {number(best['bits']['value'], 2)} bits directly in place of "
            f"{number(before['bits']['value'], 2)}, at {percent(best['accuracy']['value'])} {self.quality} in place of "
            f"{percent(before['accuracy']['value'])}."
        )


def alternatives_of(document: Mapping[str, Any]) -> AlternativesData:
    """The record of the page, from the content of alternatives.json."""
    order = sorted(
        document["candidates"],
        key=lambda one: (one["name"] != AS_IS, not one["on_front"], one["bits"]["value"], -one["accuracy"]["value"]),
    )
    return AlternativesData(
        subject=document["subject"],
        quality=document["quality"],
        regression=document["regression"],
        candidates=order,
        evidence=document["evidence"],
        left_out=document["left_out"],
        warnings=document["warnings"],
        seed=document["seed"],
        epsilon=document["epsilon"],
        command=document.get("command", ""),
        agreement=None if document.get("agreement") is None else Quality.of_figures(document["agreement"]),
    )


def write_alternatives(data: AlternativesData, folder: Path) -> Path:
    """Write alternatives.html and alternatives.md; gives the path of the page."""
    write_whole(folder / PAGE, render_alternatives(data).encode())
    write_whole(folder / MARKDOWN, alternatives_markdown(data).encode())
    return folder / PAGE


def render_alternatives(data: AlternativesData) -> str:
    """The whole page."""
    return render_page(_page(data, _pictures(data)))


def alternatives_markdown(data: AlternativesData) -> str:
    """The page for a terminal, an editor or a ticket."""
    return render_markdown_page(_page(data, {}))


def _page(data: AlternativesData, pictures: dict[str, str]) -> Page:
    return Page(
        subject=data.subject,
        command="alternatives",
        title=f"{data.subject}: alternatives",
        sentence=data.sentence,
        opening=tuple(_opening(data)),
        parts=tuple(_parts(data)),
        pictures=pictures,
    )


def _opening(data: AlternativesData) -> Iterator[Block]:
    seen = "" if data.evidence["rows_unseen_by_model"] else ", though the model as it is may have been trained on them"
    yield Paragraph(
        "Every candidate was made from one half of the evidence and judged on "
        f"{number(data.evidence['held_out_rows'])} rows that none of them has seen{seen}. Direct bits are what "
        "decisions use of protected values themselves; indirect bits are what reaches the score through other "
        "attributes, and no candidate that only ends direct use lowers them. All intervals are at 95 %.",
        tone="lead",
    )
    if data.agreement is not None:
        yield Paragraph(f"The model as it is: {' '.join(data.agreement.lines())}", tone="small")
    yield from paragraphs((f"{one['proposal']} was left out: {one['reason']}" for one in data.left_out), "warning")
    yield from paragraphs(data.evidence["notes"], "note")


def _parts(data: AlternativesData) -> Iterator[PagePart]:
    key = [("ink", "as it is"), ("blue", "guard, proved"), ("orange", "mitigators"), ("grey", "other settings")]
    key.append(("muted", "repairs of weights"))
    best = "nothing else is at least as good in all four figures and better in one; lines are their intervals."
    indirect = "What the average over a person's twins tells about the protected attribute of which it tells most."
    ratio = "The lowest selection rate of a group over the highest, for the attribute where it is lowest."
    drawings = [
        Drawing("bits", f"Up and left is better. Large dots: {best}", key=key),
        Drawing("indirect", f"Up and left is better. {indirect}"),
        Drawing("ratio", f"Up and right is better. {ratio}"),
    ]
    yield PagePart("front", "What each costs and buys", [Columns([[one] for one in drawings])])
    columns = [label("candidate"), *(shown(heading) for heading in headings(data))]
    rows = [
        [
            (one["name"], *([" ", Tag("not beaten")] if one["on_front"] else []), Small(one["words"])),
            *((value, Small(span)) if span else value for value, span in cells(one, data)),
        ]
        for one in data.candidates
    ]
    front = frozenset(i for i, one in enumerate(data.candidates) if one["on_front"])
    caption = f"The model as it is, then those that nothing beats ({len(data.front)}), then the others"
    about = (
        "Flips: rows whose twins do not all get the same decision. Gaps: the largest difference between the groups "
        "of one protected attribute, in selection rates and in average odds; groups of fewer than 30 people are "
        "left out. Mean k, cases: over what a search found. Proved: the most classes that anybody can have. A guard "
        "ends direct use only: attributes that stand in for protected ones stay. Who is not beaten was decided on "
        "the rows shown here, so the best of many looks a little better than it is; the intervals say by how much."
    )
    title = f"All {number(len(data.candidates))} candidates"
    yield PagePart("candidates", title, [TableBlock(columns, rows, caption, front), Paragraph(about, tone="small")])
    kept = (
        "Beside this page: ",
        Code("candidates.parquet"),
        " and ",
        Code("candidates.csv"),
        " (one row per candidate, all figures), ",
        Code("alternatives.json"),
        ", and the models that nothing beats, each written, loaded again and compared:" if len(data.front) > 1 else ".",
    )
    files = [f"{one['name']}: {', '.join(one['files'])}" for one in data.front if one["files"]]
    yield PagePart(
        "files", "The log and the models", [Paragraph(kept), Bullets(files), *paragraphs(data.warnings, "note")]
    )
    if data.command:
        yield PagePart("again", "Reproduce", [Commands([data.command])])


def headings(data: AlternativesData) -> list[str]:
    """What the columns of figures are called."""
    decisions = [] if data.regression else ["balanced", "flips", "impact ratio", "selection gap", "odds gap"]
    return [data.quality, "direct bits", "indirect bits", *decisions, "mean k, cases", "proved"]


def cells(one: Mapping[str, Any], data: AlternativesData) -> list[tuple[str, str]]:
    """The figures of one candidate as people read them, each with its interval at 95 % where it has one."""
    decisions = (
        []
        if data.regression
        else [
            _share(one["balanced_accuracy"]),
            _share(one["flips"]),
            _plain(one["impact_ratio"]),
            ("–" if one["selection_gap"] is None else number(one["selection_gap"], 2), ""),
            ("–" if one["odds_gap"] is None else number(one["odds_gap"], 2), ""),
        ]
    )
    return [
        _share(one["accuracy"]),
        _plain(one["bits"]),
        _plain(one["indirect_bits"]),
        *decisions,
        (number(one["k_mean_cases"], 2), ""),
        ("–" if one["k_max_proved"] is None else f"k ≤ {one['k_max_proved']}", ""),
    ]


def _share(value: Estimated) -> tuple[str, str]:
    if value is None:
        return "–", ""
    return f"{100 * value['value']:.1f} %", f"{100 * value['low']:.1f} to {100 * value['high']:.1f}"


def _plain(value: Estimated) -> tuple[str, str]:
    if value is None:
        return "–", ""
    return f"{value['value']:.2f}", f"{value['low']:.2f} to {value['high']:.2f}"


def _pictures(data: AlternativesData) -> dict[str, str]:
    points = [
        FrontPoint(
            name=one["name"],
            family=_FAMILIES.get(one["family"], "mitigator"),
            on_front=one["on_front"],
            accuracy=one["accuracy"],
            bits=one["bits"],
            indirect=one["indirect_bits"],
            ratio=one["impact_ratio"],
        )
        for one in data.candidates
    ]
    drawn = fronts(points, data.quality)
    names = ", ".join(one["name"] for one in data.front)
    return {
        name: inline_svg(made, f"pic-{name}", title, f"{title}. Not beaten: {names}.")
        for name, (made, title) in drawn.items()
    }
