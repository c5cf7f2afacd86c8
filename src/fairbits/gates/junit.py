"""The verdict as JUnit XML: a test case per check, as CI servers show tests."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from fairbits.gates.result import CheckResult, GateResult
from fairbits.text import harmless


def junit_text(result: GateResult) -> str:
    """A test suite with one case per check.

    A check that fails is a failure, one that is inconclusive an error, one that somebody answers for or that waits for
    a baseline is skipped.
    """
    cases = [_case(result, one) for one in result.checks]
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


def _case(result: GateResult, check: CheckResult) -> ET.Element:
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
