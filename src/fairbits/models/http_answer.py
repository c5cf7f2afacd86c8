"""What a service answers: unpacked within its limits, and read as scores."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

import lazy_loader

from fairbits.text import shortened

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = lazy_loader.load("asyncio")  # every command knows endpoints, few ask one


class BadAnswerError(Exception):
    """An answer that no further try will mend."""


async def content_of(answer: Any, limit: int) -> bytes:
    """The body of an answer, unpacked, and never more of it than the limit."""
    coding = answer.headers.get("content-encoding", "identity").strip().lower() or "identity"
    if coding not in _UNPACKERS:
        raise BadAnswerError(
            f"answered in the encoding {shortened(coding, 40)!r}, though none was asked for; turn that off."
        )
    unpacker = _Unpacker(_UNPACKERS[coding], limit)
    packed, found = 0, bytearray()
    async for piece in answer.aiter_raw():
        packed += len(piece)
        found += unpacker.unpack(piece)
        if packed > limit or len(found) > limit:
            raise BadAnswerError(
                f"answered more than {limit:,} bytes{' unpacked' if packed <= limit else ''}, far more than the scores "
                f"take; see what it sends."
            )
    unpacker.end()
    return bytes(found)


#: What zlib is told for each encoding of an answer that is read; None where nothing is packed.
_UNPACKERS: dict[str, int | None] = {
    "identity": None,
    "gzip": 16 + zlib.MAX_WBITS,
    "x-gzip": 16 + zlib.MAX_WBITS,
    "deflate": zlib.MAX_WBITS,
}


class _Unpacker:
    """Unpacks an answer piece by piece, at most so many bytes of each, and knows whether it came to its end."""

    def __init__(self, kind: int | None, limit: int):
        self._inflater = None if kind is None else zlib.decompressobj(kind)
        self._limit = limit

    def unpack(self, piece: bytes) -> bytes:
        if self._inflater is None:
            return piece
        try:
            return self._inflater.decompress(piece, self._limit + 1)
        except zlib.error as error:
            raise BadAnswerError(f"answered packed bytes that cannot be unpacked ({error}).") from None

    def end(self) -> None:
        if self._inflater is None:
            return
        if not self._inflater.eof:
            raise BadAnswerError("answered packed bytes that end too early; see what it sends.")
        if self._inflater.unused_data:
            raise BadAnswerError("answered more after the end of its packed bytes; see what it sends.")


def scores_in(content: bytes) -> list[float]:
    """The list under "scores" of a JSON document."""
    document = json.loads(content, object_pairs_hook=_named_once)
    scores = document["scores"] if isinstance(document, dict) else None
    if not isinstance(scores, list):
        raise ValueError("no list")
    if any(type(score) not in (int, float) for score in scores):  # True is an int to Python, and no score
        raise ValueError("no number")
    return [float(score) for score in scores]


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found
