"""Arrow columns as NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa


def numpy_of(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """The values of a numeric or Boolean column, as an array of its own.

    Arrow's own ``to_numpy`` imports pandas, which takes longer than reading most tables.
    """
    import pyarrow as pa

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_boolean(array.type):
        if array.null_count:
            raise ValueError("a column of truth values has gaps.")
        packed = np.frombuffer(array.buffers()[1] or b"", np.uint8)  # a cast would import all of Arrow's functions
        return np.unpackbits(packed, bitorder="little")[array.offset : array.offset + len(array)].astype(np.bool_)
    if array.null_count:
        array = array.cast(pa.float64(), safe=False).fill_null(np.nan)
    values: npt.NDArray[Any] = np.from_dlpack(array).copy()
    return values
