"""The verdict as others read it: gate.json, JUnit XML, SARIF 2.1.0, Markdown, MLflow."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from fairbits.errors import MissingDependencyError, OptionError
from fairbits.gates.policy import CHECKS, KINDS, Waiver
from fairbits.gates.result import CheckResult, Finding, GateResult
from fairbits.store import plain, write_whole
from fairbits.text import harmless, json_text, percent


def junit_text(result: GateResult) -> str:
    """A test suite with one case per check.

    A check that fails is a failure, one that is inconclusive an error, one that somebody answers for or that waits for
    a baseline is skipped.
    """
    cases = [_test_case(result, one) for one in result.checks]
    cases += [_pending(result, name) for name in result.pending]
    counts = {tag: sum(case.find(tag) is not None for case in cases) for tag in ("failure", "error", "skipped")}
    totals = {
        "tests": str(len(cases)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": "0",
    }
    name = harmless(f"fairbits gate {result.subject}")
    root = ET.Element("testsuites", {"name": "fairbits gate", **{k: v for k, v in totals.items() if k != "skipped"}})
    suite = ET.SubElement(
        root, "testsuite", {"name": name, **totals, "timestamp": result.created.partition("+")[0], "hostname": "ci"}
    )
    properties = ET.SubElement(suite, "properties")
    about = {"verdict": result.verdict, "suite": result.suite["id"], "identity": result.identity}
    for key, value in about.items():
        ET.SubElement(properties, "property", {"name": key, "value": harmless(str(value))})
    suite.extend(cases)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _test_case(result: GateResult, check: CheckResult) -> ET.Element:
    case = _element(result, check.name)
    said = harmless(check.sentence())
    if check.waived:
        ET.SubElement(case, "skipped", {"message": harmless(check.answered())})
    elif check.verdict == "fail":
        ET.SubElement(case, "failure", {"message": said, "type": "fairbits.fail"}).text = said
    elif check.verdict == "inconclusive":
        ET.SubElement(case, "error", {"message": said, "type": "fairbits.inconclusive"}).text = said
    ET.SubElement(case, "system-out").text = said
    return case


def _pending(result: GateResult, name: str) -> ET.Element:
    case = _element(result, name)
    ET.SubElement(case, "skipped", {"message": "there was no baseline yet; it is judged from the next run on"})
    return case


def _element(result: GateResult, name: str) -> ET.Element:
    return ET.Element("testcase", {"name": name, "classname": harmless(f"fairbits.{result.subject}"), "time": "0"})


SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
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
    results = [_check_result(result, one) for one in broken]
    for check in result.checks:
        people = [one for one in result.findings if one.check == check.name][:MAX_PEOPLE]
        results += [_person_result(result, check, one) for one in people]
    return {
        "$schema": SARIF_SCHEMA,
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


def _check_result(result: GateResult, one: CheckResult) -> dict[str, Any]:
    level = "error" if one.verdict == "fail" else "warning"
    return _result(result, one.name, level, one.sentence(), one.fingerprint, one.waivers)


def _person_result(result: GateResult, check: CheckResult, one: Finding) -> dict[str, Any]:
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


_MARKS = {"pass": "✅ pass", "fail": "❌ fail", "inconclusive": "❔ inconclusive"}
_SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]()#+-.!|<>~@:"})
#: New cases that are listed.
SHOWN = 10


def gate_markdown(result: GateResult) -> str:
    """A heading, a table of checks, new cases and notes."""
    suite = result.suite
    word = _MARKS[result.verdict].replace(result.verdict, result.headline) if result.checks else f"⏳ {result.headline}"
    lines = [
        f"## {word}: fairbits gate, {_safe(result.subject)}",
        "",
        f"{suite['people']:,} frozen people (suite `{suite['id']}`), model `{_code(result.identity)}`, confidence "
        f"{percent(result.policy['confidence'], 0)}.",
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


PREFIX = "fairbits."


def gate_metrics(result: GateResult) -> dict[str, float]:
    """The figures as MLflow calls them: ``fairbits.flip_rate``, ``fairbits.flip_rate.low``, ``….high``, ``….far``."""
    found: dict[str, float] = {}
    for one in result.checks:
        if one.value is None or one.low is None or one.high is None:
            continue
        name = f"{PREFIX}{one.name}"
        far = one.high if one.direction == "max" else one.low
        found |= {name: one.value, f"{name}.low": one.low, f"{name}.high": one.high, f"{name}.far": far}
    return found


def log_gate(result: GateResult) -> None:
    """Log a verdict to the active MLflow run: metrics, thresholds as parameters, a tag, gate.json and gate.md."""
    mlflow = _mlflow("logging a gate's verdict")
    mlflow.log_metrics(gate_metrics(result))
    mlflow.log_params({f"{PREFIX}{one.name}.threshold": one.threshold for one in result.checks})
    mlflow.set_tags({f"{PREFIX}verdict": result.verdict, f"{PREFIX}suite": str(result.suite["id"])})
    mlflow.log_text(gate_text(result), "fairbits/gate.json")
    mlflow.log_text(gate_markdown(result), "fairbits/gate.md")


def validation_thresholds(result: GateResult) -> dict[str, Any]:
    """The policy as ``mlflow.models.MetricThreshold``, by the metrics that it is held against (``….far``).

    Changes against the baseline are metrics of their own, so MLflow needs no second model to validate them.
    """
    _mlflow("thresholds for MLflow")
    from mlflow.models import MetricThreshold

    return {
        f"{PREFIX}{one.name}.far": MetricThreshold(threshold=one.threshold, greater_is_better=one.direction == "min")
        for one in result.checks
    }


def _mlflow(purpose: str) -> Any:
    try:
        import mlflow
    except ImportError:
        raise MissingDependencyError("mlflow", "mlflow", purpose) from None
    return mlflow
