"""The folded part of the page: severity and the search, each attribute's share, the inside of the model, paperwork."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairbits.blocks import (
    Bar,
    Block,
    Columns,
    Drawing,
    Facts,
    Fold,
    Heading,
    Paragraph,
    People,
    TableBlock,
    Text,
    figure,
    label,
    paragraphs,
)
from fairbits.measure import Noise
from fairbits.report.sections.inside import attribute_blocks, layer_blocks, origin_blocks
from fairbits.report.sections.paperwork import file_blocks, regulation_blocks, reproduction_blocks
from fairbits.report.sections.people import case_card
from fairbits.report.sections.treatment import near_table
from fairbits.text import number, percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairbits.report.record import Near, ReportData
    from fairbits.store import Run


def folds_of(data: ReportData) -> list[Fold]:
    """What a reader opens, in order."""
    found = data.debugged
    folds = []
    if found is not None:
        if found.attribution is not None:
            blocks = attribute_blocks(found.attribution)
            folds.append(Fold("Which attribute: Shapley shares", tuple(blocks), name="drivers", kind="exact"))
        if found.layers:
            title = "Inside the trees" if found.units == "trees" else "Inside the network"
            folds.append(Fold(title, tuple(layer_blocks(found)), name="inside", kind="exact"))
        folds.append(Fold("Data or training", tuple(origin_blocks(found)), name="origin", kind="statistical"))
    if not data.about.blind:
        folds.append(Fold("How many, how severe; the search", tuple(severity_blocks(data)), name="severity"))
    folds.append(Fold("Reproduce", tuple(reproduction_blocks(data)), name="reproduce"))
    if data.files:
        folds.append(Fold("Files", tuple(file_blocks(data)), name="files"))
    return folds


def detail_blocks(data: ReportData, there: Mapping[str, str]) -> Iterator[Block]:
    """All folds; the regulations, which point at the others and at the parts of the page, last."""
    folds = folds_of(data)
    yield from folds
    titles = {**there, **{one.name: str(one.title) for one in folds}}
    yield Fold("Regulations", tuple(regulation_blocks(titles)), name="regulations")


def severity_blocks(data: ReportData) -> Iterator[Block]:
    """Rows and cases by the number of their classes, and what the search did."""
    figures, decides = data.searched.figures, not data.about.regression
    cases = (
        f"How many of the {number(figures['cases'])} distinct people found have k classes. A search looks for large "
        "k, so this says nothing about how common they are."
    )
    rows = f"How many of the {number(data.measured.rows)} rows have k classes."
    parts: list[list[Block]] = [[Heading("Rows of the table", data.measured.kind), Drawing("severity-rows", rows)]]
    if data.searched.histogram:
        key = [("orange", "decision flips between twins"), ("grey", "it does not")]
        drawn = Drawing("severity-cases", cases, key=key if decides and figures["id_cases"] else [])
        parts.append([Heading("Cases of the search", "lower bound"), drawn])
    if len(data.searched.progress) > 2:
        curve = Drawing("progress", "A curve that still rises at the end asks for a longer search.")
        parts.append([Heading("The search over time"), curve])
    parts.append([Heading("What the search did"), Facts(search_facts(figures, decides=decides))])
    yield Columns(parts)
    measured, found = dict(data.measured.histogram), {k: (count, ids) for k, count, ids in data.searched.histogram}
    columns = [figure("k"), figure("rows"), figure("cases of the search"), figure("of them flip")]
    lines = [(k, measured.get(k, 0), *found.get(k, (0, 0))) for k in sorted({*measured, *found}, reverse=True)]
    kept = 4 if decides else 3
    yield Fold("As a table", [TableBlock(columns[:kept], [line[:kept] for line in lines])])


def search_facts(figures: Mapping[str, Any], *, decides: bool) -> list[tuple[str, Text]]:
    """Facts about the search as pairs of name and value; a regression has no decision that could flip."""

    def seconds(name: str) -> str:
        return "–" if figures.get(name) is None else f"{number(figures[name], 2)} s"

    flips = [
        ("cases whose decision flips", number(figures["id_cases"])),
        ("until the first flip", seconds("seconds_to_first_id")),
        ("until 1,000 flips", seconds("seconds_to_1000_id")),
    ]
    return [
        ("strategy", str(figures.get("strategy"))),
        ("people asked about", number(figures.get("evaluations"))),
        ("scores computed", number(figures.get("queries"))),
        ("distinct cases kept", number(figures["cases"])),
        *(flips[:1] if decides else []),
        (
            f"mean k where {seeds_in_words(figures)} began, ended",
            f"{number(figures.get('k_initial'), 1)}, {number(figures.get('k_final'), 1)}",
        ),
        *(flips[1:] if decides else []),
    ]


def seeds_in_words(figures: Mapping[str, Any]) -> str:
    """Whom K_I and K_F are about."""
    finished = figures.get("seeds_finished")
    return "seeds" if not finished else f"{number(finished)} seeds that had their full share of moves"


def search_blocks(run: Run, near: tuple[Near, ...], *, top: int, lines: tuple[str, ...]) -> Iterator[Block]:
    """A search by itself: what it found, the largest k by distance, the worst people, and the paper's own columns."""
    figures = run.summary or {}
    decides = not run.schema.regression
    yield from paragraphs(lines, "small")
    yield from paragraphs(_limits(figures), "small")
    if not figures["cases"]:
        yield Paragraph("No case was found.")
        return
    flips = f", {number(figures['id_cases'])} of them with twins that get a different decision" if decides else ""
    asked = f"{number(figures['evaluations'])} people asked in {number(figures['seconds'], 1)} s of search"
    how = f"{figures['strategy']}, seed {figures['seed']}"
    yield Paragraph(f"{number(figures['cases'])} distinct people kept{flips}; {asked} ({how}).")
    noise = Noise.read(figures.get("noise"))
    yield near_table(near, figures["bits_limit"], varies=noise is not None)
    notes = () if noise is None else noise.notes(figures["epsilon"])
    yield from paragraphs((f"Note: {note}" for note in notes), "warning")
    cards = [case_card(case, rank) for rank, case in enumerate(run.worst(top) if top else (), 1)]
    yield People(cards, decides)
    yield Fold("As the paper's tables have it", [_paper_row(figures)])
    most = max((entry["cases"] for entry in figures["top"]), default=1)
    rows = [(entry["k"], entry["cases"], Bar(entry["cases"] / most)) for entry in figures["top"]]
    yield Fold("How severe", [TableBlock([figure("k"), figure("cases"), label("")], rows)])


