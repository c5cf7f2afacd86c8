"""Programs beside the package use names of it that move: each can still be imported."""

from __future__ import annotations

import importlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_program_can_be_imported() -> None:
    for folder in ("benchmarks", "tools"):
        for file in sorted((ROOT / folder).glob("[!_]*.py")):
            importlib.import_module(f"{folder}.{file.stem}")
