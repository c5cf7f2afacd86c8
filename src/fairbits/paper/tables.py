"""Tables of experiments: plain cells, how they are written down, and what they say.

Sentences are made from the rows: no count is made by hand, and none gets stale.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.data import BUILT_IN, load_subject
from fairbits.domain import Twins
from fairbits.paper.subjects import Roster, number, row_of
from fairbits.search import REFERENCE
from fairbits.store import unwritable
from fairbits.text import joined, percent

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Results:
    """A table of an experiment, with what must be known to read it."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    notes: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        """Title, table, what must be known, and what it says."""
        parts = [f"### {self.title}", self.table(), "\n".join(self.notes), "\n".join(f"- {f}" for f in self.findings)]
        return "\n\n".join(filter(None, parts)) + "\n"

    def table(self) -> str:
        """A Markdown table, words to the left and numbers to the right."""
        words = [any(isinstance(row[i], str) for row in self.rows) for i in range(len(self.columns))]
        lines: list[Iterable[str]] = [
            self.columns,
            ["---" if word else "--:" for word in words],
            *(map(shown, row) for row in self.rows),
        ]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def write(self, folder: Path, name: str) -> None:
        """Write the table as Markdown and, unrounded, as CSV."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(folder, error) from None
        (folder / f"{name}.md").write_text(self.markdown(), encoding="utf-8")
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(["" if cell is None else cell for cell in row] for row in self.rows)


def shown(cell: Cell) -> str:
    """A cell as text, rounded.

    Examples
    --------
    >>> [shown(cell) for cell in (None, "dice", 1234, 0.0312, 7.456, 812.4, 1234567.0)]
    ['–', 'dice', '1,234', '0.031', '7.46', '812', '1.2M']
    """
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    size = abs(cell)
    if size >= 1e6:
        return f"{cell / 1e6:.1f}M"
    if isinstance(cell, int) or 100 <= size < 1e4:
        return f"{cell:,.0f}"
    if size >= 1e4:
        return f"{cell / 1e3:.0f}k"
    places = 3 if 0 < size < 0.1 else 2 if size < 10 else 1
    return f"{cell:.0f}" if float(cell).is_integer() else f"{cell:.{places}f}"


def datasets(roster: Roster) -> Results:
    """The paper's table of datasets, ours beside theirs."""
    rows: list[list[Cell]] = []
    for name in roster.names:
        subject, theirs = load_subject(name), row_of("datasets", name)
        entry = BUILT_IN[name]
        origin = "generated" if entry.synthetic else "in the package" if entry.ships else "added"
        people = len(subject.table) + (0 if subject.test is None else len(subject.test))
        rows.append([name, origin])
        for own, column in ((people, "instances"), (len(subject.schema), "features"), (Twins(subject.schema).m, "m")):
            printed = number(theirs, column)
            rows[-1] += [own, None if printed is None else int(printed)]
    columns = ("subject", "data", "rows", "paper", "attributes", "paper", "m", "paper")
    return Results("Datasets", columns, rows, list(roster.notes))


PAPER = "paper"
Rows = Sequence[Sequence[Cell]]


def rq1_findings(rows: Rows) -> list[str]:
    """Sentences on how k grows, which strategy takes it furthest, and how that compares with the printed figures."""
    cells = _by_subject(rows, ("m", "K_I", "cases", "K_F", "k max", "T", "Q_inf", "Q_1"))
    growth = defaultdict[str, list[float]](list)
    above, shares = Counter[str](), list[float]()
    strategies = list(dict.fromkeys(str(row[1]) for row in rows if row[1] != PAPER))
    for cell in cells.values():
        for who, row in cell.items():
            if row["K_I"] and row["K_F"]:
                growth[who].append(row["K_F"] / row["K_I"])
            printed = cell.get(PAPER, {}).get("K_F")
            above[who] += int(printed is not None and (row["K_F"] or 0) > printed)
            if who == REFERENCE and row["Q_inf"] and row["Q_1"] is not None:
                shares.append(row["Q_1"] / row["Q_inf"])
    spans = [f"{'the paper' if who == PAPER else who} {_span(values)}" for who, values in growth.items()]
    says = [f"K_F / K_I, smallest to largest: {'; '.join(spans)}."]
    for name in ("K_F", "k max"):
        wins = _wins({s: {who: cell[who][name] for who in strategies} for s, cell in cells.items()})
        says.append(f"Largest {name}: {_tally(wins, len(cells), 'subjects')}.")
    ahead = joined([f"{who} on {above[who]}" for who in strategies])
    says.append(f"K_F above the paper's, which had an hour: {ahead} of {len(cells)} subjects.")
    if shares:
        says.append(f"Q1 of {REFERENCE} is {percent(float(np.mean(shares)), 0)} of its Q∞ on average.")
    return says


def rq2_findings(rows: Rows) -> list[str]:
    """Sentences on which strategy finds most ID cases, and by how much."""
    cells = _by_subject(rows, ("ids",))
    strategies = list(dict.fromkeys(str(row[1]) for row in rows))
    wins = _wins({name: {who: row["ids"] for who, row in cell.items()} for name, cell in cells.items()})
    says = [f"Most ID cases: {_tally(wins, len(cells), 'cells')}."]
    ratios = []
    for who in strategies:
        pairs = [(c[who]["ids"], c[REFERENCE]["ids"]) for c in cells.values() if REFERENCE in c and who in c]
        logs = [np.log(first / other) for first, other in pairs if first and other]
        if who != REFERENCE and logs:
            ratios.append(f"{who} {np.exp(np.mean(logs)):.2f} ×")
    if ratios:
        says.append(f"ID cases beside {REFERENCE}, geometric mean over the cells: {', '.join(ratios)}.")
    return says


