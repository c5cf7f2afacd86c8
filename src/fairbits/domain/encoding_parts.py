"""What one attribute becomes among the inputs: a number, a row of a table, or nothing that the model sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import Codes
from fairbits.errors import ROW, TableError


def table_rows(codes: Codes, low: int, size: int) -> npt.NDArray[np.int64]:
    """Row numbers in a table that has one row for each code from ``low`` on."""
    whole = np.rint(codes)
    outside = ~((whole >= low) & (whole < low + size))  # true for NaN as well
    if outside.any():
        row = int(np.argmax(outside))
        raise TableError.of_row(
            f"a code is {codes[row]:g} in {ROW}, but this attribute takes {low} to {low + size - 1}; "
            f"check the table against its schema.",
            row,
        )
    return whole.astype(np.int64) - low


@dataclass(frozen=True, slots=True)
class Numeric:
    """One input: ``(code − shift) · scale``, or NaN for the code that says that a value is missing (``gap``)."""

    column: int
    shift: float = 0.0
    scale: float = 1.0
    gap: float | None = None

    @property
    def columns(self) -> npt.NDArray[np.int64]:
        """The inputs that this part fills."""
        return np.array([self.column])

    def encode(self, codes: Codes) -> npt.NDArray[np.float64]:
        """Encode codes as one input each."""
        inputs = (codes - self.shift) * self.scale
        return (inputs if self.gap is None else np.where(codes == self.gap, np.nan, inputs))[:, None]

    def pull_back(self, gradient: npt.NDArray[np.floating], codes: Codes) -> Codes:
        """Gradient with respect to the code, from the gradient with respect to the input."""
        slope = np.asarray(gradient[:, 0] * self.scale, dtype=np.float64)
        return slope if self.gap is None else np.where(codes == self.gap, 0.0, slope)


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """Several inputs: row ``code − low`` of a table (one-hot, ordinal, any fixed embedding)."""

    columns: npt.NDArray[np.int64]
    table: npt.NDArray[np.float64]
    low: int = 0

    def __post_init__(self) -> None:
        # Copies: whoever handed them over may go on changing theirs.
        object.__setattr__(self, "columns", np.array(self.columns, dtype=np.int64))
        object.__setattr__(self, "table", np.array(self.table, dtype=np.float64))

    def encode(self, codes: Codes) -> npt.NDArray[np.float64]:
        """Encode codes as rows of the table."""
        return self.table[self._rows(codes)]

    def pull_back(self, gradient: npt.NDArray[np.floating], codes: Codes) -> Codes:
        """Change of the output per step of code, to first order: the mean of one step up and one step down."""
        effect = np.asarray(gradient @ self.table.T, dtype=np.float64)
        rows = self._rows(codes)
        up = np.minimum(rows + 1, len(self.table) - 1)
        down = np.maximum(rows - 1, 0)
        people = np.arange(len(rows))
        return np.asarray((effect[people, up] - effect[people, down]) / np.maximum(up - down, 1), dtype=np.float64)

    def _rows(self, codes: Codes) -> npt.NDArray[np.int64]:
        return table_rows(codes, self.low, len(self.table))


@dataclass(frozen=True, slots=True)
class Unseen:
    """No input at all: the model never gets this attribute."""

    @property
    def columns(self) -> npt.NDArray[np.int64]:
        """The inputs that this part fills: none."""
        return np.empty(0, dtype=np.int64)

    def encode(self, codes: Codes) -> npt.NDArray[np.float64]:
        """Encode codes as no inputs at all."""
        return np.empty((len(codes), 0))

    def pull_back(self, gradient: npt.NDArray[np.floating], codes: Codes) -> Codes:  # noqa: ARG002
        """Gradient with respect to the code: zero, since the model does not see it."""
        return np.zeros(len(codes))


Part = Numeric | Lookup | Unseen
