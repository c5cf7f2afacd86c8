"""The verdict as SARIF 2.1.0, for code scanning: a rule per check, a result per check that breaks and per person."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fairbits.gates.catalogue import CHECKS, KINDS
from fairbits.gates.findings import Finding
from fairbits.gates.result import CheckResult, GateResult
from fairbits.gates.waivers import Waiver
from fairbits.text import harmless, json_text

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
#: The name of our fingerprint: whoever reads the file tells alerts apart by it, and by nothing that a model changes.
FINGERPRINT = "fairbitsFinding/v1"
#: People of one check that become results of their own.
MAX_PEOPLE = 50


def sarif_text(result: GateResult) -> str:
    """The log as JSON."""
    return json_text(sarif_document(result)) + "\n"


def sarif_document(result: GateResult) -> dict[str, Any]:
    """A log with one run."""
    broken = [one for one in result.checks if one.verdict != "pass"]
    results = [_check(result, one) for one in broken]
    for check in result.checks:
        people = [one for one in result.findings if one.check == check.name][:MAX_PEOPLE]
        results += [_person(result, check, one) for one in people]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "fairbits", "version": result.version, "rules": [_rule(n) for n in CHECKS]}
                },
                "automationDetails": {"id": harmless(f"fairbits-gate/{result.subject}/")},
                "invocations": [{"executionSuccessful": True, "exitCode": result.exit_code}],
                "results": results,
                "columnKind": "utf16CodeUnits",
                "properties": {"verdict": result.verdict, "suite": result.suite["id"], "identity": result.identity},
            }
        ],
    }


def rule_id(check: str) -> str:
    """The stable id of a check's rule.

    Examples
    --------
    >>> rule_id("flip_rate")
    'fairbits/flip_rate'
    """
    return f"fairbits/{check}"


def _rule(check: str) -> dict[str, Any]:
    kind = KINDS.get(check) or next(one for one in KINDS.values() if one.change == check)
    change = check == kind.change and not kind.only_change
    words = f"{'rise' if kind.direction == 'max' else 'drop'} of the {kind.words}" if change else kind.words
    said = f"{words[:1].upper()}{words[1:]}"
    return {
        "id": rule_id(check),
        "name": "".join(part.capitalize() for part in check.split("_")),
        "shortDescription": {"text": said},
        "fullDescription": {"text": f"{said}{' against the baseline' if check == kind.change else ''}."},
        "help": {"text": "See docs/gate.md of fairbits: what is measured, and what can be done about it."},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["fairness", "model"]},
    }


def _result(
    result: GateResult, check: str, level: str, text: str, fingerprint: str, waivers: tuple[Waiver, ...]
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ruleId": rule_id(check),
        "ruleIndex": CHECKS.index(check),
        "level": level,
        "message": {"text": harmless(text)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(result.location)},
                    "region": {"startLine": 1},
                }
            }
        ],
        "partialFingerprints": {FINGERPRINT: fingerprint},
    }
    if waivers:
        found["suppressions"] = [
            {"kind": "external", "status": "accepted", "justification": harmless(f"{one.owner}: {one.reason}")}
            for one in waivers
        ]
    return found


def _check(result: GateResult, one: CheckResult) -> dict[str, Any]:
    level = "error" if one.verdict == "fail" else "warning"
    return _result(result, one.name, level, one.sentence(), one.fingerprint, one.waivers)


def _person(result: GateResult, check: CheckResult, one: Finding) -> dict[str, Any]:
    where = f"row {one.row:,}" if one.origin == "row" and one.row else "a case that a search found"
    text = f"{where}: {one.k_words}. {one.attribute_words}"
    own = tuple(waiver for waiver in result.waived if waiver.case == one.fingerprint)
    return _result(
        result,
        one.check,
        "warning",
        text[:1000],
        one.fingerprint,
        own or (() if check.waiver is None else (check.waiver,)),
    )
