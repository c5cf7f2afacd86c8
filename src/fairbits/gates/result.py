"""What a gate comes to: its checks, its findings and its verdict, as one record that every output is drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairbits.gates.catalogue import Direction
from fairbits.gates.findings import Finding
from fairbits.gates.policy import Requirement
from fairbits.gates.verdict import EXIT_CODES, Verdict, overall
from fairbits.gates.waivers import Waiver
from fairbits.subject import Quality


def broken_by(people: int) -> str:
    """How many different people break a check, in words; nothing where nobody does.

    Examples
    --------
    >>> broken_by(1), broken_by(1200), broken_by(0)
    ('1 person breaks it', '1,200 different people break it', '')
    """
    if people == 0:
        return ""
    return "1 person breaks it" if people == 1 else f"{people:,} different people break it"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check: the figure, the threshold and the verdict.

    Parameters
    ----------
    requirement
        What was asked for.
    value, low, high
        The figure with its interval; None where it cannot be known.
    verdict
        What it comes to, before anybody answers for it.
    people
        How many people it rests on.
    detail
        Whose it is, or what changed.
    reason
        Why it cannot be known.
    p_value
        Of the paired test, where there is one.
    fingerprint
        Of the check under this schema.
    findings
        How many different people break it.
    waiver
        Who answers for it.
    expired
        Who answered for it until the waiver ended, where nobody does any more.
    excused
        Who answers for single people, where everybody who breaks it, or enough of them, is answered for.
    """

    requirement: Requirement
    value: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    people: int
    detail: str = ""
    reason: str | None = None
    p_value: float | None = None
    fingerprint: str = ""
    findings: int = 0
    waiver: Waiver | None = None
    expired: Waiver | None = None
    excused: tuple[Waiver, ...] = ()

    @property
    def name(self) -> str:
        """The name of the check."""
        return self.requirement.name

    @property
    def threshold(self) -> float:
        """What it is held against."""
        return self.requirement.threshold

    @property
    def direction(self) -> Direction:
        """Whether the threshold is a maximum or a minimum; a change is always held against a maximum."""
        return "max" if self.requirement.change else self.requirement.kind.direction

    @property
    def counts(self) -> Verdict:
        """The verdict that counts: pass where somebody answers for it."""
        return "pass" if self.waived else self.verdict

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """Those because of which it does not count: the one of the check, or those of single people."""
        return self.excused if self.waiver is None else (self.waiver,)

    @property
    def waived(self) -> bool:
        """Whether somebody answers for it, so that its verdict does not count."""
        return bool(self.waivers)

    def answered(self) -> str:
        """Who answers for it until when, in words; nothing where nobody does."""
        if self.waiver is not None:
            return f"waived by {self.waiver.owner} until {self.waiver.expires.isoformat()}: {self.waiver.reason}"
        if not self.excused:
            return ""
        owners = ", ".join(dict.fromkeys(one.owner for one in self.excused))
        end = min(one.expires for one in self.excused).isoformat()
        what = "1 person is" if len(self.excused) == 1 else f"{len(self.excused):,} people are"
        return f"{what} waived by {owners} until {end}"

    def read(self, value: float | None) -> str:
        """A value of this check as people read it.

        Parameters
        ----------
        value
            The figure, an end of its interval or the threshold.
        """
        if value is None:
            return "not known"
        kind = self.requirement.kind
        if self.requirement.change and kind.percent:
            return f"{100 * value:+.2f} points"
        text = kind.reader()(value)
        return f"+{text}" if self.requirement.change and value > 0 else text

    def interval(self) -> str:
        """The interval as people read it, "exact" where it has no width; nothing where the figure is not known."""
        if self.low is None or self.high is None or self.low == self.high:
            return "" if self.value is None else "exact"
        return f"{self.read(self.low)} to {self.read(self.high)}"

    def allowed(self) -> str:
        """The threshold as people read it."""
        return f"{'≤' if self.direction == 'max' else '≥'} {self.read(self.threshold)}"

    def sentence(self) -> str:
        """What was found, in one sentence."""
        if self.value is None:
            return f"{self.name} cannot be judged: {self.reason}."
        around = self.interval()
        around = f" ({around})" if around else ""
        words = {"pass": "keeps", "fail": "breaks", "inconclusive": "is too uncertain for"}[self.verdict]
        detail = f"; {self.detail}" if self.detail else ""
        found = f"; {broken_by(self.findings)}" if self.findings else ""
        ended = "" if self.expired is None else f"; {self.expired.ended}"
        return f"{self.name} = {self.read(self.value)}{around} {words} {self.allowed()}{detail}{found}{ended}."

    def document(self) -> dict[str, Any]:
        """As it stands in gate.json."""
        return {
            "name": self.name,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "threshold": self.threshold,
            "verdict": self.verdict,
            "direction": self.direction,
            "words": self.requirement.words,
            "percent": self.requirement.kind.percent,
            "kind": "exact" if self.requirement.kind.exact else "statistical",
            "baseline": self.requirement.change,
            "people": self.people,
            "detail": self.detail,
            "reason": self.reason,
            "p_value": self.p_value,
            "findings": self.findings,
            "fingerprint": self.fingerprint,
            "waived": self.waived,
            "expired": self.expired is not None,
        }


