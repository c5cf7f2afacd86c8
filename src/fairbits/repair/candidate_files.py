"""The log of alternatives: candidates.parquet, candidates.csv and alternatives.json, each whole or not at all."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairbits.measure import Estimate
from fairbits.repair.alternative import Alternative, Alternatives
from fairbits.store import write_json, write_parquet, write_whole

PARQUET, CSV, DOCUMENT = "candidates.parquet", "candidates.csv", "alternatives.json"
_RANGED = ("accuracy", "balanced_accuracy", "bits", "flips", "impact_ratio", "indirect_bits")
_WORDS = ("name", "family", "words", "coding", "impact_attribute", "indirect_attribute")
_WHOLE = ("k_max", "k_max_proved")


def _columns(name: str) -> list[tuple[str, pa.DataType]]:
    if name in _RANGED:
        return [(f"{name}{end}", pa.float64()) for end in ("", "_low", "_high")]
    if name in (*_WORDS, "files"):
        return [(name, pa.string())]
    return [(name, pa.bool_() if name == "on_front" else pa.int32() if name in _WHOLE else pa.float64())]


#: One row per candidate; figures with an interval have ``_low`` and ``_high`` beside them.
COLUMNS = pa.schema([column for name in Alternative.__slots__ for column in _columns(name)])


def write_candidates(found: Alternatives, *, command: str = "") -> None:
    """Write the three files into the folder of the run."""
    rows = [_row(one) for one in found.candidates]
    folder: Path = found.folder
    write_parquet(folder / PARQUET, pa.Table.from_pylist(rows, schema=COLUMNS))
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS.names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else _plain(value) for name, value in row.items()} for row in rows)
    write_whole(folder / CSV, text.getvalue().encode())
    write_json(folder / DOCUMENT, {**found.document(), "command": command})


def _row(one: Alternative) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name in Alternative.__slots__:
        value = getattr(one, name)
        if name in _RANGED:
            row |= Estimate.named(name, value)
        else:
            row[name] = " ".join(value) if name == "files" else value
    return row


def _plain(value: Any) -> Any:
    """Text that a spreadsheet might take for a formula gets a quote in front."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value
