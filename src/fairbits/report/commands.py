"""The commands that make a run and its stages again, from what its files say was asked for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairbits.domain import shortened


def commands(
    manifest: Mapping[str, Any], summary: Mapping[str, Any], stages: Mapping[str, Mapping[str, Any] | None]
) -> tuple[str, ...]:
    """Commands that give the same cases and figures: by evaluations, because seconds depend on the machine."""
    source = manifest.get("source") or manifest["subject"]
    name = shlex.quote(shortened(Path(str(source)).name, 100))
    words = ["fairbits search", name]
    if manifest["strategy"] == "exhaustive":
        words.append("--on-data" if manifest["options"].get("distance") == 0 else "--exhaustive 1")
    else:
        words.append(f"--strategy {manifest['strategy']}")
        words += [f"--option {shlex.quote(f'{key}={_option(value)}')}" for key, value in manifest["options"].items()]
    words += _limits(manifest, summary)
    words.append(f"--seed {manifest['seed']} --epsilon {manifest['epsilon']!r} --partition {manifest['partition']}")
    if manifest.get("measure", "q_inf") != "q_inf":
        words.append(f"--measure {manifest['measure']}")
    if manifest.get("repeats", 1) != 1:
        words.append(f"--repeats {manifest['repeats']}")
    if manifest.get("within") is not None:
        words.append(f"--within {manifest['within']}")
    if manifest.get("min_plausibility") is not None:
        words.append(f"--min-plausibility {manifest['min_plausibility']!r}")
    if manifest.get("as_is"):
        words.append("--allow-inverted")
    if manifest["protected"]:
        words.append(f"--protected {shlex.quote(','.join(shortened(p, 200) for p in manifest['protected']))}")
    words.append("--out again")
    found = [" ".join(words)]
    if manifest.get("own_strategy"):
        found = [
            f"# strategy {manifest['strategy']!r} was an object: search with it from Python, into the folder again"
        ]
    for stage, document in stages.items():
        if document is not None:
            place = f"proxies {name} --out" if stage == "proxies" else stage
            options = _STAGES[stage](document)
            found.append(" ".join([f"fairbits {place} again --seed {document['seed']}", *options]))
    return (*found, "fairbits report again")


def _debug_options(document: Mapping[str, Any]) -> list[str]:
    """As `fairbits debug` takes them; a document of an earlier version knows the samples only."""
    asked = document.get("options") or {}
    found = [f"--samples {asked.get('samples', document['samples'])}"]
    flags = {"--all-layers": asked.get("all_layers"), "--retrain": asked.get("retrain")}
    flags["--no-layers"] = not asked.get("inside", True)
    if document.get("rule", "spread") != "spread":
        found.append(f"--rule {document['rule']}")
    made = (document.get("origin") or {}).get("trainings")
    if made is not None:
        found.append(f"--trainings {made}")
    return found + [name for name, wanted in flags.items() if wanted]


def _repair_options(document: Mapping[str, Any]) -> list[str]:
    """As `fairbits repair` takes them: the attack by people asked, because seconds depend on the machine."""
    asked = document.get("options") or {}
    found = [f"--max-accuracy-loss {document['max_accuracy_loss']!r}"]
    if asked.get("guarantee") is not None:
        found.append(f"--guarantee {asked['guarantee']}")
    if asked.get("choose") is not None:
        found.append(f"--choose {shlex.quote(shortened(str(asked['choose']), 100))}")
    if not asked.get("retrain", True):
        found.append("--no-retrain")
    if asked.get("quick"):
        found.append("--quick")
    if asked.get("also"):
        found.append(f"--with {shlex.quote(','.join(shortened(str(name), 60) for name in asked['also']))}")
    if asked.get("trials", 20) != 20:
        found.append(f"--trials {asked['trials']}")
    if asked.get("write_all"):
        found.append("--write-all")
    attack = document["attack_before"]
    return [*found, f"--attack-budget {0 if attack is None else attack['evaluations']}"]


def _certify_options(document: Mapping[str, Any]) -> list[str]:
    """As `fairbits certify` takes them."""
    asked = document.get("options") or {}
    found = [f"--budget {asked['budget']:g}s"] if asked.get("budget") else []
    found += [f"--changes {asked['changes']}"] if asked.get("changes") is not None else []
    return found + ([f"--k {asked['k']}"] if asked.get("k") is not None else [])


def _proxies_options(document: Mapping[str, Any]) -> list[str]:
    """As `fairbits proxies` takes them."""
    justified = ",".join(shortened(str(name), 200) for name in document.get("justified") or ())
    found = [f"--justified {shlex.quote(justified)}"] if justified else []
    stated = {"by": document.get("by"), "distributed": (document.get("filing") or {}).get("distributed")}
    return found + [f"--{name} {shlex.quote(shortened(str(one), 200))}" for name, one in stated.items() if one]


#: What a stage was asked for, as its command takes it.
_STAGES = {
    "debug": _debug_options,
    "repair": _repair_options,
    "certify": _certify_options,
    "proxies": _proxies_options,
}


def _limits(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    """The budget without its clock: where that ended each task, and into how many the search was cut."""
    limits, ends = manifest["budget"], summary.get("ends")
    found = [f"--{name} {limits[name]}" for name in ("evaluations", "cases", "queries") if limits.get(name) is not None]
    if ends is None and limits.get("ends"):
        ends = limits["ends"]
    cut = manifest.get("shards")
    if cut is not None and (cut > 1 or found):
        found.append(f"--shards {cut}")
    if ends is not None:
        found.append(f"--ends {','.join(map(str, ends))}")
    if manifest.get("batch") is not None:
        found.append(f"--batch {manifest['batch']}")
    return found


def _option(value: Any) -> str:
    """A value as ``--option`` reads it: a word as it is, unless it could be read as something else."""
    if not isinstance(value, str):
        return json.dumps(value)
    try:
        json.loads(value)
    except json.JSONDecodeError:
        return value
    return json.dumps(value)
