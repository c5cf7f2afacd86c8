"""The record as JSON: the search's figures under their fixed names, and a section for every other stage."""

from __future__ import annotations

from dataclasses import asdict
from importlib import resources
from typing import Any

from fairbits._version import __version__
from fairbits.report.record import Portrait, ReportData
from fairbits.report.sections.proxies import summary as proxies_summary
from fairbits.store import plain

#: Raised when a key changes its meaning or goes; new keys do not raise it.
FORMAT = 1
SCHEMA = "summary.schema.json"
SECTIONS = ("format", "report", "measure", "debug", "repair", "certify", "proxies", "gate")


def summary_of(data: ReportData) -> dict[str, Any]:
    """The content of summary.json; a stage that was not run is null."""
    search = {name: value for name, value in data.searched.figures.items() if name not in SECTIONS}
    measured = data.measured
    document = {
        **search,
        **data.about.quality.figures(),
        "format": FORMAT,
        "report": {
            "fairbits": __version__,
            "sentence": data.sentence,
            "direct": data.direct,
            "by_structure": data.about.blind,
            "people": data.opening.people,
            "people_kind": data.opening.kind,
            "bits": data.bits,
            "protected": list(data.about.protected),
            "near": [asdict(one) for one in data.near],
            "worst": [_person(one) for one in data.people],
            "examined": list(data.examined),
            "not_examined": list(data.not_examined),
            "identity": data.remaking.identity,
            "commands": list(data.remaking.commands),
            "versions": dict(data.remaking.versions),
            "status": data.remaking.status,
            "made_by": data.opening.made_by,
            "sources": [asdict(one) for one in data.opening.sources],
            "warnings": list(data.warnings),
            "contradictions": [one.document() for one in data.contradictions],
        },
        "measure": {
            **measured.figures,
            **data.about.quality.figures(),
            "rows_total": measured.rows_total,
            "noise": None if measured.noise is None else measured.noise.document(),
            "bound": {
                "bits": measured.bound_bits,
                "rate": measured.bound_rate,
                "confidence": measured.bound_confidence,
            },
            "histogram": [{"k": k, "people": people} for k, people in measured.histogram],
            "stakes": [asdict(stake) for stake in measured.stakes],
            "harms": [asdict(harm) for harm in measured.harms],
            "harmed_people": measured.harmed_people,
        },
        "debug": None if data.debugged is None else dict(data.debugged.document),
        "repair": None if data.repaired is None else _repair(data),
        "certify": [one.document() for one in data.certified] or None,
        "proxies": proxies_summary(data.proxies),
        "gate": None if data.gate is None else dict(data.gate),
    }
    return dict(plain(document))


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of summary.json."""
    import json

    text = resources.files("fairbits.report").joinpath(SCHEMA).read_text(encoding="utf-8")
    return dict(json.loads(text))


def _person(one: Portrait) -> dict[str, Any]:
    names = [name for name in Portrait.__slots__ if name not in ("scores", "classes")]
    return {name: getattr(one, name) for name in names}


def _repair(data: ReportData) -> dict[str, Any]:
    """Headline figures and every repair; the groups and both halves in full are in repair.json."""
    repaired = data.repaired
    assert repaired is not None  # noqa: S101 - asked by the caller
    return {
        "chosen": repaired.chosen,
        "k_max_proved": repaired.k_max_proved,
        "proof": repaired.proof,
        "max_accuracy_loss": repaired.max_accuracy_loss,
        "held_out_cases": repaired.held_out_cases,
        "held_out_rows": repaired.held_out_rows,
        "rows_unseen_by_model": repaired.rows_unseen,
        "changes": [asdict(change) for change in repaired.changes],
        "repairs": [asdict(mend) for mend in repaired.repairs],
        "groups": [asdict(group) for group in repaired.groups],
        "files": list(repaired.files),
        "warnings": list(repaired.warnings),
    }
