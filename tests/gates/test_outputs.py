"""Where pipelines look: JUnit XML, SARIF, Markdown, MLflow; each against its schema or its reader."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import fairbits
from fairbits.gates import (
    CHECKS,
    GateResult,
    gate_markdown,
    gate_metrics,
    junit_text,
    log_gate,
    sarif_text,
    validation_thresholds,
)

from .planted import write_subject

HERE = Path(__file__).parent
DAY = date(2026, 6, 1)
CHECKED = {
    "flip_rate": {"max": 0.05, "max_rise": 0.005},
    "k_max": 3,
    "k_person": 1,
    "bits_mean": 3.0,
    "accuracy": 0.99,
}
WAIVER = {"check": "accuracy", "reason": "labels | are `noisy`", "owner": "ann\x1b[31m<b> @team", "expires": DAY}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> tuple[GateResult, GateResult]:
    """The first run, and a worse model after it: everything that an output has to show."""
    folder = tmp_path_factory.mktemp("outcomes")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_subject(folder, gap=50)
        policy = {"checks": CHECKED, "waivers": [WAIVER]}
        first = fairbits.gate("subject.toml", policy=policy, day=DAY)
        write_subject(folder, gap=120)
        return first, fairbits.gate("subject.toml", policy=policy, day=DAY)


def test_junit_keeps_its_schema(outcomes: tuple[GateResult, GateResult], tmp_path: Path) -> None:
    xmlschema = pytest.importorskip("xmlschema", reason="xmlschema is not installed")
    schema = xmlschema.XMLSchema(str(HERE / "junit.xsd"))
    for number, found in enumerate(outcomes):
        file = tmp_path / f"{number}.xml"
        file.write_text(junit_text(found), encoding="utf-8")
        schema.validate(str(file))
        suite = ET.fromstring(junit_text(found))[0]  # noqa: S314 - our own
        cases = {case.get("name"): case for case in suite.findall("testcase")}
        assert set(cases) == {one.name for one in found.checks} | set(found.pending)
        for one in found.checks:
            tags = {child.tag for child in cases[one.name]} - {"system-out"}
            wanted = {"fail": {"failure"}, "inconclusive": {"error"}, "pass": set()}[one.verdict]
            assert tags == ({"skipped"} if one.waiver else wanted)
        for tag, key in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert suite.get(key) == str(len(suite.findall(f"testcase/{tag}")))
        assert "\x1b" not in junit_text(found)


def test_sarif_keeps_its_schema(outcomes: tuple[GateResult, GateResult]) -> None:
    import jsonschema

    schema = json.loads((HERE / "sarif.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    rules = []
    for found in outcomes:
        log = json.loads(sarif_text(found))
        validator.validate(log)
        run = log["runs"][0]
        rules.append([rule["id"] for rule in run["tool"]["driver"]["rules"]])
        for one in run["results"]:
            assert rules[-1][one["ruleIndex"]] == one["ruleId"]
        prints = [next(iter(one["partialFingerprints"].values())) for one in run["results"]]
        assert len(set(prints)) == len(prints)
        broken = {f"fairbits/{one.name}" for one in found.checks if one.verdict != "pass"}
        assert broken <= {one["ruleId"] for one in run["results"]}
    assert rules[0] == rules[1] == [f"fairbits/{name}" for name in CHECKS]
    worse = json.loads(sarif_text(outcomes[1]))["runs"][0]
    waived = [one for one in worse["results"] if one["ruleId"] == "fairbits/accuracy"]
    assert waived[0]["suppressions"][0]["kind"] == "external"
    assert waived[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "subject.toml"
    # the same person under the same check is the same alert, although k moved
    first, second = ({one.fingerprint for one in found.findings if one.check == "k_max"} for found in outcomes)
    assert len(first & second) > len(first) / 2


def test_markdown_has_no_markup_of_others(outcomes: tuple[GateResult, GateResult]) -> None:
    text = gate_markdown(outcomes[1])
    assert text.startswith("# ❌ fail: fairbits gate, planted")
    assert "<b>" not in text.replace("\\<b\\>", "")
    assert "\x1b" not in text
    assert "@team" not in text.replace("\\@team", "")  # nobody is called
    assert "\\@team" in text
    assert all(f"| {one.name} |" in text.replace("\\_", "_") for one in outcomes[1].checks)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {6}


def test_mlflow_gets_metrics_thresholds_and_files(
    outcomes: tuple[GateResult, GateResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    found = outcomes[1]
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    with mlflow.start_run() as run:
        log_gate(found)
    kept = mlflow.tracking.MlflowClient().get_run(run.info.run_id)
    assert kept.data.metrics == pytest.approx(gate_metrics(found))
    assert kept.data.tags["fairbits.verdict"] == "fail"
    assert kept.data.params["fairbits.flip_rate.threshold"] == "0.05"
    files = {one.path for one in mlflow.tracking.MlflowClient().list_artifacts(run.info.run_id, "fairbits")}
    assert files == {"fairbits/gate.json", "fairbits/gate.md"}


def test_mlflow_validates_by_the_same_thresholds(outcomes: tuple[GateResult, GateResult]) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    found, metrics = outcomes[1], gate_metrics(outcomes[1])
    for name, threshold in validation_thresholds(found).items():
        check = found[name.removeprefix("fairbits.").removesuffix(".far")]
        kept = (
            metrics[name] >= threshold.threshold
            if threshold.greater_is_better
            else metrics[name] <= threshold.threshold
        )
        assert kept == (check.verdict == "pass")
