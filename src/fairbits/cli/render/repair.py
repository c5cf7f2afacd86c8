"""What `fairbits repair` shows: every repair on held-out evidence, the chosen one in detail, and its file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from fairbits.cli.console import Console
from fairbits.cli.render.people import harmless, quality_lines
from fairbits.domain import unsigned_zero
from fairbits.measure import symbol_of

if TYPE_CHECKING:
    from fairbits.repair import Attacked, Figures, RepairCandidate, RepairGroup, RepairResult

_ROWS = (
    ("{quality}", "accuracy", "rate"),
    ("balanced accuracy", "balanced_accuracy", "rate"),
    ("mean k, cases", "k_mean", "number"),
    ("largest k, cases", "k_max", "whole"),
    ("mean Q∞, cases", "q_inf_mean", "number"),
    ("mean Q1, cases", "q_1_mean", "number"),
    ("ID rate, cases", "id_rate", "rate"),
    ("mean k, rows", "k_mean_rows", "number"),
    ("largest k, rows", "k_max_rows", "whole"),
    ("ID rate, rows", "id_rate_rows", "rate"),
    ("indirect bits", "indirect_bits", "bits"),
)
#: Names of small groups that a line shows.
_NAMED = 3
_ATTACK = (
    ("people asked, fresh search", "evaluations", "count"),
    ("largest k, fresh search", "k_max", "whole"),
    ("mean k, fresh search", "k_mean", "number"),
)


@contextmanager
def watching(*, shown: bool) -> Iterator[Callable[[str], None] | None]:
    """One line on stderr that says what is being done; only on a terminal."""
    console = Console(stderr=True, highlight=False)
    if not shown or not console.is_terminal:
        yield None
        return
    with console.status("preparing …") as status:
        yield lambda text: status.update(f"{text} …")


def show(result: RepairResult, quality: dict[str, Any] | None = None) -> None:
    """Print everything, at most 80 columns wide."""
    console = Console(highlight=False, width=min(80, Console().width))
    for block in (
        _headline(result),
        Text("\n".join(quality_lines(quality)), style="dim") if quality else None,
        _repairs(result) if result.repairs else None,
        _legend(result) if result.repairs else None,
        _chosen(result),
        _groups(result),
        _small(result),
    ):
        if block is not None:
            console.print(block)
            console.print()
    for path in result.files:
        console.print(Text(f"Written, loaded again and compared: {path}"), soft_wrap=True)
    if result.subject_file is not None:
        console.print(Text(f"To measure or search it: fairbits measure {result.subject_file}"), soft_wrap=True)
    for name, reason in result.left_out:
        console.print(Text(f"Left out: {harmless(name)}: {harmless(reason)}", style="yellow"))
    for note in (*result.evidence.notes, *result.warnings):
        console.print(Text(f"Note: {harmless(note)}", style="yellow"))


def _headline(result: RepairResult) -> Text:
    text = Text()
    text.append(harmless(result.subject), style="bold")
    text.append(f" · {result.quality}: at most {result.max_accuracy_loss:g} lost · seed {result.seed}\n")
    evidence = result.evidence
    text.append(
        f"made from {evidence.training_rows:,} rows, chosen on {evidence.plan_cases:,} cases and "
        f"{evidence.plan_rows:,} rows, judged on {evidence.held_out_cases:,} and {evidence.held_out_rows:,} others\n\n",
        style="dim",
    )
    if result.chosen is None:
        text.append("Nothing was repaired: ", style="bold")
        text.append(harmless(result.reason))
        return text
    before, after, chosen = result.before_held_out, result.chosen.held_out, result.chosen
    start = before.lowered(result.measure)
    change = 1 - after.lowered(result.measure) / start if start > 0 else 0.0
    verb = "lowers" if change >= 0 else "raises"
    share = f"{abs(change):.0%}" if abs(change) >= 0.01 else f"{abs(change):.1%}"
    text.append(f"{chosen.name} {verb} mean {symbol_of(result.measure)} by {share}", style="bold")
    text.append(
        f" on held-out cases; {result.quality} {_points(after.accuracy - before.accuracy)} points on held-out rows"
        f"{_interval(chosen)}."
    )
    if chosen.proof is not None:
        text.append(f"\nk ≤ {chosen.proof.bound}. ", style="bold")
        text.append(chosen.proof.text)
    return text


def _interval(repair: RepairCandidate) -> str:
    """The 95 % interval of the change in accuracy on held-out rows, in points."""
    low, high = repair.held_out_loss_low, repair.held_out_loss_high
    return "" if low is None or high is None else f" (95 %: {_points(-high)} to {_points(-low)})"


def _repairs(result: RepairResult) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("", no_wrap=True, min_width=4)
    table.add_column("repair", no_wrap=True)
    rate = [] if result.regression else ["ID rate"]
    wide = _compared(result.before_held_out, result)
    bits = ["Q1"] if result.measure == "q_1" else []  # short: the table must fit 80 columns
    change = [] if wide else ["change, 95 %"]  # the table must fit 80 columns
    for heading in (
        result.quality,
        *change,
        *bits,
        "mean k",
        "proved",
        *rate,
        *(["impact", "indir."] if wide else []),
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    before = result.before_held_out
    rates = [] if before.id_rate is None else [f"{before.id_rate:.1%}"]
    table.add_row(
        "", "as it is", f"{before.accuracy:.1%}", *("" for _ in change), *_means(before, result), "", *rates, *wide
    )
    for repair in result.repairs:
        out = not repair.within_budget or bool(repair.raises)
        style = "bold" if repair is result.chosen else "dim" if out else ""
        table.add_row(*_line(repair, result), style=style)
    return table


def _line(repair: RepairCandidate, result: RepairResult) -> tuple[str, ...]:
    after = repair.held_out
    marks = f"{'→' if repair is result.chosen else ' '}{'*' if repair.on_front else ' '}"
    return (
        marks + (" " if repair.within_budget else "!") + ("↑" if repair.raises else " "),
        repair.name,
        f"{after.accuracy:.1%}",
        *(() if _compared(after, result) else (_ends(repair),)),
        *_means(after, result),
        "" if repair.proof is None else f"k ≤ {repair.proof.bound}",
        *([] if after.id_rate is None else [f"{after.id_rate:.1%}"]),
        *_compared(after, result),
    )


def _compared(figures: Figures, result: RepairResult) -> tuple[str, ...]:
    """What mitigators are for: impact ratio and indirect bits, where some were tried."""
    if not result.options.get("also"):
        return ()
    return tuple("–" if value is None else f"{value:.2f}" for value in (figures.impact_ratio, figures.indirect_bits))


def _means(figures: Figures, result: RepairResult) -> tuple[str, ...]:
    """Mean k, and before it mean Q1 where the run lowers that."""
    bits = (f"{figures.q_1_mean:.2f}",) if result.measure == "q_1" else ()
    return (*bits, f"{figures.k_mean:.2f}")


def _ends(repair: RepairCandidate) -> str:
    """The interval of the change, in points."""
    low, high = repair.held_out_loss_low, repair.held_out_loss_high
    return "" if low is None or high is None else f"{_points(-high)} to {_points(-low)}"


def _legend(result: RepairResult) -> Text:
    wide, changes = (
        _compared(result.before_held_out, result),
        f"change: of {result.quality} on held-out rows, in points\n",
    )
    return Text(
        "→ chosen   * nobody beats it on held-out evidence\n"
        f"! not sure to keep the budget, by the {result.evidence.plan_rows:,} rows that were chosen on\n"
        f"↑ {'raises mean k of the rows' if result.regression else 'makes more people flip'} there\n"
        + ("impact: lowest selection rate of a group over the highest   indir.: indirect bits\n" if wide else changes)
        + "proved: the most classes that anybody can have, found or not",
        style="dim",
    )


def _chosen(result: RepairResult) -> Table | None:
    if result.chosen is None:
        return None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(f"{result.chosen.name}, held out")
    table.add_column("before", justify="right")
    table.add_column("after", justify="right")
    pairs: list[tuple[tuple[str, str, str], Figures | Attacked | None, Figures | Attacked | None]] = [
        (row, result.before_held_out, result.chosen.held_out) for row in _ROWS
    ]
    if result.attack_before is not None:
        rows = (*_ATTACK, ("ID rate, fresh search", "id_rate", "rate"))
        pairs += [(row, result.attack_before, result.attack_after) for row in rows]
    for (name, key, kind), before, after in pairs:
        values = [getattr(figures, key) for figures in (before, after)]
        if None not in values:
            table.add_row(name.format(quality=result.quality), *(_shown(value, kind) for value in values))
    return table


def _groups(result: RepairResult) -> Table | None:
    """Differences between groups on held-out rows, before → after."""
    if not result.groups_before:
        return None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("between groups of")
    for heading in ("groups", "selection rate", "equal opport.", "average odds"):
        table.add_column(heading, justify="right")
    for before, after in zip(result.groups_before, result.groups_after, strict=True):
        cells = [_gap(before, after, key) for key in ("selection", "equal_opportunity", "average_odds")]
        table.add_row(harmless(" × ".join(before.attributes)), str(len(before.groups)), *cells)
    return table


def _small(result: RepairResult) -> Text | None:
    """Which groups were left out; of the intersections only how many, all names are in repair.json."""
    lines = []
    for figures in result.groups_before:
        small = figures.too_small
        if small:
            names = f"{harmless('; '.join(small[:_NAMED]))}{'; …' if len(small) > _NAMED else ''}"
            lines.append(f"{harmless(' × '.join(figures.attributes))}: {len(small)} ({names})")
    if not lines:
        return None
    return Text("Left out, fewer than 30 people held out:\n" + "\n".join(lines), style="dim")


def _gap(before: RepairGroup, after: RepairGroup, key: str) -> str:
    values = (getattr(before, key), getattr(after, key))
    return "–" if None in values else f"{values[0]:.2f} → {values[1]:.2f}"


def _points(change: float) -> str:
    return unsigned_zero(f"{100 * change:+.1f}")


def _shown(value: float, kind: str) -> str:
    return {
        "rate": f"{value:.1%}",
        "number": f"{value:.2f}",
        "bits": f"{value:.3f}",
        "whole": f"{value:g}",
        "count": f"{value:,.0f}",
    }[kind]
