"""Kill -9 at random instants: whatever is killed goes on, and ends with what an uninterrupted run has.

`python -m benchmarks.kills --kills 100` (`make kills`). Every stage is done once undisturbed. Then it is started again
and again on copies, killed after a random part of the time that it had taken, gone on with as a person would, and
compared: the same cases (nothing lost, nothing twice), the same layers, neurons and repairs, the same report. An audit
is bounded by the clock, so its number of cases may differ; there, every file must be whole, nobody may be in it twice,
and what does not hang on the clock must be equal.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SUBJECT = "heart"
_SEARCH = ["search", SUBJECT, "--evaluations", "30000", "--shards", "6", "--seed", "1", "--threads", "1", "--json"]


@dataclass(frozen=True)
class Stage:
    """How a stage is begun, how it is gone on with after a kill, what must be there before, and what is compared."""

    begin: list[str]
    again: list[str]
    content: Callable[[Path], Any]
    before: tuple[str, ...] = ()
    share: float = 1.0  # of the kills: stages that start processes of their own take long


@dataclass
class Outcome:
    kills: int = 0  # that hit it at work
    missed: int = 0  # that came when it had ended
    runs: int = 0
    equal: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


def cases_of(run: Path) -> Any:
    """Everything that is known about the cases but the time of day."""
    from fairbits.store import Run

    opened = Run.open(run)
    assert not opened.damaged, opened.damaged
    assert opened.status == "finished", opened.status
    return opened.query("SELECT * EXCLUDE (seconds) FROM cases ORDER BY evaluation").to_pylist()


def tables_of(*names: str) -> Callable[[Path], Any]:
    def read(run: Path) -> Any:
        import pyarrow.parquet as pq

        clocks = ("seconds",)
        found = {}
        for name in names:
            table = pq.read_table(run / name)
            found[name] = table.drop_columns([c for c in table.column_names if c in clocks]).to_pylist()
        return repr(found)  # NaN equals itself as text

    return read


def report_of(run: Path) -> Any:
    page = (run / "report.html").read_text("utf-8")
    assert page.rstrip().endswith("</html>")
    return {
        name: value
        for name, value in json.loads((run / "summary.json").read_text()).items()
        if "seconds" not in name and name != "run"
    }, len((run / "report.md").read_text("utf-8").splitlines())


def audit_of(run: Path) -> Any:
    from fairbits.store import Run

    opened = Run.open(run)
    assert opened.status == "finished", opened.status
    assert not opened.damaged, opened.damaged
    names = ", ".join(f'"{name}"' for name in opened.layout.names)
    people = opened.query(f"SELECT count(*) AS rows, count(DISTINCT ({names})) AS people FROM cases").to_pylist()[0]  # noqa: S608
    assert people["rows"] == people["people"] == len(opened) > 0, people
    for name in ("debug.json", "repair.json", "measure.json"):
        json.loads((run / name).read_text())
    assert (run / "report.html").read_text("utf-8").rstrip().endswith("</html>")
    measured = json.loads((run / "measure.json").read_text())
    return {name: value for name, value in measured.items() if "seconds" not in name}


def suite_of(run: Path) -> Any:
    """The frozen people and what they belong to; when they were frozen is no part of it."""
    import pyarrow.parquet as pq

    table = pq.read_table(run / "suite.parquet")
    about = json.loads(table.schema.metadata[b"fairbits"])
    return about["id"], repr(table.to_pylist())


def gate_of(run: Path) -> Any:
    """The verdict and the baseline. A gate killed after it wrote the baseline compares with itself, and passes too."""
    import pyarrow.parquet as pq

    document = json.loads((run / "gate.json").read_text())
    return document["verdict"], document["suite"], repr(pq.read_table(run / "baseline.parquet").to_pylist())


STAGES = {
    "search, one process": Stage([*_SEARCH, "--out", "RUN"], ["search", "--resume", "RUN", "--json"], cases_of),
    "search, two workers": Stage(
        [*_SEARCH, "--workers", "2", "--out", "RUN"],
        ["search", "--resume", "RUN", "--workers", "2", "--json"],
        cases_of,
        share=0.4,
    ),
    "debug": Stage(
        ["debug", "RUN", "--threads", "1", "--json"],
        ["debug", "RUN", "--threads", "1", "--json"],
        tables_of("layers.parquet", "neurons.parquet"),
        before=("search, one process",),
    ),
    "repair": Stage(
        ["repair", "RUN", "--threads", "1", "--json"],
        ["repair", "RUN", "--threads", "1", "--json"],
        tables_of("repairs.parquet"),
        before=("search, one process", "debug"),
    ),
    "audit": Stage(
        ["audit", SUBJECT, "--budget", "6s", "--seed", "1", "--threads", "1", "--out", "RUN", "--json"],
        ["audit", "--resume", "RUN", "--threads", "1", "--json"],
        audit_of,
        share=0.8,
    ),
    "report": Stage(
        ["report", "RUN", "--json"], ["report", "RUN", "--json"], report_of, before=("search, one process", "debug")
    ),
    "gate freeze": Stage(
        ["gate", "freeze", "RUN", "--out", "RUN/suite.parquet", "--force", "--json"],
        ["gate", "freeze", "RUN", "--out", "RUN/suite.parquet", "--force", "--json"],
        suite_of,
        before=("search, one process",),
        share=0.5,
    ),
    "gate": Stage(
        ["gate", "RUN", "--suite", "RUN/suite.parquet", "--baseline", "RUN/baseline.parquet", "--json"],
        ["gate", "RUN", "--suite", "RUN/suite.parquet", "--baseline", "RUN/baseline.parquet", "--json"],
        gate_of,
        before=("search, one process", "gate freeze"),
        share=0.5,
    ),
}

NURSERY = """
import json, os, sys
import fairbits.cli.app, fairbits.audit.pipeline, fairbits.debug, fairbits.repair, fairbits.report, fairbits.store
import fairbits.scale.run, fairbits.search, fairbits.gates.run, pyarrow.parquet, duckdb
from fairbits.cli import main
from fairbits.data import load_subject
from fairbits.search import Budget, Settings
from fairbits.search import prepare, problem_of
problem, strategy = problem_of(load_subject(SUBJECT), Settings(budget=Budget(evaluations=100), threads=1))
prepare(problem, strategy)  # kernels are loaded once, for all
for line in sys.stdin:
    arguments, log = json.loads(line)
    child = os.fork()
    if child == 0:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, 1), os.dup2(file, 2)
        sys.argv = ["fairbits", *arguments]
        try:
            main()
        except SystemExit as ended:
            sys.stdout.flush()
            os._exit(ended.code or 0)
        os._exit(99)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Nursery:
    """Starts commands in forks of one process that has loaded everything: the kills hit work, not imports."""

    def __init__(self, place: Path):
        self.log = place / "log.txt"
        script = place / "nursery.py"  # workers of several processes start from a file
        script.write_text(f"if __name__ == '__main__':\n    SUBJECT = {SUBJECT!r}\n    exec({NURSERY!r})\n")
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, arguments: list[str], run: Path, *, kill_after: float | None = None) -> int:
        """The exit code; negative if it was killed."""
        assert self.process.stdin
        assert self.process.stdout
        words = [str(run) + word[3:] if word == "RUN" or word.startswith("RUN/") else word for word in arguments]
        self.process.stdin.write(json.dumps([words, str(self.log)]) + "\n")
        self.process.stdin.flush()
        child = int(self.process.stdout.readline())
        if kill_after is not None:
            select.select([self.process.stdout], [], [], kill_after)  # or until it has ended
            with contextlib.suppress(ProcessLookupError):  # it may have ended
                os.kill(child, signal.SIGKILL)
        return int(self.process.stdout.readline())

    def must(self, arguments: list[str], run: Path) -> None:
        code = self.run(arguments, run)
        if code:
            raise RuntimeError(f"{' '.join(arguments)} ended with {code}: {self.log.read_text()[-500:]}")

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def campaign(
    kills: int,
    *,
    seed: int = 0,
    stages: dict[str, Stage] | None = None,
    told: Callable[[str, Outcome], None] = lambda *_: None,
) -> dict[str, Outcome]:
    """Kill so many times in all, and say what became of it."""
    chosen = STAGES if stages is None else stages
    chance = random.Random(seed)  # noqa: S311
    whole = sum(stage.share for stage in chosen.values())
    with tempfile.TemporaryDirectory(prefix="fairbits-kills-") as place:
        nursery = Nursery(Path(place))
        try:
            ready = _References(nursery, Path(place))
            found = {}
            for name, stage in chosen.items():
                count = math.ceil(kills * stage.share / whole)  # never fewer in all than asked
                found[name] = _kill(nursery, ready, name, stage, count, chance, Path(place))
                told(name, found[name])
            return found
        finally:
            nursery.close()