def rq3_findings(located: Rows, mitigated: Rows) -> tuple[list[str], list[str]]:
    """Sentences on which layers are suspect, and what holding neurons does."""
    places = _by_subject(located, ("layer",))
    both = _known_layers(places, REFERENCE)
    same = sum(ours == theirs for ours, theirs in both)
    ours, theirs = (Counter(side) for side in zip(*both, strict=True)) if both else (Counter(), Counter())
    shape = f"Ours: {_layers(ours)}; the paper's: {_layers(theirs)}."
    where = [f"The suspect is the paper's layer on {same} of {len(both)} subjects. {shape}"] if both else []
    pairs = _known_layers(places, f"{REFERENCE}*")
    if pairs:
        same = sum(first == other for first, other in pairs)
        named = _layers(Counter(layer for layer, _ in pairs))
        where.insert(0, f"By the paper's rule the suspect is the paper's layer on {same} of {len(pairs)}: {named}.")
    cells = _by_subject(mitigated, ("acc", "k", "off_acc", "off_k", "on_acc", "on_k", "s", "set", "set_k", "points"))
    says = []
    for who, label in ((REFERENCE, "ours"), (PAPER, "the paper")):
        falls, seconds = [], []
        for cell in cells.values():
            row = cell.get(who, {})
            held = [row[name] for name in ("off_k", "on_k") if row.get(name) is not None]
            falls += [100 * (1 - min(held) / row["k"])] if held else []
            seconds += [row["s"]] if row.get("s") is not None else []
        took = f", in {_span(seconds)} s" if seconds else ""
        if falls:
            says.append(
                f"The better single neuron, {label}: mean k falls by {_span(falls)} % ({len(falls)} of {len(cells)} "
                f"subjects have one){took}."
            )
    sets = [cell[REFERENCE] for cell in cells.values() if cell.get(REFERENCE, {}).get("set_k") is not None]
    if sets:
        kept = sum(row["points"] >= -2 for row in sets)
        says.append(
            f"A set of neurons, on held-out evidence: mean k falls by {_span([-row['set_k'] for row in sets])} %; "
            f"within two points of accuracy there too on {kept} of {len(sets)} subjects."
        )
    return where, says


def ablation_findings(rows: Rows) -> list[str]:
    """Sentences on what quantitative feedback is worth at equal queries."""
    cells = _by_subject(rows, ("cases", "ids", "local", "k_max", "k_mean"))
    pairs = [(c["constrained"], c["binary"]) for c in cells.values()]
    more = [100 * (own["ids"] / other["ids"] - 1) for own, other in pairs if other["ids"]]
    gaps = [own["k_max"] - other["k_max"] for own, other in pairs]
    higher = sum(own["k_mean"] > other["k_mean"] for own, other in pairs)
    says = [f"Quantitative feedback finds {_span(more)} % more ID cases than binary feedback."] if more else []
    says.append(f"Its mean k is higher on {higher} of {len(pairs)} subjects; its largest k is {_span(gaps)} higher.")
    return says


def _known_layers(places: Mapping[str, Mapping[str, Mapping[str, Any]]], who: str) -> list[tuple[int, int]]:
    """Our layer and the paper's, where both are known: networks of one's own are not in the paper."""
    pairs = [(place.get(who, {}).get("layer"), place.get(PAPER, {}).get("layer")) for place in places.values()]
    return [(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]


def _by_subject(rows: Rows, names: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """subject → who → figure; a row without a subject belongs to the one above."""
    table: dict[str, dict[str, dict[str, Any]]] = {}
    last = ""
    for subject, who, *cells in rows:
        last = str(subject) or last
        table.setdefault(last, {})[str(who)] = dict(zip(names, cells, strict=False))
    return table


def _wins(values: Mapping[str, Mapping[str, float | None]]) -> Counter[str]:
    """How often each is largest; where several are, each of them counts."""
    wins = Counter[str]()
    for mine in values.values():
        known = {who: value for who, value in mine.items() if value}
        best = max(known.values(), default=None)
        wins.update(who for who in mine if best is not None and known.get(who) == best)
    return wins


def _tally(wins: Counter[str], total: int, what: str) -> str:
    """Who wins how often, most first."""
    named = [f"{who} in {count}" for who, count in wins.most_common()]
    ties = " (a tie counts for both)" if sum(wins.values()) > total else ""
    return f"{joined(named) or 'nobody'} of {total} {what}{ties}"


def _span(values: Sequence[float]) -> str:
    """The smallest and the largest of some values."""
    low, high = shown(float(min(values))), shown(float(max(values)))
    return low if low == high else f"{low} to {high}"


def _layers(counts: Counter[Any]) -> str:
    return ", ".join(f"{layer} ({count} ×)" for layer, count in sorted(counts.items(), key=lambda pair: str(pair[0])))
