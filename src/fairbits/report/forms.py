"""A report as the forms that other people's files ask for: each a function of the report's record, and a line below.

CycloneDX describes a model among the parts of a product, in-toto states what was tested of which file, a bias profile
collects in three pages what is known about a system's bias and what only its owner can say (after IEEE 7003-2024).
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fairbits._version import __version__
from fairbits.blocks import Block, Bullets, Cards, Code, Facts, Fold, Form, Heading, Page, PagePart, Paragraph
from fairbits.domain import joined
from fairbits.errors import OptionError
from fairbits.report.html import render_page
from fairbits.report.record import ReportData
from fairbits.report.sections.paperwork import DECISIONS, FIELDS
from fairbits.report.sections.summary import cards, flip_blocks
from fairbits.report.sections.treatment import impact_blocks
from fairbits.text import percent, shortened

CYCLONEDX = "1.6"
STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
RESULTS = {"pass": "PASSED", "fail": "FAILED", "inconclusive": "WARNED"}
#: The names under which other tools know figures, by ours.
METRICS = {
    "flip_rate": "share of people whose decision depends on protected attributes (treatment)",
    "flip_rate_supported": "share of people whose decision depends on protected attributes, among supported twins",
    "q_inf_mean": "mean bits of protected information used per person (treatment)",
    "k_mean": "mean number of classes among a person's twins (treatment)",
    "accuracy": "accuracy",
    "auc": "AUC",
}


def bill_of_materials(data: ReportData, _: Path) -> bytes:
    """A CycloneDX ML-BOM: the model with its card, and the table that it was asked about."""
    about, made = data.about, data.reproduction
    sources = {source.what: source for source in data.opening.sources}
    component: dict[str, Any] = {
        "type": "machine-learning-model",
        "bom-ref": f"model-{made.identity}",
        "name": about.subject,
        "description": about.model,
        "properties": [{"name": "fairbits:identity", "value": made.identity}],
        "modelCard": _card(data),
    }
    if "model" in sources and sources["model"].sha256:
        component["hashes"] = [{"alg": "SHA-256", "content": sources["model"].sha256}]
    table = {"type": "data", "bom-ref": f"table-{made.identity}", "name": f"people of {about.subject}"}
    if "table" in sources and sources["table"].sha256:
        table["hashes"] = [{"alg": "SHA-256", "content": sources["table"].sha256}]  # type: ignore[assignment]
    return _json(
        {
            "bomFormat": "CycloneDX",
            "specVersion": CYCLONEDX,
            # The same report has the same number: a file is not new because it was written again.
            "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'fairbits:{made.identity}:{made.created}')}",
            "version": 1,
            "metadata": {
                "timestamp": made.created,
                "tools": {"components": [{"type": "application", "name": "fairbits", "version": __version__}]},
                "component": {"type": "application", "bom-ref": "audit", "name": f"{about.subject}: fairbits audit"},
            },
            "components": [component, table],
            "dependencies": [{"ref": component["bom-ref"], "dependsOn": [table["bom-ref"]]}],
        }
    )


def _card(data: ReportData) -> dict[str, Any]:
    about, figures = data.about, data.measured.figures
    metrics = [_metric(words, figures, name) for name, words in METRICS.items() if figures.get(name) is not None]
    for table in (data.proxies or {}).get("groups", ()):
        for group in table["groups"]:
            metrics += _group_metrics(str(table["attribute"]), group)
    considerations: dict[str, Any] = {
        "technicalLimitations": [*data.not_examined, *(limit.text for limit in data.measured.limits)],
        "fairnessAssessments": _assessments(data),
    }
    parameters: dict[str, Any] = {
        "task": "regression" if about.regression else "classification",
        "datasets": [{"ref": f"table-{data.reproduction.identity}"}],
    }
    return {
        "modelParameters": parameters,
        "quantitativeAnalysis": {"performanceMetrics": metrics},
        "considerations": {name: value for name, value in considerations.items() if value},
    }


def _metric(words: str, figures: Mapping[str, Any], name: str, slice_: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"type": words, "value": f"{figures[name]:.6g}"}
    if slice_:
        found["slice"] = slice_
    low, high = figures.get(f"{name}_low"), figures.get(f"{name}_high")
    if low is not None and high is not None:
        found["confidenceInterval"] = {"lowerBound": f"{low:.6g}", "upperBound": f"{high:.6g}"}
    return found


def _group_metrics(attribute: str, group: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, words in (("selection_rate", "favourable rate (impact)"), ("impact_ratio", "impact ratio (impact)")):
        if isinstance(group.get(name), int | float):
            yield _metric(words, group, name, f"{attribute}: {group['group']}")


def _assessments(data: ReportData) -> list[dict[str, str]]:
    """One for each protected attribute: who is at risk, of what, and what is recommended."""
    rates = data.measured.figures.get("flip_rate_by") or {}
    chosen = None if data.repaired is None else data.repaired.chosen
    found = []
    for name in data.about.protected:
        harm = (
            f"{percent(rates[name])} would get a different decision if only their {name} differed."
            if name in rates
            else ""
        )
        one = {"groupAtRisk": f"people by {name}", "harms": harm}
        if chosen is not None:
            one["mitigationStrategy"] = f"recommended repair: {chosen.name}"
        found.append({key: value for key, value in one.items() if value})
    return found


def test_statement(data: ReportData, folder: Path) -> bytes:
    """An in-toto statement: what the gate said about this model, with the hash of gate.json and of the model."""
    if data.gate is None:
        other = f" ({data.gate_of_another})" if data.gate_of_another else ""
        raise OptionError(f"no gate has judged the model of this run{other}; run `fairbits gate RUN` first.")
    by_verdict: dict[str, list[str]] = {"pass": [], "fail": [], "inconclusive": list(data.gate.get("pending", ()))}
    for check in data.gate["checks"]:
        by_verdict[check["verdict"]].append(check["name"])
    # A gate that judged nothing is no pass.
    result = RESULTS[data.gate["verdict"]] if data.gate["checks"] else "WARNED"
    digest = hashlib.sha256((folder / "gate.json").read_bytes()).hexdigest()
    model = next((one for one in data.opening.sources if one.what == "model" and one.sha256), None)
    subject = (
        {"name": data.about.subject, "digest": {"fairbitsIdentity": data.reproduction.identity}}
        if model is None
        else {"name": model.name, "digest": {"sha256": model.sha256}}
    )
    return _json(
        {
            "_type": STATEMENT,
            "subject": [subject],
            "predicateType": TEST_RESULT,
            "predicate": {
                "result": result,
                "configuration": [{"name": "gate.json", "digest": {"sha256": digest}}],
                "passedTests": by_verdict["pass"],
                "warnedTests": by_verdict["inconclusive"],
                "failedTests": by_verdict["fail"],
            },
        }
    )


def bias_profile(data: ReportData, _: Path) -> bytes:
    """A bias profile: what was measured under the headings of such a file, and room for what only its owner knows.

    At most three printed pages: figures without their explanations, which are in the report.
    """
    limits = (*data.not_examined, *(limit.text for limit in data.measured.limits), *data.about.notes)
    impact = [block for block in impact_blocks(data.proxies) if not isinstance(block, Fold)] if data.proxies else []
    parts = [
        PagePart("context", "1 Purpose and context", tuple(_context(data))),
        PagePart("people", "2 Stakeholders and groups", tuple(_groups(data))),
        PagePart("evaluation", "3 Evaluation: treatment", (Cards(cards(data)), *flip_blocks(data.measured))),
        PagePart("impact", "4 Evaluation: impact", (*impact,) or (Paragraph("Not measured: fairbits proxies."),)),
        PagePart("risks", "5 Remaining risks and limits", (Bullets([shortened(one, 300) for one in limits[:8]]),)),
        PagePart("monitoring", "6 Monitoring and responsibility", tuple(_monitoring())),
    ]
    page = Page(
        subject=data.about.subject,
        command=f"bias profile · {data.reproduction.created[:10]}",
        title=f"{data.about.subject}: bias profile",
        sentence=data.opening.people,
        opening=(),
        parts=parts,
        made_from="the run's own files",
    )
    return render_page(page).encode()


def _context(data: ReportData) -> Iterator[Block]:
    about = data.about
    yield Facts(
        [("model", about.model), ("decides about", about.target or "a score"), ("identity", data.reproduction.identity)]
    )
    yield Paragraph(
        "To be filled in by the owner: what it is for, who uses it, what happens to people by its decisions."
    )
    yield Form(
        ("Purpose", "Owner", "Version"), "Role of the decision", ("advises", "decides", "is reviewed by a person")
    )


def _groups(data: ReportData) -> Iterator[Block]:
    about = data.about
    yield Paragraph(f"Protected attributes examined: {joined(list(about.protected))}, in {about.m:,} combinations.")
    yield Paragraph(f"People: {data.measured.rows:,} rows of the table. {' '.join(data.examined)}")
    yield Form(
        ("Others affected", "How they were heard"), "Representative of those affected?", ("yes", "no", "not known")
    )


def _monitoring() -> Iterator[Block]:
    yield Heading("Measures")
    yield Bullets(
        (
            ("Held in releases by ", Code("fairbits gate"), ": a change for the worse ends the build."),
            "To be stated by the owner: how often it is measured again, and on whom.",
        )
    )
    yield Form(FIELDS, "Decision", DECISIONS, "Next review")


def _word(data: ReportData, _: Path) -> bytes:
    from fairbits.report.page import page_of
    from fairbits.report.word import render_word

    return render_word(page_of(data))


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


#: What `report --form` writes: the file, and what makes it.
FORMS: dict[str, tuple[str, Callable[[ReportData, Path], bytes]]] = {
    "bom": ("bom.cdx.json", bill_of_materials),
    "statement": ("statement.intoto.json", test_statement),
    "profile": ("profile.html", bias_profile),
    "word": ("report.docx", _word),
}