class _References:
    """Every stage undisturbed, once: its folder before and after, and how long it took."""

    def __init__(self, nursery: Nursery, place: Path):
        self.nursery, self.place = nursery, place
        self.done: dict[tuple[str, ...], tuple[Path, float]] = {}

    def of(self, names: tuple[str, ...]) -> tuple[Path | None, float]:
        if not names:
            return None, 0.0
        if names not in self.done:
            before, _ = self.of(STAGES[names[-1]].before)
            run = self.place / f"reference-{len(self.done)}"
            if before is not None:
                shutil.copytree(before, run)
            begin = time.monotonic()
            self.nursery.must(STAGES[names[-1]].begin, run)
            self.done[names] = run, time.monotonic() - begin
        return self.done[names]


def _kill(
    nursery: Nursery, ready: _References, name: str, stage: Stage, kills: int, chance: random.Random, place: Path
) -> Outcome:
    begin, found = time.monotonic(), Outcome()
    before, _ = ready.of(stage.before)
    reference, took = ready.of((*stage.before, name))
    assert reference is not None
    expected, run = stage.content(reference), place / "victim"
    while found.kills < kills:
        if before is not None:
            shutil.copytree(before, run)
        arguments, code = stage.begin, -9
        while (code and found.kills < kills and chance.random() < 0.8) or arguments is stage.begin:
            started = time.monotonic()
            code = nursery.run(arguments, run, kill_after=chance.uniform(0, took))
            found.kills += code < 0
            found.missed += code >= 0
            # Machines are not always equally busy, and what goes on is shorter.
            ended = time.monotonic() - started if arguments is stage.begin else 0.8 * took
            took = ended if code >= 0 else 1.05 * took
            if code > 0:
                found.wrong.append(f"{name}: exit {code}: {nursery.log.read_text()[-300:]}")
            arguments = stage.again if (run / "run.json").exists() else list(stage.begin)
        _compare(nursery, stage, arguments, code, run, expected, found, name)
        shutil.rmtree(run, ignore_errors=True)
    found.seconds = time.monotonic() - begin
    return found


