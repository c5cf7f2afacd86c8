"""From a run's folder and its subject to the record of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, log2, prod
from pathlib import Path
from typing import Any, Unpack

from fairbits.certify import (
    Contradiction,
    Sighting,
    Statement,
    certify_options,
    contradictions,
    read_statements,
    repair_sightings,
    withdraw_statements,
    withdrawn,
)
from fairbits.debug import read_debug
from fairbits.domain import GrantOptions, twin_limits
from fairbits.language import TextModel
from fairbits.measure import Evaluator, Progress, WordStudy, evaluator_of
from fairbits.models import HasActivations, HasGradients, HasInterventions, Network, TwinScores, kind_of
from fairbits.repair import RepairResult, read_repair
from fairbits.report import words
from fairbits.report.evidence import (
    FIELDS,
    FLIPS_BY,
    NEEDED,
    keep_measurement,
    kept_measurement,
    measure_rows,
    measured_of,
    near_of,
    searched_of,
    summary_of_run,
)
from fairbits.report.evidence import NAME as MEASURED
from fairbits.report.manifest import FILING, FORMATS, check_stages, files_of
from fairbits.report.record import About, Measured, Opening, ReportData, Reproduction, Searched
from fairbits.report.sections.paperwork import commands
from fairbits.report.sections.people import axes_of, found_people, real_people
from fairbits.report.sections.summary import gate_of, sources_of
from fairbits.report.sections.texts import words_of
from fairbits.report.sections.treatment import lead, proxies_of
from fairbits.shape import check_fields, check_record, reading
from fairbits.store import SUMMARY, Run, accepted_subject, note_checks
from fairbits.subject import Subject, quality_of
from fairbits.text import joined


def compute_report(
    run: Run,
    *,
    subject: Subject | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **grants: Unpack[GrantOptions],
) -> ReportData:
    """Compute everything that the report of a run says; what is measured on the way is kept in measure.json."""
    about = accepted_subject(run, subject, **grants)
    check_stages(run.folder, about.identity)
    evaluator = evaluator_of_run(run, about, threads)
    document = kept_measurement(run.folder, about, evaluator)
    if document is None:
        document = measure_rows(evaluator, about, run.manifest["seed"], progress=progress)
        keep_measurement(run.folder, document)
    with reading(run.folder / MEASURED, "delete it, and write the report again"):
        measured = measured_of(document)
        check_record(measured)
        texts: dict[str, Any] = {
            "partition": str,
            "protected": list[str],
            "rules": list[str],
            "plausible": list[str],
            "blind": bool,
            "kind": str,
            "limits": list[dict[str, Any]],
            "tail": dict[str, Any] | None,
        }
        texts |= dict.fromkeys(FLIPS_BY, dict[str, float])
        figures: dict[str, Any] = dict.fromkeys(measured.figures, float | None) | texts
        check_fields(measured.figures, figures, run.folder / MEASURED)
        worst = real_people(evaluator, about.table, document["worst_rows"])
    with reading(run.folder / SUMMARY, "restore it from a copy, or search again"):
        summary = summary_of_run(run)
        check_fields(summary, FIELDS, run.folder / SUMMARY, needed=NEEDED)
        searched = searched_of(run, summary)
        check_record(searched)
    people = worst + found_people(evaluator, run)
    facts, repaired, debugged = about_of(about, evaluator), read_repair(run.folder), read_debug(run.folder)
    statements = read_statements(run.folder)
    against = _contradictions(run, facts, measured, summary, statements, repaired)
    statements = withdrawn(statements, against)
    withdraw_statements(run.folder, statements)
    if any(one.claim is None and one.model == "model" for one in against):
        facts = replace(facts, blind=False)
    if repaired is not None and any(one.model == "repaired" for one in against):
        repaired = _without_proof(repaired)
    if measured.noise is not None:
        facts = replace(facts, notes=(*measured.noise.notes(evaluator.epsilon), *facts.notes))
    study = proxies_of(run.folder, about)
    near = near_of(
        summary,
        rows_k_max=measured.figures["k_max"],
        rows_exact=measured.kind == "exact",
        blind=facts.blind,
        limit=round(2**evaluator.bits_limit) if measured.noise is None and not measured.bounded else None,
    )
    if isinstance(evaluator.model, TwinScores):
        near = near[:1]  # nobody else can be scored
    bits = log2(max(one.k or 1 for one in near))
    contradictions = [one.document() for one in against]
    checks = note_checks(run.folder, round_trip=about.round_trip.figures(), contradictions=contradictions)
    gate, gate_of_another = gate_of(run.folder, about.identity.id)
    direct = words.sentence(facts, bits, measured.noise)
    wording = words_of(run.folder, about)
    if wording is not None:
        direct = f"{direct} In {wording.sentences()[0]}"
    return ReportData(
        about=facts,
        bits=bits,
        sentence=lead(study, facts.blind) + direct,
        direct=direct,
        examined=(*words.examined(facts, measured, searched), *about.asked_lines()),
        not_examined=words.not_examined(facts, searched, proxies=study is not None),
        near=near,
        measured=measured,
        searched=searched,
        axes=axes_of(evaluator),
        people=tuple(people),
        debugged=debugged,
        repaired=repaired,
        reproduction=_reproduction(
            run, about, searched, {"debug": debugged, "repair": repaired, **_asked(run.folder, study)}
        ),
        warnings=(*run.warnings(), *_unfinished(run), *_not_run(run, checks.get("not_run", {}))),
        certified=statements,
        contradictions=against,
        proxies=study,
        opening=Opening(
            people=words.people_sentence(measured, facts.people) + _words_alone(wording),
            kind=words.people_kind(facts, measured),
            sources=sources_of(about),
            made_by=run.made_by,
            about=about.about,
        ),
        gate=gate,
        gate_of_another=gate_of_another,
        files=files_of(run.folder, leave_out=(*FORMATS, FILING)),
        folder=run.folder,
        words=wording,
    )


def _not_run(run: Run, faults: Mapping[str, str]) -> Iterator[str]:
    """Why the audit could not do stages that nobody has done since."""
    for stage, fault in faults.items():
        if not (run.folder / f"{stage}.json").is_file():
            yield f"{stage.capitalize()} not run: {fault}"


def _words_alone(study: WordStudy | None) -> str:
    """What the first sentence must not leave unsaid where bits of words are not claimed."""
    if study is None or study.families[0].found.claimed:
        return ""
    return " Single words may do that as well as groups: nothing is claimed of it."


def _contradictions(
    run: Run,
    about: About,
    measured: Measured,
    summary: Mapping[str, Any],
    statements: Sequence[Statement],
    repaired: RepairResult | None,
) -> tuple[Contradiction, ...]:
    """Everything that the run claims, against everything that it has seen; a model that varies claims nothing."""
    if measured.noise is not None:
        return ()
    epsilon = about.epsilon if about.partition == "constrained" else None
    flips = 0 if measured.flip_rate is None else round(measured.flip_rate.value * measured.rows)
    seen = [
        Sighting(source="rows", flips=flips, k=measured.figures["k_max"], epsilon=epsilon),
        Sighting(source="search", flips=summary.get("id_cases"), k=summary.get("k_max"), epsilon=epsilon),
        *repair_sightings(run.folder, epsilon=epsilon),
    ]
    bounds: list[tuple[str, int, Any]] = [("model", 1, "flips")] if about.blind else []
    chosen = None if repaired is None else repaired.chosen
    if chosen is not None and chosen.proof is not None:
        bounds.append(("repaired", chosen.proof.bound, chosen.proof.property))
    return contradictions(statements, seen, bounds=bounds, epsilon=epsilon)


def _without_proof(repaired: RepairResult) -> RepairResult:
    """The same, where what was proved of the chosen repair is contradicted."""
    assert repaired.chosen is not None  # noqa: S101 - only its proof can be contradicted
    chosen = replace(repaired.chosen, proof=None)
    repairs = tuple(chosen if one is repaired.chosen else one for one in repaired.repairs)
    return replace(repaired, chosen=chosen, repairs=repairs)


def evaluator_of_run(run: Run, subject: Subject, threads: int | None = None) -> Evaluator:
    """An evaluator with the settings of a run."""
    manifest = run.manifest
    return evaluator_of(subject, epsilon=manifest["epsilon"], partition=manifest["partition"], threads=threads)


def about_of(subject: Subject, evaluator: Evaluator) -> About:
    schema = subject.schema
    free = [schema.attributes[i] for i in schema.free_columns]
    domain = inf if any(a.kind == "real" for a in free) else float(prod(len(a.values()) for a in free))
    return About(
        subject=subject.name,
        protected=schema.protected,
        sizes=tuple(len(schema[name].twin_values()) for name in schema.protected),
        m=evaluator.m,
        bits_limit=evaluator.bits_limit,
        epsilon=evaluator.epsilon,
        partition=evaluator.partition,
        rows=len(subject.table),
        domain=domain,
        target=schema.target,
        favourable=schema.favourable,
        regression=schema.regression,
        model=_model_words(subject),
        # What twins leave out stands as limits.
        notes=tuple(note for note in subject.notes if note not in {one.note for one in twin_limits(schema)}),
        quality=subject.quality
        or quality_of(subject.model, subject.encoding, schema, subject.table, test=subject.test),
        blind=evaluator.blind,
        people=None if subject.table.person is None else len(set(subject.table.person.tolist())),
    )


def _model_words(subject: Subject) -> str:
    """What the model is, where it is ours; otherwise what it lets one see and do."""
    model = subject.model
    if isinstance(model, TwinScores):
        return "scores of a table of twins"
    if isinstance(model, TextModel):
        return f"a decider about texts, in the words of {model.wording.family}"
    if isinstance(model, Network):
        shape = " – ".join(str(width) for width in (model.inputs, *model.widths))
        return f"a dense network of {len(model.widths)} layers ({shape}), {model.head} head"
    offers = ["gradients"] if isinstance(model, HasGradients) else []
    if isinstance(model, HasActivations):
        hidden = model.activations(subject.encoding.encode(subject.table.codes[:1]))[:-1]
        if hidden:
            what = "layer" if len(hidden) == 1 else "layers"
            shape = " – ".join(str(layer.shape[1]) for layer in hidden)
            held = ", whose neurons can be held" if isinstance(model, HasInterventions) else ""
            offers.append(f"the outputs of {len(hidden)} hidden {what} ({shape}){held}")
    gives = joined(["scores", *offers]) if offers else "scores only"
    return f"a model that gives {gives} ({kind_of(model)})"


def _reproduction(run: Run, subject: Subject, searched: Searched, stages: Mapping[str, Any]) -> Reproduction:
    manifest = run.manifest
    return Reproduction(
        commands=commands(manifest, searched.figures, stages, subject.options.typed_grants()),
        seed=manifest["seed"],
        identity=manifest["identity"]["id"],
        versions=run.versions,
        created=run.created,
        status=run.status,
        budget=words.budget(manifest["budget"]),
    )


def _asked(folder: Path, proxies: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any] | None]:
    """What the stages that come after a repair were asked for, in the order in which they are done."""
    study = None if proxies is None or "seed" not in proxies else proxies
    return {"certify": certify_options(folder), "proxies": study}


def _unfinished(run: Run) -> tuple[str, ...]:
    if run.status == "finished":
        return ()
    return (f"The search is {run.status}: its figures are those of the cases kept so far.",)