def _limits(figures: Mapping[str, Any]) -> Iterator[str]:
    """What kept people real, and what it cost."""
    if figures["rules"]:
        count = len(figures["rules"])
        share = figures["twins_removed"] / max(figures["m"] * figures["evaluations"], 1)
        yield (
            f"{count} rule{'s' if count > 1 else ''} removed {number(figures['twins_removed'])} twins ({percent(share)}) "
            f"and {number(figures['moves_removed'])} moves."
        )
    if figures["min_plausibility"] is not None:
        yield f"Only people of plausibility {figures['min_plausibility']:g} or more."


def _paper_row(figures: Mapping[str, Any]) -> Block:
    """The columns of the paper's first research question."""
    top = [entry["cases"] for entry in figures["top"][:3]]
    cells = [
        (figure("m"), figures["m"]),
        (figure("limit", 2), figures["bits_limit"]),
        (figure("K_I", 2), figures["k_initial"]),
        (figure("cases"), figures["cases"]),
        (figure("K_F", 2), figures["k_final"]),
        (figure("T (s)", 2), figures["seconds_to_k_final"]),
        (figure("Q∞", 2), figures["q_inf_mean_id"]),
        (figure("Q1", 2), figures["q_1_mean_id"]),
        *((figure(f"#K{i + 1}"), top[i] if i < len(top) else None) for i in range(3)),
    ]
    caption = f"K_I, K_F and T are means over {seeds_in_words(figures)}" if figures["seeds"] else ""
    return TableBlock([column for column, _ in cells], [[value for _, value in cells]], caption)
