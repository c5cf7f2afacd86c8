"""A report as the forms that other people's files ask for: each a function of the report's record, and a line below.

CycloneDX describes a model among the parts of a product, in-toto states what was tested of which file, a model card
tells the users of a model on the Hugging Face Hub, a bias profile collects in three pages what is known about a
system's bias and what only its owner can say (after IEEE 7003-2024), a Word document is for offices that file it.
"""

from __future__ import annotations

import io
import json
import math
import textwrap
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from fairbits._version import __version__
from fairbits.blocks import (
    Block,
    Bullets,
    Cards,
    Code,
    Columns,
    Commands,
    Drawing,
    Facts,
    Fold,
    Form,
    Heading,
    Page,
    PagePart,
    Paragraph,
    People,
    TableBlock,
    Text,
    paragraphs,
    plain,
)
from fairbits.errors import MissingDependencyError, OptionError
from fairbits.report.html import render_page
from fairbits.report.manifest import hash_file
from fairbits.report.markdown import render_markdown_page
from fairbits.report.record import ReportData
from fairbits.report.sections.paperwork import DECISIONS, FIELDS
from fairbits.report.sections.summary import NO_LIMITS, cards, flip_blocks, gate_blocks
from fairbits.report.sections.treatment import MAX_GROUPS, impact_blocks, is_single, lowest_ratios
from fairbits.text import harmless, joined, number, percent, shortened

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
_ENDS = {"": "value", "_low": "low", "_high": "high"}
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
    told: list[tuple[Mapping[str, str], Mapping[str, Any], str]] = [
        (METRICS, {**data.about.quality.figures(), **data.measured.figures}, "")
    ]
    for table in (data.proxies or {}).get("groups", ()):
        told += [(GROUP_METRICS, group, f"{table['attribute']}: {group['group']}") for group in table["groups"]]
    for table in (data.proxies or {}).get("probable", ()):
        for group in table["groups"]:
            found = [(name, group[name]) for name in GROUP_METRICS if group[name] is not None]
            ends = {f"{name}{end}": one[key] for name, one in found for end, key in _ENDS.items()}
            told.append((GROUP_METRICS, ends, f"{table['attribute']} (by probability): {group['group']}"))
    for names, figures, slice_ in told:
        for name, words in names.items():
            value, low, high = (figures.get(f"{name}{end}") for end in ("", "_low", "_high"))
            if isinstance(value, int | float):
                yield Metric(name, words, slice_, value, None if low is None or high is None else (low, high))


def bill_of_materials(data: ReportData, _: Page, __: Path) -> bytes:
    """A CycloneDX ML-BOM: the model with its card, and the table that it was asked about."""
    about, made = data.about, data.reproduction
    hashes = {
        one.what: {"hashes": [{"alg": "SHA-256", "content": one.sha256}]} for one in data.opening.sources if one.sha256
    }
    component: dict[str, Any] = {
        "type": "machine-learning-model",
        "bom-ref": f"model-{made.identity}",
        "name": about.subject,
        "description": about.model,
        "properties": [{"name": "fairbits:identity", "value": made.identity}],
        "modelCard": _card(data),
        **hashes.get("model", {}),
    }
    table: dict[str, Any] = {"type": "data", "bom-ref": f"table-{made.identity}", "name": f"people of {about.subject}"}
    table |= hashes.get("table", {})
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
    considerations = {
        "technicalLimitations": [*_limits(data), *_claims(data)],
        "fairnessAssessments": [_assessment(name, data) for name in _examined(data)],
    }
    return {
        "modelParameters": {
            "task": "regression" if data.about.regression else "classification",
            "datasets": [{"ref": f"table-{data.reproduction.identity}"}],
        },
        "quantitativeAnalysis": {"performanceMetrics": [_metric(one) for one in metrics_of(data)]},
        "considerations": {name: value for name, value in considerations.items() if value},
    }


