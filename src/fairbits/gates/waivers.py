"""Waivers: somebody answers, for a while and with a reason, for a check or a person that fails."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from fairbits.errors import OptionError, choose_from
from fairbits.gates.catalogue import CHECKS

#: A waiver lasts so many days at most: what is waived for good is no waiver.
MAX_DAYS = 90
MAX_WAIVERS = 10_000
_KEYS = ("check", "case", "reason", "owner", "expires")
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
        return {
            "check": self.check,
            "case": self.case,
            "reason": self.reason,
            "owner": self.owner,
            "expires": self.expires.isoformat(),
        }


def today() -> date:
    """The day by universal time, the same for everybody who runs the same pipeline."""
    return datetime.now(UTC).date()


def waivers_of(stated: object) -> tuple[Waiver, ...]:
    """The waivers of a policy."""
    if not isinstance(stated, list) or any(not isinstance(one, Mapping) for one in stated):
        raise OptionError("waivers must be a list of sections; write each one under [[waivers]].")
    if len(stated) > MAX_WAIVERS:
        raise OptionError(f"the policy has {len(stated):,} waivers; at most {MAX_WAIVERS:,} are read.")
    return tuple(_waiver(number, one) for number, one in enumerate(stated, 1))


def _waiver(number: int, stated: Mapping[str, Any]) -> Waiver:
    which = f"waiver {number}"
    for key in stated:
        if key not in _KEYS:
            raise OptionError(f"{which} has the unknown key {key!r}; {choose_from(key, _KEYS)}")
    about = [key for key in ("check", "case") if key in stated]
    if len(about) != 1:
        raise OptionError(f"{which} must name either a check or a case, but names {' and '.join(about) or 'neither'}.")
    texts = {key: _text(which, key, stated.get(key)) for key in (about[0], "reason", "owner")}
    if "check" in texts and texts["check"] not in CHECKS:
        raise OptionError(f"{which} names the unknown check {texts['check']!r}; {choose_from(texts['check'], CHECKS)}")
    if "case" in texts and not _FINGERPRINT.fullmatch(texts["case"]):
        raise OptionError(
            f"{which} has the case {texts['case'][:40]!r}; give the fingerprint of 16 digits that the gate shows."
        )
    return Waiver(
        texts.get("check"), texts.get("case"), texts["reason"], texts["owner"], _expiry(which, stated.get("expires"))
    )


def _text(which: str, key: str, value: object) -> str:
    if value is None or (isinstance(value, str) and not value.strip()):
        remedy = {"owner": "an unsigned waiver does not count: say who answers for it", "reason": "say why"}
        raise OptionError(f"{which} has no {key}; {remedy.get(key, 'name it')}.")
    if not isinstance(value, str) or len(value) > 2000:
        raise OptionError(f"{which} has a {key} that is no text of at most 2,000 characters; write it in quotes.")
    return value.strip()


def _expiry(which: str, value: object) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    if value is None:
        raise OptionError(f"{which} has no end; write expires = 2026-12-31, at most {MAX_DAYS} days ahead.")
    raise OptionError(f"{which} expires {str(value)[:40]!r}, which is no date; write expires = 2026-12-31.")


def check_current(waivers: Iterable[Waiver], day: date) -> None:
    """Refuse waivers that would last too long; those that have ended are no misuse, they cover nothing any more."""
    for one in waivers:
        left = one.days_left(day)
        if left > MAX_DAYS:
            raise OptionError(
                f"the waiver of {one.about} by {one.owner!r} ends {left:,} days from now "
                f"({one.expires.isoformat()}); {MAX_DAYS} days are the most."
            )


def waiver_of(waivers: Sequence[Waiver], *, check: str | None = None, case: str | None = None) -> Waiver | None:
    """The waiver that covers a check or a case, if there is one."""
    for one in waivers:
        if (check is not None and one.check == check) or (case is not None and one.case == case):
            return one
    return None
