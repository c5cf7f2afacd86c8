"""Figures of commands that must not change: `python -m tools.golden` compares them with those that are kept.

`tests/golden/figures.json` was made by commit 8268c75, the last one before packages were moved and the search became
one path of tasks, with ``PYTHONPATH=<that commit>/src python tools/golden.py --write``. Every command has a fixed seed
and a budget of evaluations. What has changed on purpose since then is named in `tests/golden/changed.toml`, figure by
figure, with the reason; the tests hold the quick commands, and this tool all of them.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "golden"
KEPT, CHANGED = FOLDER / "figures.json", FOLDER / "changed.toml"
#: Strategies whose steps are as they were.
STRATEGIES = ("random", "adf", "aequitas", "eidig", "maft", "expga", "sg", "themis")
SUBJECTS = ("heart", "german", "students", "bank")
#: Parts of a document that say when, how fast, where and by which version it was made, and sentences about it.
PASSING = {"run", "report", "page", "created", "identity", "fingerprint", "notes", "commands", "pace", "warnings"}
#: Fields that tell the records of a list apart; other lists are counted.
KEYS = (("layer", "neuron"), ("layer",), ("name",), ("attribute",), ("attributes",))
#: What repairs are judged by on rows of the table, with no need of labels.
ON_ROWS = ("k_mean_rows", "q_inf_mean_rows", "q_1_mean_rows", "id_rate_rows")
#: Figures may differ by rounding.
TOLERANCE = 1e-6
#: `compare` has no budget of evaluations on the command line.
CONTEST = """
import json, sys
from fairbits import Budget, load_subject
from fairbits.paper import Contest, compare
contest = Contest(Budget(evaluations=2000), 2, 3, threads=1)
print(json.dumps(compare(load_subject(sys.argv[1]), contest, sys.argv[2].split(",")).as_dict()))
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A command whose figures are kept.

    Attributes
    ----------
    words
        Words of the command line; ``{name}`` is the folder of another command.
    now
        More words since then, which ask for what the command did then.
    quick
        Whether the tests run it.
    """

    words: tuple[str, ...]
    now: tuple[str, ...] = ()
    quick: bool = True


def commands() -> dict[str, Command]:
    """The commands by name; one that needs the folder of another comes after it.

    Returns
    -------
    dict of str to Command
        Words of the command lines.
    """
    found = {f"measure {name}": Command(("measure", name)) for name in SUBJECTS}
    budget = ("--seed", "3", "--threads", "1", "--evaluations")
    for strategy in STRATEGIES:
        found[f"search heart {strategy}"] = Command(("search", "heart", "--strategy", strategy, *budget, "2000"))
    found["search german random"] = Command(("search", "german", "--strategy", "random", *budget, "2000"))
    found["search heart near"] = Command(("search", "heart", "--strategy", "random", "--within", "1", *budget, "2000"))
    found["search heart rows"] = Command(("search", "heart", "--on-data", "--threads", "1"))
    for name, quick in (("heart", True), ("bank", False)):
        # Files of one's own hold no rows out, so that repairs are judged on the rows that they were judged on then.
        found[f"export {name}"] = Command(
            ("data", "export", name, "--codes", "--out", f"{{export {name}}}"), quick=quick
        )
        words = ("search", f"{{export {name}}}/subject.toml", "--strategy", "random", *budget, "400")
        found[f"search {name} files"] = Command(words, quick=quick)
    for name in SUBJECTS[2:]:
        words = ("search", name, "--strategy", "random", *budget, "2000")
        found[f"search {name} random"] = Command(words, quick=False)
    found |= _about("heart files", ("--all-layers", "--samples", "100"), quick=True)
    found |= _about("bank files", ("--all-layers", "--samples", "100"), quick=False)
    for name in SUBJECTS:
        found |= _about(f"{name} random", ("--all-layers", "--samples", "300"), quick=False)
    found |= _about("heart aequitas", (), quick=False)
    default = ("debug", "{search bank random}", "--seed", "1", "--threads", "1", "--all-layers", "--samples", "300")
    found["debug bank default"] = Command(default, ("--trainings", "0"), quick=False)
    found["data list"] = Command(("data", "list"))
    found["data show"] = Command(("data", "show", "heart"))
    found["paper datasets"] = Command(("paper", "datasets"), quick=False)
    for name in SUBJECTS[:2]:
        skipped = ("audit", name, "--threads", "1", "--seed", "3", "--skip")
        found[f"audit {name}"] = Command((*skipped, "search,repair"), ("certify",), quick=False)
    found["compare heart"] = Command(("compare", "heart", "random,aequitas,expga,sg,themis"), quick=False)
    return found


def _about(name: str, debug: tuple[str, ...], *, quick: bool) -> dict[str, Command]:
    """What is done with the cases of a search, one after the other: each adds to the folder of the run."""
    run, threads = f"{{search {name}}}", ("--threads", "1")
    # The layers of today's own rule, and a model trained again, are nothing that there was then.
    paper = ("--rule", "paper", "--trainings", "0")
    # A repair that both know, so that the same one is attacked and written.
    repair = ("repair", run, "--no-retrain", "--choose", "shrink-50", "--attack-budget", "0", "--seed", "2", *threads)
    done = {
        "cases": Command(("cases", run, "--top", "10", "--where", "k >= 3 and flips")),
        "debug": Command(("debug", run, "--seed", "1", *threads, *debug), paper),
        "repair": Command(repair),
        "report": Command(("report", run, *threads)),
        "measure repaired": Command(("measure", f"{run}/repaired.toml", "--top", "0", *threads)),
    }
    return {f"{what} {name}": Command(each.words, each.now, quick) for what, each in done.items()}


def figures(document: Any, name: str = "") -> dict[str, Any]:
    """All figures of a document, by path; what says when and where is left out.

    Parameters
    ----------
    document
        What a command printed with ``--json``.
    name
        The path so far.

    Returns
    -------
    dict of str to Any
        Numbers, words and truth values.
    """
    if isinstance(document, Mapping):
        parts = [(f"{name}.{key}" if name else str(key), value) for key, value in document.items() if not _passing(key)]
        return {path: value for part, inner in parts for path, value in figures(inner, part).items()}
    if isinstance(document, Sequence) and not isinstance(document, str):
        parts = [(f"{name}[{key}]", value) for key, value in zip(_names(document), document, strict=True)]
        return {path: value for part, inner in parts for path, value in figures(inner, part).items()}
    return {name: document}


def _passing(key: str) -> bool:
    return key in PASSING or "second" in key or "version" in key


def _names(records: Sequence[Any]) -> list[str]:
    """What the records of a list are called: by what they are about where that tells them apart, else by number."""
    for keys in KEYS:
        if all(isinstance(one, Mapping) and all(_telling(one.get(key)) for key in keys) for one in records):
            found = ["/".join(_text(one[key]) for key in keys) for one in records]
            if len(set(found)) == len(found):
                return found
    return [str(i) for i in range(len(records))]


def _telling(value: Any) -> bool:
    return isinstance(value, str | int | list)


def _text(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)


def read(name: str, shown: str, folder: Path) -> dict[str, Any]:
    """Figures of a command, from what it printed and from its tables.

    Parameters
    ----------
    name
        Name of the command.
    shown
        What it printed.
    folder
        Folder of its run.

    Returns
    -------
    dict of str to Any
        Figures by path.
    """
    if name.startswith("export"):
        return _columns(folder / "table.csv")
    document = json.loads(shown)
    if name.startswith("debug"):
        return figures(document) | _curves(folder)
    if name.startswith("repair"):
        return figures(_repairs(document))
    return figures(document)


def _columns(path: Path) -> dict[str, Any]:
    """Sums of the columns of a table of codes, and how many people have each label."""
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    *attributes, target = rows[0]
    sums = {f"{each}.sum": math.fsum(float(row[each]) for row in rows) for each in attributes}
    labels = Counter(row[target] for row in rows)
    return {"rows": len(rows), **sums, **{f"{target}[{label}]": count for label, count in labels.items()}}


def _curves(folder: Path) -> dict[str, Any]:
    """Mean figures over the neurons of a layer, each held at a statistic of its own, and how many values are kept."""
    import pyarrow.parquet as pq

    columns = ("value", "accuracy", "k_mean", "id_rate", "kept")
    rows: dict[str, list[list[float]]] = {}
    for row in pq.read_table(folder / "neurons.parquet").to_pylist():
        held = f"curves[{row['layer']}/{row['statistic']}]"
        rows.setdefault(held, []).append([float(row[column]) for column in columns])
    means = {held: [math.fsum(column) / len(each) for column in zip(*each, strict=True)] for held, each in rows.items()}
    return {
        f"{held}.{column}": mean for held, each in means.items() for column, mean in zip(columns, each, strict=True)
    }


def _repairs(document: dict[str, Any]) -> dict[str, Any]:
    """Repairs with layers counted from 1, and with figures that do not depend on how rows are split in halves.

    A model that knows its training rows by heart is now judged by rows that it has not seen, on both halves.
    """
    shift = 1 - document.get("layers_from", 0)
    evidence = document["evidence"]
    plan, held_out = evidence["plan_rows"], evidence["held_out_rows"]
    rows = document.get("quality", {}).get("quality_rows", plan + held_out)
    unseen = held_out if rows == plan + held_out else plan + held_out

    def judged(one: Mapping[str, Any]) -> dict[str, Any]:
        halves = one["plan"], one["held_out"]
        both = {key: ((rows - held_out) * halves[0][key] + held_out * halves[1][key]) / rows for key in ON_ROWS}
        both["k_max_rows"] = max(half["k_max_rows"] for half in halves)
        right = (unseen - held_out) * one["plan"]["accuracy"] + held_out * one["held_out"]["accuracy"]
        return {**one, "all_rows": both, "unseen_accuracy": right / unseen}

    def counted(one: Mapping[str, Any]) -> dict[str, Any]:
        neurons = [{**neuron, "layer": neuron["layer"] + shift} for neuron in one["neurons"]]
        words = re.sub(r"\b(\d+)(?=:\d+=)", lambda layer: str(int(layer[1]) + shift), one["words"])
        return judged({**one, "neurons": neurons, "words": words})

    before = judged(document["before"])
    return {**document, "before": before, "repairs": [counted(one) for one in document["repairs"]]}


def made(
    call: Callable[[list[str]], str], chosen: Mapping[str, Command], place: Path, *, then: bool = False
) -> dict[str, dict[str, Any]]:
    """Figures of commands.

    Parameters
    ----------
    call
        Runs a command and gives what it printed.
    chosen
        The commands, by name.
    place
        A folder for their runs.
    then
        Leave out words that are newer than the figures that are kept.

    Returns
    -------
    dict of str to dict
        Figures by path, for each command.
    """
    found = {}
    for name, command in chosen.items():
        words = [_placed(word, place) for word in command.words]
        if not then and command.words[0] == "audit":
            words[-1] = ",".join([words[-1], *command.now])
        elif not then:
            words += command.now
        own = command.words[0] in ("search", "audit")
        out = ["--out", str(folder_of(name, place))] if own else []
        other = re.search(r"{(.+?)}", " ".join(command.words))
        folder = folder_of(name if own or other is None else other.group(1), place)
        found[name] = read(name, call([*words, *out, *([] if name.startswith("export") else ["--json"])]), folder)
    return found


def folder_of(name: str, place: Path) -> Path:
    """The folder of a command's run.

    Parameters
    ----------
    name
        Name of the command.
    place
        Folder of all runs.

    Returns
    -------
    Path
        The folder.
    """
    return place / name.replace(" ", "-")


def _placed(word: str, place: Path) -> str:
    return re.sub(r"{(.+?)}", lambda found: str(folder_of(found.group(1), place)), word)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Figures of a command beside those that are kept.

    Attributes
    ----------
    equal
        How many are what they were.
    changed
        How many are not, by reason.
    faults
        One line for each that differs for no stated reason.
    """

    equal: int
    changed: dict[str, int]
    faults: list[str]


