"""``python -m tools.lowest lowest``: the lowest versions of pyproject.toml as constraints for pip; else nothing."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def constraints(project: Path) -> list[str]:
    """A line for each hard dependency, and for the data frames that the core's tests use."""
    found = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    listed = [*found["dependencies"], *found["optional-dependencies"]["pandas"]]
    return [one.partition(",")[0].replace(">=", "==") for one in listed]


if __name__ == "__main__":
    if sys.argv[1:] == ["lowest"]:
        print("\n".join(constraints(Path("pyproject.toml"))))
