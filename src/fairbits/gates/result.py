"""What a gate comes to: its checks, its findings and its verdict, as one record that every output is drawn from.

Only here a figure becomes pass, fail or inconclusive. A finding is a person who breaks a check, by a fingerprint of the
check, the person's values that are not protected, and the schema; neither k nor a score is in it, so a waiver or a
code-scanning alert follows the person from model to model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from fairbits.diff import Answers
from fairbits.domain import Schema, Truth
from fairbits.gates.policy import Direction, Requirement, Waiver
from fairbits.gates.suite import CASE, SCHEMA_PARTS, Suite, numbers_of
from fairbits.subject import Quality
from fairbits.text import harmless

Verdict = Literal["pass", "fail", "inconclusive"]
#: The exit code of each: what a pipeline looks at.
EXIT_CODES: dict[Verdict, int] = {"pass": 0, "fail": 1, "inconclusive": 3}
_ORDER: tuple[Verdict, ...] = ("fail", "inconclusive", "pass")


def verdict_of(
    low: float | None, high: float | None, threshold: float, *, direction: Direction = "max", sure: bool = True
) -> Verdict:
    """Hold the far end of an interval against a threshold.

    Examples
    --------
    >>> verdict_of(0.01, 0.04, 0.05), verdict_of(0.06, 0.08, 0.05), verdict_of(0.04, 0.06, 0.05)
    ('pass', 'fail', 'inconclusive')
    >>> verdict_of(0.7, 0.9, 0.8, direction="min"), verdict_of(None, None, 0.8)
    ('inconclusive', 'inconclusive')
    """
    if low is None or high is None:
        return "inconclusive"
    near, far = (low, high) if direction == "max" else (-high, -low)
    bound = threshold if direction == "max" else -threshold
    if far <= bound:
        return "pass"
    return "fail" if near > bound and sure else "inconclusive"


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict over several checks: the worst of them.

    Examples
    --------
    >>> overall(["pass", "inconclusive"]), overall(["inconclusive", "fail"]), overall([])
    ('inconclusive', 'fail', 'pass')
    """
    return min(verdicts, key=_ORDER.index, default="pass")


#: Findings of one check that are described; how many there are in all is always said.
MAX_FINDINGS = 1000


@dataclass(frozen=True, slots=True)
class Finding:
    """One person of the suite who breaks a check."""

    check: str
    fingerprint: str
    k: int
    k_before: int | None
    flips: bool
    origin: str
    row: int | None
    people: int
    attributes: dict[str, str]
    waived: bool = False

    @property
    def k_words(self) -> str:
        """The classes now, and before where a baseline knows: "k = 4, 2 before"."""
        return f"k = {self.k}" + ("" if self.k_before is None else f", {self.k_before} before")

    @property
    def attribute_words(self) -> str:
        """The person, attribute by attribute."""
        return ", ".join(f"{name} {value}" for name, value in self.attributes.items())


def fingerprint_of(check: str, suite: Suite, attributes: dict[str, str] | None = None) -> str:
    """The fingerprint of a person under a check, or of the check itself."""
    text = json.dumps(
        ["fairbits finding 1", check, [str(suite.schema.get(name, "")) for name in SCHEMA_PARTS], attributes],
        sort_keys=True,
        ensure_ascii=True,
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def findings_of(
    check: str, who: Truth, suite: Suite, schema: Schema, answers: Answers, before: Answers | None
) -> tuple[list[Finding], int]:
    """The people who break a check, worst first, and how many different ones there are."""
    rows = np.flatnonzero(who)
    free = list(schema.person_columns)
    if len(rows) == 0:
        return [], 0
    _, first, counts = np.unique(suite.table.codes[rows][:, free], axis=0, return_index=True, return_counts=True)
    rose = np.zeros(len(suite), dtype=np.int64) if before is None else answers.k - before.k
    picked = rows[first]
    numbers, found = numbers_of(suite.table), []
    for place in np.lexsort((picked, -answers.k[picked], -rose[picked]))[:MAX_FINDINGS]:
        row = int(picked[place])
        person = schema.read(suite.table.codes[row])
        attributes = {schema.names[i]: person[schema.names[i]] for i in free}
        found.append(
            Finding(
                check,
                fingerprint_of(check, suite, attributes),
                int(answers.k[row]),
                None if before is None else int(before.k[row]),
                bool(answers.flips[row]),
                "case" if suite.origin[row] == CASE else "row",
                int(numbers[row]) if numbers[row] > 0 else None,
                int(counts[place]),
                {harmless(name): harmless(value) for name, value in attributes.items()},
            )
        )
    return found, len(first)


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
    sure
        Whether the paired test, where there is one, agrees with the interval.
    broken, broken_before
        Which frozen people break it, now and by the baseline, where it is about single people.
    """

    requirement: Requirement
    people: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: Verdict = "inconclusive"
    detail: str = ""
    reason: str | None = None
    p_value: float | None = None
    sure: bool = True
    fingerprint: str = ""
    findings: int = 0
    waiver: Waiver | None = None
    expired: Waiver | None = None
    excused: tuple[Waiver, ...] = ()
    broken: Truth | None = field(default=None, repr=False, compare=False)
    broken_before: Truth | None = field(default=None, repr=False, compare=False)

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
        """Who answers for it until when, in words, where somebody does."""
        if self.waiver is not None:
            return f"waived by {self.waiver.owner} until {self.waiver.expires.isoformat()}: {self.waiver.reason}"
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
        kind, sign = self.requirement.kind, "+" if self.requirement.change and value > 0 else ""
        if kind.percent:
            return f"{100 * value:+.2f} points" if self.requirement.change else f"{100 * value:.2f} %"
        return f"{sign}{value:,.0f}" if kind.exact and kind.name != "bits_max" else f"{sign}{value:.3f}"

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
        around, many = self.interval(), self.findings
        broken = "1 person breaks it" if many == 1 else f"{many:,} different people break it" if many else ""
        ended = None if self.expired is None else self.expired.ended
        words = {"pass": "keeps", "fail": "breaks", "inconclusive": "is too uncertain for"}[self.verdict]
        said = f"{self.name} = {self.read(self.value)}{around and f' ({around})'} {words} {self.allowed()}"
        return f"{'; '.join(part for part in (said, self.detail, broken, ended) if part)}."

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
        return {one.name: one for one in self.checks}[name]

    def __repr__(self) -> str:
        return f"<GateResult of {self.subject!r}: {self.verdict}, {len(self.checks)} checks>"

    @property
    def headline(self) -> str:
        """The verdict as the first words of every output.

        A first run whose checks all wait for a baseline has judged nothing, and a policy without limits knows no more
        than that nothing got worse: they say that, and not "pass".
        """
        if self.pending and not self.checks:
            return "baseline written, nothing judged yet"
        if self.verdict == "pass" and all(one.requirement.change for one in self.checks):
            return "no worse than the baseline; no limits set" if self.checks else "nothing judged; no limits set"
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
        word = self.headline.upper() if self.headline == self.verdict else self.headline
        return f"{word[:1].upper()}{word[1:]}: {self.subject}, {', '.join(parts) or 'no checks'}{ended}."

    def document(self) -> dict[str, Any]:
        """The content of gate.json."""
        return {
            "verdict": self.verdict,
            "checks": [one.document() for one in self.checks],
            "new_cases": [asdict(one) for one in self.new_cases],
            "headline": self.headline,
            "waived": [one.document() for one in self.waived],
            "expired": [one.document() for one in self.expired],
            "findings": [asdict(one) for one in self.findings],
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
