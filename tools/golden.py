"""Figures of commands that must not change: `python -m tools.golden` compares them with those that are kept.

`tests/golden/figures.json` was made by commit 8268c75, the last one before packages were moved and the search became
one path of tasks, with ``PYTHONPATH=<that commit>/src python tools/golden.py --write``. Every command has a fixed seed
and a budget of evaluations. What has changed on purpose since then is named in ``CHANGED``, with the reason.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

KEPT = Path(__file__).resolve().parents[1] / "tests" / "golden" / "figures.json"
#: Strategies whose steps are as they were.
STRATEGIES = ("random", "adf", "aequitas", "eidig", "maft", "expga", "sg", "themis")
#: Named parts of a document that say when, where and by which version it was made.
PASSING = ("seconds", "run", "versions", "created", "identity", "fingerprint", "notes", "quality")
#: What is computed otherwise since then, and why.
CHANGED = {
    "k_mean_low, k_mean_high, q_inf_mean_low, …": "intervals of means are wider where a bootstrap did not hold",
    "bound": "a bound with 95 % confidence in place of a credible one",
    "climb": "its population follows the budget",
    "dice": "as the paper prints it",
    "neuronfair": "our own softmax differs from SciPy's in the last bit, and so do ties",
}
_INTERVALS = tuple(f"{name}_{end}" for name in ("k_mean", "q_inf_mean", "q_1_mean") for end in ("low", "high"))
#: Figures may differ by rounding.
TOLERANCE = 1e-6


def commands() -> dict[str, list[str]]:
    """The commands by name, without the folder of a run.

    Returns
    -------
    dict of str to list of str
        Words of the command line.
    """
    found = {f"measure {name}": ["measure", name] for name in ("heart", "german", "students", "bank")}
    # More people than the largest population: seeds that were never asked about counted as k = 0 then.
    budget = ["--evaluations", "6000", "--seed", "3", "--threads", "1"]
    for strategy in STRATEGIES:
        found[f"search heart {strategy}"] = ["search", "heart", "--strategy", strategy, *budget]
    found["search german random"] = ["search", "german", "--strategy", "random", *budget]
    found["search heart near"] = ["search", "heart", "--strategy", "random", "--within", "1", *budget]
    found["search heart rows"] = ["search", "heart", "--on-data", "--threads", "1"]
    return found


def figures(document: Any, name: str = "") -> dict[str, Any]:
    """All figures of a document, by path; what says when and where is left out, and so is what changed on purpose.

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
        parts = [(f"{name}.{key}" if name else str(key), value) for key, value in document.items()]
        kept = [(path, value) for path, value in parts if not _passing(path.rpartition(".")[2])]
        return {path: value for part, inner in kept for path, value in figures(inner, part).items()}
    if isinstance(document, Sequence) and not isinstance(document, str):
        return {k: v for i, each in enumerate(document) for k, v in figures(each, f"{name}[{i}]").items()}
    return {name: document}


def _passing(key: str) -> bool:
    return any(word in key for word in PASSING) or key in (*_INTERVALS, "bound")


def made(call: Callable[[list[str]], str]) -> dict[str, dict[str, Any]]:
    """Figures of every command.

    Parameters
    ----------
    call
        Runs a command and gives what it printed.

    Returns
    -------
    dict of str to dict
        Figures by path, for each command.
    """
    found = {}
    with tempfile.TemporaryDirectory() as place:
        for name, words in commands().items():
            out = ["--out", str(Path(place) / name.replace(" ", "-"))] if words[0] == "search" else []
            found[name] = figures(json.loads(call([*words, *out, "--json"])))
    return found


def differences(kept: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Figures that are not what they were.

    Parameters
    ----------
    kept, now
        Figures by path; there may be more of them now.

    Returns
    -------
    list of str
        One line for each.
    """
    return [f"{path}: {was} → {now.get(path)}" for path, was in kept.items() if not _same(was, now.get(path))]


def _same(was: Any, now: Any) -> bool:
    if isinstance(was, float) and isinstance(now, int | float):
        return math.isclose(was, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(was == now)


def main() -> int:
    """Compare, or write with ``--write``; exit 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.golden", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the figures of the fairbits that is imported")
    given = parser.parse_args()

    def call(words: list[str]) -> str:
        line = [sys.executable, "-m", "fairbits", *words]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout

    now = made(call)
    if given.write:
        KEPT.write_text(json.dumps(now, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    found = {name: differences(was, now[name]) for name, was in json.loads(KEPT.read_text(encoding="utf-8")).items()}
    for name, lines in found.items():
        print(f"{name}: {'the same' if not lines else '; '.join(lines)}")
    print("Not compared, because changed on purpose:")
    for name, why in CHANGED.items():
        print(f"{name}: {why}")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
