"""The policy (``fairbits.toml``): which figures are bounded, what may change against a baseline, and what is waived.

A figure has a direction (``max``: more is worse, ``min``: less is worse), a range of thresholds that make sense, and
what it needs of the subject. *Exact* figures are about the frozen people themselves; the others are estimates with an
interval about people like them. By a waiver somebody answers, for a while and with a reason, for a check or a person
that fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from math import inf
from pathlib import Path
from typing import Any, Literal

from fairbits.errors import OptionError, choose_from, on_disk
from fairbits.subject import read_document

Direction = Literal["max", "min"]
Need = Literal["decision", "labels", "groups"]


@dataclass(frozen=True, slots=True)
class CheckKind:
    """One figure that can be checked."""

    name: str
    words: str
    direction: Direction = "max"
    low: float = 0.0
    high: float = inf
    exact: bool = False
    needs: tuple[Need, ...] = ()
    only_change: bool = False
    percent: bool = False

    @property
    def key(self) -> str:
        return "max_rise" if self.direction == "max" else "max_drop"

    @property
    def change(self) -> str:
        return f"{self.name}_rise" if self.direction == "max" else f"{self.name}_drop"


KINDS: dict[str, CheckKind] = {
    kind.name: kind
    for kind in (
        CheckKind(
            "flip_rate",
            "share of people whose twins get different decisions",
            high=1.0,
            needs=("decision",),
            percent=True,
        ),
        CheckKind("flips", "frozen people whose twins get different decisions", exact=True, needs=("decision",)),
        CheckKind("k_mean", "mean number of classes k", low=1.0),
        CheckKind("k_max", "largest number of classes k of a frozen person", low=1.0, exact=True),
        CheckKind("k_person", "largest rise of one person's k", exact=True, only_change=True),
        CheckKind("bits_mean", "mean bits log2 k"),
        CheckKind("bits_max", "most bits log2 k of a frozen person", exact=True),
        CheckKind("indirect_bits", "bits of the score about a protected attribute", needs=("groups",)),
        CheckKind(
            "impact_ratio",
            "lowest selection rate of a group over the highest",
            direction="min",
            high=1.0,
            needs=("decision", "groups"),
        ),
        CheckKind(
            "accuracy",
            "share of people decided as labelled",
            direction="min",
            high=1.0,
            needs=("decision", "labels"),
            percent=True,
        ),
    )
}
#: Every check that a gate can list: figures, and their changes against a baseline.
CHECKS: tuple[str, ...] = tuple(
    name for kind in KINDS.values() for name in ((kind.change,) if kind.only_change else (kind.name, kind.change))
)


#: A waiver lasts so many days at most: what is waived for good is no waiver.
MAX_DAYS = 90
MAX_WAIVERS = 10_000
_WAIVER_KEYS = ("check", "case", "reason", "owner", "expires")
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Waiver:
    """``check`` names a check, or ``case`` the fingerprint of a finding; ``expires`` is the last day that it holds."""

    check: str | None
    case: str | None
    reason: str
    owner: str
    expires: date

    @property
    def about(self) -> str:
        """What it covers, in words."""
        return f"check {self.check!r}" if self.check is not None else f"case {self.case}"

    @property
    def ended(self) -> str:
        """That it no longer covers what it names, in words."""
        return f"the waiver of {self.about} by {self.owner} expired on {self.expires.isoformat()}"

    def has_ended(self, today: date) -> bool:
        """Whether its last day has gone by: from then on it covers nothing."""
        return self.days_left(today) < 0

    def days_left(self, today: date) -> int:
        """Days until it ends; negative once it has."""
        return (self.expires - today).days

    def document(self) -> dict[str, Any]:
        """As it stands in gate.json."""
        return {**asdict(self), "expires": self.expires.isoformat()}


def today() -> date:
    """The day by universal time, the same for everybody who runs the same pipeline."""
    return datetime.now(UTC).date()


def waivers_of(stated: object) -> tuple[Waiver, ...]:
    if not isinstance(stated, list) or any(not isinstance(one, Mapping) for one in stated):
        raise OptionError("waivers must be a list of sections; write each one under [[waivers]].")
    if len(stated) > MAX_WAIVERS:
        raise OptionError(f"the policy has {len(stated):,} waivers; at most {MAX_WAIVERS:,} are read.")
    return tuple(_waiver(number, one) for number, one in enumerate(stated, 1))


def _waiver(number: int, stated: Mapping[str, Any]) -> Waiver:
    which = f"waiver {number}"
    _check_keys(which, stated, _WAIVER_KEYS)
    about = [key for key in ("check", "case") if key in stated]
    if len(about) != 1:
        raise OptionError(f"{which} must name either a check or a case, but names {' and '.join(about) or 'neither'}.")
    texts = {key: _text(which, key, stated.get(key)) for key in (about[0], "reason", "owner")}
    check, case = texts.get("check"), texts.get("case")
    if check is not None and check not in CHECKS:
        raise OptionError(f"{which} names the unknown check {check!r}; {choose_from(check, CHECKS)}")
    if case is not None and not _FINGERPRINT.fullmatch(case):
        raise OptionError(f"{which} has the case {case[:40]!r}; give the fingerprint of 16 digits that the gate shows.")
    return Waiver(check, case, texts["reason"], texts["owner"], _expiry(which, stated.get("expires")))


def _text(which: str, key: str, value: object) -> str:
    if value is None or (isinstance(value, str) and not value.strip()):
        remedy = {"owner": "an unsigned waiver does not count: say who answers for it", "reason": "say why"}
        raise OptionError(f"{which} has no {key}; {remedy.get(key, 'name it')}.")
    if not isinstance(value, str) or len(value) > 2000:
        raise OptionError(f"{which} has a {key} that is no text of at most 2,000 characters; write it in quotes.")
    return value.strip()


def _expiry(which: str, value: object) -> date:
    if value is None:
        raise OptionError(f"{which} has no end; write expires = 2026-12-31, at most {MAX_DAYS} days ahead.")
    with suppress(ValueError):
        return date.fromisoformat(value.isoformat()[:10] if isinstance(value, date) else str(value))
    raise OptionError(f"{which} expires {str(value)[:40]!r}, which is no date; write expires = 2026-12-31.")


def check_current(waivers: Iterable[Waiver], day: date) -> None:
    """Refuse waivers that would last too long; those that have ended are no misuse, they cover nothing any more."""
    for one in waivers:
        if one.days_left(day) > MAX_DAYS:
            raise OptionError(
                f"the waiver of {one.about} by {one.owner!r} ends {one.days_left(day):,} days from now "
                f"({one.expires.isoformat()}); {MAX_DAYS} days are the most."
            )


FILE = "fairbits.toml"
CONFIDENCE = 0.95
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
    return next((folder / FILE for folder in folders if folder is not None and (folder / FILE).is_file()), None)


def read_policy(path: str | Path) -> Policy:
    file = Path(path)
    with on_disk(f"cannot read the policy {str(file)!r}"):
        document = read_document(file, what="policy")
    return policy_of(document, file=file)


def policy_of(document: Mapping[str, Any], *, file: Path | None = None) -> Policy:
    _check_keys("the policy", document, _KEYS)
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
    return tuple(found for name, stated in checks.items() for found in _of_check(name, stated))


def _of_check(name: str, stated: Any) -> Iterator[Requirement]:
    if name not in KINDS:
        raise OptionError(f"the policy has the unknown check {name[:60]!r}; {choose_from(name[:60], KINDS)}")
    kind = KINDS[name]
    keys = (kind.key,) if kind.only_change else (kind.direction, kind.key)
    section = stated if isinstance(stated, Mapping) else {keys[0]: stated}
    if not section:
        raise OptionError(f"the check {name!r} has no threshold; write {keys[0]} = …")
    _check_keys(f"the check {name!r}", section, keys)
    for key in (key for key in keys if key in section):
        value = _number(f"{key} of the check {name!r}", section[key])
        low, high = 0.0 if key == kind.key else kind.low, kind.high
        if not low <= value <= high:
            span = f"{low:g} or more" if high == inf else f"between {low:g} and {high:g}"
            raise OptionError(f"{key} of the check {name!r} is {value:g}; it must be {span}.")
        yield Requirement(kind, value, key == kind.key)


def _check_keys(which: str, stated: Iterable[object], known: Sequence[str]) -> None:
    for key in (str(key)[:40] for key in stated if key not in known):
        raise OptionError(f"{which} has the unknown key {key!r}; {choose_from(key, known)}")


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