def _metric(one: Metric) -> dict[str, Any]:
    found: dict[str, Any] = {"type": one.words, "value": f"{one.value:.6g}"}
    found |= {"slice": one.slice_} if one.slice_ else {}
    if one.ends is not None:
        low, high = one.ends
        found["confidenceInterval"] = {"lowerBound": f"{low:.6g}", "upperBound": f"{high:.6g}"}
    return found


def _examined(data: ReportData) -> list[str]:
    """Protected attributes: those that have twins, then those whose groups alone are known."""
    groups = [one["attribute"] for one in (data.proxies or {}).get("groups", ()) if is_single(one)]
    return list(dict.fromkeys((*data.about.protected, *groups)))


def _assessment(name: str, data: ReportData) -> dict[str, str]:
    """Of one protected attribute: who is at risk, of what, and what is recommended."""
    found = {"groupAtRisk": f"people by {name}"}
    rates = data.measured.figures.get("flip_rate_by") or {}
    harms = []
    if name in rates:
        harms.append(f"{percent(rates[name])} would get a different decision if only their {name} differed.")
    for whose, group in lowest_ratios(data.proxies):
        if whose == name:
            value, low, high = (number(group[f"impact_ratio{end}"], 2) for end in _ENDS)
            harms.append(f"The impact ratio of {group['group']} is {value} (95 % interval {low} to {high}).")
    if harms:
        found["harms"] = " ".join(harms)
    if data.repaired is not None and data.repaired.chosen is not None:
        found["mitigationStrategy"] = f"recommended repair: {data.repaired.chosen.name}"
    return found


