"""One attribute of a person: what values it may take, and how people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from fairbits.errors import SchemaError, choose_from

Kind = Literal["integer", "category", "real"]
#: What the table holds where labels look like something else: text, or dates.
Holds = Literal["text", "date"]
#: What a missing value is: left to the model, or a value like any other, which twins take too.
Missing = Literal["model", "value"]
Codes = npt.NDArray[np.float64]

#: A missing entry of a category column is this label, where the attribute has it.
MISSING = "(missing)"

#: Values that are ever listed one by one, and whole numbers that a code holds exactly.
_MAX_VALUES, _MAX_WHOLE, _MAX_STEP = 20_000_000, 10**15, 10**300


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A named value with a domain.

    Inside fairbits a value is a *code*: integers and reals as they are, a category as the position of its label.
    Integers may carry labels too, one for each code from ``low`` to ``high`` (age code 3 reads "30–39").

    ``allowed`` narrows the domain to a set of codes (a code book that knows 3, 6 and 7 only); empty means all of them.
    ``immutable`` attributes are not protected, but a search may not change them either. ``ranges`` are for a protected
    number with too many values: (name, code) pairs, the codes that twins take instead of every value there is.
    ``columns`` are the 0/1 columns of an already encoded table that make up this category, one for each label; one of
    them may be "", for the value that was dropped from the encoding and shows as zeros in all the others.

    ``missing`` says that people may lack a value: "model" leaves it to the model, which gets NaN and fills its own
    gaps, and no twin takes it; "value" makes it a value that twins of a protected attribute take as well. ``holds``
    says what labels are for the model: "text" although they look like numbers or truth values, or "date".

    >>> job = Attribute(name="job", kind="category", labels=("Sales", "Tech"))
    >>> job.high, job.read(1), job.code_of("Tech")
    (1, 'Tech', 1.0)
    """

    name: str
    kind: Kind
    low: float = 0
    high: float | None = None
    step: float | None = None
    labels: tuple[str, ...] = ()
    protected: bool = False
    immutable: bool = False
    allowed: tuple[float, ...] = ()
    ranges: tuple[tuple[str, float], ...] = ()
    columns: tuple[str, ...] = ()
    missing: Missing | None = None
    holds: Holds | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "columns", tuple(self.columns))
        if self.missing not in (None, *get_args(Missing)):
            remedy = choose_from(str(self.missing), get_args(Missing))
            raise SchemaError(f"attribute {self.name!r} has missing = {self.missing!r}; {remedy}")
        if self.holds not in (None, *get_args(Holds)):
            remedy = choose_from(str(self.holds), get_args(Holds))
            raise SchemaError(f"attribute {self.name!r} has holds = {self.holds!r}; {remedy}")
        if self.missing is not None and self.columns:
            raise SchemaError(f"attribute {self.name!r} is spread over columns, so that none of it can be missing.")
        if self.missing is not None and self.kind == "category" and self.labels and MISSING not in self.labels:
            object.__setattr__(self, "labels", (*self.labels, MISSING))
        if not self.name or not self.name.strip():
            raise SchemaError(f"an attribute needs a name, but got {self.name!r}.")
        if self.kind not in get_args(Kind):
            raise SchemaError(f"attribute {self.name!r} has kind {self.kind!r}; use integer, category or real.")
        if self.kind == "category":
            self._complete_category()
        self._check_bounds()
        self._check_step()
        self._check_labels()
        self._check_allowed()
        self._check_ranges()

    def _complete_category(self) -> None:
        if not self.labels:
            raise SchemaError(f"category {self.name!r} needs its labels, e.g. labels = ['Sales', 'Tech'].")
        last = len(self.labels) - 1
        if self.low != 0 or self.high not in (None, last):
            raise SchemaError(
                f"category {self.name!r} has {last + 1} labels, so its codes are 0 to {last}, "
                f"but low, high = {self.low:g}, {self.high}; leave low and high out."
            )
        object.__setattr__(self, "high", last)

    def _check_bounds(self) -> None:
        if self.high is None:
            raise SchemaError(f"attribute {self.name!r} needs a high bound; give low and high.")
        try:
            finite = math.isfinite(self.low) and math.isfinite(self.high)
        except OverflowError:
            raise SchemaError(
                f"attribute {self.name!r} has a bound of hundreds of digits; give one below 1e15."
            ) from None
        if self.kind != "real" and max(abs(self.low), abs(self.high)) > _MAX_WHOLE:
            raise SchemaError(f"attribute {self.name!r} has bounds beyond 1e15, where whole numbers are not exact.")
        if not finite:
            raise SchemaError(f"attribute {self.name!r} needs finite bounds, but got {self.low} to {self.high}.")
        if self.low > self.high:
            raise SchemaError(
                f"attribute {self.name!r}: low <= high must hold, but got low = {self.low:g}, high = {self.high:g}."
            )
        whole = float(self.low).is_integer() and float(self.high).is_integer()
        if self.kind == "integer" and not whole:
            raise SchemaError(
                f"integer {self.name!r} has bounds {self.low:g} to {self.high:g}; use whole numbers or kind = 'real'."
            )

    def _check_step(self) -> None:
        if self.step is not None and abs(self.step) > _MAX_STEP:
            raise SchemaError(f"attribute {self.name!r} has a step beyond 1e300; a step is smaller than its range.")
        if self.step is None:
            # A real attribute moves by a hundredth of its range unless told otherwise.
            default = 1.0 if self.kind != "real" else (self.upper - self.low) / 100 or 1.0
            object.__setattr__(self, "step", default)
        step = self.stride
        if not step > 0 or not np.isfinite(step):
            raise SchemaError(f"attribute {self.name!r} has step {step:g}; a step is larger than 0.")
        if self.kind != "real" and not float(step).is_integer():
            raise SchemaError(f"attribute {self.name!r} has step {step:g}; an {self.kind} moves in whole steps.")

    def _check_labels(self) -> None:
        if not self.labels:
            if self.columns:
                raise SchemaError(f"attribute {self.name!r} has columns but no labels; only a category has columns.")
            return
        if self.kind == "real":
            raise SchemaError(f"real attribute {self.name!r} cannot have labels; drop them or use kind = 'integer'.")
        if len(set(self.labels)) != len(self.labels):
            double = next(label for label in self.labels if self.labels.count(label) > 1)
            raise SchemaError(f"attribute {self.name!r} has the label {double!r} twice; labels must differ.")
        needed = int(self.upper - self.low) + 1
        if len(self.labels) != needed:
            raise SchemaError(
                f"attribute {self.name!r} has {len(self.labels)} labels for the {needed} codes "
                f"{self.low:g} to {self.upper:g}; give one each."
            )
        if self.columns:
            self._check_columns()

    def _check_columns(self) -> None:
        if self.kind != "category" or len(self.columns) != len(self.labels):
            raise SchemaError(
                f"attribute {self.name!r} has {len(self.columns)} columns for {len(self.labels)} labels; only a "
                f'category has columns, one for each label, with "" for a value whose column was dropped.'
            )
        if len(set(self.columns)) != len(self.columns) or self.columns == ("",):
            raise SchemaError(
                f"attribute {self.name!r} has the columns {', '.join(map(repr, self.columns))}; they must differ, "
                f'and one at most may be "".'
            )

    def _check_allowed(self) -> None:
        codes = tuple(sorted({float(code) for code in self.allowed}))
        object.__setattr__(self, "allowed", ())
        outside = next((code for code in codes if not self.valid(np.array([code]))[0]), None)
        if outside is not None:
            raise SchemaError(
                f"attribute {self.name!r} takes {self.low:g} to {self.upper:g}, but its values name {outside:g}; "
                f"drop it or widen the domain."
            )
        object.__setattr__(self, "allowed", codes)

    def _check_ranges(self) -> None:
        ranges = tuple((str(name), float(code)) for name, code in self.ranges)
        object.__setattr__(self, "ranges", ranges)
        codes = [code for _, code in ranges]
        if codes != sorted(set(codes)):
            raise SchemaError(f"attribute {self.name!r} has ranges {_shown(codes)}; their values must rise.")
        if len({name for name, _ in ranges}) != len(ranges):
            raise SchemaError(f"attribute {self.name!r} has two ranges of the same name; names must differ.")
        for name, code in ranges:
            if not self.valid(np.array([code]))[0]:
                raise SchemaError(
                    f"range {name!r} of attribute {self.name!r} stands at {code:g}, which is not one of its values; "
                    f"choose one within {self.low:g} to {self.upper:g}."
                )

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The table's columns that hold it: one of its own name, or those that it is spread over."""
        return tuple(column for column in self.columns if column) or (self.name,)

    @property
    def upper(self) -> float:
        """``high``, which is always known once the attribute exists."""
        assert self.high is not None  # noqa: S101 - set in __post_init__, said here for the type checker
        return self.high

    @property
    def stride(self) -> float:
        """``step``, which is always known once the attribute exists."""
        assert self.step is not None  # noqa: S101 - set in __post_init__, said here for the type checker
        return self.step

    @property
    def discrete(self) -> bool:
        """Whether codes are whole numbers."""
        return self.kind != "real"

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
        if self.allowed or self.kind == "real" or self.stride == 1:
            return self.values()
        if self.upper - self.low >= _MAX_VALUES:
            raise SchemaError(
                f"attribute {self.name!r} has {self.upper - self.low + 1:,.0f} values from {self.low:g} to "
                f"{self.upper:g}, too many to list; give it ranges."
            )
        return np.arange(self.low, self.upper + 1.0)

    @property
    def count(self) -> int:
        """How many values there are, without listing them."""
        if self.allowed:
            return len(self.allowed)
        return int(np.floor((self.upper - self.low) / self.stride + 1e-9)) + 1

    @property
    def gap(self) -> float | None:
        """The code of a missing value; None where nobody lacks one.

        A category has a label for it. A number has a code outside of its domain, so far below that no move from a
        value leads there: people of the table may have it, and keep it, but a search never invents it.
        """
        if self.kind == "category":
            return float(self.labels.index(MISSING)) if MISSING in self.labels else None
        return None if self.missing is None else math.floor(self.low - (self.upper - self.low)) - 1.0

    @property
    def twin_count(self) -> int:
        """How many values twins take, without listing them."""
        if self.ranges:
            return len(self.ranges) + self._number_twin
        return self.count - self._left_out + self._number_twin

    @property
    def _number_twin(self) -> int:
        """Whether twins of a number may lack it, beside its values."""
        return int(self.missing == "value" and self.kind != "category")

    @property
    def _left_out(self) -> int:
        """Whether one of a category's values is its missing one, which no twin takes."""
        gap = self.gap
        there = gap is not None and self.kind == "category" and (not self.allowed or gap in self.allowed)
        return int(there and self.missing != "value" and self.count > 1)

    @property
    def first(self) -> float:
        """The lowest value."""
        return self.allowed[0] if self.allowed else float(self.low)

    def twin_values(self) -> Codes:
        """The codes that twins take: one for each range where there are ranges, every value otherwise.

        A missing value is none of them, unless ``missing`` is "value".
        """
        values = np.array([code for _, code in self.ranges]) if self.ranges else self.values()
        if self._left_out:
            return values[values != self.gap]
        return np.concatenate([[self.gap], values]) if self._number_twin else values

    def clip(self, codes: Codes) -> Codes:
        """The nearest valid codes; a missing value stays one.

        Parameters
        ----------
        codes
            Codes of this attribute, any shape.

        Returns
        -------
        Codes
            The nearest valid codes; the code of a missing value stays as it is.
        """
        if self.allowed:
            inside = self.values()[nearest(self.values(), codes)]
        else:
            inside = np.clip(codes, self.low, self.upper)
            inside = np.rint(inside) if self.discrete else inside
        return inside if self.gap is None else np.where(codes == self.gap, self.gap, inside)

    def valid(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Which codes lie in the domain.

        Parameters
        ----------
        codes
            Codes of this attribute, any shape.

        Returns
        -------
        npt.NDArray[np.bool_]
            True where the code is in the domain; NaN never is, the code of a missing value is where one may be missing.
        """
        if self.allowed:
            inside = np.isin(codes, self.allowed)
        else:
            inside = (codes >= self.low) & (codes <= self.upper)
            inside = inside & (codes == np.rint(codes)) if self.discrete else inside
        return inside if self.missing is None else inside | (codes == self.gap)

    def read(self, code: float) -> str:
        """The label or number that a code stands for.

        Parameters
        ----------
        code
            A code of this attribute.

        Returns
        -------
        str
            The label, the number as text, or the word for a missing value.

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
            return self.labels[place]
        return f"{code:g}" if self.kind == "real" else str(round(code))

    def read_twin(self, code: float) -> str:
        """The label of a twin's code: the name of its range where the attribute has ranges.

        Parameters
        ----------
        code
            One of ``twin_values()``.

        Returns
        -------
        str
            Name of the range, or the label or number as by ``read``.
        """
        return next((name for name, value in self.ranges if value == code), None) or self.read(code)

    def domain_text(self) -> str:
        """The domain in words."""
        return f"{_shown(self.allowed)}" if self.allowed else f"{self.low:g} to {self.upper:g}"

    def code_of(self, text: str) -> float:
        """The code of a label, or of a number given as text.

        Parameters
        ----------
        text
            A label, a number written as text, or the word for a missing value.

        Returns
        -------
        float
            The code, which is inside the domain.

        Raises
        ------
        SchemaError
            If there is no such label, or the number is outside the domain.
        """
        if text == MISSING and self.gap is not None:
            return self.gap
        if text in self.labels:
            code = float(self.low + self.labels.index(text))
        else:
            try:
                code = float(text)
            except ValueError:
                remedy = choose_from(text, self.labels) if self.labels else "it takes a number."
                raise SchemaError(f"attribute {self.name!r} has no value {text!r}; {remedy}") from None
        if not self.valid(np.array([code]))[0]:
            raise SchemaError(f"attribute {self.name!r} takes {self.domain_text()}, but got {text}.")
        return code


def nearest(values: Codes, codes: Codes) -> npt.NDArray[np.int64]:
    """Position of the nearest of some sorted values, for each code.

    Parameters
    ----------
    values
        Values in rising order, (v,).
    codes
        Codes to place, any shape.

    Returns
    -------
    npt.NDArray[np.int64]
        Positions in ``values``; the lower one where two are equally near.
    """
    right = np.clip(np.searchsorted(values, codes), 1 if len(values) > 1 else 0, len(values) - 1)
    left = np.maximum(right - 1, 0)
    return np.where(np.abs(codes - values[left]) <= np.abs(values[right] - codes), left, right)


def _shown(codes: Sequence[float], *, most: int = 8) -> str:
    shown = ", ".join(f"{code:g}" for code in codes[:most])
    return f"{shown}, … ({len(codes)} in all)" if len(codes) > most else shown
