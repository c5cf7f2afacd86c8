"""gate.json, there whole or not at all, and its published JSON Schema."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from fairbits.errors import OptionError
from fairbits.gates.result import GateResult
from fairbits.store import plain, write_whole
from fairbits.text import json_text

FILE = "gate.json"
SCHEMA = "gate.schema.json"


def gate_text(result: GateResult) -> str:
    """The text of gate.json: the same for the same answers, but for ``created``."""
    return json_text(plain(result.document())) + "\n"


def write_gate(result: GateResult, folder: Path) -> Path:
    """Write gate.json into a folder."""
    return write_text(folder / FILE, gate_text(result))


def write_text(path: Path, text: str) -> Path:
    """Write a text file whole, with its folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode("utf-8", errors="replace"))
    except OSError as error:
        raise OptionError(f"cannot write {str(path)!r}: {error.strerror or error}; choose another place.") from None
    return path


def gate_schema() -> dict[str, Any]:
    """The published JSON Schema of gate.json."""
    text = resources.files("fairbits.gates").joinpath(SCHEMA).read_text(encoding="utf-8")
    return dict(json.loads(text))