def _compare(
    nursery: Nursery, stage: Stage, arguments: list[str], code: int, run: Path, expected: Any, found: Outcome, name: str
) -> None:
    found.runs += 1
    try:
        if code:
            nursery.must(arguments, run)
        leftovers = [path.name for path in run.rglob("*.tmp")]
        assert not leftovers, f"left over: {leftovers}"
        assert stage.content(run) == expected, "other contents than the uninterrupted run"
    except Exception as error:  # noqa: BLE001 - counted, and said
        found.wrong.append(f"{name}: {type(error).__name__}: {str(error)[:400]}")
    else:
        found.equal += 1


def _row(name: str, one: Outcome) -> None:
    print(f"| {name} | {one.kills} | {one.equal} of {one.runs} | {one.seconds:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stage", action="append", choices=list(STAGES))
    given = parser.parse_args()
    chosen = {name: STAGES[name] for name in given.stage or STAGES}
    print("| stage | kills at work | ended like an uninterrupted run | seconds |")
    print("| --- | ---: | ---: | ---: |")
    found = campaign(given.kills, seed=given.seed, stages=chosen, told=_row)
    for words in (words for one in found.values() for words in one.wrong):
        print(f"- {words}")
    sys.exit(1 if any(one.wrong for one in found.values()) else 0)


if __name__ == "__main__":
    main()
