"""`python -m tools.golden`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools import golden
from tools.golden.commands import needed
from tools.golden.comparison import KEPT, LEFT_OUT, Comparison, compared
from tools.golden.figures import made


def main() -> int:
    """Compare, or write with ``--write``; exit 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.golden", description=golden.__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="keep the figures of the fairbits that is imported")
    what.add_argument("--only", default="", help="only commands whose name contains this, and what they need")
    given = parser.parse_args()

    def call(words: list[str]) -> str:
        done = subprocess.run([sys.executable, "-m", "fairbits", *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    with tempfile.TemporaryDirectory() as place:
        now = made(call, needed(given.only), Path(place), then=given.write)
    if given.write:
        kept = {name: {path: _short(value) for path, value in found.items()} for name, found in now.items()}
        KEPT.write_text(json.dumps(kept, indent=0, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    return 1 if _shown({name: compared(name, kept[name], found) for name, found in now.items()}) else 0


def _shown(found: Mapping[str, Comparison]) -> int:
    """Print every command and the sum of each kind; how many figures differ for no stated reason."""
    kinds: dict[str, Counter[str]] = {}
    for name, result in found.items():
        counts = Counter(
            figures=result.equal + sum(result.changed.values()) + len(result.faults),
            equal=result.equal,
            changed=sum(result.changed.values()),
            faults=len(result.faults),
        )
        kinds.setdefault(name.split()[0], Counter()).update(counts)
        print(f"{name}: {counts['equal']} of {counts['figures']} figures are the same")
        for line in (*(f"  {count} × {why}" for why, count in result.changed.items()), *result.faults):
            print(line)
    for kind, counts in kinds.items():
        print(
            f"| `{kind}` | {counts['figures']:,} | {counts['equal']:,} | {counts['changed']:,} | {counts['faults']} |"
        )
    for one in LEFT_OUT:
        print(f"Not compared: {one['commands']}: {one['why']}")
    return sum(counts["faults"] for counts in kinds.values())


def _short(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
