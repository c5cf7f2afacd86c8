"""Figures beside those that are kept, and the reasons for those that changed."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "golden"
KEPT, CHANGED = FOLDER / "figures.json", FOLDER / "changed.toml"
#: Figures may differ by rounding.
TOLERANCE = 1e-6
_REASONS = tomllib.loads(CHANGED.read_text(encoding="utf-8"))
#: Patterns of figures that changed on purpose, and commands that are not compared; each with the reason.
CHANGES: list[dict[str, Any]] = _REASONS["changed"]
LEFT_OUT: list[dict[str, str]] = _REASONS["left_out"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Figures of a command beside those that are kept.

    Attributes
    ----------
    equal
        How many are what they were.
    changed
        How many are not, by reason.
    faults
        One line for each that differs for no stated reason.
    """

    equal: int
    changed: dict[str, int]
    faults: list[str]


def compared(name: str, kept: Mapping[str, Any], now: Mapping[str, Any]) -> Comparison:
    """Compare a command's figures; there may be more of them now.

    Parameters
    ----------
    name
        Name of the command.
    kept, now
        Figures by path.

    Returns
    -------
    Comparison
        What is equal, what changed on purpose, and what else.
    """
    equal, changed, faults = 0, dict[str, int](), []
    for path, was in kept.items():
        if path in now and _same(was, now[path]):
            equal += 1
        elif (why := reason(f"{name}: {path}")) is not None:
            changed[why] = changed.get(why, 0) + 1
        else:
            faults.append(f"{path}: {was} → {now.get(path, 'nothing')}")
    return Comparison(equal, changed, faults)


def reason(figure: str, changes: Iterable[Mapping[str, Any]] | None = None) -> str | None:
    """Why a figure is not what it was.

    Parameters
    ----------
    figure
        Command and path.
    changes
        Patterns with reasons; None: those of `changed.toml`.

    Returns
    -------
    str or None
        The reason; None where nobody meant to change it.
    """
    known = CHANGES if changes is None else changes
    return next((one["why"] for one in known if any(re.fullmatch(each, figure) for each in one["figures"])), None)


def _same(was: Any, now: Any) -> bool:
    if isinstance(was, float) and isinstance(now, int | float):
        return math.isclose(was, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(was == now)
