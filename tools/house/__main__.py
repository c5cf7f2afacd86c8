"""`python -m tools.house [--list] [root]`: exit 1 where something does not conform."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tools.house import CHECKS, Settings, SourceTree, check_tree, long_files

PROJECT = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    """Check a package and print what does not conform.

    Parameters
    ----------
    arguments
        Those of the command line; None takes them from there.

    Returns
    -------
    int
        0 where everything conforms, 1 otherwise; 0 with ``--list``.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=PROJECT / "src/fairbits", help="folder of the package")
    parser.add_argument("--settings", type=Path, default=PROJECT / "pyproject.toml", help="file with [tool.house]")
    parser.add_argument(
        "--list", action="store_true", help="list everything, also long files and packages that are left out; exit 0"
    )
    given = parser.parse_args(arguments)
    settings = Settings.read(given.settings)
    if given.list:
        settings = replace(settings, undocumented=frozenset())
    findings = check_tree(given.root, settings)
    for finding in findings:
        print(finding)
    if given.list:
        for file, lines in long_files(SourceTree(given.root), settings):
            print(f"{file}: {lines} lines")
        counts = Counter(finding.check for finding in findings)
        print(", ".join(f"{name} {counts[name]}" for name in CHECKS))
        return 0
    if findings:
        print(f"{len(findings)} findings", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
