"""What commands put out, as figures by path."""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.golden.commands import Command, contest

#: Parts of a document that say when, how fast, where and by which version it was made, and sentences about it.
PASSING = {
    *("run", "out", "report", "page", "created", "identity", "fingerprint", "pace"),
    *("notes", "warnings", "commands"),
}
#: Fields that tell the records of a list apart; other lists are counted.
KEYS = (("layer", "neuron"), ("layer",), ("name",), ("attribute",), ("attributes",))
#: What repairs are judged by on rows of the table, with no need of labels.
ON_ROWS = ("k_mean_rows", "q_inf_mean_rows", "q_1_mean_rows", "id_rate_rows")


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
    return key in PASSING or "seconds" in key or "per_second" in key or "version" in key


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
        return figures(_debugging(document)) | _curves(folder)
    if name.startswith("repair"):
        return figures(_repairs(document))
    debugged = (document.get("summary") or {}).get("debug") if isinstance(document, dict) else None
    if debugged:
        document["summary"]["debug"] = _debugging(debugged)
    return figures(document)


def _columns(path: Path) -> dict[str, Any]:
    """Sums of the columns of a table of codes, and how many people have each label."""
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    *attributes, target = (name for name in rows[0] if name != "held_out")
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


def _debugging(document: dict[str, Any]) -> dict[str, Any]:
    """A debugging under the keys that it had: Shapley shares were a list."""
    found, labels = document.get("attribution"), document["origin"].get("labels")
    if found and "shapley" not in found:
        shares = [
            {"attribute": one, **{key: found[key][one] for key in ("q_inf", "q_1")}} for one in found["attributes"]
        ]
        document["attribution"] = {"attributes": found["attributes"], "subsets": found["subsets"], "shapley": shares}
    if labels:
        labels.setdefault("present", labels["bits"]["low"] > 0)
    return document


def _nested(document: dict[str, Any]) -> dict[str, Any]:
    """A repair under the keys that it had: figures before and after stood together."""
    for key, parts in (
        ("before", ("plan", "held_out")),
        ("groups", ("before", "after")),
        ("attack", ("before", "after")),
    ):
        if f"{key}_{parts[0]}" in document:
            document[key] = {part: document.pop(f"{key}_{part}") for part in parts}
    return document


def _repairs(document: dict[str, Any]) -> dict[str, Any]:
    """Repairs with layers counted from 1, and with figures that do not depend on how rows are split in halves.

    A model that knows its training rows by heart is now judged by rows that it has not seen, on both halves.
    """
    document = _nested(document)
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
        asked = [*words, *out, *([] if name.startswith("export") else ["--json"])]
        found[name] = read(name, contest(*words[1:]) if words[0] == "compare" else call(asked), folder)
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
