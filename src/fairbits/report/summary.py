"""The record as JSON: the search's figures under their fixed names, and a section for every other stage."""

from __future__ import annotations

from dataclasses import asdict
from importlib import resources
from typing import TYPE_CHECKING, Any

from fairbits._version import __version__
from fairbits.report.record import Portrait, ReportData
from fairbits.report.sections.repairs import changes, shown_repairs, words_of
from fairbits.report.sections.treatment import summary as proxies_summary
from fairbits.store import plain, record_to_json

if TYPE_CHECKING:
    from fairbits.repair import RepairCandidate, RepairResult

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
            "identity": data.reproduction.identity,
            "commands": list(data.reproduction.commands),
            "versions": dict(data.reproduction.versions),
            "status": data.reproduction.status,
            "made_by": data.opening.made_by,
            "about": dict(data.opening.about),
            "sources": [asdict(one) for one in data.opening.sources],
            "warnings": list(data.warnings),
            "contradictions": [one.document() for one in data.contradictions],
        },
        "measure": {
            **measured.figures,
            **data.about.quality.figures(),
            "rows_total": measured.rows_total,
            "noise": None if measured.noise is None else measured.noise.document(),
            "bound": dict(measured.bound),
            "histogram": [{"k": k, "people": people} for k, people in measured.histogram],
            "stakes": [asdict(stake) for stake in measured.stakes],
            "harms": [asdict(harm) for harm in measured.harms],
            "harmed_people": measured.harmed_people,
        },
        "debug": None if data.debugged is None else data.debugged.summary(),
        "repair": None if data.repaired is None else _repair(data.repaired),
        "certify": [one.document() for one in data.certified] or None,
        "proxies": proxies_summary(data.proxies),
        "gate": None if data.gate is None else dict(data.gate),
        **({} if data.words is None else {"words": record_to_json(data.words)}),
    }
    return dict(plain(document))


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of summary.json."""
    import json

    text = resources.files("fairbits.report").joinpath(SCHEMA).read_text(encoding="utf-8")
    return dict(json.loads(text))


def _person(one: Portrait) -> dict[str, Any]:
    names = [name for name in Portrait.__slots__ if name not in ("scores", "classes", "own_twin")]
    return {name: getattr(one, name) for name in names}


def _repair(found: RepairResult) -> dict[str, Any]:
    """Headline figures and every repair; the groups and both halves in full are in repair.json."""
    evidence, proof = found.evidence, None if found.chosen is None else found.chosen.proof
    names = ("selection", "equal_opportunity", "average_odds")
    return {
        "chosen": "" if found.chosen is None else found.chosen.name,
        "k_max_proved": None if proof is None else proof.bound,
        "proof": "" if proof is None else proof.text,
        "max_accuracy_loss": found.max_accuracy_loss,
        "held_out_cases": evidence.held_out_cases,
        "held_out_rows": evidence.held_out_rows,
        "rows_unseen_by_model": evidence.rows_unseen_by_model,
        "changes": changes(found),
        "repairs": [_candidate(one, found) for one in shown_repairs(found)],
        "groups": [
            {
                "attributes": before.attributes,
                **{name: (getattr(before, name), getattr(after, name)) for name in names},
            }
            for before, after in zip(found.groups_before, found.groups_after, strict=True)
        ],
        "files": [path.name for path in found.files],
        "warnings": [*evidence.notes, *found.warnings],
    }


def _candidate(one: RepairCandidate, found: RepairResult) -> dict[str, Any]:
    low, high = one.held_out_loss_low, one.held_out_loss_high
    return {
        "name": one.name,
        "words": words_of(one),
        **{name: getattr(one.held_out, name) for name in ("accuracy", "k_mean", "id_rate", "id_rate_rows")},
        **{name: getattr(one, name) for name in ("within_budget", "yardstick", "k_max_proved", "raises")},
        "on_front": not one.dominated,
        "chosen": one is found.chosen,
        "change_low": None if high is None else -high,
        "change_high": None if low is None else -low,
    }
