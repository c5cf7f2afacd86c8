"""From answers about frozen people to a result: every check measured, judged, and held against the waivers."""

from __future__ import annotations

from collections.abc import Callable
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
from fairbits.domain import Schema, Twins, one_row_each, people_of
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

Truths = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
#: A figure and whose it is; where it cannot be known, nothing and why.
Figure = tuple[Estimate | None, str]


def lacking(requirement: Requirement, schema: Schema, suite: Suite, answers: Answers) -> str | None:
    """Why a subject cannot be held to a check, or None."""
    needs = requirement.kind.needs
    if "decision" in needs and schema.regression:
        return "needs a decision, but the model predicts a number"
    if "decision" in needs and requirement.kind.name != "flip_rate" and not answers.decides:
        return "needs decisions, but the model tells the score of one class among several only"
    if "labels" in needs and (suite.table.labels is None or np.isnan(suite.table.labels).all()):
        return "needs labels, but the frozen people have none"
    return None


class FrozenFigures:
    """All figures of one model on one suite, beside those of a baseline where there is one."""

    def __init__(self, schema: Schema, suite: Suite, answers: Answers, before: Answers | None, policy: Policy):
        self.schema, self.suite, self.policy = schema, suite, policy
        self.answers, self.before = answers, before
        self.sample = suite.sample
        everybody = people_of(schema, suite.table)
        #: The number of the person of each row, where people have several; for the sample alone.
        self.everybody = everybody
        self.people = None if everybody is None else everybody[self.sample]
        #: Survey weights of the sample.
        self.weight = None if suite.table.weight is None else suite.table.weight[self.sample]
        #: Changes share the chance of a false alarm; a threshold has its own.
        self.level = policy.confidence
        self.change_level = 1 - (1 - policy.confidence) / max(1, policy.changes)
        self.unchanged = before is not None and answers.same_as(before)

    def of(self, requirement: Requirement) -> CheckResult:
        """What was measured for a check; its verdict is not in yet."""
        kind = requirement.kind
        people = len(self.suite) if kind.exact else int(self.sample.sum())
        blank = CheckResult(requirement, people)
        if kind.exact:
            return self._exact(blank)
        if requirement.change and self.unchanged:
            return replace(blank, value=0.0, low=0.0, high=0.0, detail="nobody is answered otherwise")
        values: dict[str, tuple[Callable[[], Figure], Callable[[], PairedChange | None]]] = {
            "flip_rate": (self._flip_rate, self._flip_change),
            "k_mean": self._means(lambda one: one.k.astype(np.float64), 1.0, 2**self._limit),
            "bits_mean": self._means(lambda one: one.bits, 0.0, self._limit),
            "indirect_bits": (self._indirect, self._indirect_change),
            "impact_ratio": (self._impact, self._impact_change),
            "accuracy": (self._accuracy, self._accuracy_change),
        }
        value, change = values[kind.name]
        if not requirement.change:
            found, words = value()
            if found is None:
                return replace(blank, reason=words)
            here = int(self._labelled.sum()) if kind.name == "accuracy" else people
            return replace(blank, value=found.value, low=found.low, high=found.high, people=here, detail=words)
        moved = change()
        if moved is None:
            return replace(blank, reason="there is nothing to compare: too few people, groups or labels")
        by_groups = kind.name in ("indirect_bits", "impact_ratio")
        detail = "" if by_groups else f"{moved.worse:,} people worse, {moved.better:,} better"
        sure = moved.p_value is None or moved.p_value < 1 - self.change_level
        figures = {name: getattr(moved, name) for name in ("value", "low", "high", "p_value")}
        return replace(blank, **figures, detail=detail, sure=sure)

    # Exact figures, about every frozen person ---------------------------------------------------------------------

    def _exact(self, blank: CheckResult) -> CheckResult:
        requirement, before = blank.requirement, self.before
        name, threshold, n = requirement.kind.name, requirement.threshold, len(self.suite)
        if name == "k_person":
            rose = self.answers.k - self._earlier.k
            detail = f"{int((rose > 0).sum()):,} of {n:,} people rise, {int((rose < 0).sum()):,} fall"
            return blank.exactly(float(max(rose.max(), 0)), detail=detail, broken=np.asarray(rose > threshold))
        read: dict[str, Callable[[Answers], Floats]] = {
            "flips": lambda one: one.flips.astype(np.float64),
            "k_max": lambda one: one.k.astype(np.float64),
            "bits_max": lambda one: one.bits,
        }
        now = read[name](self.answers)
        gather = np.sum if name == "flips" else np.max
        value = float(gather(now))
        if requirement.change:
            earlier = float(gather(read[name](self._earlier)))
            return blank.exactly(value - earlier, detail=f"{earlier:g} before, {value:g} now")
        # Who flips breaks the check only where more than allowed do; whose k is too large breaks it alone.
        limit = 0.0 if name == "flips" else threshold
        broken = now > limit if name != "flips" or value > threshold else np.zeros(n, dtype=np.bool_)
        return blank.exactly(
            value, broken=broken, broken_before=None if before is None else np.asarray(read[name](before) > limit)
        )

    # Estimates, about people like the frozen rows -----------------------------------------------------------------

    @cached_property
    def _limit(self) -> float:
        """The most bits that anybody can show, or shows."""
        schema = self.schema
        wide = not schema.probabilities or (len(schema.classes) > 2 and schema.scores == "vector")
        limit = bits_limit(Twins(schema).most, self.suite.epsilon, regression=wide)
        seen = [self.answers.bits.max(), *([] if self.before is None else [self.before.bits.max()])]
        return float(max(limit, *seen))

    def _rng(self, name: str) -> np.random.Generator:
        return generator(self.policy.seed, "gate", name)

    def _flip_rate(self) -> Figure:
        flips = self.answers.flips[self.sample]
        return rate_of(flips, level=self.level, people=self.people, weight=self.weight), ""

    def _means(
        self, read: Callable[[Answers], Floats], low: float, high: float
    ) -> tuple[Callable[[], Figure], Callable[[], PairedChange]]:
        """A mean between two ends, and its change."""

        def mean() -> Figure:
            own = read(self.answers)[self.sample][:, None]
            rng, people, weight = self._rng("mean"), self.people, self.weight
            found = bounded_means(own, rng, lows=low, highs=high, level=self.level, people=people, weight=weight)
            return found[0], ""

        def change() -> PairedChange:
            before, after = (read(one)[self.sample] for one in (self._earlier, self.answers))
            rng, level = self._rng("change"), self.change_level
            return mean_change(before, after, rng, limit=high, level=level, people=self.people, weight=self.weight)

        return mean, change

    @cached_property
    def _labelled(self) -> Truths:
        """Whom accuracy is about: rows with a label, and of these the ones held out where some are."""
        labels = self.suite.table.labels
        assert labels is not None  # noqa: S101 - see lacking
        known = self.sample & ~np.isnan(labels) & (self.answers.decisions != UNDECIDED)
        held = self.suite.table.held_out
        return known & held if held is not None and (known & held).any() else known

    @property
    def _labelled_drawn(self) -> dict[str, Any]:
        """The person and the weight of each row with a label, where there are any."""
        every = {"people": self.everybody, "weight": self.suite.table.weight}
        return {name: None if one is None else one[self._labelled] for name, one in every.items()}

    def _wrong(self, answers: Answers) -> Truths:
        return np.asarray(answers.decisions != self.suite.table.labels)[self._labelled]

    def _accuracy(self) -> Figure:
        found = rate_of(~self._wrong(self.answers), level=self.level, **self._labelled_drawn)
        held = self.suite.table.held_out is not None and bool(self.suite.table.held_out[self._labelled].all())
        return found, "held-out rows" if held else ""

    @cached_property
    def groups(self) -> tuple[Grouping, ...]:
        """The groups that the sample falls into, one grouping per protected attribute."""
        try:
            return groupings_of(self.schema, self.suite.table.rows(np.flatnonzero(self.sample)))
        except TableError as error:
            raise OptionError(f"the suite cannot be used for groups: {error}") from None

    def _selected(self, answers: Answers) -> Truths:
        return np.asarray(answers.decisions == self.schema.favourable_index)[self.sample]

    def _impact(self) -> Figure:
        level = 1 - (1 - self.level) / len(self.groups)
        selected = self._selected(self.answers)
        found = [impact(one, selected, level, self.people, self.weight) for one in self.groups]
        known = [one for one in found if one is not None]
        if not known:
            return None, f"no two groups of {MIN_GROUP} people can be compared"
        value, whose = min(known, key=lambda one: one[0].value)
        low, high = min(one.low for one, _ in known), min(one.high for one, _ in known)
        return Estimate(value.value, min(low, value.value), max(high, value.value)), whose

    @cached_property
    def _attributes(self) -> list[tuple[str, npt.NDArray[np.int64], npt.NDArray[np.int64], int]]:
        """Each attribute that enough people have: its name, their rows in the sample, one each, and their groups."""
        once = one_row_each(self.people, int(self.sample.sum()), self._rng("people"), self.weight)
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

    # Changes of estimates ------------------------------------------------------------------------------------------

    @property
    def _earlier(self) -> Answers:
        assert self.before is not None  # noqa: S101 - asked by the caller
        return self.before

    def _flip_change(self) -> PairedChange:
        before, after = self._earlier.flips[self.sample], self.answers.flips[self.sample]
        drawn: dict[str, Any] = {"people": self.people, "weight": self.weight}
        return rate_change(before, after, self._rng("flips"), level=self.change_level, **drawn)

    def _accuracy_change(self) -> PairedChange | None:
        if not self._labelled.any():
            return None
        before, after = self._wrong(self._earlier), self._wrong(self.answers)
        return rate_change(before, after, self._rng("accuracy"), level=self.change_level, **self._labelled_drawn)

    def _impact_change(self) -> PairedChange | None:
        level = 1 - (1 - self.change_level) / len(self.groups)
        before, after = self._selected(self._earlier), self._selected(self.answers)
        if np.array_equal(before, after) and np.array_equal(self._earlier.scores, self.answers.scores):
            return PairedChange(0.0, 0.0, 0.0, 0, 0)  # the same answers: nothing can have moved
        drawn: dict[str, Any] = {"level": level, "people": self.people, "weight": self.weight}
        found = [impact_change(one, before, after, self._rng(f"impact {one.name}"), **drawn) for one in self.groups]
        known = [one for one in found if one is not None]
        return widest(known) if known else None

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