def tested_statement(data: ReportData, _: Page, folder: Path) -> bytes:
    """An in-toto statement: what the gate said about this model, with the hash of gate.json and of the model."""
    if (data.proxies or {}).get("scores_only"):
        raise OptionError("a table of scores has no model that a gate could judge; leave the form 'statement' out.")
    if data.gate is None:
        other = f" ({data.gate_of_another})" if data.gate_of_another else ""
        raise OptionError(f"no gate has judged the model of this run{other}; run `fairbits gate RUN` first.")
    by_verdict: dict[str, list[str]] = {"pass": [], "fail": [], "inconclusive": list(data.gate.get("pending", ()))}
    for check in data.gate["checks"]:
        by_verdict[check["verdict"]].append(check["name"])
    subjects = [
        {"name": one.name, "digest": {"sha256": one.sha256}}
        for one in data.opening.sources
        if one.what == "model" and one.sha256
    ]
    unnamed = {"name": data.about.subject, "digest": {"fairbitsIdentity": data.reproduction.identity}}
    return _json(
        {
            "_type": STATEMENT,
            "subject": subjects or [unnamed],
            "predicateType": TEST_RESULT,
            "predicate": {
                # A gate that judged nothing is no pass.
                "result": RESULTS[data.gate["verdict"]] if data.gate["checks"] else "WARNED",
                "configuration": [{"name": "gate.json", "digest": {"sha256": hash_file(folder / "gate.json")[1]}}],
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
    about = data.about
    titles = ("Purpose and context", "Stakeholders and groups", *EVALUATED, "Monitoring and responsibility")
    target = about.target or "a score"
    context = (
        Facts([("model", about.model), ("decides about", target), ("identity", data.reproduction.identity)]),
        Paragraph(
            "To be filled in by the owner: what it is for, who uses it, what happens to people by its decisions."
        ),
        Form(
            ("Purpose", "Owner", "Version"), "Role of the decision", ("advises", "decides", "is reviewed by a person")
        ),
    )
    heard = ("Others affected", "How they were heard")
    groups = (
        Paragraph(
            f"Protected attributes examined: {joined(_examined(data))}"
            f"{f', in {about.m:,} combinations' if about.m > 1 else ''}."
        ),
        Paragraph(f"People: {data.measured.rows:,} rows of the table. {shortened(' '.join(data.examined), 300)}"),
        Form(heard, "Representative of those affected?", ("yes", "no", "not known")),
    )
    gate = ("Held in releases by ", Code("fairbits gate"), ": a change for the worse ends the build.")
    owners = "To be stated by the owner: what holds releases, how often it is measured again, and on whom."
    measures: tuple[Text, ...] = (owners,) if data.gate is None else (gate, owners)
    monitoring = (Bullets(measures), Form(FIELDS, "Decision", DECISIONS, "Next review"))
    probable = sum(len(one["groups"]) for one in (data.proxies or {}).get("probable", ()))
    evaluated = _evaluated(data, most=max(PROFILE_GROUPS - probable, 4))
    filled: list[Sequence[Block]] = [context, groups, *evaluated, monitoring]
    page = Page(
        subject=about.subject,
        command=f"bias profile · {data.reproduction.created[:10]}",
        title=f"{about.subject}: bias profile",
        sentence=data.opening.people,
        opening=(),
        parts=[
            PagePart(f"part-{i}", f"{i} {title}", blocks)
            for i, (title, blocks) in enumerate(zip(titles, filled, strict=True), 1)
        ],
        made_from="the run's own files",
    )
    return render_page(page).encode()


#: The parts that fairbits fills by itself, by their headings.
EVALUATED = ("Evaluation: treatment", "Evaluation: impact", "Remaining risks and limits")
#: Groups that three pages have room for.
PROFILE_GROUPS = 8


def _evaluated(data: ReportData, *, most: int = MAX_GROUPS) -> tuple[tuple[Block, ...], ...]:
    impact = [*_impact(data.proxies, most)] if data.proxies else [Paragraph("Not measured: fairbits proxies.")]
    return (
        (Cards(tuple(cards(data))), *paragraphs(_claims(data)), *flip_blocks(data.measured)),
        tuple(impact),
        (Bullets([shortened(one, 200) for one in _limits(data)[:5]]),),
    )


def _claims(data: ReportData) -> tuple[str, ...]:
    """No bits of words without their nulls."""
    return () if data.words is None else data.words.sentences()


def _limits(data: ReportData) -> tuple[str, ...]:
    """What was not asked, then what answers vary by and other notes: the first few are in every form."""
    return (*data.not_examined, *data.about.notes, *(limit.text for limit in data.measured.limits))


def _impact(document: Mapping[str, Any], most: int) -> Iterator[Block]:
    """Groups by single attributes, at most so many: those of the lowest ratios."""
    tables = [table for table in document["groups"] if is_single(table)]
    groups = [group for table in tables for group in table["groups"]]
    ratios = ("impact_ratio", "scoring_ratio")  # the second where nothing is decided
    groups.sort(key=lambda group: next((group[name] for name in ratios if group[name] is not None), math.inf))
    kept = {id(group) for group in groups[:most]}
    tables = [{**table, "groups": [one for one in table["groups"] if id(one) in kept]} for table in tables]
    yield from impact_blocks({**document, "groups": tables})
    if len(groups) > most:
        said = f"These are the {most} of {len(groups)} groups with the lowest ratios; proxies.json has all."
        yield Paragraph(said, tone="small")


def model_card(data: ReportData, _: Page, __: Path) -> bytes:
    """A card for the Hugging Face Hub: figures as metadata (model-index), the same for readers, the gate's verdict.

    The metadata has a value for each figure and no place for its interval: the ends are figures of their own, with the
    names that `measure --json` gives them.
    """
    about, kind, metrics = data.about, "tabular" if data.words is None else "text", []
    for one in metrics_of(data):
        said = f"{one.words}{one.slice_ and f', {one.slice_}'}"
        metrics.append((HUB.get(one.name, one.name), one.value, said))
        for end, value in zip(("low", "high"), one.ends or (), strict=False):
            metrics.append((f"{one.name}_{end}", value, f"{said}, {end} end of the 95 % interval"))
    result = {
        "task": {"type": f"{kind}-{'regression' if about.regression else 'classification'}"},
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


_STYLES = {"warning": "Intense Quote", "verdict": "Intense Quote", "note": "Quote"}


def word_document(_: ReportData, page: Page, __: Path) -> bytes:
    """A Word document (extra ``word``): text and tables in Word's own styles, for offices that file it."""
    try:
        from docx import Document
    except ImportError:
        raise MissingDependencyError.of("python-docx", "word", "writing a Word document") from None
    document = Document()
    document.core_properties.title = _clean(page.title)
    document.core_properties.author = "fairbits"
    # Word files carry dates; a fixed one makes the same report the same file.
    document.core_properties.created = document.core_properties.modified = datetime(2000, 1, 1, tzinfo=UTC)
    document.add_heading(_clean(page.heading or page.title), 0)
    document.add_paragraph(style="Intense Quote").add_run(_clean(page.sentence)).bold = True
    _add(document, page.opening)
    for part in page.parts:
        document.add_heading(_titled(part.title, part.kind), 1)
        _add(document, part.blocks)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def _add(document: Any, found: Iterable[Block]) -> None:  # noqa: PLR0912 - one for each kind of block
    for block in found:
        match block:
            case Heading():
                document.add_heading(_titled(block.text, block.kind), 2)
            case Paragraph():
                document.add_paragraph(_titled(block.text, block.kind), style=_STYLES.get(block.tone.partition(" ")[0]))
            case TableBlock():
                if block.caption:
                    document.add_paragraph(_clean(block.caption), style="Caption")
                _table(document, *block.cells(), heads=[column.head for column in block.columns])
            case Cards():
                rows = [[one.what, one.value, one.kind, one.small] for one in block.cards]
                _table(document, *rows, heads=["figure", "value", "kind", ""])
            case Facts():
                _table(document, *block.pairs)
            case Commands():
                for line in block.lines:
                    document.add_paragraph(_clean(line), style="No Spacing")
            case Bullets():
                for item in block.items:
                    document.add_paragraph(_clean(item), style="List Bullet")
            case Columns():
                for part in block.parts:
                    _add(document, part)
            case Fold():
                document.add_heading(_titled(block.title, block.kind), 3)
                _add(document, block.blocks)
            case People():
                ends = ["; ".join(f"{value} {said}" for value, said in one.ends) for one in block.people]
                people = zip(block.people, ends, strict=True)
                rows = [[str(one.rank), one.own, one.k, one.bits, both, one.place] for one, both in people]
                _table(document, *rows, heads=["", "own values", "k", "bits", "lowest and highest", "who"])
            case Form():
                choice = (block.choice, "  ".join(f"☐ {one}" for one in block.options))
                _table(
                    document,
                    *((name, "") for name in block.fields),
                    choice,
                    *([(block.remark, "")] if block.remark else []),
                )
            case Drawing():
                document.add_paragraph(_clean(f"Figure on the page: {block.caption or block.name}"), style="Caption")


def _table(document: Any, *rows: Sequence[Text], heads: Sequence[Text] = ()) -> None:
    cells = [[_clean(cell) for cell in row] for row in ([heads, *rows] if heads else rows)]
    if cells:
        table = document.add_table(len(cells), len(cells[0]), style=("Light Grid Accent 1" if heads else "Table Grid"))
        for i, row in enumerate(cells):
            for j, cell in enumerate(row):
                table.cell(i, j).text = cell


def _titled(text: Text, kind: str) -> str:
    return _clean(text) + (f" ({kind})" if kind else "")


def _clean(text: Text) -> str:
    """Words without their looks: nothing that XML cannot hold, and no hostile length."""
    return harmless(shortened(plain(text), 1200))


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
    "word": ("report.docx", word_document),
}
