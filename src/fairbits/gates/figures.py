"""The figures that checks are about: from the answers about frozen people to a value with its interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fairbits.domain import Schema, Twins, one_row_each, people_of
from fairbits.errors import OptionError, TableError
from fairbits.functions import normal_quantile
from fairbits.gates import statistics
from fairbits.gates.answers import UNDECIDED, Answers
from fairbits.gates.policy import Policy, Requirement
from fairbits.gates.statistics import PairedChange
from fairbits.gates.suite import Suite
from fairbits.measure import Estimate, Grouping, bits_limit, groupings_of
from fairbits.proxies import bits_change, bits_high, log_ratios
from fairbits.randomness import generator

#: Bits about an attribute need so many people whose value is known.
MIN_KNOWN = 200

Truths = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class CheckFigure:
    """What was measured for one check."""

    value: float | None
    low: float | None
    high: float | None
    people: int
    detail: str = ""
    reason: str | None = None
    p_value: float | None = None
    sure: bool = True
    broken: Truths | None = field(default=None, repr=False)
    broken_before: Truths | None = field(default=None, repr=False)


def lacking(requirement: Requirement, schema: Schema, suite: Suite, answers: Answers) -> str | None:
    """Why a subject cannot be held to a check, or None."""
    needs = requirement.kind.needs
    if "decision" in needs and schema.regression:
        return "needs a decision, but the subject predicts a number"
    if "decision" in needs and requirement.kind.name != "flip_rate" and (answers.decisions == UNDECIDED).all():
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
        #: Changes share the chance of a false alarm; a threshold has its own.
        self.level = policy.confidence
        self.change_level = 1 - (1 - policy.confidence) / max(1, policy.changes)
        self.unchanged = before is not None and answers.same_as(before)

    def of(self, requirement: Requirement) -> CheckFigure:
        """The figure of a check."""
        kind = requirement.kind
        if kind.exact:
            return self._exact(requirement)
        if requirement.change:
            people = int(self.sample.sum())
            if self.unchanged:
                return CheckFigure(0.0, 0.0, 0.0, people, "nobody is answered otherwise")
            changes: dict[str, Callable[[], PairedChange | None]] = {
                "flip_rate": self._flip_change,
                "k_mean": lambda: self._mean_change(lambda one: one.k.astype(np.float64), 2**self._limit),
                "bits_mean": lambda: self._mean_change(lambda one: one.bits, self._limit),
                "indirect_bits": self._indirect_change,
                "impact_ratio": self._impact_change,
                "accuracy": self._accuracy_change,
            }
            return self._changed(kind.name, changes[kind.name](), people)
        values: dict[str, Callable[[], CheckFigure]] = {
            "flip_rate": self._flip_rate,
            "k_mean": lambda: self._mean(self.answers.k.astype(np.float64), 1.0, 2**self._limit),
            "bits_mean": lambda: self._mean(self.answers.bits, 0.0, self._limit),
            "indirect_bits": self._indirect,
            "impact_ratio": self._impact,
            "accuracy": self._accuracy,
        }
        return values[kind.name]()

    # Exact figures, about every frozen person ---------------------------------------------------------------------

    def _exact(self, requirement: Requirement) -> CheckFigure:
        name, threshold, n = requirement.kind.name, requirement.threshold, len(self.suite)
        before = self.before
        if name == "k_person":
            assert before is not None  # noqa: S101 - asked by the caller
            rose = self.answers.k - before.k
            value = float(max(rose.max(), 0))
            broken = np.asarray(rose > threshold)
            detail = f"{int((rose > 0).sum()):,} of {n:,} people rise, {int((rose < 0).sum()):,} fall"
            return CheckFigure(value, value, value, n, detail, broken=broken)
        read: dict[str, Callable[[Answers], Floats]] = {
            "flips": lambda one: one.flips.astype(np.float64),
            "k_max": lambda one: one.k.astype(np.float64),
            "bits_max": lambda one: one.bits,
        }
        now = read[name](self.answers)
        gather = np.sum if name == "flips" else np.max
        value = float(gather(now))
        if requirement.change:
            assert before is not None  # noqa: S101 - asked by the caller
            earlier = float(gather(read[name](before)))
            return CheckFigure(
                value - earlier, value - earlier, value - earlier, n, f"{earlier:g} before, {value:g} now"
            )
        if name == "flips":
            over = value > threshold
            broken = self.answers.flips if over else np.zeros(n, dtype=np.bool_)
            return CheckFigure(
                value, value, value, n, broken=broken, broken_before=None if before is None else before.flips
            )
        old = None if before is None else np.asarray(read[name](before) > threshold)
        return CheckFigure(value, value, value, n, broken=np.asarray(now > threshold), broken_before=old)

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

    def _flip_rate(self) -> CheckFigure:
        return _figure(
            statistics.rate(self.answers.flips[self.sample], self.level, self.people), int(self.sample.sum())
        )

    def _mean(self, values: Floats, low: float, high: float) -> CheckFigure:
        own = values[self.sample]
        found = statistics.mean(own, self._rng("mean"), low=low, high=high, level=self.level, people=self.people)
        return _figure(found, len(own))

    @cached_property
    def _labelled(self) -> Truths:
        """Whom accuracy is about: rows with a label, and of these the ones held out where some are."""
        labels = self.suite.table.labels
        assert labels is not None  # noqa: S101 - see lacking
        known = self.sample & ~np.isnan(labels) & (self.answers.decisions != UNDECIDED)
        held = self.suite.table.held_out
        return known & held if held is not None and (known & held).any() else known

    @property
    def _labelled_people(self) -> statistics.People:
        return None if self.everybody is None else self.everybody[self._labelled]

    def _wrong(self, answers: Answers) -> Truths:
        return np.asarray(answers.decisions != self.suite.table.labels)[self._labelled]

    def _accuracy(self) -> CheckFigure:
        found = statistics.rate(~self._wrong(self.answers), self.level, self._labelled_people)
        held = self.suite.table.held_out is not None and bool(self.suite.table.held_out[self._labelled].all())
        return _figure(found, int(self._labelled.sum()), "held-out rows" if held else "")

    @cached_property
    def groups(self) -> tuple[Grouping, ...]:
        """The groups that the sample falls into, one grouping per protected attribute."""
        try:
            return groupings_of(self.schema, self.suite.table.rows(np.flatnonzero(self.sample)))
        except TableError as error:
            raise OptionError(f"the suite cannot be used for groups: {error}") from None

    def _selected(self, answers: Answers) -> Truths:
        return np.asarray(answers.decisions == self.schema.favourable_index)[self.sample]

    def _impact(self) -> CheckFigure:
        level = 1 - (1 - self.level) / len(self.groups)
        found = [statistics.impact(one, self._selected(self.answers), level, self.people) for one in self.groups]
        known = [one for one in found if one is not None]
        people = int(self.sample.sum())
        if not known:
            return _unknown(people, f"no two groups of {statistics.MIN_GROUP} people can be compared")
        value, whose = min(known, key=lambda one: one[0].value)
        low, high = min(one.low for one, _ in known), min(one.high for one, _ in known)
        return _figure(Estimate(value.value, min(low, value.value), max(high, value.value)), people, whose)

    @cached_property
    def _attributes(self) -> list[tuple[str, npt.NDArray[np.int64], npt.NDArray[np.int64], int]]:
        """Each attribute that enough people have: its name, their rows in the sample, one each, and their groups."""
        once = one_row_each(self.people, int(self.sample.sum()), self._rng("people"))
        found = []
        for one in self.groups:
            rows = once[one.known[once]]
            present, codes = np.unique(one.codes[rows], return_inverse=True)
            if len(rows) >= MIN_KNOWN and len(present) > 1:
                found.append((one.name, rows, codes.astype(np.int64), len(present)))
        return found

    def _indirect(self) -> CheckFigure:
        if not self._attributes:
            return _unknown(int(self.sample.sum()), f"bits need {MIN_KNOWN} people of two groups or more")
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
        found = Estimate(max(value, 0.0), max(min(low, value), 0.0), max(high, 0.0))
        return _figure(found, int(self.sample.sum()), name)

    # Changes of estimates ------------------------------------------------------------------------------------------

    def _changed(self, name: str, found: PairedChange | None, people: int) -> CheckFigure:
        if found is None:
            return _unknown(people, "there is nothing to compare: too few people, groups or labels")
        sure = found.p_value is None or found.p_value < 1 - self.change_level
        detail = f"{found.worse:,} people worse, {found.better:,} better"
        if name in ("indirect_bits", "impact_ratio"):
            detail = ""
        return CheckFigure(found.value, found.low, found.high, people, detail, p_value=found.p_value, sure=sure)

    def _earlier(self) -> Answers:
        assert self.before is not None  # noqa: S101 - asked by the caller
        return self.before

    def _flip_change(self) -> PairedChange:
        before, after = self._earlier().flips[self.sample], self.answers.flips[self.sample]
        return statistics.rate_change(before, after, self._rng("flips"), level=self.change_level, people=self.people)

    def _mean_change(self, read: Callable[[Answers], Floats], limit: float) -> PairedChange:
        before, after = read(self._earlier())[self.sample], read(self.answers)[self.sample]
        rng, level = self._rng("change"), self.change_level
        return statistics.mean_change(before, after, rng, limit=limit, level=level, people=self.people)

    def _accuracy_change(self) -> PairedChange | None:
        if not self._labelled.any():
            return None
        before, after = self._wrong(self._earlier()), self._wrong(self.answers)
        rng, level = self._rng("accuracy"), self.change_level
        return statistics.rate_change(before, after, rng, level=level, people=self._labelled_people)

    def _impact_change(self) -> PairedChange | None:
        level = 1 - (1 - self.change_level) / len(self.groups)
        before, after = self._selected(self._earlier()), self._selected(self.answers)
        if np.array_equal(before, after) and np.array_equal(self._earlier().scores, self.answers.scores):
            return PairedChange(0.0, 0.0, 0.0, 0, 0)  # the same answers: nothing can have moved
        found = [
            statistics.impact_change(
                one, before, after, self._rng(f"impact {one.name}"), level=level, people=self.people
            )
            for one in self.groups
        ]
        known = [one for one in found if one is not None]
        return statistics.widest(known) if known else None

    def _indirect_change(self) -> PairedChange | None:
        if not self._attributes:
            return None
        level = 1 - (1 - self.change_level) / len(self._attributes)
        before, after = self._earlier().scores[self.sample], self.answers.scores[self.sample]
        ends = [
            bits_change(codes, groups, before[rows], after[rows], level=level)
            for _, rows, codes, groups in self._attributes
        ]
        return statistics.widest([PairedChange(value, low, high, 0, 0) for value, low, high in ends])


def _figure(found: Estimate, people: int, detail: str = "") -> CheckFigure:
    return CheckFigure(found.value, found.low, found.high, people, detail)


def _unknown(people: int, reason: str) -> CheckFigure:
    return CheckFigure(None, None, None, people, reason=reason)
