"""The verdict as others read it: gate.json, JUnit XML, SARIF 2.1.0, Markdown, MLflow."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from fairbits.blocks import Page
from fairbits.errors import on_disk
from fairbits.gates.policy import CHECKS, KINDS, Requirement, Waiver
from fairbits.gates.result import CheckResult, Finding, GateResult
from fairbits.models import needed
from fairbits.report import gate_look, render_markdown_page
from fairbits.store import plain, write_whole
from fairbits.text import harmless, json_text


def junit_text(result: GateResult) -> str:
    """A test suite with one case per check.

    A check that fails is a failure, one that is inconclusive an error, one that somebody answers for or that waits for
    a baseline is skipped.
    """
    waiting = ("skipped", {"message": "there was no baseline yet; it is judged from the next run on"})
    cases = [_test_case(result, one.name, *_outcome(one), said=one.sentence()) for one in result.checks]
    cases += [_test_case(result, name, *waiting) for name in result.pending]
    counts = {
        name: str(sum(case.find(tag) is not None for case in cases))
        for name, tag in {"failures": "failure", "errors": "error", "skipped": "skipped"}.items()
    }
    totals = {"tests": str(len(cases)), **counts, "time": "0"}
    root = ET.Element("testsuites", {"name": "fairbits gate", **{k: v for k, v in totals.items() if k != "skipped"}})
    about = {"timestamp": result.created.partition("+")[0], "hostname": "ci"}
    suite = ET.SubElement(root, "testsuite", {"name": harmless(f"fairbits gate {result.subject}"), **totals, **about})
    properties = ET.SubElement(suite, "properties")
    about = {"verdict": result.verdict, "suite": result.suite["id"], "identity": result.identity}
    for key, value in about.items():
        ET.SubElement(properties, "property", {"name": key, "value": harmless(str(value))})
    suite.extend(cases)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _outcome(check: CheckResult) -> tuple[str, dict[str, str]]:
    """What stands in the case of a check; one that passes has nothing."""
    if check.waivers:
        return "skipped", {"message": harmless(check.answered())}
    tag = {"pass": "", "fail": "failure", "inconclusive": "error"}[check.verdict]
    return tag, {"message": harmless(check.sentence()), "type": f"fairbits.{check.verdict}"}


def _test_case(result: GateResult, name: str, tag: str, about: dict[str, str], *, said: str = "") -> ET.Element:
    case = ET.Element("testcase", {"name": name, "classname": harmless(f"fairbits.{result.subject}"), "time": "0"})
    if tag:
        ET.SubElement(case, tag, about).text = about["message"] if "type" in about else None
    if said:
        ET.SubElement(case, "system-out").text = harmless(said)
    return case


SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
#: The name of our fingerprint: whoever reads the file tells alerts apart by it, and by nothing that a model changes.
FINGERPRINT = "fairbitsFinding/v1"
#: People of one check that become results of their own.
MAX_PEOPLE = 50


def sarif_text(result: GateResult) -> str:
    levels = {"fail": "error", "inconclusive": "warning"}
    results = [
        _result(result, one.name, levels[one.verdict], one.sentence(), one.fingerprint, one.waivers)
        for one in result.checks
        if one.verdict in levels
    ]
    for check in result.checks:
        people = [one for one in result.findings if one.check == check.name][:MAX_PEOPLE]
        results += [_person_result(result, check, one) for one in people]
    document = {
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
    return json_text(document) + "\n"


def _rule(check: str) -> dict[str, Any]:
    kind = KINDS.get(check) or next(one for one in KINDS.values() if one.change == check)
    words = Requirement(kind, 0.0, check == kind.change).words
    said = f"{words[:1].upper()}{words[1:]}"
    return {
        "id": f"fairbits/{check}",
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
        "ruleId": f"fairbits/{check}",
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


def _person_result(result: GateResult, check: CheckResult, one: Finding) -> dict[str, Any]:
    where = f"row {one.row:,}" if one.origin == "row" and one.row else "a case that a search found"
    text = f"{where}: {one.k_words}. {one.attribute_words}"
    whole = () if check.waiver is None else (check.waiver,)
    own = tuple(waiver for waiver in result.waived if waiver.case == one.fingerprint)
    return _result(result, one.check, "warning", text[:1000], one.fingerprint, own or whole)


_MARKS = {"pass": "✅", "fail": "❌", "inconclusive": "❔"}


def gate_markdown(result: GateResult) -> str:
    """What the terminal shows, as a page."""
    _, *blocks = gate_look(result.document())  # its headline is the title here
    title = f"{_MARKS[result.verdict] if result.checks else '⏳'} {result.headline}: fairbits gate, {result.subject}"
    sentence = f"{result.sentence()} Model {result.identity}."
    return render_markdown_page(Page(result.subject, "gate", title, sentence, blocks, ()))


FILE = "gate.json"
SCHEMA = "gate.schema.json"


def gate_text(result: GateResult) -> str:
    """The text of gate.json: the same for the same answers, but for ``created``."""
    return json_text(plain(result.document())) + "\n"


def write_text(path: Path, text: str) -> None:
    with on_disk(f"cannot write {str(path)!r}", "choose another place"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode("utf-8", errors="replace"))


def gate_schema() -> dict[str, Any]:
    return dict(json.loads(resources.files("fairbits.gates").joinpath(SCHEMA).read_text(encoding="utf-8")))


PREFIX = "fairbits."


def gate_metrics(result: GateResult) -> dict[str, float]:
    """The figures as MLflow calls them: ``fairbits.flip_rate``, ``fairbits.flip_rate.low``, ``….high``, ``….far``."""
    found: dict[str, float] = {}
    for one in result.checks:
        if one.value is not None and one.low is not None and one.high is not None:
            name, far = f"{PREFIX}{one.name}", one.high if one.direction == "max" else one.low
            found |= {name: one.value, f"{name}.low": one.low, f"{name}.high": one.high, f"{name}.far": far}
    return found


def log_gate(result: GateResult) -> None:
    """Log a verdict to the active MLflow run: metrics, thresholds as parameters, a tag, gate.json and gate.md."""
    mlflow = needed("mlflow", "mlflow", "logging a gate's verdict")
    mlflow.log_metrics(gate_metrics(result))
    mlflow.log_params({f"{PREFIX}{one.name}.threshold": one.threshold for one in result.checks})
    mlflow.set_tags({f"{PREFIX}verdict": result.verdict, f"{PREFIX}suite": str(result.suite["id"])})
    mlflow.log_text(gate_text(result), "fairbits/gate.json")
    mlflow.log_text(gate_markdown(result), "fairbits/gate.md")


def validation_thresholds(result: GateResult) -> dict[str, Any]:
    """The policy as ``mlflow.models.MetricThreshold``, by the metrics that it is held against (``….far``).

    Changes against the baseline are metrics of their own, so MLflow needs no second model to validate them.
    """
    models = needed("mlflow.models", "mlflow", "thresholds for MLflow")
    return {
        f"{PREFIX}{one.name}.far": models.MetricThreshold(
            threshold=one.threshold, greater_is_better=one.direction == "min"
        )
        for one in result.checks
    }
