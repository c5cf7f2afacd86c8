"""One attribute of a person: an integer, a real or a category; what values it may take, and how people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fairbits.errors import SchemaError, choose_from

if TYPE_CHECKING:
    from fairbits.domain.decoding import HeldValues

Kind = Literal["integer", "category", "real"]
#: What the table holds where labels look like something else: text, or dates.
Holds = Literal["text", "date"]
#: What a missing value is: left to the model, or a value like any other, which twins take too.
Missing = Literal["model", "value"]
Codes = npt.NDArray[np.float64]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: A missing entry of a category column is this label, where the attribute has it.
MISSING = "(missing)"

#: Values that are ever listed one by one.
_MAX_VALUES = 20_000_000
#: Whole numbers that a code holds exactly, and the largest step.
MAX_WHOLE, _MAX_STEP = 10**15, 10**300
_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
#: A range that its name spells out: "32–38", or one value.
_RANGE = re.compile(rf"{_NUMBER}(?:\s*(?:–|-|to)\s*{_NUMBER})?")
#: Fields that make no sense for a kind of attribute, and why.
_OTHERS: dict[str, dict[str, str]] = {
    "real": {"labels": "cannot have labels; drop them or use kind = 'integer'."},
    "number": {
        "columns": "has columns, but is no category; only a category has columns, one for each label.",
        "holds": "has holds, but is no category; leave it out.",
    },
    "category": {
        "ranges": "has ranges, but is a category; only a number has ranges.",
        "cuts": "has cuts, but is a category; only a number has ranges.",
        "step": "has a step, but is a category; leave it out.",
    },
}


def _settled() -> Any:
    """A field that follows from the others."""
    return field(init=False, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """A named value with a domain: an :class:`Integer`, a :class:`Real` or a :class:`Category`.

    Inside fairbits a value is a *code*: integers and reals as they are, a category as the position of its label.

    Parameters
    ----------
    name
        The column of the table.
    kind
        "integer", "real" or "category", where the kind is not said by the class.
    low, high
        The ends of a number's domain, both included.
    step
        The smallest change of a number that a search makes; None for 1, or for a hundredth of a real's range.
    labels
        The words of a category, in the order of their codes; of an integer a word for each code.
    ranges
        For a protected number with too many values: (name, code) pairs, the codes that twins take instead of all.
    cuts
        The lowest value of every range but the first: who is between two cuts is in that range. Left out, the names of
        the ranges say it ("32–38"), or else the nearest of the codes decides.
    columns
        The 0/1 columns of an already encoded table that make up a category, one for each label; one of them may be
        "", for the value that was dropped from the encoding and shows as zeros in all the others.
    holds
        What a category's labels are for the model: "text" although they look like numbers or truth values, or "date".
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

    >>> job = Attribute(name="job", kind="category", labels=("Sales", "Tech"))
    >>> type(job).__name__, job.high, job.read(1), job.code_of("Tech")
    ('Category', 1, 'Tech', 1.0)
    """

    name: str
    kind: Kind
    low: float = 0
    high: float | None = None
    step: float | None = None
    labels: tuple[str, ...] = ()
    ranges: tuple[tuple[str, float], ...] = ()
    cuts: tuple[float, ...] = ()
    columns: tuple[str, ...] = ()
    holds: Holds | None = None
    protected: bool = False
    immutable: bool = False
    allowed: tuple[float, ...] = ()
    missing: Missing | None = None
    held: HeldValues | None = field(default=None, compare=False, repr=False)

    #: Whether codes are whole numbers.
    discrete: bool = _settled()
    #: The highest code, and the smallest change.
    upper: float = _settled()
    stride: float = _settled()
    #: The code of a missing value; None where nobody lacks one. For a category that of its own label. For a number it
    #: lies outside of the domain, so far below that no move from a value leads there: people of the table may have it,
    #: and keep it, but a search never invents it.
    gap: float | None = _settled()
    #: The table's columns that hold it: one of its own name, or those that it is spread over.
    own_columns: tuple[str, ...] = _settled()
    #: How many values there are, and how many of them twins take.
    count: int = _settled()
    twin_count: int = _settled()
    #: Whether twins take some of its values only, which stand for the others: ranges, or steps.
    representatives: bool = _settled()
    #: Whether people may have a value that twins do not take, or none: then their own is one more.
    open: bool = _settled()
    #: Whether twins may lack the value, beside those that they take; and whether they never take the missing one.
    _twins_lack: bool = _settled()
    _never_lack: bool = _settled()

    def __new__(cls, *, kind: str | None = None, **fields: Any) -> Attribute:
        """Makes ``Attribute(kind="integer", …)`` an ``Integer``, as a subject.toml says it."""
        if cls is not Attribute:
            return object.__new__(cls)
        if not isinstance(kind, str) or kind not in KINDS:
            raise SchemaError(f"attribute {fields.get('name')!r} has kind {kind!r}; use integer, category or real.")
        return object.__new__(KINDS[kind])

    def __post_init__(self) -> None:
        settled = vars(self)  # a frozen record settles what follows from its fields here, once
        settled |= {name: tuple(settled[name]) for name in ("labels", "columns", "cuts", "allowed")}
        settled["discrete"] = self.kind != "real"
        for name, known in (("missing", get_args(Missing)), ("holds", get_args(Holds))):
            stated = getattr(self, name)
            if stated not in (None, *known):
                raise SchemaError(f"attribute {self.name!r} has {name} = {stated!r}; {choose_from(str(stated), known)}")
        if not self.name or not self.name.strip():
            raise SchemaError(f"an attribute needs a name, but got {self.name!r}.")
        others = _OTHERS["category"] if self.kind == "category" else _OTHERS["number"] | _OTHERS.get(self.kind, {})
        for name, why in others.items():
            if getattr(self, name) and getattr(self, name) != 1:
                raise SchemaError(f"attribute {self.name!r} {why}")
        if self.kind == "category":
            self._check_category()
        else:
            self._check_number()
        if len(set(self.labels)) != len(self.labels):
            double = next(label for label in self.labels if self.labels.count(label) > 1)
            raise SchemaError(f"attribute {self.name!r} has the label {double!r} twice; labels must differ.")
        settled["own_columns"] = tuple(column for column in self.columns if column) or (self.name,)
        if self.allowed:
            self._check_allowed()
        if self.ranges or self.cuts:
            self._check_ranges()
        category, listed = self.kind == "category", len(self.allowed)
        count = listed or int(min(np.floor((self.upper - self.low) / self.stride + 1e-9), 1e18)) + 1
        told = self.gap is not None and (not listed or self.gap in self.allowed)
        never = category and self.missing != "value" and count > 1 and told
        lack = self.missing == "value" and not category
        taken = len(self.ranges) or count - never
        every = listed or int(self.upper - self.low) + 1
        some = taken < every - never or not (self.discrete or listed)
        settled |= {"count": count, "twin_count": taken + lack, "_twins_lack": lack, "_never_lack": never}
        settled |= {"representatives": some, "open": some or never or (self.missing == "model" and not category)}

    def _check_category(self) -> None:
        last = len(self.labels) - 1
        if last < 0:
            raise SchemaError(f"category {self.name!r} needs its labels, e.g. labels = ['Sales', 'Tech'].")
        if self.low != 0 or self.high not in (None, last):
            raise SchemaError(
                f"category {self.name!r} has {last + 1} labels, so its codes are 0 to {last}, "
                f"but low, high = {self.low:g}, {self.high}; leave low and high out."
            )
        if self.missing is not None and self.columns:
            raise SchemaError(f"attribute {self.name!r} is spread over columns, so that none of it can be missing.")
        if self.columns and len(self.columns) != len(self.labels):
            raise SchemaError(
                f"attribute {self.name!r} has {len(self.columns)} columns for {len(self.labels)} labels; only a "
                f'category has columns, one for each label, with "" for a value whose column was dropped.'
            )
        if len(set(self.columns)) != len(self.columns) or self.columns == ("",):
            raise SchemaError(
                f"attribute {self.name!r} has the columns {', '.join(map(repr, self.columns))}; they must differ, "
                f'and one at most may be "".'
            )
        lacks = (MISSING,) if self.missing is not None and MISSING not in self.labels else ()
        labels = (*self.labels, *lacks)
        gap = float(labels.index(MISSING)) if MISSING in labels else None
        last = len(labels) - 1
        vars(self).update(labels=labels, high=last, upper=last, step=1.0, stride=1.0, gap=gap)

    def _check_number(self) -> None:
        if self.high is None:
            raise SchemaError(f"attribute {self.name!r} needs a high bound; give low and high.")
        try:
            finite = math.isfinite(self.low) and math.isfinite(self.high)
        except OverflowError:
            raise SchemaError(
                f"attribute {self.name!r} has a bound of hundreds of digits; give one below 1e15."
            ) from None
        if self.discrete and max(abs(self.low), abs(self.high)) > MAX_WHOLE:
            raise SchemaError(
                f"attribute {self.name!r} has bounds beyond 1e15 ({self.low:g} to {self.high:g}), where whole numbers "
                f"are not exact; mend the cells, leave the column out, or give it another unit."
            )
        if not finite:
            raise SchemaError(f"attribute {self.name!r} needs finite bounds, but got {self.low} to {self.high}.")
        if self.low > self.high:
            raise SchemaError(
                f"attribute {self.name!r}: low <= high must hold, but got low = {self.low:g}, high = {self.high:g}."
            )
        if self.discrete and not (float(self.low).is_integer() and float(self.high).is_integer()):
            raise SchemaError(
                f"integer {self.name!r} has bounds {self.low:g} to {self.high:g}; use whole numbers or kind = 'real'."
            )
        if self.step is not None and abs(self.step) > _MAX_STEP:
            raise SchemaError(f"attribute {self.name!r} has a step beyond 1e300; a step is smaller than its range.")
        usual = 1.0 if self.discrete else (self.high - self.low) / 100 or 1.0
        step = usual if self.step is None else self.step
        gap = None if self.missing is None else math.floor(self.low - (self.high - self.low)) - 1.0
        vars(self).update(step=step, upper=self.high, stride=step, gap=gap)
        if not self.stride > 0 or not np.isfinite(self.stride):
            raise SchemaError(f"attribute {self.name!r} has step {self.stride:g}; a step is larger than 0.")
        if self.discrete and not float(self.stride).is_integer():
            raise SchemaError(f"attribute {self.name!r} has step {self.stride:g}; an {self.kind} moves in whole steps.")
        needed = int(self.high - self.low) + 1
        if self.labels and len(self.labels) != needed:
            raise SchemaError(
                f"attribute {self.name!r} has {len(self.labels)} labels for the {needed} codes "
                f"{self.low:g} to {self.high:g}; give one each."
            )

    def _check_allowed(self) -> None:
        codes = tuple(sorted({float(code) for code in self.allowed}))
        vars(self)["allowed"] = ()
        outside = next((code for code in codes if not self.valid(np.array([code]))[0]), None)
        if outside is not None:
            raise SchemaError(
                f"attribute {self.name!r} takes {self.low:g} to {self.upper:g}, but its values name {outside:g}; "
                f"drop it or widen the domain."
            )
        vars(self)["allowed"] = codes

    def _check_ranges(self) -> None:
        ranges = tuple((str(name), float(code)) for name, code in self.ranges)
        codes = [code for _, code in ranges]
        cuts = tuple(float(cut) for cut in self.cuts) or _default_cuts(ranges)
        vars(self).update(ranges=ranges, cuts=cuts)
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
        places = np.searchsorted(self.cuts, codes, side="right") if ranges else np.empty(0)
        if len(self.cuts) != max(0, len(ranges) - 1) or not np.array_equal(places, np.arange(len(ranges))):
            raise SchemaError(
                f"attribute {self.name!r} has cuts {shown(self.cuts)} for ranges at {shown(codes)}; a cut is the "
                f"lowest value of its range, so that there is one between each value and the next."
            )

    @property
    def numeric_labels(self) -> bool:
        """Whether it is a category with a number among its labels."""
        return self.kind == "category" and any(map(is_number, self.labels))

    @property
    def cuts_named(self) -> bool:
        """Whether the ranges' names and values alone say where they begin."""
        return self.cuts == _default_cuts(self.ranges)

    def shown_labels(self) -> tuple[str, ...]:
        """The labels as people read them: blanks around a cell show nothing, unless they tell two labels apart."""
        if not any(label[:1].isspace() or label[-1:].isspace() for label in self.labels):
            return self.labels
        bare = tuple(label.strip() for label in self.labels)
        return bare if len(set(bare)) == len(bare) and all(bare) else self.labels

    def values(self) -> Codes:
        """Every code from low to high in steps, or the allowed ones."""
        if self.allowed:
            return np.array(self.allowed)
        if self.count > _MAX_VALUES:
            raise SchemaError(
                f"attribute {self.name!r} has {self.count:,} values from {self.low:g} to {self.upper:g}, too many to "
                f"list; give it a larger step, or ranges."
            )
        return self.low + self.stride * np.arange(self.count, dtype=np.float64)

    def domain_values(self) -> Codes:
        """Every code that people can have: all whole numbers of an integer whatever its step, the steps of a real."""
        if self.allowed or not self.discrete or self.stride == 1:
            return self.values()
        if self.upper - self.low >= _MAX_VALUES:
            raise SchemaError(
                f"attribute {self.name!r} has {self.upper - self.low + 1:,.0f} values from {self.low:g} to "
                f"{self.upper:g}, too many to list; give it ranges."
            )
        return np.arange(self.low, self.upper + 1.0)

    @property
    def first(self) -> float:
        """The lowest value."""
        return self.allowed[0] if self.allowed else float(self.low)

    def twin_values(self) -> Codes:
        """The codes that twins take: one for each range where there are ranges, every value otherwise.

        A missing value is none of them, unless ``missing`` is "value".
        """
        values = np.array([code for _, code in self.ranges]) if self.ranges else self.values()
        if self._never_lack:
            return values[values != self.gap]
        return np.concatenate([[self.gap], values]) if self._twins_lack else values

    def twin_place(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Which of the ``twin_values()`` stands for each code, that of its range; −1 for a missing value that is none.

        Parameters
        ----------
        codes
            Codes of this attribute, (n,).
        """
        values = self.twin_values()
        if self.ranges:
            place = np.searchsorted(self.cuts, codes, side="right") + self._twins_lack
        else:
            place = nearest(values, codes)
        if self.gap is None:
            return place
        gone = np.flatnonzero(values == self.gap)
        return np.where(codes == self.gap, gone[0] if len(gone) else -1, place)

    def clip(self, codes: Codes) -> Codes:
        """The nearest valid codes; a missing value stays one.

        Parameters
        ----------
        codes
            Codes of this attribute, any shape.
        """
        if self.allowed:
            inside = self.values()[nearest(self.values(), codes)]
        else:
            inside = np.clip(codes, self.low, self.upper)
            inside = np.rint(inside) if self.discrete else inside
        return inside if self.gap is None else np.where(codes == self.gap, self.gap, inside)

    def valid(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Which codes lie in the domain; NaN never does, the code of a missing value does where one may be missing.

        Parameters
        ----------
        codes
            Codes of this attribute, any shape.
        """
        if self.allowed:
            inside = np.isin(codes, self.allowed)
        else:
            inside = (codes >= self.low) & (codes <= self.upper)
            inside = inside & (codes == np.rint(codes)) if self.discrete else inside
        return inside if self.missing is None else inside | (codes == self.gap)

    def read(self, code: float) -> str:
        """The label or number that a code stands for, or the word for a missing value.

        Parameters
        ----------
        code
            A code of this attribute.

        Raises
        ------
        SchemaError
            If the attribute has labels and none for this code.
        """
        if code == self.gap:
            return MISSING
        if self.labels:
            place = round(code - self.low)
            if not 0 <= place < len(self.labels):
                raise SchemaError(f"attribute {self.name!r} takes {self.domain_text()}, but got {code:g}.")
            return self.shown_labels()[place]
        if self.discrete:
            return str(round(code))
        short = f"{code:g}"
        return short if abs(float(short) - code) <= self.stride / 2 else f"{code:.12g}"

    def read_twin(self, code: float) -> str:
        """The label of a twin's code: the name of its range where the attribute has ranges.

        Parameters
        ----------
        code
            One of ``twin_values()``.
        """
        return next((name for name, value in self.ranges if value == code), None) or self.read(code)

    def domain_text(self) -> str:
        """The domain in words."""
        return f"{shown(self.allowed)}" if self.allowed else f"{self.low:g} to {self.upper:g}"

    def code_of(self, text: str) -> float:
        """The code of a label, or of a number given as text; it is inside the domain.

        Parameters
        ----------
        text
            A label, a number written as text, or the word for a missing value.

        Raises
        ------
        SchemaError
            If there is no such label, or the number is outside the domain.
        """
        if text == MISSING and self.gap is not None:
            return self.gap
        labels = self.labels if text in self.labels else self.shown_labels()
        if text in labels:
            code = float(self.low + labels.index(text))
        else:
            try:
                code = float(text)
            except ValueError:
                remedy = choose_from(text, self.labels) if self.labels else "it takes a number."
                raise SchemaError(f"attribute {self.name!r} has no value {text!r}; {remedy}") from None
        if not self.valid(np.array([code]))[0]:
            raise SchemaError(f"attribute {self.name!r} takes {self.domain_text()}, but got {text}.")
        return code


@dataclass(frozen=True, kw_only=True)
class Integer(Attribute):
    """A whole number from ``low`` to ``high``; parameters as of :class:`Attribute`.

    >>> Integer(name="age", low=18, high=80).count
    63
    """

    kind: Kind = "integer"


@dataclass(frozen=True, kw_only=True)
class Real(Attribute):
    """A number with decimals from ``low`` to ``high``; parameters as of :class:`Attribute`.

    >>> Real(name="income", high=5.0).step
    0.05
    """

    kind: Kind = "real"


@dataclass(frozen=True, kw_only=True)
class Category(Attribute):
    """One of several words; its code is the position of the word among the labels. Parameters as of :class:`Attribute`.

    >>> Category(name="job", labels=("Sales", "Tech")).code_of("Tech")
    1.0
    """

    kind: Kind = "category"


KINDS: dict[str, type[Attribute]] = {"integer": Integer, "category": Category, "real": Real}


#: A number with marks in or around it: 3,487.78 or $1 200.
AMOUNT = re.compile(r"(?!\d+$)\W*\d[\d.,'’\s]*\W*")
#: Labels for each that is no number, at least, where a category looks like a number.
_ENOUGH = 4


def is_number(value: object) -> bool:
    """Whether a text spells a number."""
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def written_otherwise(attributes: Iterable[Attribute]) -> str:
    """What to do about a category that looks like a number with a mark for what is missing, or with marks in it: its
    owner probably read the table with pandas' ``na_values=`` or ``thousands=``. Nothing where there is none.
    """
    for one in attributes:
        texts = [] if one.columns else [label for label in one.labels if label != MISSING]
        strange = [label for label in texts if not is_number(label)]
        what = f"{strange[0]!r} of {one.name!r}" if strange else ""
        if strange and len(texts) >= _ENOUGH and all(AMOUNT.fullmatch(label) for label in strange):
            return f"write numbers such as {what} plainly in the table, and describe the column anew (fairbits init)"
        if strange and len(texts) >= _ENOUGH * len(strange):
            mean = "means that the value is missing, leave such cells of the table empty"
            return f"if {what}, which stands beside numbers, {mean} and describe the column anew (fairbits init)"
    return ""


def nearest(values: Codes, codes: Codes) -> npt.NDArray[np.int64]:
    """Position of the nearest of some sorted values, for each code."""
    right = np.clip(np.searchsorted(values, codes), 1 if len(values) > 1 else 0, len(values) - 1)
    left = np.maximum(right - 1, 0)
    return np.where(np.abs(codes - values[left]) <= np.abs(values[right] - codes), left, right)


def shown(codes: Sequence[float], *, max_shown: int = 8) -> str:
    """Some codes as text: the first ``max_shown`` of them, and how many there are."""
    text = ", ".join(f"{code:g}" for code in codes[:max_shown])
    return f"{text}, … ({len(codes)} in all)" if len(codes) > max_shown else text


def _named_cuts(ranges: tuple[tuple[str, float], ...]) -> tuple[float, ...]:
    """The cuts that names such as "32–38" spell out; nothing where the names say something else."""
    ends = [_RANGE.fullmatch(name.strip()) for name, _ in ranges]
    spans = [(float(e[1]), float(e[2] or e[1])) for e in ends if e is not None]
    inside = [low <= code <= high for (low, high), (_, code) in zip(spans, ranges, strict=False)]
    rising = all(high <= low for (_, high), (low, _) in pairwise(spans))
    fits = len(spans) == len(ranges) and any(low < high for low, high in spans) and all(inside) and rising
    return tuple(low for low, _ in spans[1:]) if fits else ()


def _default_cuts(ranges: tuple[tuple[str, float], ...]) -> tuple[float, ...]:
    """By the names, or half-way between the values, where the middle itself belongs to the lower one."""
    between = pairwise(code for _, code in ranges)
    return _named_cuts(ranges) or tuple(float(np.nextafter((low + high) / 2, high)) for low, high in between)
