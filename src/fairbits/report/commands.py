"""The commands that make a run and its stages again: options records of what its files say was asked for, typed out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.options import (
    CertifyOptions,
    DebugOptions,
    ProxiesOptions,
    RepairOptions,
    SearchOptions,
    SubjectOptions,
    flag_words,
)
from fairbits.text import shortened

if TYPE_CHECKING:
    from fairbits.debug import DebugResult
    from fairbits.repair import RepairResult

#: What a search keeps as it was given.
_KEPT = ("seed", "epsilon", "partition", "within", "min_plausibility", "batch")
#: Options whose value is told even where it is the usual one.
_STATED = ("seed", "samples", "max_accuracy_loss", "seconds", "changes", "attack_budget")


def commands(manifest: Mapping[str, Any], summary: Mapping[str, Any], stages: Mapping[str, Any]) -> tuple[str, ...]:
    """Commands that give the same cases and figures: by evaluations, because seconds depend on the machine."""
    name = shortened(Path(str(manifest.get("source") or manifest["subject"])).name, 100)
    found = [_typed("search", name, *_search_words(manifest, summary), "--out", "again")]
    if manifest.get("own_strategy"):
        found = [
            f"# strategy {manifest['strategy']!r} was an object: search with it from Python, into the folder again"
        ]
    for stage, document in stages.items():
        if document is not None:
            place = (name, "--out", "again") if stage == "proxies" else ("again",)
            found.append(_typed(stage, *place, *flag_words(_STAGES[stage](document), stated=_STATED)))
    return (*found, "fairbits report again")


def _typed(*words: str) -> str:
    return shlex.join(["fairbits", *words])


def _search_words(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    """The search without its clock: where that ended each task, and into how many the search was cut."""
    limits = {name: manifest["budget"].get(name) for name in ("evaluations", "cases", "queries")}
    counted, cut = any(limit is not None for limit in limits.values()), manifest.get("shards")
    exact, measure = manifest["strategy"] == "exhaustive", manifest.get("measure")
    options = SearchOptions(
        strategy=None if exact else manifest["strategy"],
        options={} if exact else manifest["options"],
        **limits,
        ends=summary.get("ends") or manifest["budget"].get("ends") or None,
        shards=cut if cut is not None and (cut > 1 or counted) else None,
        measure=None if measure == "q_inf" else measure,
        **{name: manifest.get(name) for name in _KEPT},
    )
    repeats = manifest.get("repeats", 1)
    about = SubjectOptions(
        protected=tuple(shortened(one, 200) for one in manifest["protected"]) or None,
        where=manifest.get("where"),
        repeats=None if repeats == 1 else repeats,
        as_is=bool(manifest.get("as_is")),
    )
    near = ["--on-data"] if manifest["options"].get("distance") == 0 else ["--exhaustive", "1"]
    return [*(near if exact else ()), *flag_words(options), *flag_words(about)]


def _debug_options(made: DebugResult) -> DebugOptions:
    asked = made.options
    return DebugOptions(
        samples=asked.get("samples", len(made.cases)),
        all_layers=bool(asked.get("all_layers")),
        inside=bool(asked.get("inside", True)),
        retrain=bool(asked.get("retrain")),
        rule=made.rule,
        trainings=made.origin.trainings if made.origin.epochs is None else None,  # short ones come by themselves
        seed=made.seed,
    )


def _repair_options(made: RepairResult) -> RepairOptions:
    """The attack by people asked, because seconds depend on the machine."""
    asked, attack = made.options, made.attack_before
    choose = asked.get("choose")
    return RepairOptions(
        max_accuracy_loss=made.max_accuracy_loss,
        guarantee=asked.get("guarantee"),
        choose=None if choose is None else shortened(str(choose), 100),
        retrain=bool(asked.get("retrain", True)),
        quick=bool(asked.get("quick")),
        proposals=tuple(shortened(str(name), 60) for name in asked.get("also") or ()),
        trials=asked.get("trials", 20),
        write_all=bool(asked.get("write_all")),
        attack_budget=str(0 if attack is None else attack.evaluations),
        seed=made.seed,
    )


def _certify_options(asked: Mapping[str, Any]) -> CertifyOptions:
    known = {"seconds": asked.get("budget"), "changes": asked.get("changes"), "k": asked.get("k")}
    return CertifyOptions(
        seed=asked.get("seed", 0), **{name: value for name, value in known.items() if value is not None}
    )


def _proxies_options(document: Mapping[str, Any]) -> ProxiesOptions:
    stated = {"by": document.get("by"), "distributed": (document.get("filing") or {}).get("distributed")}
    return ProxiesOptions(
        justified=tuple(shortened(str(name), 200) for name in document.get("justified") or ()) or None,
        seed=document["seed"],
        **{name: shortened(str(value), 200) for name, value in stated.items() if value},
    )


#: What a stage was asked for, as the record of its options.
_STAGES: dict[str, Any] = {
    "debug": _debug_options,
    "repair": _repair_options,
    "certify": _certify_options,
    "proxies": _proxies_options,
}
