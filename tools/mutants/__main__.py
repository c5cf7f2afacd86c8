"""`python -m tools.mutants`: run the survey, and exit 1 where too many mutants survive or the table is out of date."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from tools.mutants.survey import MAX_SURVIVORS, Mutant, Verdict, read_table, survey

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("table.toml")


def main() -> int:
    """Parse, survey, print; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="only mutants whose name or file contains this text")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at the same time (default: 2)")
    parser.add_argument("--check", action="store_true", help="only see whether every old text is found exactly once")
    chosen = parser.parse_args()
    mutants = [one for one in read_table(TABLE) if chosen.only in one.name or chosen.only in one.file]
    outdated = [one for one in mutants if one.fault(ROOT)]
    for one in outdated:
        print(f"out of date  {one.name}: {one.fault(ROOT)}")
    if outdated or chosen.check:
        print(f"{len(mutants)} mutants, {len(outdated)} out of date")
        return 1 if outdated else 0
    found: list[tuple[Mutant, Verdict]] = []
    for mutant, verdict in survey(ROOT, mutants, jobs=chosen.jobs):
        found.append((mutant, verdict))
        print(f"{len(found):3} of {len(mutants)}  {verdict:9} {mutant.name}", flush=True)
    return report(found)


def report(found: list[tuple[Mutant, Verdict]]) -> int:
    """A line for each package, and the survivors; gives the exit code."""
    survivors = [mutant for mutant, verdict in found if verdict == "survived"]
    totals = Counter(mutant.package for mutant, _ in found)
    left = Counter(mutant.package for mutant in survivors)
    print("\n| package | mutants | survived |\n| --- | --: | --: |")
    for package, count in sorted(totals.items()):
        print(f"| {package} | {count} | {left[package]} |")
    for mutant in survivors:
        print(f"survived: {mutant.name}: {mutant.survives or 'NOT EXPECTED'}")
    for mutant, verdict in found:
        if verdict != "survived" and mutant.survives:
            print(f"no longer survives: {mutant.name}; take its reason out of the table")
    share = len(survivors) / max(len(found), 1)
    unexpected = [mutant for mutant in survivors if not mutant.survives]
    print(f"{len(survivors)} of {len(found)} survived ({share:.0%}; at most {MAX_SURVIVORS:.0%} may)")
    return 1 if unexpected or share > MAX_SURVIVORS else 0


if __name__ == "__main__":
    sys.exit(main())
