"""A report as the forms that other people's files ask for: each a function of the report's record, and a line below.

CycloneDX describes a model among the parts of a product, in-toto states what was tested of which file, a model card
tells the users of a model on the Hugging Face Hub, a bias profile collects in three pages what is known about a
system's bias and what only its owner can say (after IEEE 7003-2024).
"""

from __future__ import annotations

import hashlib
import json
import textwrap
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fairbits._version import __version__
from fairbits.blocks import Block, Bullets, Cards, Code, Facts, Fold, Form, Heading, Page, PagePart, Paragraph
from fairbits.errors import OptionError
from fairbits.report.html import render_page
from fairbits.report.markdown import render_markdown_page
from fairbits.report.record import ReportData
from fairbits.report.sections.paperwork import DECISIONS, FIELDS
from fairbits.report.sections.summary import NO_LIMITS, cards, flip_blocks, gate_blocks
from fairbits.report.sections.treatment import impact_blocks
from fairbits.text import joined, percent, shortened

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
GROUP_METRICS = {"selection_rate": "favourable rate (impact)", "impact_ratio": "impact ratio (impact)"}
#: The Hub's own names of figures, where they are not ours.
HUB = {"auc": "roc_auc"}


class Metric(NamedTuple):
    """One figure for other tools: about everybody, or about the group that ``slice_`` names."""

    name: str
    words: str
    slice_: str
    value: float
    ends: tuple[float, float] | None


def metrics_of(data: ReportData) -> Iterator[Metric]:
    """The figures about everybody, then the rates and ratios of each group."""
    everybody = {**data.about.quality.figures(), **data.measured.figures}
    told: list[tuple[Mapping[str, str], Mapping[str, Any], str]] = [(METRICS, everybody, "")]
    for table in (data.proxies or {}).get("groups", ()):
        told += [(GROUP_METRICS, group, f"{table['attribute']}: {group['group']}") for group in table["groups"]]
    for names, figures, slice_ in told:
        for name, words in names.items():
            value, low, high = (figures.get(f"{name}{end}") for end in ("", "_low", "_high"))
            if isinstance(value, int | float):
                yield Metric(name, words, slice_, value, None if low is None or high is None else (low, high))


def bill_of_materials(data: ReportData, _: Page, __: Path) -> bytes:
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
    about = data.about
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
        "quantitativeAnalysis": {"performanceMetrics": [_metric(one) for one in metrics_of(data)]},
        "considerations": {name: value for name, value in considerations.items() if value},
    }


def _metric(one: Metric) -> dict[str, Any]:
    found: dict[str, Any] = {"type": one.words, "value": f"{one.value:.6g}"}
    if one.slice_:
        found["slice"] = one.slice_
    if one.ends is not None:
        low, high = one.ends
        found["confidenceInterval"] = {"lowerBound": f"{low:.6g}", "upperBound": f"{high:.6g}"}
    return found


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


def tested_statement(data: ReportData, _: Page, folder: Path) -> bytes:
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


def bias_profile(data: ReportData, _: Page, __: Path) -> bytes:
    """A bias profile: what was measured under the headings of such a file, and room for what only its owner knows.

    At most three printed pages: figures without their explanations, which are in the report.
    """
    titles = ("Purpose and context", "Stakeholders and groups", *EVALUATED, "Monitoring and responsibility")
    filled = (tuple(_context(data)), tuple(_groups(data)), *_evaluated(data), tuple(_monitoring()))
    parts = [
        PagePart(f"part-{i}", f"{i} {title}", blocks)
        for i, (title, blocks) in enumerate(zip(titles, filled, strict=True), 1)
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


#: The parts that fairbits fills by itself, by their headings.
EVALUATED = ("Evaluation: treatment", "Evaluation: impact", "Remaining risks and limits")


def _evaluated(data: ReportData) -> tuple[tuple[Block, ...], ...]:
    limits = (*data.not_examined, *(limit.text for limit in data.measured.limits), *data.about.notes)
    impact = [block for block in impact_blocks(data.proxies) if not isinstance(block, Fold)] if data.proxies else []
    return (
        (Cards(cards(data)), *flip_blocks(data.measured)),
        (*impact,) or (Paragraph("Not measured: fairbits proxies."),),
        (Bullets([shortened(one, 300) for one in limits[:8]]),),
    )


def model_card(data: ReportData, _: Page, __: Path) -> bytes:
    """A card for the Hugging Face Hub: figures as metadata (model-index), the same for readers, the gate's verdict.

    The metadata has a value for each figure and no place for its interval: the ends are figures of their own, with the
    names that `measure --json` gives them.
    """
    about, metrics = data.about, []
    for one in metrics_of(data):
        said = f"{one.words}{one.slice_ and f', {one.slice_}'}"
        metrics.append((HUB.get(one.name, one.name), one.value, said))
        for end, value in zip(("low", "high"), one.ends or (), strict=False):
            metrics.append((f"{one.name}_{end}", value, f"{said}, {end} end of the 95 % interval"))
    result = {
        "task": {"type": f"tabular-{'regression' if about.regression else 'classification'}"},
        "dataset": {"type": f"table-{data.reproduction.identity}", "name": f"people of {about.subject}"},
        "metrics": [dict(zip(("type", "value", "name"), one, strict=True)) for one in metrics],
    }
    # JSON is YAML, whatever a name holds, as long as it is indented.
    index = textwrap.indent(json.dumps([{"name": about.subject, "results": [result]}], indent=2), "  ")
    verdict = [Paragraph(data.gate_of_another or NO_LIMITS)] if data.gate is None else [*gate_blocks(data.gate)]
    page = Page(
        subject=about.subject,
        command="",
        title=f"{about.subject}: use of protected attributes",
        sentence=data.opening.people or data.sentence,
        opening=verdict,
        parts=[PagePart("", *part) for part in zip(EVALUATED, _evaluated(data), strict=True)],
        made_from="",
    )
    made = f"Measured with fairbits {__version__}, {data.reproduction.created[:10]}."
    return f"---\ntags:\n- fairbits\nmodel-index:\n{index}\n---\n\n{render_markdown_page(page)}\n{made}\n".encode()


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


def _word(_: ReportData, page: Page, __: Path) -> bytes:
    from fairbits.report.word import render_word

    return render_word(page)


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


#: Makes a form of a report's record, its page, and the folder of its run.
FormMaker = Callable[[ReportData, Page, Path], bytes]
#: What `report --form` writes: the file, and what makes it.
FORMS: dict[str, tuple[str, FormMaker]] = {
    "bom": ("bom.cdx.json", bill_of_materials),
    "statement": ("statement.intoto.json", tested_statement),
    "card": ("model-card.md", model_card),
    "profile": ("profile.html", bias_profile),
    "word": ("report.docx", _word),
}