@dataclass(frozen=True, slots=True)
class GateResult:
    """The verdict over a model, and what it rests on.

    Parameters
    ----------
    subject, identity
        What was judged.
    checks
        In the order of the policy.
    findings
        People who break a check of single people, worst first.
    new
        Fingerprints of those among them who did not break it by the baseline, and whom nobody answers for.
    waived
        The waivers that covered something.
    expired
        The waivers that ended while what they covered is still there: it counts again.
    waivers
        All waivers of the policy.
    pending
        Checks against a baseline that there was none for yet.
    quality
        How the model agrees with the labels of its table, and its decision rule; None where that is not known.
    suite, baseline, policy
        What it was held against, as gate.json describes it.
    notes
        What must be known to read it.
    proposed
        People that a search found and the suite does not have; they never change the verdict.
    created
        When.
    version
        By which fairbits.
    location
        The file that a reader should look at: the subject's.
    """

    subject: str
    identity: str
    checks: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]
    new: frozenset[str]
    waived: tuple[Waiver, ...]
    expired: tuple[Waiver, ...]
    waivers: tuple[Waiver, ...]
    pending: tuple[str, ...]
    suite: Mapping[str, Any]
    baseline: Mapping[str, Any] | None
    policy: Mapping[str, Any]
    notes: tuple[str, ...]
    created: str
    version: str
    location: str
    proposed: Sequence[Mapping[str, Any]] = ()
    quality: Quality | None = None

    @property
    def verdict(self) -> Verdict:
        """Pass, fail or inconclusive; with a waiver that has ended nothing passes."""
        return overall([*(one.counts for one in self.checks), *(("fail",) if self._only_expired else ())])

    @property
    def _only_expired(self) -> bool:
        """Whether nothing is wrong but a waiver that has ended and still stands in the policy."""
        return bool(self.expired) and overall(one.counts for one in self.checks) == "pass"

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 inconclusive."""
        return EXIT_CODES[self.verdict]

    @property
    def new_cases(self) -> tuple[Finding, ...]:
        """People who break a check and did not before."""
        return tuple(one for one in self.findings if one.fingerprint in self.new and not one.waived)

    def __getitem__(self, name: str) -> CheckResult:
        for one in self.checks:
            if one.name == name:
                return one
        raise KeyError(name)

    def __repr__(self) -> str:
        return f"<GateResult of {self.subject!r}: {self.verdict}, {len(self.checks)} checks>"

    @property
    def headline(self) -> str:
        """The verdict as the first words of every output.

        A first run whose checks all wait for a baseline has judged nothing: it says that, and not "pass".
        """
        if self.pending and not self.checks:
            return "baseline written, nothing judged yet"
        return self.verdict

    def sentence(self) -> str:
        """The verdict in one sentence."""
        counted = {word: sum(one.counts == word for one in self.checks) for word in ("fail", "inconclusive", "pass")}
        parts = [f"{number} {word}" for word, number in counted.items() if number]
        waived = sum(one.waived for one in self.checks)
        parts += [f"{waived} waived"] if waived else []
        parts += [f"{len(self.pending)} waiting for a baseline"] if self.pending else []
        ended = "".join(f"; {one.ended}" for one in self.expired)
        ended += ", and nothing else is wrong: take it out of the policy" if self._only_expired else ""
        return f"{self.headline.upper()}: {self.subject}, {', '.join(parts) or 'no checks'}{ended}."

    def document(self) -> dict[str, Any]:
        """The content of gate.json."""
        return {
            "verdict": self.verdict,
            "checks": [one.document() for one in self.checks],
            "new_cases": [one.document() for one in self.new_cases],
            "headline": self.headline,
            "waived": [one.document() for one in self.waived],
            "expired": [one.document() for one in self.expired],
            "findings": [one.document() for one in self.findings],
            "pending": list(self.pending),
            "subject": self.subject,
            "identity": self.identity,
            "quality": None if self.quality is None else self.quality.figures(),
            "suite": dict(self.suite),
            "baseline": None if self.baseline is None else dict(self.baseline),
            "policy": dict(self.policy),
            "notes": list(self.notes),
            "proposed": [dict(one) for one in self.proposed],
            "format": 1,
            "version": self.version,
            "created": self.created,
        }
