"""Write a small SAS transport file (version 5, numbers only), to test the reader of the real ones."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

_WHEN = b"01JAN16:00:00:00"


def xport(columns: Mapping[str, Sequence[float]]) -> bytes:
    names = list(columns)
    head = [
        _header("LIBRARY", "0" * 30),
        (b"SAS     SAS     SASLIB  9.4     LINUX   " + b" " * 24 + _WHEN),
        _WHEN.ljust(80),
        _header("MEMBER", "000000000000000001600000000140"),
        _header("DSCRPTR", "0" * 30),
        (b"SAS     PEOPLE  SASDATA 9.4     LINUX   " + b" " * 24 + _WHEN),
        _WHEN.ljust(80),
        _header("NAMESTR", f"000000{len(names):04}" + "0" * 20),
    ]
    described = b"".join(_namestr(name, i) for i, name in enumerate(names))
    rows = b"".join(_ibm(value) for row in zip(*columns.values(), strict=True) for value in row)
    return b"".join(head) + _pad(described) + _header("OBS", "0" * 30) + _pad(rows)


def _header(what: str, numbers: str) -> bytes:
    return f"HEADER RECORD*******{what:8}HEADER RECORD!!!!!!!{numbers}  ".encode()


def _namestr(name: str, place: int) -> bytes:
    fields = (1, 0, 8, place + 1, name.ljust(8).encode(), b" " * 40, b" " * 8, 0, 0, 0, b"", b" " * 8, 0, 0, 8 * place)
    return struct.pack(">hhhh8s40s8shhh2s8shhl52s", *fields, b"")


def _ibm(value: float) -> bytes:
    """An IBM 370 double: sign, exponent of 16 plus 64, and 56 bits of fraction."""
    if value == 0:
        return bytes(8)
    size, exponent = abs(value), 0
    while size >= 1:
        size, exponent = size / 16, exponent + 1
    while size < 1 / 16:
        size, exponent = size * 16, exponent - 1
    first = (0x80 if value < 0 else 0) | (64 + exponent)
    return bytes([first]) + int(size * 2**56).to_bytes(7, "big")


def _pad(content: bytes) -> bytes:
    return content + b" " * (-len(content) % 80)
