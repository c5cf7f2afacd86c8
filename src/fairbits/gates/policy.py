"""The policy: which figures are bounded, by how much, and what may change against a baseline (``fairbits.toml``)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairbits.errors import OptionError, choose_from
from fairbits.gates.catalogue import KINDS, CheckKind
from fairbits.gates.waivers import Waiver, waivers_of
from fairbits.subject import parse_toml

FILE = "fairbits.toml"
CONFIDENCE = 0.95
MAX_BYTES = 1 << 20
#: No threshold is larger; what is not finite is not below it either.
_LARGEST = 1e15
_KEYS = ("confidence", "seed", "suite", "baseline", "checks", "waivers")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One check: a figure, or its change against the baseline, and the threshold that it is held against."""

    kind: CheckKind
    threshold: float
    change: bool = False

    @property
    def name(self) -> str:
        """As gate.json, tests and rules call it."""
        return self.kind.change if self.change else self.kind.name

    @property
    def words(self) -> str:
        """What is checked, for people."""
        if self.kind.only_change or not self.change:
            return self.kind.words
        return f"{'rise' if self.kind.direction == 'max' else 'drop'} of the {self.kind.words}"


@dataclass(frozen=True, slots=True)
class Policy:
    """What a model must keep to."""

    requirements: tuple[Requirement, ...]
    confidence: float = CONFIDENCE
    seed: int = 0
    waivers: tuple[Waiver, ...] = ()
    suite: Path | None = None
    baseline: Path | None = None
    file: Path | None = None
    usual: bool = False

    @property
    def changes(self) -> int:
        """How many checks compare with the baseline by a test: they share the chance of a false alarm."""
        return sum(one.change and not one.kind.exact for one in self.requirements)


#: Where no policy is stated: no worse than before, as far as the figures show it.
USUAL = {
    "flip_rate": {"max_rise": 0.005},
    "bits_mean": {"max_rise": 0.05},
    "accuracy": {"max_drop": 0.02},
}


def usual_policy() -> Policy:
    """No worse than the baseline: what counts where there is no fairbits.toml."""
    return Policy(_requirements(USUAL), usual=True)


def find_policy(*folders: Path | None) -> Path | None:
    """The first fairbits.toml in these folders."""
    return next((folder / FILE for folder in folders if folder is not None and (folder / FILE).is_file()), None)


def read_policy(path: str | Path) -> Policy:
    """The policy in a file."""
    file = Path(path)
    return policy_of(_document(file), file=file)


def policy_of(document: Mapping[str, Any], *, file: Path | None = None) -> Policy:
    """The policy in a document."""
    for key in document:
        if key not in _KEYS:
            raise OptionError(f"the policy has the unknown key {str(key)[:40]!r}; {choose_from(str(key)[:40], _KEYS)}")
    checks = document.get("checks", {})
    if not isinstance(checks, Mapping) or not checks:
        raise OptionError("the policy has no checks; write e.g. [checks.flip_rate] and max = 0.05 below it.")
    confidence = _number("confidence", document.get("confidence", CONFIDENCE))
    if not 0.5 <= confidence < 1:
        raise OptionError(f"confidence is {confidence:g}; it must lie between 0.5 and 1, e.g. 0.95.")
    seed = document.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise OptionError(f"seed is {str(seed)[:40]!r}; it must be a whole number, 0 or more.")
    return Policy(
        _requirements(checks),
        confidence,
        seed,
        waivers_of(document.get("waivers", [])),
        _place(document, "suite", file),
        _place(document, "baseline", file),
        file,
    )


def _requirements(checks: Mapping[str, Any]) -> tuple[Requirement, ...]:
    found: list[Requirement] = []
    for name, stated in checks.items():
        if name not in KINDS:
            raise OptionError(f"the policy has the unknown check {name[:60]!r}; {choose_from(name[:60], KINDS)}")
        found += _of_check(KINDS[name], stated)
    return tuple(found)


def _of_check(kind: CheckKind, stated: Any) -> list[Requirement]:
    keys = (kind.key,) if kind.only_change else (kind.direction, kind.key)
    section = stated if isinstance(stated, Mapping) else {keys[0]: stated}
    if not section:
        raise OptionError(f"the check {kind.name!r} has no threshold; write {keys[0]} = …")
    for key in section:
        if key not in keys:
            raise OptionError(f"the check {kind.name!r} has the unknown key {key[:40]!r}; {choose_from(key, keys)}")
    found = []
    for key in keys:
        if key not in section:
            continue
        change = key == kind.key
        value = _number(f"{key} of the check {kind.name!r}", section[key])
        low, high = (0.0, kind.high) if change else (kind.low, kind.high)
        if not low <= value <= high:
            span = f"{low:g} or more" if high == math.inf else f"between {low:g} and {high:g}"
            raise OptionError(f"{key} of the check {kind.name!r} is {value:g}; it must be {span}.")
        found.append(Requirement(kind, value, change))
    return found


def _number(what: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST:
        raise OptionError(f"{what} is {str(value)[:40]!r}; it must be a number.")
    return float(value)


def _place(document: Mapping[str, Any], key: str, file: Path | None) -> Path | None:
    stated = document.get(key)
    if stated is None:
        return None
    if not isinstance(stated, str) or not stated or "\0" in stated:
        raise OptionError(f"{key} is {str(stated)[:40]!r}; it must be the path of a file, in quotes.")
    path = Path(stated)
    # A baseline is written: a policy that somebody sent must not choose a place outside its own folder.
    if path.is_absolute() or ".." in path.parts or path.suffix != ".parquet":
        raise OptionError(
            f"{key} is {stated[:80]!r}; it must be a .parquet file below the folder of the policy, or use --{key}."
        )
    return path if file is None else file.parent / path


def _document(file: Path) -> dict[str, Any]:
    try:
        if not file.is_file():
            raise OptionError(f"the policy {str(file)!r} does not exist; check the path, or leave --policy out.")
        if file.stat().st_size > MAX_BYTES:
            raise OptionError(f"the policy {str(file)!r} has more than {MAX_BYTES:,} bytes; it is no policy.")
        return parse_toml(file.read_bytes())
    except OSError as error:
        raise OptionError(f"cannot read the policy {str(file)!r}: {error.strerror or error}.") from None
    except ValueError as error:
        raise OptionError(f"the policy {str(file)!r} is not valid TOML: {error}.") from None
