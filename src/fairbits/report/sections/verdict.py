"""The verdict of the gate, where a run's folder holds one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.blocks import Block, Paragraph, TableBlock, Tag, label, paragraphs, shown
from fairbits.errors import OptionError
from fairbits.report.section import Section
from fairbits.store import read_json

if TYPE_CHECKING:
    from fairbits.report.record import ReportData

NAME = "gate.json"
#: Checks and cases on the page; all are in gate.json.
MAX_SHOWN = 40
_WORDS = {
    "pass": "The gate passed.",
    "fail": "The gate failed.",
    "inconclusive": "The gate is inconclusive: some interval is too wide to say.",
}


def gate_of(folder: Path, identity: str) -> tuple[dict[str, Any] | None, str]:
    """The document of gate.json, if there is one about this very model."""
    path = folder / NAME
    if not path.is_file():
        return None, ""
    document = read_json(path)
    checks = document.get("checks")
    sound = isinstance(checks, list) and all(isinstance(one, dict) and "name" in one for one in checks)
    if document.get("verdict") not in _WORDS or not sound:
        raise OptionError(f"{str(path)!r} is damaged (it has no verdict or no checks); run the gate again.")
    judged = document.get("identity")
    if judged != identity:
        whose = f"identity {judged[:40]}" if isinstance(judged, str) and judged else "it does not say which"
        return None, (
            f"{NAME} in this run's folder is about another model, schema or table ({whose}; this run's is {identity}), "
            f"so its verdict is not shown; judge this one with: fairbits gate {folder}"
        )
    return document, ""


def headline(document: Mapping[str, Any]) -> str:
    """The verdict in a sentence; a gate whose checks all wait for a baseline has judged nothing."""
    if not document["checks"]:
        return "The gate has judged nothing yet: its baseline was just written."
    return _WORDS[document["verdict"]]


def rows(document: Mapping[str, Any]) -> list[tuple[str, str, str, str, Tag]]:
    """Name, value, interval, threshold and verdict of every check."""
    found = []
    for check in document["checks"][:MAX_SHOWN]:
        low, high = check.get("low"), check.get("high")
        ends = "" if low is None or high is None else f"{_number(low)} to {_number(high)}"
        value, threshold = _number(check.get("value")), _number(check.get("threshold"))
        verdict = str(check.get("verdict", "–")) + (" (waived)" if check.get("waived") is True else "")
        found.append((str(check["name"]), value, ends, threshold, Tag(verdict)))
    pending = document.get("pending")
    waiting = pending[: MAX_SHOWN - len(found)] if isinstance(pending, list) else ()
    return [*found, *((str(name), "–", "", "–", Tag("no baseline yet")) for name in waiting)]


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    return f"{value:,.4g}"


def _more(document: Mapping[str, Any]) -> str:
    parts = []
    for name, words in (("new_cases", "new cases"), ("waived", "waived"), ("expired", "waivers that expired")):
        value = document.get(name)
        count = len(value) if isinstance(value, list) else value
        if isinstance(count, int) and count:
            parts.append(f"{words}: {count:,}{_who(value)}")
    return "; ".join(parts)


def _who(waivers: Any) -> str:
    """Who signed, and until when; nothing for entries that are no waivers."""
    named = [one for one in waivers if isinstance(one, dict) and "owner" in one] if isinstance(waivers, list) else []
    words = ", ".join(
        f"{one.get('check') or one.get('case')} by {one['owner']} until {one.get('expires')}" for one in named[:5]
    )
    return f" ({words[:400]})" if words else ""


def _blocks(data: ReportData) -> Iterator[Block]:
    document = data.gate
    if document is None:
        yield Paragraph(data.gate_of_another, tone="verdict")
        return
    tone = f"verdict {document['verdict']}" if document["checks"] else "verdict"
    yield Paragraph(headline(document), tone=tone)
    yield from paragraphs([f"{more}." for more in (_more(document),) if more], "lead")
    columns = [label("check"), shown("value"), shown("interval"), shown("threshold"), label("verdict")]
    yield TableBlock(columns, rows(document))


SECTION = Section("gate", "The gate", _blocks, shown=lambda data: bool(data.gate or data.gate_of_another))
