"""The verdict as Markdown, for a job's summary or a comment."""

from __future__ import annotations

from fairbits.gates.result import CheckResult, GateResult
from fairbits.text import harmless

_MARKS = {"pass": "✅ pass", "fail": "❌ fail", "inconclusive": "❔ inconclusive"}
_SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]()#+-.!|<>~@:"})
#: New cases that are listed.
SHOWN = 10


def gate_markdown(result: GateResult) -> str:
    """A heading, a table of checks, new cases and notes."""
    suite = result.suite
    word = _MARKS[result.verdict] if result.checks else f"⏳ {result.headline}"
    lines = [
        f"## {word}: fairbits gate, {_safe(result.subject)}",
        "",
        f"{suite['people']:,} frozen people (suite `{suite['id']}`), model `{_code(result.identity)}`, confidence "
        f"{result.policy['confidence']:.0%}.",
        "",
        *([] if result.quality is None else [_safe(" ".join(result.quality.lines())), ""]),
        "| check | value | interval | allowed | verdict |",
        "| --- | ---: | ---: | ---: | --- |",
        *(_row(one) for one in result.checks),
        *(f"| `{name}` | | | | waits for a baseline |" for name in result.pending),
    ]
    if result.new_cases:
        lines += ["", f"**New cases** ({len(result.new_cases):,}):", ""]
        for one in result.new_cases[:SHOWN]:
            lines.append(f"- `{one.fingerprint}` ({one.check}) {one.k_words}: {_safe(one.attribute_words[:400])}")
    if result.waived:
        lines += ["", "**Waived**:", ""]
        lines += [
            f"- {_safe(one.about)} by {_safe(one.owner)} until {one.expires.isoformat()}: {_safe(one.reason)}"
            for one in result.waived
        ]
    if result.expired:
        lines += ["", "**Expired waivers**, so that what they covered counts again:", ""]
        lines += [
            f"- {_safe(one.about)} by {_safe(one.owner)}, expired on {one.expires.isoformat()}: {_safe(one.reason)}"
            for one in result.expired
        ]
    if result.notes:
        lines += ["", *(f"- {_safe(note)}" for note in result.notes)]
    return "\n".join(lines) + "\n"


def _row(one: CheckResult) -> str:
    waived = " (waived)" if one.waived else ""
    return (
        f"| `{one.name}` | {one.read(one.value)} | {one.interval()} | {one.allowed()} | {_MARKS[one.verdict]}{waived} |"
    )


def _safe(text: str) -> str:
    return harmless(text.replace("\n", " ")).translate(_SPECIAL)


def _code(text: str) -> str:
    return harmless(text).replace("`", "'")
