"""From answers about frozen people to a result: every check measured, judged, and held against the waivers."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.diff import (
    MIN_GROUP,
    UNDECIDED,
    Answers,
    PairedChange,
    impact,
    impact_change,
    mean_change,
    rate_change,
    widest,
)
from fairbits.domain import Schema, Truth, Twins, one_row_each, people_of
from fairbits.errors import OptionError, TableError
from fairbits.functions import normal_quantile
from fairbits.gates.policy import Policy, Requirement, Waiver
from fairbits.gates.result import CheckResult, Finding, findings_of, fingerprint_of, overall, verdict_of
from fairbits.gates.suite import Suite
from fairbits.measure import Estimate, Grouping, bits_limit, bounded_means, groupings_of, rate_of
from fairbits.proxies import bits_change, bits_high, log_ratios
from fairbits.randomness import generator

#: Bits about an attribute need so many people whose value is known.
MIN_KNOWN = 200

#: A figure and whose it is; where it cannot be known, nothing and why.
Figure = tuple[Estimate | None, str]
#: Exact figures: which answers they are of, and what is made of everybody's.
_EXACT: dict[str, tuple[str, Any]] = {"flips": ("flips", np.sum), "k_max": ("k", np.max), "bits_max": ("bits", np.max)}
#: Of which answers rates and means are, and the least that a mean can be.
_READ = {"flip_rate": "flips", "k_mean": "k", "bits_mean": "bits"}
_LEAST = {"k_mean": 1.0, "bits_mean": 0.0}
_BY_GROUPS = ("indirect_bits", "impact_ratio")


def lacking(requirement: Requirement, schema: Schema, suite: Suite, answers: Answers) -> str | None:
    """Why a subject cannot be held to a check, or None."""
    needs, labels = requirement.kind.needs, suite.table.labels
    decides = "decision" not in needs or requirement.kind.name == "flip_rate" or answers.decides
    reasons = (
        ("decision" in needs and schema.regression, "needs a decision, but the model predicts a number"),
        (not decides, "needs decisions, but the model tells the score of one class among several only"),
        (
            "labels" in needs and (labels is None or np.isnan(labels).all()),
            "needs labels, but the frozen people have none",
        ),
    )
    return next((why for lacks, why in reasons if lacks), None)


def _certain(blank: CheckResult, value: float, **facts: Any) -> CheckResult:
    return replace(blank, value=value, low=value, high=value, **facts)


class Judgement:
    """All checks of a policy on one model's answers, beside those of a baseline where there is one.

    It has ``checks``, ``findings``, ``new``, ``waived``, ``expired`` and ``pending``.
    """

    def __init__(
        self, schema: Schema, suite: Suite, answers: Answers, before: Answers | None, policy: Policy, *, day: date
    ):
        self.schema, self.suite, self.policy = schema, suite, policy
        self.answers, self.before = answers, before
        self.sample = suite.sample
        #: Changes share the chance of a false alarm; a threshold has its own.
        self.level = policy.confidence
        self.change_level = 1 - (1 - policy.confidence) / max(1, policy.changes)
        self.checks: list[CheckResult] = []
        self.findings: list[Finding] = []
        self.new: set[str] = set()
        self.pending: list[str] = []
        # By what they cover and whether they have ended; of several, the first counts.
        self._waivers = {(one.check or one.case, one.has_ended(day)): one for one in reversed(policy.waivers)}
        self._met: set[Waiver] = set()
        for requirement in policy.requirements:
            why = lacking(requirement, schema, suite, answers)
            if why is not None and not policy.usual:
                raise OptionError(f"the check {requirement.name!r} {why}; take it out of the policy.")
            if why is None and requirement.change and before is None:
                self.pending.append(requirement.name)
            elif why is None:
                self.checks.append(self._judged(self._measured(requirement)))
        if overall(one.counts for one in self.checks) == "pass":
            # Nobody answers for what has ended, and no gate passes with it.
            self._met.update(one for one in policy.waivers if one.has_ended(day))
        met = [one for one in policy.waivers if one in self._met]
        self.waived, self.expired = (
            tuple(one for one in met if one.has_ended(day) is ended) for ended in (False, True)
        )

    def _judged(self, found: CheckResult) -> CheckResult:
        name = found.name
        verdict = verdict_of(found.low, found.high, found.threshold, direction=found.direction, sure=found.sure)
        count, excused = (0, ()) if found.broken is None else self._people(found, found.broken)
        waiver, expired = (None, None) if verdict == "pass" else self._answering(name)
        return replace(
            found,
            verdict=verdict,
            fingerprint=fingerprint_of(name, self.suite),
            findings=count,
            waiver=waiver,
            expired=expired,
            excused=excused if verdict == "fail" else (),
        )

    def _people(self, check: CheckResult, broken: Truth) -> tuple[int, tuple[Waiver, ...]]:
        """Keep the findings of a check of single people: how many there are, and who answers for enough of them."""
        requirement, known = check.requirement, check.broken_before
        about = (self.suite, self.schema, self.answers, self.before)
        found, count = findings_of(requirement.name, broken, *about)
        older = [] if known is None else findings_of(requirement.name, broken & known, *about)[0]
        self.new |= {one.fingerprint for one in found} - {one.fingerprint for one in older}
        answering = {one.fingerprint: self._answering(one.fingerprint)[0] for one in found}
        found = [one if answering[one.fingerprint] is None else replace(one, waived=True) for one in found]
        self.findings += found
        left = int(broken.sum()) - sum(one.people for one in found if one.waived)
        allowed = requirement.threshold if requirement.kind.name == "flips" else 0
        return count, tuple(one for one in answering.values() if one is not None) if left <= allowed else ()

    def _answering(self, covered: str) -> tuple[Waiver | None, Waiver | None]:
        """Who answers for a check or a case today; where nobody does, who did until a waiver ended."""
        found = self._waivers.get((covered, False))
        ended = self._waivers.get((covered, True)) if found is None else None
        self._met.update(one for one in (found, ended) if one is not None)
        return found, ended

    def _measured(self, requirement: Requirement) -> CheckResult:
        """What was measured for a check; its verdict is not in yet."""
        kind = requirement.kind
        if kind.exact:
            return self._exact(CheckResult(requirement, len(self.suite)))
        blank = CheckResult(requirement, int(self.sample.sum()))
        if requirement.change and self.answers.same_as(self._earlier):
            return _certain(blank, 0.0, detail="nobody is answered otherwise")
        if not requirement.change:
            found, words = self._figure(kind.name)
            if found is None:
                return replace(blank, reason=words)
            here = int(self._labelled.sum()) if kind.name == "accuracy" else blank.people
            return replace(blank, value=found.value, low=found.low, high=found.high, people=here, detail=words)
        moved = self._change(kind.name)
        if moved is None:
            return replace(blank, reason="there is nothing to compare: too few people, groups or labels")
        detail = "" if kind.name in _BY_GROUPS else f"{moved.worse:,} people worse, {moved.better:,} better"
        sure = moved.p_value is None or moved.p_value < 1 - self.change_level
        return replace(
            blank,
            **{name: getattr(moved, name) for name in ("value", "low", "high", "p_value")},
            detail=detail,
            sure=sure,
        )

    # Exact figures, about every frozen person ---------------------------------------------------------------------

    def _exact(self, blank: CheckResult) -> CheckResult:
        name, threshold, before = blank.requirement.kind.name, blank.threshold, self.before
        if name == "k_person":
            rose = self.answers.k - self._earlier.k
            moves = f"{int((rose > 0).sum()):,} of {len(rose):,} people rise, {int((rose < 0).sum()):,} fall"
            return _certain(blank, float(max(rose.max(), 0)), broken=np.asarray(rose > threshold), detail=moves)
        figure, gather = _EXACT[name]
        now = getattr(self.answers, figure).astype(np.float64)
        value = float(gather(now))
        if blank.requirement.change:
            earlier = float(gather(getattr(self._earlier, figure)))
            return _certain(blank, value - earlier, detail=f"{earlier:g} before, {value:g} now")
        # Who flips breaks the check only where more than allowed do; whose k is too large breaks it alone.
        limit = 0.0 if name == "flips" else threshold
        broken = (now > limit) & (name != "flips" or value > threshold)
        known = None if before is None else np.asarray(getattr(before, figure) > limit)
        return _certain(blank, value, broken=broken, broken_before=known)

    # Estimates, about people like the frozen rows -----------------------------------------------------------------

    def _figure(self, name: str) -> Figure:
        if name in _BY_GROUPS:
            return self._impact() if name == "impact_ratio" else self._indirect()
        here, own = self._read(name, self.answers)
        drawn: dict[str, Any] = {"level": self.level, **self._drawn(here)}
        if name in _LEAST:
            means = bounded_means(
                own.astype(np.float64)[:, None], self._rng("mean"), lows=_LEAST[name], highs=self._most(name), **drawn
            )
            return means[0], ""
        if name == "flip_rate":
            return rate_of(own, **drawn), ""
        held = self.suite.table.held_out
        return rate_of(~own, **drawn), "held-out rows" if held is not None and bool(held[here].all()) else ""

    def _change(self, name: str) -> PairedChange | None:
        if name in _BY_GROUPS:
            return self._impact_change() if name == "impact_ratio" else self._indirect_change()
        (here, was), (_, now) = (self._read(name, one) for one in (self._earlier, self.answers))
        drawn: dict[str, Any] = {"level": self.change_level, **self._drawn(here)}
        if name in _LEAST:
            return mean_change(was, now, self._rng("change"), limit=self._most(name), **drawn)
        return rate_change(was, now, self._rng(_READ.get(name, name)), **drawn) if len(was) else None

    def _read(self, name: str, answers: Answers) -> tuple[Truth, npt.NDArray[Any]]:
        """The rows that a rate or a mean is about, and what each of them has; for accuracy, whether it is wrong."""
        if name == "accuracy":
            return self._labelled, np.asarray(answers.decisions != self.suite.table.labels)[self._labelled]
        return self.sample, getattr(answers, _READ[name])[self.sample]

    def _most(self, name: str) -> float:
        """The most that a mean can be: bits that anybody can show, or shows, or their classes."""
        schema = self.schema
        wide = not schema.probabilities or (len(schema.classes) > 2 and schema.scores == "vector")
        limit = bits_limit(Twins(schema).most, self.suite.epsilon, regression=wide)
        seen = [float(one.bits.max()) for one in (self.answers, self.before) if one is not None]
        limit = max(limit, *seen)
        return 2**limit if name == "k_mean" else limit

    @property
    def _earlier(self) -> Answers:
        assert self.before is not None  # noqa: S101 - asked by the caller
        return self.before

    def _rng(self, name: str) -> np.random.Generator:
        return generator(self.policy.seed, "gate", name)

    @cached_property
    def _everybody(self) -> dict[str, Any]:
        """The number of the person of each row, where people have several, and survey weights."""
        return {"people": people_of(self.schema, self.suite.table), "weight": self.suite.table.weight}

    def _drawn(self, rows: Truth) -> dict[str, Any]:
        return {name: None if one is None else one[rows] for name, one in self._everybody.items()}

    @cached_property
    def _labelled(self) -> Truth:
        """Whom accuracy is about: rows with a label, and of these the ones held out where some are."""
        labels = self.suite.table.labels
        assert labels is not None  # noqa: S101 - see lacking
        known = self.sample & ~np.isnan(labels) & (self.answers.decisions != UNDECIDED)
        held = self.suite.table.held_out
        return known & held if held is not None and (known & held).any() else known

    @cached_property
    def groups(self) -> tuple[Grouping, ...]:
        try:
            return groupings_of(self.schema, self.suite.table.rows(np.flatnonzero(self.sample)))
        except TableError as error:
            raise OptionError(f"the suite cannot be used for groups: {error}") from None

    def _selected(self, answers: Answers) -> Truth:
        return np.asarray(answers.decisions == self.schema.favourable_index)[self.sample]

    def _impact(self) -> Figure:
        level = 1 - (1 - self.level) / len(self.groups)
        selected = self._selected(self.answers)
        drawn = self._drawn(self.sample)
        known = [one for one in (impact(groups, selected, level, **drawn) for groups in self.groups) if one is not None]
        if not known:
            return None, f"no two groups of {MIN_GROUP} people can be compared"
        value, whose = min(known, key=lambda one: one[0].value)
        low, high = min(one.low for one, _ in known), min(one.high for one, _ in known)
        return Estimate(value.value, min(low, value.value), max(high, value.value)), whose

    def _impact_change(self) -> PairedChange | None:
        level = 1 - (1 - self.change_level) / len(self.groups)
        before, after = self._selected(self._earlier), self._selected(self.answers)
        if np.array_equal(before, after) and np.array_equal(self._earlier.scores, self.answers.scores):
            return PairedChange(0.0, 0.0, 0.0, 0, 0)  # the same answers: nothing can have moved
        drawn: dict[str, Any] = {"level": level, **self._drawn(self.sample)}
        found = [impact_change(one, before, after, self._rng(f"impact {one.name}"), **drawn) for one in self.groups]
        known = [one for one in found if one is not None]
        return widest(known) if known else None

    @cached_property
    def _attributes(self) -> list[tuple[str, npt.NDArray[np.int64], npt.NDArray[np.int64], int]]:
        """Each attribute that enough people have: its name, their rows in the sample, one each, and their groups."""
        drawn = self._drawn(self.sample)
        once = one_row_each(drawn["people"], int(self.sample.sum()), self._rng("people"), drawn["weight"])
        found = []
        for one in self.groups:
            rows = once[one.known[once]]
            present, codes = np.unique(one.codes[rows], return_inverse=True)
            if len(rows) >= MIN_KNOWN and len(present) > 1:
                found.append((one.name, rows, codes.astype(np.int64), len(present)))
        return found

    def _indirect(self) -> Figure:
        if not self._attributes:
            return None, f"bits need {MIN_KNOWN} people of two groups or more"
        level = 1 - (1 - self.level) / len(self._attributes)
        scores, ends = self.answers.scores[self.sample], []
        for name, rows, codes, groups in self._attributes:
            ratios = log_ratios(codes, groups, scores[rows], self._rng(f"indirect {name}"))
            value = float(ratios.mean())
            half = normal_quantile(0.5 + level / 2) * float(ratios.std(ddof=1)) / float(np.sqrt(len(rows)))
            # A guess on people whom it was not made of errs downwards, so it holds the lower end only; a threshold is
            # held against the upper one, which the guess made of the people themselves gives: that one errs upwards.
            ends.append((value, value - half, bits_high(codes, groups, scores[rows], level=level), name))
        value, _, _, name = max(ends)
        low, high = max(one[1] for one in ends), max(value, *(one[2] for one in ends))
        return Estimate(max(value, 0.0), max(min(low, value), 0.0), max(high, 0.0)), name

    def _indirect_change(self) -> PairedChange | None:
        if not self._attributes:
            return None
        level = 1 - (1 - self.change_level) / len(self._attributes)
        before, after = self._earlier.scores[self.sample], self.answers.scores[self.sample]
        ends = [
            bits_change(codes, groups, before[rows], after[rows], level=level)
            for _, rows, codes, groups in self._attributes
        ]
        return widest([PairedChange(value, low, high, 0, 0) for value, low, high in ends])
