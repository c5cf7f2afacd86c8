"""From answers to a result: every check measured, judged, and held against the waivers."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from fairbits.domain import Schema
from fairbits.errors import OptionError
from fairbits.gates.answers import Answers
from fairbits.gates.figures import CheckFigure, FrozenFigures, lacking
from fairbits.gates.findings import Finding, findings_of, fingerprint_of
from fairbits.gates.policy import Policy, Requirement
from fairbits.gates.result import CheckResult
from fairbits.gates.suite import Suite
from fairbits.gates.verdict import overall, verdict_of
from fairbits.gates.waivers import Waiver, check_current, waiver_of


class Judgement:
    """All checks of a policy on one model's answers.

    It has ``checks``, ``findings``, ``new``, ``waived``, ``expired`` and ``pending``.
    """

    def __init__(
        self, schema: Schema, suite: Suite, answers: Answers, before: Answers | None, policy: Policy, *, day: date
    ):
        check_current(policy.waivers, day)
        self.schema, self.suite, self.policy = schema, suite, policy
        self.answers, self.before = answers, before
        self.checks: list[CheckResult] = []
        self.findings: list[Finding] = []
        self.new: set[str] = set()
        self.pending: list[str] = []
        self._current = tuple(one for one in policy.waivers if not one.has_ended(day))
        self._ended = tuple(one for one in policy.waivers if one.has_ended(day))
        self._used: set[Waiver] = set()
        self._missed: set[Waiver] = set()
        figures = FrozenFigures(schema, suite, answers, before, policy)
        for requirement in policy.requirements:
            why = lacking(requirement, schema, suite, answers)
            if why is not None:
                if policy.usual:
                    continue
                raise OptionError(f"the check {requirement.name!r} {why}; take it out of the policy.")
            if requirement.change and before is None:
                self.pending.append(requirement.name)
                continue
            self.checks.append(self._judged(requirement, figures.of(requirement)))
        if overall(one.counts for one in self.checks) == "pass":
            self._missed.update(self._ended)  # nobody answers for it any more, and no gate passes with it

    @property
    def waived(self) -> tuple[Waiver, ...]:
        """The waivers that covered something, in the order of the policy."""
        return tuple(one for one in self._current if one in self._used)

    @property
    def expired(self) -> tuple[Waiver, ...]:
        """The waivers that ended while what they covered is still there."""
        return tuple(one for one in self._ended if one in self._missed)

    def _judged(self, requirement: Requirement, figure: CheckFigure) -> CheckResult:
        direction = "max" if requirement.change else requirement.kind.direction
        verdict = verdict_of(figure.low, figure.high, requirement.threshold, direction=direction, sure=figure.sure)
        count = 0
        excused: tuple[Waiver, ...] = ()
        if figure.broken is not None:
            count, excused = self._people(requirement, figure)
        waiver = expired = None
        if verdict != "pass":
            waiver, expired = self._waivers(check=requirement.name)
        return CheckResult(
            requirement,
            figure.value,
            figure.low,
            figure.high,
            verdict,
            figure.people,
            figure.detail,
            figure.reason,
            figure.p_value,
            fingerprint_of(requirement.name, self.suite),
            count,
            waiver,
            expired,
            excused if verdict == "fail" else (),
        )

    def _people(self, requirement: Requirement, figure: CheckFigure) -> tuple[int, tuple[Waiver, ...]]:
        """Keep the findings of a check of single people."""
        assert figure.broken is not None  # noqa: S101 - asked by the caller
        found, count = findings_of(requirement.name, figure.broken, self.suite, self.schema, self.answers, self.before)
        covered, answering = 0, []
        for i, one in enumerate(found):
            waiver, _ = self._waivers(case=one.fingerprint)
            if waiver is not None:
                found[i] = replace(one, waived=True)
                covered += one.people
                answering.append(waiver)
        self.findings += found
        known = figure.broken_before
        already = set()
        if known is not None and (figure.broken & known).any():
            older, _ = findings_of(
                requirement.name, figure.broken & known, self.suite, self.schema, self.answers, self.before
            )
            already = {one.fingerprint for one in older}
        self.new |= {one.fingerprint for one in found if one.fingerprint not in already}
        left = int(figure.broken.sum()) - covered
        allowed = requirement.threshold if requirement.kind.name == "flips" else 0
        return count, tuple(answering) if left <= allowed else ()

    def _waivers(self, *, check: str | None = None, case: str | None = None) -> tuple[Waiver | None, Waiver | None]:
        """Who answers for it today; where nobody does, who did until a waiver ended."""
        found = waiver_of(self._current, check=check, case=case)
        ended = waiver_of(self._ended, check=check, case=case) if found is None else None
        if found is not None:
            self._used.add(found)
        if ended is not None:
            self._missed.add(ended)
        return found, ended
