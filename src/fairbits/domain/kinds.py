"""The kinds of attribute: integers, reals and categories."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, get_args

import numpy as np

from fairbits.domain.attribute import MISSING, Attribute, Holds, Kind, shown
from fairbits.errors import SchemaError, choose_from

#: Whole numbers that a code holds exactly, and the largest step.
_MAX_WHOLE, _MAX_STEP = 10**15, 10**300
_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
#: A range that its name spells out: "32–38", or one value.
_RANGE = re.compile(rf"{_NUMBER}(?:\s*(?:–|-|to)\s*{_NUMBER})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Attribute):
    """What integers and reals have in common."""

    low: float = 0
    high: float | None = None
    step: float | None = None
    ranges: tuple[tuple[str, float], ...] = ()
    cuts: tuple[float, ...] = ()

    columns: ClassVar[tuple[str, ...]] = ()
    holds: ClassVar[Holds | None] = None

    def _complete(self) -> None:
        self._check_bounds()
        self._check_step()
        self._check_ranges()

    def _check_bounds(self) -> None:
        if self.high is None:
            raise SchemaError(f"attribute {self.name!r} needs a high bound; give low and high.")
        try:
            finite = math.isfinite(self.low) and math.isfinite(self.high)
        except OverflowError:
            raise SchemaError(
                f"attribute {self.name!r} has a bound of hundreds of digits; give one below 1e15."
            ) from None
        if self.discrete and max(abs(self.low), abs(self.high)) > _MAX_WHOLE:
            raise SchemaError(f"attribute {self.name!r} has bounds beyond 1e15, where whole numbers are not exact.")
        if not finite:
            raise SchemaError(f"attribute {self.name!r} needs finite bounds, but got {self.low} to {self.high}.")
        if self.low > self.high:
            raise SchemaError(
                f"attribute {self.name!r}: low <= high must hold, but got low = {self.low:g}, high = {self.high:g}."
            )

    def _check_step(self) -> None:
        if self.step is not None and abs(self.step) > _MAX_STEP:
            raise SchemaError(f"attribute {self.name!r} has a step beyond 1e300; a step is smaller than its range.")
        if self.step is None:
            object.__setattr__(self, "step", 1.0 if self.discrete else (self.upper - self.low) / 100 or 1.0)
        step = self.stride
        if not step > 0 or not np.isfinite(step):
            raise SchemaError(f"attribute {self.name!r} has step {step:g}; a step is larger than 0.")
        if self.discrete and not float(step).is_integer():
            raise SchemaError(f"attribute {self.name!r} has step {step:g}; an {self.kind} moves in whole steps.")

    def _check_ranges(self) -> None:
        ranges = tuple((str(name), float(code)) for name, code in self.ranges)
        object.__setattr__(self, "ranges", ranges)
        codes = [code for _, code in ranges]
        if codes != sorted(set(codes)):
            raise SchemaError(f"attribute {self.name!r} has ranges {shown(codes)}; their values must rise.")
        if len({name for name, _ in ranges}) != len(ranges):
            raise SchemaError(f"attribute {self.name!r} has two ranges of the same name; names must differ.")
        for name, code in ranges:
            if not self.valid(np.array([code]))[0]:
                raise SchemaError(
                    f"range {name!r} of attribute {self.name!r} stands at {code:g}, which is not one of its values; "
                    f"choose one within {self.low:g} to {self.upper:g}."
                )
        cuts = tuple(float(cut) for cut in self.cuts) or _default_cuts(ranges)
        object.__setattr__(self, "cuts", cuts)
        places = np.searchsorted(cuts, codes, side="right") if ranges else np.empty(0)
        if len(cuts) != max(0, len(ranges) - 1) or not np.array_equal(places, np.arange(len(ranges))):
            raise SchemaError(
                f"attribute {self.name!r} has cuts {shown(cuts)} for ranges at {shown(codes)}; a cut is the lowest "
                f"value of its range, so that there is one between each value and the next."
            )

    @property
    def cuts_named(self) -> bool:
        """Whether the ranges' names and values alone say where they begin."""
        return self.cuts == _default_cuts(self.ranges)

    @property
    def gap(self) -> float | None:
        """The code of a missing value; None where nobody lacks one.

        It lies outside of the domain, so far below that no move from a value leads there: people of the table may have
        it, and keep it, but a search never invents it.
        """
        return None if self.missing is None else math.floor(self.low - (self.upper - self.low)) - 1.0

    @property
    def _number_twin(self) -> int:
        return int(self.missing == "value")

    @property
    def _left_out(self) -> int:
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer(Number):
    """A whole number from ``low`` to ``high``.

    Parameters
    ----------
    name
        The column of the table.
    protected
        Whether twins differ in it.
    immutable
        Whether a search leaves it as it is, although it is not protected.
    allowed
        The only codes that there are, where the domain has gaps (a code book that knows 3, 6 and 7); empty: all.
    missing
        Says that people may lack a value: "model" leaves it to the model, which gets NaN and fills its own gaps, and no
        twin takes it; "value" makes it a value that twins of a protected attribute take as well.
    held
        The values of the owner's table behind the codes; filled in where a table is read.
    low, high
        The ends of the domain, both included.
    step
        The smallest change that a search makes; None for 1.
    ranges
        For a protected number with too many values: (name, code) pairs, the codes that twins take instead of all.
    cuts
        The lowest value of every range but the first: who is between two cuts is in that range. Left out, the names of
        the ranges say it ("32–38"), or else the nearest of the codes decides.
    labels
        A word for each code from ``low`` to ``high``, where codes stand for something (age code 3 reads "30–39").

    >>> Integer(name="hours", low=1, high=99).count
    99
    """

    labels: tuple[str, ...] = ()

    kind: ClassVar[Kind] = "integer"

    def _complete(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        self._check_bounds()
        if not (float(self.low).is_integer() and float(self.upper).is_integer()):
            raise SchemaError(
                f"integer {self.name!r} has bounds {self.low:g} to {self.upper:g}; use whole numbers or kind = 'real'."
            )
        self._check_step()
        needed = int(self.upper - self.low) + 1
        self._check_labels()
        if self.labels and len(self.labels) != needed:
            raise SchemaError(
                f"attribute {self.name!r} has {len(self.labels)} labels for the {needed} codes "
                f"{self.low:g} to {self.upper:g}; give one each."
            )
        self._check_ranges()


@dataclass(frozen=True, slots=True, kw_only=True)
class Real(Number):
    """A number with decimals from ``low`` to ``high``.

    Parameters
    ----------
    name
        The column of the table.
    protected
        Whether twins differ in it.
    immutable
        Whether a search leaves it as it is, although it is not protected.
    allowed
        The only codes that there are, where the domain has gaps (a code book that knows 3, 6 and 7); empty: all.
    missing
        Says that people may lack a value: "model" leaves it to the model, which gets NaN and fills its own gaps, and no
        twin takes it; "value" makes it a value that twins of a protected attribute take as well.
    held
        The values of the owner's table behind the codes; filled in where a table is read.
    low, high
        The ends of the domain, both included.
    step
        The smallest change that a search makes; None for a hundredth of the range.
    ranges
        For a protected number with too many values: (name, code) pairs, the codes that twins take instead of all.
    cuts
        The lowest value of every range but the first: who is between two cuts is in that range. Left out, the names of
        the ranges say it ("32–38"), or else the nearest of the codes decides.

    >>> Real(name="income", high=5.0).step
    0.05
    """

    kind: ClassVar[Kind] = "real"
    discrete: ClassVar[bool] = False
    labels: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Category(Attribute):
    """One of several words; its code is the position of the word among the labels.

    Parameters
    ----------
    name
        The column of the table.
    protected
        Whether twins differ in it.
    immutable
        Whether a search leaves it as it is, although it is not protected.
    allowed
        The only codes that there are, where the domain has gaps (a code book that knows 3, 6 and 7); empty: all.
    missing
        Says that people may lack a value: "model" leaves it to the model, which gets NaN and fills its own gaps, and no
        twin takes it; "value" makes it a value that twins of a protected attribute take as well.
    held
        The values of the owner's table behind the codes; filled in where a table is read.
    labels
        The words, in the order of their codes.
    columns
        The 0/1 columns of an already encoded table that make up this category, one for each label; one of them may be
        "", for the value that was dropped from the encoding and shows as zeros in all the others.
    holds
        What the labels are for the model: "text" although they look like numbers or truth values, or "date".

    >>> Category(name="job", labels=("Sales", "Tech")).code_of("Tech")
    1.0
    """

    labels: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    holds: Holds | None = None

    kind: ClassVar[Kind] = "category"
    low: ClassVar[float] = 0
    step: ClassVar[float | None] = 1.0
    ranges: ClassVar[tuple[tuple[str, float], ...]] = ()
    cuts: ClassVar[tuple[float, ...]] = ()
    cuts_named: ClassVar[bool] = True

    @classmethod
    def _own_fields(cls, given: dict[str, Any]) -> dict[str, Any]:
        low, high, last = given.pop("low", 0), given.pop("high", None), len(given.get("labels", ())) - 1
        if last >= 0 and (low != 0 or high not in (None, last)):
            raise SchemaError(
                f"category {given.get('name')!r} has {last + 1} labels, so its codes are 0 to {last}, "
                f"but low, high = {low:g}, {high}; leave low and high out."
            )
        if given.get("step") == 1:
            del given["step"]
        return super(Category, cls)._own_fields(given)

    @property
    def high(self) -> float:
        """The code of the last label."""
        return len(self.labels) - 1

    def _complete(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "columns", tuple(self.columns))
        if self.holds not in (None, *get_args(Holds)):
            remedy = choose_from(str(self.holds), get_args(Holds))
            raise SchemaError(f"attribute {self.name!r} has holds = {self.holds!r}; {remedy}")
        if self.missing is not None and self.columns:
            raise SchemaError(f"attribute {self.name!r} is spread over columns, so that none of it can be missing.")
        if not self.labels:
            raise SchemaError(f"category {self.name!r} needs its labels, e.g. labels = ['Sales', 'Tech'].")
        if self.missing is not None and MISSING not in self.labels:
            object.__setattr__(self, "labels", (*self.labels, MISSING))
        self._check_labels()
        if self.columns:
            self._check_columns()

    def _check_columns(self) -> None:
        if len(self.columns) != len(self.labels):
            raise SchemaError(
                f"attribute {self.name!r} has {len(self.columns)} columns for {len(self.labels)} labels; only a "
                f'category has columns, one for each label, with "" for a value whose column was dropped.'
            )
        if len(set(self.columns)) != len(self.columns) or self.columns == ("",):
            raise SchemaError(
                f"attribute {self.name!r} has the columns {', '.join(map(repr, self.columns))}; they must differ, "
                f'and one at most may be "".'
            )

    @property
    def gap(self) -> float | None:
        """The code of a missing value: that of its own label; None where nobody lacks one."""
        return float(self.labels.index(MISSING)) if MISSING in self.labels else None

    @property
    def _number_twin(self) -> int:
        return 0

    @property
    def _left_out(self) -> int:
        there = self.gap is not None and (not self.allowed or self.gap in self.allowed)
        return int(there and self.missing != "value" and self.count > 1)


def _named_cuts(ranges: tuple[tuple[str, float], ...]) -> tuple[float, ...]:
    """The cuts that names such as "32–38" spell out; nothing where the names say something else."""
    ends = [_RANGE.fullmatch(name.strip()) for name, _ in ranges]
    spans = [(float(e[1]), float(e[2] or e[1])) for e in ends if e is not None]
    fits = len(spans) == len(ranges) and any(low < high for low, high in spans)
    if not fits or any(not low <= code <= high for (low, high), (_, code) in zip(spans, ranges, strict=True)):
        return ()
    if any(high > low for (_, high), (low, _) in pairwise(spans)):
        return ()
    return tuple(low for low, _ in spans[1:])


def _default_cuts(ranges: tuple[tuple[str, float], ...]) -> tuple[float, ...]:
    """By the names, or half-way between the values, where the middle itself belongs to the lower one."""
    codes = [code for _, code in ranges]
    return _named_cuts(ranges) or tuple(float(np.nextafter((low + high) / 2, high)) for low, high in pairwise(codes))


KINDS: dict[str, type[Attribute]] = {"integer": Integer, "category": Category, "real": Real}
