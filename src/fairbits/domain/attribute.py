"""One attribute of a person: what values it may take, and how people read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from fairbits.errors import SchemaError, choose_from

Kind = Literal["integer", "category", "real"]
Codes = npt.NDArray[np.float64]

#: A missing entry of a category column is this label, where the attribute has it.
MISSING = "(missing)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A named value with a domain.

    Inside fairbits a value is a *code*: integers and reals as they are, a category as the position of its label.
    Integers may carry labels too, one for each code from ``low`` to ``high`` (age code 3 reads "30–39").

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        if not self.name or not self.name.strip():
            raise SchemaError(f"an attribute needs a name, but got {self.name!r}.")
        if self.kind not in get_args(Kind):
            raise SchemaError(f"attribute {self.name!r} has kind {self.kind!r}; use integer, category or real.")
        if self.kind == "category":
            self._complete_category()
        self._check_bounds()
        self._check_step()
        self._check_labels()

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
        if not (np.isfinite(self.low) and np.isfinite(self.high)):
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
        """Every code from low to high in steps."""
        count = int(np.floor((self.upper - self.low) / self.stride + 1e-9)) + 1
        return self.low + self.stride * np.arange(count, dtype=np.float64)

    def clip(self, codes: Codes) -> Codes:
        """The nearest valid codes."""
        inside = np.clip(codes, self.low, self.upper)
        return np.rint(inside) if self.discrete else inside

    def valid(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Which codes lie in the domain (NaN never does)."""
        inside = (codes >= self.low) & (codes <= self.upper)
        return inside & (codes == np.rint(codes)) if self.discrete else inside

    def read(self, code: float) -> str:
        """One code as people read it."""
        if self.labels:
            return self.labels[round(code - self.low)]
        return f"{code:g}" if self.kind == "real" else str(round(code))

    def code_of(self, text: str) -> float:
        """The code of a label, or of a number given as text."""
        if text in self.labels:
            return float(self.low + self.labels.index(text))
        try:
            code = float(text)
        except ValueError:
            remedy = choose_from(text, self.labels) if self.labels else "it takes a number."
            raise SchemaError(f"attribute {self.name!r} has no value {text!r}; {remedy}") from None
        if not self.valid(np.array([code]))[0]:
            raise SchemaError(f"attribute {self.name!r} takes {self.low:g} to {self.upper:g}, but got {text}.")
        return code
