"""All tables of docs/paper.md, made anew: what they say goes into the page between its markers, their rows beside it.

    python -m benchmarks.paper                    about three quarters of an hour on two quiet cores
    python -m benchmarks.paper --only rq2,rq3     some of them
    python -m benchmarks.paper --smallest         every table with one subject and an instant, into a copy: for CI

A part of the page stands between `<!-- begin: NAME -->` and `<!-- end: NAME -->`; what is outside is never touched.
Its table is tables/NAME.csv (NAME-1.csv, NAME-2.csv where there are several), cells rounded as they are shown.
Finished cells are kept in runs/page-…: `--work` with that folder goes on where a run was ended.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import rivals
from fairbits.data import load_subject
from fairbits.errors import OptionError
from fairbits.options import CompareOptions
from fairbits.paper import StrategyComparison, compare
from fairbits.paper.localisation import rq3
from fairbits.paper.mitigation import mitigation_table, repairs_table
from fairbits.paper.research import ExperimentPlan, ablation
from fairbits.paper.subjects import Roster, roster
from fairbits.paper.tables import Results, datasets, shown
from fairbits.search import Budget

PAGE = Path(__file__).resolve().parents[1] / "docs" / "paper.md"


@dataclass(frozen=True)
class Making:
    """How long, on what, and where finished cells are."""

    subjects: Roster
    seconds: float
    repeats: int
    work: Path
    #: The single subject of the comparison, those of the plain forms and of the ablation.
    compared: str = "census"
    plain: tuple[str, ...] = ("census", "german", "default")
    ablated: tuple[str, ...] = ("census", "german", "default", "bank", "students")
    queries: int = 2_000_000
    rounds: int = 3
    #: The table of mitigators in its smallest form.
    quick: bool = False


@dataclass(frozen=True)
class Part:
    """The command of a part of the page (or its text), and the tables that it makes."""

    text: str
    tables: tuple[Results, ...] = ()

    def write(self, name: str, folder: Path) -> str:
        """The text with a link to each table, its terms and findings; the tables go into the folder."""
        lines = [self.text]
        for number, table in enumerate(self.tables, 1):
            file = folder / f"{name}{f'-{number}' * (len(self.tables) > 1)}.csv"
            folder.mkdir(exist_ok=True)
            with file.open("w", newline="", encoding="utf-8") as opened:
                writer = csv.writer(opened, lineterminator="\n")
                writer.writerow(table.columns)
                writer.writerows([shown(cell) for cell in row] for row in table.rows)
            lines += [f"[The table]({folder.name}/{file.name})", *table.notes[:1]]
            lines.append("\n".join(f"- {say}" for say in table.findings))
        return "\n\n".join(filter(None, lines))


def part(command: str, *tables: Results) -> Part:
    """A command, and the tables that it makes."""
    return Part(f"`{command}`", tables)


def made(making: Making) -> Part:
    """When, on what, and what stood in for what."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    options = f"--seconds {making.seconds:g}" + (f" --repeats {making.repeats}" if making.repeats > 1 else "")
    when = f"Made on {datetime.now(UTC).date()} by `python -m benchmarks.paper {options}`"
    machine = f"{os.cpu_count()} cores ({platform.machine()}), load {load} at the start"
    names = "Subjects: " + ", ".join(making.subjects.names) + "."
    return Part("\n".join([f"{when}; {machine}; {making.repeats} run{'s' * (making.repeats > 1)} a cell.", names]))


def _datasets(making: Making) -> Part:
    return part("fairbits paper datasets", datasets(making.subjects))


def _question(name: str, making: Making) -> Part:
    plan = ExperimentPlan(
        name, making.subjects, making.work, budget=Budget(seconds=making.seconds), repeats=making.repeats
    )
    repeats = f" --repeats {making.repeats}" if making.repeats > 1 else ""
    return part(f"fairbits paper {name} --budget {making.seconds:g}s{repeats}", plan.run(said(name)))


def _rq3(making: Making) -> Part:
    tables = rq3(making.subjects, making.work, budget=Budget(seconds=making.seconds), progress=said("rq3"))
    return part(f"fairbits paper rq3 --budget {making.seconds:g}s", *tables)


def _compare(making: Making) -> Part:
    subject = load_subject(making.compared).with_protected(["sex"])
    contest = CompareOptions(budget=Budget(seconds=making.seconds), repeats=making.rounds)
    found = compare(subject, contest, folder=making.work / "compare", progress=said("compare"))
    command = f"fairbits paper compare {making.compared} --protected sex --budget {making.seconds:g}s"
    return part(f"{command} --repeats {making.rounds}", _contest(found))


