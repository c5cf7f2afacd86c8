"""A comparison of strategies as one page.

What a comparison is, the experiments know; the page sees only the document that they write, as it would from a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fairbits.blocks import (
    Block,
    Columns,
    Commands,
    Drawing,
    Heading,
    Page,
    PagePart,
    Paragraph,
    figure,
    label,
    shown,
    table_by,
)
from fairbits.report.figures.charts import dots, over_time
from fairbits.report.figures.svg import inline_svg
from fairbits.report.html import render_page
from fairbits.search import REFERENCE
from fairbits.store import record_from_json, write_whole
from fairbits.subject import Quality
from fairbits.text import number

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


Contender: TypeAlias = Mapping[str, Any]


def write_contest(document: Mapping[str, Any], path: Path, *, command: str = "") -> None:
    write_whole(path, render_page(contest_page(document, command=command)).encode())


def contest_page(document: Mapping[str, Any], *, command: str = "", drawn: bool = True) -> Page:
    """What is said of a comparison, with or without its pictures."""
    contenders = sorted(document["strategies"], key=lambda one: -_found(one))
    found = bool(_found(contenders[0]))
    drawn = found and drawn
    return Page(
        subject=document["subject"],
        command="compare",
        title=f"{document['subject']}: strategies compared",
        sentence=document["sentence"] if found else "No strategy found an ID case: none found.",
        opening=tuple(_opening(document)),
        parts=tuple(_parts(contenders, document["contest"]["repeats"], command, drawn=drawn)),
        pictures=_pictures(contenders) if drawn else {},
    )


def _found(contender: Contender) -> float:
    """Mean number of ID cases."""
    return contender["id_cases"]["mean"] or 0.0


def _opening(document: Mapping[str, Any]) -> Iterator[Block]:
    repeats, terms = document["contest"]["repeats"], document["terms"]
    runs = "one run each" if repeats == 1 else f"{number(repeats)} runs each, every one with another seed"
    yield Paragraph(
        f"{number(len(document['strategies']))} strategies on one model, through the same oracle: {terms} a run, "
        f"{runs}. An ID case is a person whose twins, alike in all but protected values, do not all get the same "
        "decision. What a search finds is a lower bound on what there is.",
        tone="lead",
    )
    if document.get("quality") is not None:
        yield Paragraph(" ".join(record_from_json(Quality, document["quality"]).lines()), tone="small")
    for name, missing in document["left_out"].items():
        yield Paragraph(f"{name} was left out: it needs {missing}, which this model lacks.", tone="warning")
    if document["idle"]:
        idle = f"No person was evaluated in at least one run of: {', '.join(document['idle'])}."
        yield Paragraph(f"{idle} There, {terms} is too short for one step.", tone="warning")
    if repeats == 1:
        yield Paragraph(
            "One run each: no deviation and no test of significance. A second run may change the order.", tone="note"
        )


def _parts(contenders: Sequence[Contender], repeats: int, command: str, *, drawn: bool) -> Iterator[PagePart]:
    if drawn:
        there = any(one["strategy"] == REFERENCE for one in contenders)
        key = [("blue", "this strategy"), *[("orange", REFERENCE)] * there, ("grey", "all others")]
        pace = "Distinct ID cases so far over the seconds of a run, mean over the runs; the number is where it ended."
        yield PagePart("pace", "ID cases over time", [Drawing("pace", pace, "wide sideways", key)])
        many = "A dot is a run: dots far apart mean that luck decides much."
        severe = "The largest number of classes that the scores of one person's twins fall into: a lower bound."
        two = Columns(([Heading("How many"), Drawing("ids", many)], [Heading("How severe"), Drawing("k", severe)]))
        yield PagePart("runs", "Run by run", [two])
    mean = " (mean ± standard deviation)" if repeats > 1 else ""
    leaves = next((one["runs"][0]["leaves"] for one in contenders if one["runs"]), 0)
    tested = any(one["against_dice"] for one in contenders)
    about = (
        "1st and 1,000th: seconds until so many ID cases were found. Distance of two: mean over pairs of ID cases, "
        "per attribute the share of its range (categories: same or not). Leaves covered: of the "
        f"{number(leaves)} leaves of a decision tree fitted to the decisions about real rows. Attributes "
        "changed, L1: from the nearest real row."
    )
    holm = (
        f" A12: the chance that a run finds more ID cases than one of {REFERENCE}; p: Mann-Whitney, two-sided, "
        "corrected for the number of tests by Holm. With few runs p cannot be small."
    )
    what = f"What kind of people: severity, how different from each other and from real rows{mean}"
    tables = (
        _table(contenders, FOUND, f"What was found, and how fast{mean}", tested=tested),
        _table(contenders, KIND, what),
    )
    yield PagePart("figures", "All figures", [*tables, Paragraph(about + holm * tested, tone="small")])
    unknown = "The model, or the budget, is known to Python only: compare again with Audit.compare."
    paced = "Runs are limited by seconds: a faster or quieter machine finds more, in another order perhaps."
    again = Commands([command]) if command else Paragraph(unknown)
    yield PagePart("again", "Reproduce", [again, Paragraph(paced, tone="small")])


def _table(
    contenders: Sequence[Contender],
    columns: Sequence[tuple[str, str, int | None]],
    caption: str,
    *,
    tested: bool = False,
) -> Block:
    first, *others = (
        (shown(heading), lambda one, key=key, digits=digits: _cell(one, key, digits))
        for key, heading, digits in columns
    )
    tests = (
        (figure(head, digits) if tested else None, lambda one, key=key: (one["against_dice"] or {}).get(key))
        for head, digits, key in (("A12", 2, "a12"), ("p", 3, "p_holm"))
    )
    return table_by(contenders, [(label("strategy"), lambda one: one["strategy"]), first, *tests, *others], caption)


def _cell(one: Contender, key: str, digits: int | None) -> str:
    if key == "id_cases" and not _found(one):
        return "none found"
    scale, digits, unit = (100, 1, " %") if digits is None else (1, digits, "")
    known = [value for value in (one[key]["mean"], one[key]["deviation"]) if value is not None]
    return " ± ".join(number(value * scale, digits) for value in known) + unit if known else "–"


def _pictures(contenders: Sequence[Contender]) -> dict[str, str]:
    names = [one["strategy"] for one in contenders]
    last = max(run["pace_seconds"] for one in contenders for run in one["runs"])
    # ID cases so far at equal steps of time, means over the runs.
    paces = [[0.0, *np.mean([run["pace"] for run in one["runs"]], axis=0).tolist()] for one in contenders]
    words = "; ".join(f"{name} {number(pace[-1])}" for name, pace in zip(names, paces, strict=True))
    made = over_time(list(zip(names, paces, strict=True)), last, REFERENCE)
    found = {"pace": inline_svg(made, "pic-pace", "ID cases over time, by strategy", f"At the end: {words}.")}
    for name, key, title in (("ids", "id_cases", "ID cases of each run"), ("k", "k_max", "Largest k of each run")):
        values = [[float(run[key] or 0) for run in one["runs"]] for one in contenders]
        ends = [dict.fromkeys((number(min(some)), number(max(some)))) for some in values]
        words = "; ".join(f"{who} {' to '.join(both)}" for who, both in zip(names, ends, strict=True))
        found[name] = inline_svg(dots(names, values, title), f"pic-{name}", title, f"{words}.")
    return found
