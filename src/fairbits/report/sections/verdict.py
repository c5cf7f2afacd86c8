"""The verdict of the gate, where a run's folder holds one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.errors import OptionError
from fairbits.report.markup import table, text
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


def gate_of(folder: Path) -> dict[str, Any] | None:
    """The document of gate.json, if there is one.

    Parameters
    ----------
    folder
        Of the run.

    Raises
    ------
    OptionError
        Where it is damaged.
    """
    path = folder / NAME
    if not path.is_file():
        return None
    document = read_json(path)
    checks = document.get("checks")
    sound = isinstance(checks, list) and all(isinstance(one, dict) and "name" in one for one in checks)
    if document.get("verdict") not in _WORDS or not sound:
        raise OptionError(f"{str(path)!r} is damaged (it has no verdict or no checks); run the gate again.")
    return document


def rows(document: Mapping[str, Any]) -> list[list[str]]:
    """Name, value, interval, threshold and verdict of every check.

    Parameters
    ----------
    document
        Content of gate.json.
    """
    found = []
    for check in document["checks"][:MAX_SHOWN]:
        low, high = check.get("low"), check.get("high")
        between = "" if low is None or high is None else f"{_number(low)} to {_number(high)}"
        value, threshold = _number(check.get("value")), _number(check.get("threshold"))
        found.append([str(check["name"]), value, between, threshold, str(check.get("verdict", "–"))])
    return found


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    return f"{value:,.4g}"


def _more(document: Mapping[str, Any]) -> str:
    parts = []
    for name, words in (("new_cases", "new cases"), ("waived", "waived")):
        value = document.get(name)
        count = len(value) if isinstance(value, list) else value
        if isinstance(count, int) and count:
            parts.append(f"{words}: {count:,}")
    return "; ".join(parts)


def _markdown(data: ReportData) -> Iterator[str]:
    document = data.gate or {}
    yield "## The gate"
    yield ""
    yield f"**{_WORDS[document['verdict']]}** {text(_more(document))}".rstrip()
    yield ""
    lines = [[text(cell) for cell in row] for row in rows(document)]
    yield from table(["check", "value", "interval", "threshold", "verdict"], lines, right=1)


def _values(data: ReportData) -> dict[str, Any]:
    document = data.gate or {}
    return {"gate_words": _WORDS[document["verdict"]], "gate_rows": rows(document), "gate_more": _more(document)}


TEMPLATE = """
<section id="gate" aria-labelledby="gate-title">
<h2 id="gate-title">The gate</h2>
<p class="verdict {{ data.gate.verdict }}">{{ gate_words }}</p>
{% if gate_more %}<p class="lead">{{ gate_more[:1]|upper }}{{ gate_more[1:] }}.</p>{% endif %}
<div class="table"><table>
<thead><tr><th scope="col">check</th><th scope="col" class="n">value</th><th scope="col" class="n">interval</th><th scope="col" class="n">threshold</th><th scope="col">verdict</th></tr></thead>
<tbody>{% for name, value, between, threshold, verdict in gate_rows %}<tr><th scope="row">{{ p.label(name, 80) }}</th><td class="n">{{ value|short(40) }}</td><td class="n">{{ between }}</td><td class="n">{{ threshold|short(40) }}</td><td><span class="tag {{ verdict if verdict in ("pass", "fail") else "" }}">{{ verdict|short(40) }}</span></td></tr>
{% endfor %}</tbody></table></div>
</section>
"""

SECTION = Section("gate", "The gate", TEMPLATE, _markdown, shown=lambda data: data.gate is not None, values=_values)
