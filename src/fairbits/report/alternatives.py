"""Alternatives as one page: the record of it, read from alternatives.json, as HTML and Markdown.

Which candidates there are, repair knows; the page sees only the document that it writes, as it would from a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fairbits.numerals import number, percent
from fairbits.report.figures.alternatives import FrontPoint, fronts
from fairbits.report.figures.svg import inline_svg
from fairbits.report.markdown import text as cell
from fairbits.report.page import rendered
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
    return rendered(
        "alternatives.html",
        data=data,
        about={"m": 0, "regression": data.regression},
        rows=[(one, cells(one, data)) for one in data.candidates],
        headings=headings(data),
        pictures={name: Markup(svg) for name, svg in _pictures(data).items()},  # noqa: S704 - made by us
    )


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


def alternatives_markdown(data: AlternativesData) -> str:
    """The page for a terminal, an editor or a ticket."""
    lines = [f"# {cell(data.subject)}: alternatives", "", cell(data.sentence, 400), ""]
    if data.agreement is not None:
        lines += [cell(line, 400) for line in data.agreement.lines()] + [""]
    lines += [
        f"Judged on {data.evidence['held_out_rows']:,} rows that no candidate has seen; intervals at 95 %. * marks "
        f"those that no other beats in {data.quality}, direct bits, impact ratio and indirect bits.",
        "",
    ]
    names = ["", "candidate", *headings(data), "what was done"]
    lines.append("| " + " | ".join(names) + " |")
    lines.append("| " + " | ".join(["---", "---", *["--:"] * len(headings(data)), "---"]) + " |")
    for one in data.candidates:
        figures = [f"{value} ({span})" if span else value for value, span in cells(one, data)]
        row = ["*" if one["on_front"] else "", cell(one["name"]), *figures, cell(one["words"], 200)]
        lines.append("| " + " | ".join(row) + " |")
    for entry in data.left_out:
        lines += ["", f"Left out: {cell(entry['proposal'])}: {cell(entry['reason'], 400)}"]
    for line in (*data.evidence["notes"], *data.warnings):
        lines += ["", cell(line, 400)]
    if data.command:
        lines += ["", "```", f"$ {data.command}", "```"]
    return "\n".join(lines) + "\n"


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
