"""A comparison of strategies as one page: the record of it, read from the comparison's document, and the page.

What a comparison is, the experiments know; the page sees only the document that they write, as it would from a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairbits.blocks import (
    Block,
    Columns,
    Commands,
    Drawing,
    Heading,
    Page,
    PagePart,
    Paragraph,
    TableBlock,
    figure,
    label,
    shown,
)
from fairbits.report.figures.charts import dots, over_time
from fairbits.report.figures.svg import inline_svg
from fairbits.report.html import render_page
from fairbits.store import write_whole
from fairbits.subject import Quality
from fairbits.text import number

#: The strategy that the others are tested against.
YARDSTICK = "dice"
#: key, heading, digits after the point (None: a share). In two tables, as on the terminal.
FOUND = (
    ("id_cases", "ID cases", 0),
    ("id_per_second", "a second", 0),
    ("id_per_million_queries", "per M queries", 0),
    ("local_success_rate", "local success", None),
    ("seconds_to_first_id", "1st, s", 3),
    ("seconds_to_1000_id", "1,000th, s", 3),
)
KIND = (
    ("k_max", "largest k", 1),
    ("q_inf_mean_id", "mean Q∞", 2),
    ("q_1_mean_id", "mean Q1", 2),
    ("diversity", "distance of two", 2),
    ("leaves_covered", "leaves covered", 0),
    ("changed", "attributes changed", 1),
    ("l1", "L1 to a real row", 1),
)


@dataclass(frozen=True, slots=True)
class Contender:
    """One strategy in a comparison."""

    strategy: str
    figures: Mapping[str, tuple[float | None, float | None]]
    runs: Sequence[Mapping[str, Any]]
    effect: tuple[float, float] | None  # A12 against the reference, and p

    @property
    def found(self) -> float:
        """Mean number of ID cases."""
        return self.figures["id_cases"][0] or 0.0

    def pace(self) -> list[float]:
        """ID cases so far at equal steps of time, mean over the runs."""
        paces = [run["pace"] for run in self.runs]
        return [0.0, *(sum(step) / len(paces) for step in zip(*paces, strict=True))]


@dataclass(frozen=True, slots=True)
class ContestData:
    """Everything on the page of a comparison of strategies."""

    subject: str
    terms: str
    repeats: int
    contenders: tuple[Contender, ...]
    leaves: int
    left_out: Mapping[str, str]
    idle: Sequence[str]
    sentence: str
    command: str
    quality: Quality | None = None


def contest_of(document: Mapping[str, Any], *, command: str) -> ContestData:
    """The record of a comparison, from its document."""
    contenders = [_contender(row) for row in document["strategies"]]
    first = next((one.runs[0] for one in contenders if one.runs), {"leaves": 0})
    return ContestData(
        subject=document["subject"],
        terms=document["terms"],
        repeats=document["contest"]["repeats"],
        contenders=tuple(sorted(contenders, key=lambda one: -one.found)),
        leaves=first["leaves"],
        left_out=document["left_out"],
        idle=document["idle"],
        sentence=document["sentence"],
        command=command,
        quality=None if document.get("quality") is None else Quality.of_figures(document["quality"]),
    )


def write_contest(data: ContestData, path: Path) -> None:
    """Write the page of a comparison, whole or not at all."""
    write_whole(path, render_contest(data).encode())


def render_contest(data: ContestData) -> str:
    """The page of a comparison."""
    return render_page(contest_page(data))


def contest_page(data: ContestData, *, drawn: bool = True) -> Page:
    """What is said of a comparison, with or without its pictures."""
    found = bool(data.contenders[0].found)
    return Page(
        subject=data.subject,
        command="compare",
        title=f"{data.subject}: strategies compared",
        sentence=data.sentence if found else "No strategy found an ID case: none found.",
        opening=tuple(_opening(data)),
        parts=tuple(_parts(data, drawn=found and drawn)),
        pictures=_pictures(data) if found and drawn else {},
    )


def _opening(data: ContestData) -> Iterator[Block]:
    runs = "one run each" if data.repeats == 1 else f"{number(data.repeats)} runs each, every one with another seed"
    yield Paragraph(
        f"{number(len(data.contenders))} strategies on one model, through the same oracle: {data.terms} a run, "
        f"{runs}. An ID case is a person whose twins, alike in all but protected values, do not all get the same "
        "decision. What a search finds is a lower bound on what there is.",
        tone="lead",
    )
    if data.quality is not None:
        yield Paragraph(" ".join(data.quality.lines()), tone="small")
    for name, missing in data.left_out.items():
        yield Paragraph(f"{name} was left out: it needs {missing}, which this model lacks.", tone="warning")
    if data.idle:
        names = ", ".join(data.idle)
        short = f"There, {data.terms} is too short for one step."
        yield Paragraph(f"No person was evaluated in at least one run of: {names}. {short}", tone="warning")
    if data.repeats == 1:
        words = "One run each: no deviation and no test of significance. A second run may change the order."
        yield Paragraph(words, tone="note")


def _parts(data: ContestData, *, drawn: bool) -> Iterator[PagePart]:
    if drawn:
        names = {one.strategy for one in data.contenders}
        key = [
            ("blue", "this strategy"),
            *([("orange", YARDSTICK)] if YARDSTICK in names else []),
            ("grey", "all others"),
        ]
        caption = (
            "Distinct ID cases so far over the seconds of a run, mean over the runs; the number is where it ended."
        )
        yield PagePart("pace", "ID cases over time", [Drawing("pace", caption, "wide sideways", key)])
        many = Drawing("ids", "A dot is a run: dots far apart mean that luck decides much.")
        severe = "The largest number of classes that the scores of one person's twins fall into: a lower bound."
        columns: list[list[Block]] = [[Heading("How many"), many], [Heading("How severe"), Drawing("k", severe)]]
        yield PagePart("runs", "Run by run", [Columns(columns)])
    mean = " (mean ± standard deviation)" if data.repeats > 1 else ""
    about = (
        "1st and 1,000th: seconds until so many ID cases were found. Distance of two: mean over pairs of ID cases, "
        "per attribute the share of its range (categories: same or not). Leaves covered: of the "
        f"{number(data.leaves)} leaves of a decision tree fitted to the decisions about real rows. Attributes "
        "changed, L1: from the nearest real row."
    )
    if any(one.effect for one in data.contenders):
        about += (
            f" A12: the chance that a run finds more ID cases than one of {YARDSTICK}; p: Mann-Whitney, two-sided, "
            "corrected for the number of tests by Holm. With few runs p cannot be small."
        )
    kind = f"What kind of people: severity, how different from each other and from real rows{mean}"
    tables = (_table(data, FOUND, f"What was found, and how fast{mean}", tested=True), _table(data, KIND, kind))
    yield PagePart("figures", "All figures", [*tables, Paragraph(about, tone="small")])
    again: Block = Commands([data.command])
    if not data.command:
        again = Paragraph("The model, or the budget, is known to Python only: compare again with Audit.compare.")
    paced = "Runs are limited by seconds: a faster or quieter machine finds more, in another order perhaps."
    yield PagePart("again", "Reproduce", [again, Paragraph(paced, tone="small")])


def _table(
    data: ContestData, columns: Sequence[tuple[str, str, int | None]], caption: str, *, tested: bool = False
) -> Block:
    heads = [label("strategy"), *(shown(heading) for _, heading, _ in columns)]
    rows: list[list[Any]] = [
        [one.strategy, *(_cell(one, key, digits) for key, _, digits in columns)] for one in data.contenders
    ]
    if tested and any(one.effect for one in data.contenders):
        heads[2:2] = [figure("A12", 2), figure("p", 3)]
        for row, one in zip(rows, data.contenders, strict=True):
            row[2:2] = one.effect or (None, None)
    return TableBlock(heads, rows, caption)


def _contender(row: Mapping[str, Any]) -> Contender:
    figures = {key: (row[key]["mean"], row[key]["deviation"]) for key, *_ in (*FOUND, *KIND)}
    verdict = row["against_dice"]
    effect = None if verdict is None else (verdict["a12"], verdict["p_holm"])
    return Contender(row["strategy"], figures, row["runs"], effect)


def _cell(one: Contender, key: str, digits: int | None) -> str:
    if key == "id_cases" and not one.found:
        return "none found"
    mean, deviation = one.figures[key]
    scale, unit = (1, "") if digits is not None else (100, " %")
    shown = [number(value * scale, 1 if digits is None else digits) for value in (mean, deviation) if value is not None]
    return " ± ".join(shown) + unit if shown else "–"


def _pictures(data: ContestData) -> dict[str, str]:
    names = [one.strategy for one in data.contenders]
    last = max(run["pace_seconds"] for one in data.contenders for run in one.runs)
    paces = [(one.strategy, one.pace()) for one in data.contenders]
    words = "; ".join(f"{name} {number(pace[-1])}" for name, pace in paces)
    made = over_time(paces, last, YARDSTICK)
    found = {"pace": inline_svg(made, "pic-pace", "ID cases over time, by strategy", f"At the end: {words}.")}
    for name, key, title in (("ids", "id_cases", "ID cases of each run"), ("k", "k_max", "Largest k of each run")):
        values = [[float(run[key] or 0) for run in one.runs] for one in data.contenders]
        words = "; ".join(f"{who} {_range(some)}" for who, some in zip(names, values, strict=True))
        found[name] = inline_svg(dots(names, values, title), f"pic-{name}", title, f"{words}.")
    return found


def _range(values: Sequence[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"
