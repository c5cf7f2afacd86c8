"""Cases on their way to a part: many small appends that become one batch of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairbits.domain import Codes
from fairbits.store.cases import Layout

Figures = Mapping[str, Any]
#: Gives the figures of people that follow from their codes alone.
Complete = Callable[[Codes], Figures]


def nothing_more(codes: Codes) -> Figures:  # noqa: ARG001
    """Default callback for cases that are appended with all of their figures: nothing to add."""
    return {}


class Block:
    """Rows as they were appended, and, once settled, as a batch.

    Settling is the expensive part and can happen in another thread, for all rows at once: ``complete`` is asked
    there for the figures that the search has no need of.
    """

    def __init__(self, layout: Layout, complete: Complete):
        self.rows = 0
        self._layout = layout
        self._complete = complete
        self._pieces: list[tuple[Codes, dict[str, npt.NDArray[Any]], npt.NDArray[np.str_], npt.NDArray[Any]]] = []
        self._batch: pa.RecordBatch | None = None

    def add(self, codes: Codes, figures: Figures, origin: Any, bucket: Any = 0) -> None:
        """Copy some rows; a single figure, origin or bucket counts for all of them."""
        rows = len(codes)
        columns = {name: np.array(np.broadcast_to(value, rows)) for name, value in figures.items()}
        buckets = np.array(np.broadcast_to(np.asarray(bucket, dtype=np.int16), rows))
        self._pieces.append((np.array(codes), columns, np.array(origin, dtype=np.str_), buckets))
        self.rows += rows

    def settle(self) -> None:
        """Make the batch, unless it is made already."""
        if self._batch is not None:
            return
        codes = np.concatenate([piece[0] for piece in self._pieces])
        names = self._pieces[0][1]
        figures = {name: np.concatenate([piece[1][name] for piece in self._pieces]) for name in names}
        origins = np.concatenate([np.broadcast_to(piece[2], len(piece[0])) for piece in self._pieces])
        buckets = np.concatenate([piece[3] for piece in self._pieces])
        self._batch = self._layout.batch(codes, {**figures, **self._complete(codes)}, origins, buckets)
        self._pieces = []

    def batch(self) -> pa.RecordBatch:
        """The rows as they are stored."""
        self.settle()
        return self._batch