def _contest(found: StrategyComparison) -> Results:
    """The comparison as one table, and who was ahead."""
    names = ("id_cases", "id_per_second", "id_per_million_queries", "local_success_rate", "seconds_to_first_id")
    names += ("seconds_to_1000_id", "k_max", "diversity", "leaves_covered", "changed")
    rows = []
    for entry in found.entries:
        cells = [entry.mean(name) for name in names]
        cells[3] = None if cells[3] is None else 100 * cells[3]
        verdict = [None, None] if entry.verdict is None else [entry.verdict.p_holm, entry.verdict.a12]
        rows.append([entry.strategy, cells[0], entry.deviation("id_cases"), *cells[1:], *verdict])
    columns = ("strategy", "ID cases", "±", "ID/s", "per M queries", "local %", "1st s", "1000th s", "k")
    columns += ("diversity", "leaves", "changed", "p", "A12")
    ranked = sorted(found.entries, key=lambda entry: -(entry.mean("id_cases") or 0.0))
    order = ", ".join(f"{entry.strategy} {entry.mean('id_cases'):,.0f}" for entry in ranked)
    return Results("", columns, rows, [], [f"By ID cases: {order}."])


def _rivals(making: Making) -> Part:
    table = rivals.measured(making.plain, "sex", seconds=making.seconds, rounds=1)
    names = " ".join(making.plain)
    return part(f"python -m benchmarks.rivals --subjects {names} --seconds {making.seconds:g} --rounds 1", table)


def _yardsticks(making: Making) -> Part:
    seconds = making.seconds / 2
    table = rivals.everywhere(making.subjects.names, seconds=seconds)
    return part(f"python -m benchmarks.rivals --everywhere --seconds {seconds:g}", table)


def _ablation(making: Making) -> Part:
    subjects = roster(making.ablated)
    progress = said("ablation")
    table = ablation(subjects, making.work, queries=making.queries, repeats=making.rounds, progress=progress)
    names, options = ",".join(making.ablated), f"--queries {making.queries} --repeats {making.rounds}"
    return part(f"fairbits paper ablation --subjects {names} {options}", table)


def _mitigation(making: Making) -> Part:
    table = mitigation_table(making.subjects, making.work, quick=making.quick, progress=said("mitigation"))
    return part("fairbits paper mitigation" + " --quick" * making.quick, table)


def _repairs(making: Making) -> Part:
    seconds = making.seconds * 2
    table = repairs_table(making.subjects, making.work, seconds=seconds, progress=said("repairs"))
    return part(f"fairbits paper repairs --budget {seconds:g}s", table)


PARTS: dict[str, Callable[[Making], Part]] = {
    "made": made,
    "datasets": _datasets,
    "rq1": lambda making: _question("rq1", making),
    "field": lambda making: _question("field", making),  # before rq2, which takes its cells from here
    "rq2": lambda making: _question("rq2", making),
    "rq3": _rq3,
    "compare": _compare,
    "rivals": _rivals,
    "yardsticks": _yardsticks,
    "ablation": _ablation,
    "mitigation": _mitigation,
    "repairs": _repairs,
}


def said(name: str) -> Callable[[int, int, str], None]:
    """Progress on stderr: what runs, and how long the rest of this table will take."""
    begin = time.monotonic()

    def report(done: int, total: int, what: str) -> None:
        left = f", about {(time.monotonic() - begin) / done * (total - done):.0f} s left" if done else ""
        print(f"{name} {done + 1} of {total}: {what}{left}", file=sys.stderr, flush=True)

    return report


def replaced(page: str, name: str, text: str) -> str:
    """The page with another text between the markers of a part.

    >>> replaced("a\\n<!-- begin: x -->\\nold\\n<!-- end: x -->\\nb", "x", "new")
    'a\\n<!-- begin: x -->\\n\\nnew\\n\\n<!-- end: x -->\\nb'
    """
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise OptionError(f"the page must have {begin!r} and {end!r} once each.")
    return re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n\n{text}\n\n{end}", page, flags=re.DOTALL)


def remake(page: Path, making: Making, names: list[str]) -> None:
    """Make the parts one after the other; each is on the page as soon as it is there."""
    for name in names:
        begin = time.monotonic()
        text = PARTS[name](making).write(name, page.parent / "tables")
        page.write_text(replaced(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")
        print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)


def smallest(work: Path) -> Making:
    """Every table, with as little in it as there can be."""
    instant = {"compared": "heart", "plain": ("heart",), "ablated": ("heart",), "queries": 50_000, "rounds": 1}
    return Making(roster(["heart"]), 0.1, 1, work, quick=True, **instant)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each search")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each cell of rq1, rq2 and field")
    parser.add_argument("--only", help=f"some of: {', '.join(PARTS)}")
    now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    parser.add_argument("--work", type=Path, default=Path("runs", f"page-{now}"), help="folder of finished cells")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--smallest", action="store_true", help="one subject, an instant each, into a copy of the page")
    args = parser.parse_args()
    names = list(PARTS) if args.only is None else [name.strip() for name in args.only.split(",")]
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; there are: {', '.join(PARTS)}")
    if not args.smallest:
        remake(args.page, Making(roster(None), args.seconds, args.repeats, args.work), names)
        return
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "paper.md"
        shutil.copy(args.page, copy)
        remake(copy, smallest(Path(place)), names)


if __name__ == "__main__":
    main()