class Judgement:
    """All checks of a policy on one model's answers.

    It has ``checks``, ``findings``, ``new``, ``waived``, ``expired`` and ``pending``.
    """

    def __init__(
        self, schema: Schema, suite: Suite, answers: Answers, before: Answers | None, policy: Policy, *, day: date
    ):
        self.schema, self.suite, self.policy = schema, suite, policy
        self.answers, self.before = answers, before
        self.checks: list[CheckResult] = []
        self.findings: list[Finding] = []
        self.new: set[str] = set()
        self.pending: list[str] = []
        # By what they cover and whether they have ended; of several, the first counts.
        self._waivers = {(one.check or one.case, one.has_ended(day)): one for one in reversed(policy.waivers)}
        self._met: set[Waiver] = set()
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
            self.checks.append(self._judged(figures.of(requirement)))
        if overall(one.counts for one in self.checks) == "pass":
            # Nobody answers for what has ended, and no gate passes with it.
            self._met.update(one for one in policy.waivers if one.has_ended(day))
        met = [one for one in policy.waivers if one in self._met]
        self.waived = tuple(one for one in met if not one.has_ended(day))
        self.expired = tuple(one for one in met if one.has_ended(day))

    def _judged(self, found: CheckResult) -> CheckResult:
        requirement = found.requirement
        verdict = verdict_of(found.low, found.high, requirement.threshold, direction=found.direction, sure=found.sure)
        count, excused = (0, ()) if found.broken is None else self._people(found)
        waiver = expired = None
        if verdict != "pass":
            waiver, expired = self._answering(requirement.name)
        return replace(
            found,
            verdict=verdict,
            fingerprint=fingerprint_of(requirement.name, self.suite),
            findings=count,
            waiver=waiver,
            expired=expired,
            excused=excused if verdict == "fail" else (),
        )

    def _people(self, check: CheckResult) -> tuple[int, tuple[Waiver, ...]]:
        """Keep the findings of a check of single people: how many there are, and who answers for enough of them."""
        assert check.broken is not None  # noqa: S101 - asked by the caller
        requirement, broken, known = check.requirement, check.broken, check.broken_before
        found, count = findings_of(requirement.name, broken, self.suite, self.schema, self.answers, self.before)
        covered, answering = 0, []
        for i, one in enumerate(found):
            waiver, _ = self._answering(one.fingerprint)
            if waiver is not None:
                found[i] = replace(one, waived=True)
                covered += one.people
                answering.append(waiver)
        self.findings += found
        older: list[Finding] = []
        if known is not None:
            older, _ = findings_of(requirement.name, broken & known, self.suite, self.schema, self.answers, self.before)
        already = {one.fingerprint for one in older}
        self.new |= {one.fingerprint for one in found if one.fingerprint not in already}
        left = int(broken.sum()) - covered
        allowed = requirement.threshold if requirement.kind.name == "flips" else 0
        return count, tuple(answering) if left <= allowed else ()

    def _answering(self, covered: str) -> tuple[Waiver | None, Waiver | None]:
        """Who answers for a check or a case today; where nobody does, who did until a waiver ended."""
        found = self._waivers.get((covered, False))
        ended = self._waivers.get((covered, True)) if found is None else None
        self._met.update(one for one in (found, ended) if one is not None)
        return found, ended