def compared(name: str, kept: Mapping[str, Any], now: Mapping[str, Any]) -> Comparison:
    """Compare a command's figures; there may be more of them now.

    Parameters
    ----------
    name
        Name of the command.
    kept, now
        Figures by path.

    Returns
    -------
    Comparison
        What is equal, what changed on purpose, and what else.
    """
    equal, changed, faults = 0, dict[str, int](), []
    for path, was in kept.items():
        if path in now and _same(was, now[path]):
            equal += 1
        elif (why := reason(f"{name}: {path}")) is not None:
            changed[why] = changed.get(why, 0) + 1
        else:
            faults.append(f"{path}: {was} → {now.get(path, 'nothing')}")
    return Comparison(equal, changed, faults)


def reason(figure: str, changes: Iterable[Mapping[str, Any]] | None = None) -> str | None:
    """Why a figure is not what it was.

    Parameters
    ----------
    figure
        Command and path.
    changes
        Patterns with reasons; None: those of `changed.toml`.

    Returns
    -------
    str or None
        The reason; None where nobody meant to change it.
    """
    known = CHANGES if changes is None else changes
    return next((one["why"] for one in known if any(re.fullmatch(each, figure) for each in one["figures"])), None)


def _same(was: Any, now: Any) -> bool:
    if isinstance(was, float) and isinstance(now, int | float):
        return math.isclose(was, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(was == now)


CHANGES: list[dict[str, Any]] = tomllib.loads(CHANGED.read_text(encoding="utf-8"))["changed"]


def main() -> int:
    """Compare, or write with ``--write``; exit 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.golden", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the figures of the fairbits that is imported")
    parser.add_argument("--only", default="", help="only commands whose name contains this")
    given = parser.parse_args()

    def call(words: list[str]) -> str:
        line = ["-c", CONTEST, *words[1:]] if words[0] == "compare" else ["-m", "fairbits", *words]
        done = subprocess.run([sys.executable, *line], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    chosen = {name: command for name, command in commands().items() if given.only in name}
    with tempfile.TemporaryDirectory() as place:
        now = made(call, chosen, Path(place), then=given.write)
    if given.write:
        kept = {name: {path: _short(value) for path, value in found.items()} for name, found in now.items()}
        KEPT.write_text(json.dumps(kept, indent=0, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    figures_then = json.loads(KEPT.read_text(encoding="utf-8"))
    found = {name: compared(name, figures_then[name], now[name]) for name in chosen}
    for name, one in found.items():
        print(f"{name}: {one.equal} equal, {sum(one.changed.values())} changed on purpose, {len(one.faults)} others")
        for line in (*(f"  {count} × {why}" for why, count in one.changed.items()), *one.faults):
            print(line)
    return 1 if any(one.faults for one in found.values()) else 0


def _short(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
