"""All benchmarks, printed as Markdown: `make bench`. Their figures go into docs/benchmarks.md by hand."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version

from benchmarks import black_box, command_line, engine, explore, report, search, search_kernels, trees

PARTS = {
    "The command line": command_line.main,
    "The engine": engine.main,
    "The search": search.main,
    "Foreign models": black_box.main,
    "Trees": trees.main,
    "Duplicates and nearest rows": search_kernels.main,
    "The report": report.main,
    "The explorer": explore.main,
}


def main() -> None:
    print("# Benchmarks\n")
    made = f"Made by `make bench` on {datetime.now(UTC).date()} with {os.cpu_count()} cores ({platform.machine()})"
    tools = f"Python {platform.python_version()}, NumPy {version('numpy')}, Numba {version('numba')}"
    print(f"{made}, {tools}. Read the ratios: both sides of each were measured in the same run.")
    print("Absolute times depend on the machine and on who else uses it.")
    for title, measure in PARTS.items():
        print(f"\n## {title}", flush=True)
        measure()


if __name__ == "__main__":
    main()
