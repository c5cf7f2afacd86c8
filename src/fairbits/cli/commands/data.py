"""`fairbits data`: the built-in subjects."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairbits import data as built_ins
from fairbits import domain, report
from fairbits import subject as subjects
from fairbits.cli.arguments import JSON
from fairbits.cli.flags import argument
from fairbits.cli.output import answer
from fairbits.errors import OptionError, choose_from
from fairbits.options import option
from fairbits.text import percent

#: What can be done, with how many names, and with which options.
ACTIONS: dict[str, tuple[str, int | None, frozenset[str]]] = {
    "list": ("", 0, frozenset({"as_json"})),
    "show": ("NAME", 1, frozenset({"as_json"})),
    "export": ("NAME", 1, frozenset({"out", "codes", "force"})),
    "add": ("NAME FILE", 2, frozenset()),
    "forget": ("NAME", 1, frozenset()),
    "train": ("NAME...", None, frozenset({"out", "seed"})),
}
#: What is told of every attribute; a kind that has no such field of its own has a constant.
ATTRIBUTE = (
    *("name", "kind", "low", "high", "step", "labels", "protected", "immutable", "allowed", "missing"),
    *("ranges", "columns", "holds"),
)


def data(
    *,
    action: str = argument(
        "list",
        "list (all of them), show NAME, export NAME (files: table, model, subject.toml), add NAME FILE (a table that "
        "may not be shipped: compas, diabetes, meps15 or meps16), forget NAME, train NAME... (from a seed; or all).",
    ),
    names: tuple[str, ...] = argument((), "", metavar="[NAME]...", many=True),
    out: Path | None = option(
        None, "The folder to write to: export, train.", metavar="FOLDER", shown="./NAME, or networks"
    ),
    codes: bool = option(False, "Export codes instead of labels."),
    force: bool = option(False, "Export into a folder that is not empty."),
    seed: int = option(0, "Train: seed of the first attempt.", low=0),
    as_json: bool = JSON,
) -> None:
    """The built-in models and tables: list, show, export, add, forget and train."""
    if action not in ACTIONS:
        raise OptionError(f"{action!r} is nothing that can be done with data; {choose_from(action, ACTIONS)}")
    words, count, allowed = ACTIONS[action]
    if (count is not None and len(names) != count) or (count is None and not names):
        raise OptionError(f"type: fairbits data {action} {words}".rstrip() + ".")
    given = {"out": out is not None, "codes": codes, "force": force, "seed": seed != 0, "as_json": as_json}
    strange = next((name for name, said in given.items() if said and name not in allowed), None)
    if strange is not None:
        raise OptionError(f"--{strange.removeprefix('as_')} does not apply to `fairbits data {action}`; leave it out.")
    if action == "list":
        _list(as_json=as_json)
    elif action == "show":
        _show(names[0], as_json=as_json)
    elif action == "export":
        _export(names[0], out or Path(names[0]), codes=codes, force=force)
    elif action == "add":
        print(f"kept as {built_ins.add(names[0], Path(names[1]))}")
    elif action == "forget":
        print(f"{names[0]} is forgotten" if built_ins.forget(names[0]) else f"{names[0]} was not kept; nothing to do")
    else:
        _train(names, seed, out or Path("networks"))


def _list(*, as_json: bool) -> None:
    """All built-in subjects, and whether their data are on this machine."""
    rows = [_overview(entry) for entry in built_ins.BUILT_IN.values()]
    answer(as_json, lambda: rows, lambda: report.built_in_list(rows), "next  fairbits data show NAME", everything=True)


def _show(name: str, *, as_json: bool) -> None:
    """One subject: what it is about, whose it is, its attributes and its network."""
    entry = built_ins.built_in(name)
    about = _overview(entry) | {
        "title": entry.title,
        "description": entry.description,
        "source": entry.source,
        "licence": entry.licence,
        "target": entry.schema.target,
        "classes": list(entry.schema.classes),
        "scored_class": entry.favourable,
        "attributes": [{field: getattr(one, field) for field in ATTRIBUTE} for one in entry.schema.attributes],
        "network": asdict(built_ins.load_card(name)),
    }
    answer(as_json, lambda: about, lambda: report.built_in_blocks(entry, about), f"next  fairbits measure {name}")


def _export(name: str, folder: Path, *, codes: bool, force: bool) -> None:
    """Write a subject as files: table.csv, model.npz and the subject.toml that ties them together."""
    for path in subjects.export_subject(built_ins.load_subject(name), folder, codes=codes, force=force):
        print(path)


def _train(names: tuple[str, ...], seed: int, out: Path) -> None:
    """Train the benchmark networks anew: the paper's shape, on the training rows, from a seed."""
    chosen = list(built_ins.BUILT_IN) if names == ("all",) else [built_ins.built_in(name).name for name in names]
    for name in chosen:
        network, card = built_ins.train_built_in(name, seed=seed)
        path = built_ins.save_network(network, card, out)
        print(
            f"{path}: accuracy {percent(card.accuracy_trained)} on {card.rows_trained:,} training rows, "
            f"{percent(card.accuracy_held_out)} on {card.rows_held_out:,} held-out rows "
            f"(majority {percent(card.majority_share)})",
            flush=True,
        )


def _overview(entry: built_ins.BuiltIn) -> dict[str, Any]:
    where = "in the package" if entry.ships else built_ins.available(entry.needs) or "not here"
    return {
        "name": entry.name,
        "rows": entry.rows,
        "attributes": len(entry.schema),
        "m": domain.Twins(entry.schema).m,
        "protected": list(entry.schema.protected),
        "data": "generated" if entry.synthetic else where,
    }
