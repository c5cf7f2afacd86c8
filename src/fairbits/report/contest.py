"""A comparison of strategies as one page: the record of it, read from the comparison's document, and the page.

What a comparison is, the experiments know; the page sees only the document that they write, as it would from a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fairbits.numerals import number
from fairbits.report.figures.contest import Effect, dots, effects, over_time
from fairbits.report.figures.svg import inline_svg
from fairbits.report.page import rendered
from fairbits.store import write_whole
from fairbits.subject import Quality

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
    effect: Effect | None

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
    drawn = _pictures(data) if data.contenders[0].found else {}
    return rendered(
        "compare.html",
        data=data,
        about={"m": 0, "regression": False},
        sentence=data.sentence if data.contenders[0].found else "No strategy found an ID case: none found.",
        tables=[("found", FOUND, _rows(data, FOUND)), ("kind", KIND, _rows(data, KIND))],
        tested=any(one.effect for one in data.contenders),
        yardstick=YARDSTICK,
        pictures={name: Markup(svg) for name, svg in drawn.items()},  # noqa: S704 - made by us
    )


def _contender(row: Mapping[str, Any]) -> Contender:
    figures = {key: (row[key]["mean"], row[key]["deviation"]) for key, *_ in (*FOUND, *KIND)}
    verdict = row["against_dice"]
    effect = None if verdict is None else Effect(row["strategy"], verdict["a12"], verdict["p_holm"])
    return Contender(row["strategy"], figures, row["runs"], effect)


def _rows(data: ContestData, columns: Sequence[tuple[str, str, int | None]]) -> list[tuple[str, list[str]]]:
    return [(one.strategy, [_cell(one, key, digits) for key, _, digits in columns]) for one in data.contenders]


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
    against = [one.effect for one in data.contenders if one.effect is not None]
    if against:
        words = "; ".join(f"{one.strategy} {one.a12:.2f}, p {one.p:.3f}" for one in against)
        title = f"A12 against {YARDSTICK}"
        found["effect"] = inline_svg(effects(against, YARDSTICK), "pic-effect", title, f"{words}.")
    return found


def _range(values: Sequence[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"
