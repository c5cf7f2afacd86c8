"""UBJSON (universal binary JSON, draft 12), as XGBoost writes it: read as data, with every length checked.

Typed arrays become NumPy arrays; everything else plain Python values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairbits.models.trees.tree import Damaged

_SCALARS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_CONSTANTS: dict[bytes, Any] = {b"Z": None, b"T": True, b"F": False}
_MAX_DEPTH = 64


def read_ubjson(content: bytes) -> Any:
    """The document in a file."""
    reader = _Reader(content)
    return reader.value(reader.marker(), 0)


class _Reader:
    """A place in the bytes that moves on with everything that is read."""

    def __init__(self, content: bytes):
        self._content = content
        self._at = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._content):
            raise Damaged("it ends in the middle: the UBJSON is cut off or damaged.")
        self._at += count
        return self._content[self._at - count : self._at]

    def marker(self) -> bytes:
        found = self.take(1)
        while found == b"N":  # no-op
            found = self.take(1)
        return found

    def value(self, marker: bytes, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise Damaged(f"its UBJSON is nested deeper than {_MAX_DEPTH} levels.")
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker in _SCALARS:
            kind = np.dtype(_SCALARS[marker])
            return np.frombuffer(self.take(kind.itemsize), dtype=kind)[0].item()
        if marker == b"C":
            return self.take(1).decode("latin-1")
        if marker in (b"S", b"H"):
            return self.text()
        if marker == b"[":
            return self._array(depth)
        if marker == b"{":
            return self._object(depth)
        raise Damaged(f"its UBJSON has the unknown mark {marker!r}.")

    def length(self) -> int:
        marker = self.marker()
        if marker not in (b"i", b"U", b"I", b"l", b"L"):
            raise Damaged(f"its UBJSON has the mark {marker!r} where a length belongs.")
        return int(self.value(marker, 0))

    def text(self) -> str:
        return self.take(self.length()).decode("utf-8", errors="replace")

    def _counted(self) -> tuple[bytes | None, int | None, bytes]:
        """The type and number of what follows, where they are stated, and the mark after that."""
        kind, count, marker = None, None, self.marker()
        if marker == b"$":
            kind, marker = self.take(1), self.marker()
        if marker == b"#":
            count, marker = self.length(), b""
        elif kind is not None:
            raise Damaged("its UBJSON states a type, but no number.")
        if count is not None and (count < 0 or (count > len(self._content) and kind not in _CONSTANTS)):
            raise Damaged(f"its UBJSON announces {count:,} entries, more than the file has bytes.")
        return kind, count, marker

    def _array(self, depth: int) -> Any:
        kind, count, marker = self._counted()
        if kind in _SCALARS and count is not None:
            dtype = np.dtype(_SCALARS[kind])
            return np.frombuffer(self.take(count * dtype.itemsize), dtype=dtype).astype(dtype.newbyteorder("="))
        if count is not None:
            if kind in _CONSTANTS:
                raise Damaged("its UBJSON has an array of constants, which XGBoost never writes.")
            return [self.value(kind or self.marker(), depth + 1) for _ in range(count)]
        found = []
        while marker != b"]":
            found.append(self.value(marker, depth + 1))
            marker = self.marker()
        return found

    def _object(self, depth: int) -> dict[str, Any]:
        kind, count, marker = self._counted()
        found: dict[str, Any] = {}
        if count is not None:
            for _ in range(count):
                key = self.text()
                found[key] = self.value(kind or self.marker(), depth + 1)
            return found
        while marker != b"}":
            if marker not in (b"i", b"U", b"I", b"l", b"L"):
                raise Damaged(f"its UBJSON has the mark {marker!r} where a name belongs.")
            key = self.take(int(self.value(marker, 0))).decode("utf-8", errors="replace")
            found[key] = self.value(self.marker(), depth + 1)
            marker = self.marker()
        return found
