"""From a run's folder and its subject to the record of a report, with its sentences.

The rows of the table are measured once, kept in measure.json, and read again while nothing has changed; the cases of a
search are aggregated, as many as there are, in bounded memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import inf, isinf, log2, prod
from pathlib import Path
from typing import Any, Unpack

import numpy as np

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
from fairbits.domain import GrantOptions, Schema, Twins, rule_name, twin_limits
from fairbits.language import TextModel
from fairbits.measure import (
    Evaluator,
    Measurement,
    Noise,
    Progress,
    Stake,
    evaluator_of,
    harmed_people,
    harms_of,
    measure_table,
    noise_of,
    people_headline,
)
from fairbits.models import HasActivations, HasGradients, HasInterventions, Network, TwinScores, kind_of
from fairbits.randomness import generator, sampled_rows
from fairbits.repair import RepairResult, read_repair
from fairbits.report.manifest import FILING, FORMATS, check_stages, files_of
from fairbits.report.record import About, Measured, Moment, Near, Opening, ReportData, Reproduction, Searched
from fairbits.report.sections.paperwork import commands
from fairbits.report.sections.people import axes_of, found_people, real_people
from fairbits.report.sections.summary import gate_of, sources_of
from fairbits.report.sections.texts import words_of
from fairbits.report.sections.treatment import lead, proxies_of
from fairbits.search import DISTANCES
from fairbits.shape import check_fields, reading
from fairbits.store import SUMMARY, Run, accepted_subject, note_checks, plain, read_json, record_from_json, write_json
from fairbits.subject import Subject, check_identity, quality_of
from fairbits.text import joined, number, power, shortened

MEASURED = "measure.json"
#: What the figures in measure.json are that are no numbers. By attribute: the share whose decision flips when only that
#: one differs, and the ends of its interval.
FIGURES: dict[str, Any] = {
    **dict.fromkeys(("partition", "kind"), str),
    **dict.fromkeys(("protected", "rules", "plausible"), list[str]),
    **{"blind": bool, "limits": list[dict[str, Any]], "tail": dict[str, Any] | None},
    **{f"flip_rate_{by}{end}": dict[str, float] for by in ("by", "plausible_by") for end in ("", "_low", "_high")},
}
#: Real people with a portrait in the report.
PEOPLE = 6
#: Beyond so many twin scores a sample of the rows is measured: compiled kernels, and any other model.
MAX_SCORES, MAX_FOREIGN_SCORES = 400_000_000, 20_000_000

#: Points of the curve over time.
MOMENTS = 120
_HISTOGRAM = "SELECT k, count(*) AS cases, count(*) FILTER (flips) AS ids FROM cases GROUP BY k ORDER BY k"
#: What every summary.json has.
NEEDED = ("strategy", "seed", "epsilon", "partition", "seconds", "evaluations", "cases", "id_cases", "k_max", "exact")
#: What the values of summary.json are, where the page shows them.
FIELDS: dict[str, Any] = {
    **dict.fromkeys(("subject", "strategy", "partition", "objective", "decision"), str),
    **dict.fromkeys(("cases", "id_cases", "k_max", "evaluations", "queries", "seeds", "seed", "m"), int | None),
    "seeds_finished": int | None,
    **dict.fromkeys(("k_max_on_data", "k_max_within_1", "k_max_within_2", "k_max_within_3", "within"), int | None),
    **dict.fromkeys(("epsilon", "bits_limit", "seconds", "k_initial", "k_final", "local_success_rate"), float | None),
    **dict.fromkeys(("seconds_to_k_final", "seconds_to_first_id", "seconds_to_1000_id"), float | None),
    **dict.fromkeys(("q_inf_mean_id", "q_1_mean_id", "null_q_inf_max", "min_plausibility"), float | None),
    **dict.fromkeys(("threshold", "favourable_rate", "base_rate", "accuracy", "balanced_accuracy"), float | None),
    **dict.fromkeys(("auc", "auc_low", "auc_high", "r2", "rank_correlation", "quality_rows"), float | None),
    **dict.fromkeys(("top", "exact", "notes", "rules"), list[Any]),
    "ends": list[int] | None,
}
_WORDS_ALONE = " Single words may do that as well as groups: nothing is claimed of it."


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
        write_json(run.folder / MEASURED, document)
    with reading(run.folder / MEASURED, "delete it, and write the report again"):
        measured = measured_of(document)
        check_fields(measured.figures, dict.fromkeys(measured.figures, float | None) | FIGURES, run.folder / MEASURED)
        worst = real_people(evaluator, about.table, document["worst_rows"])
    with reading(run.folder / SUMMARY, "restore it from a copy, or search again"):
        summary = summary_of_run(run)
        check_fields(summary, FIELDS, run.folder / SUMMARY, needed=NEEDED)
        searched = searched_of(run, summary)
    facts, repaired, debugged = about_of(about, evaluator), read_repair(run.folder), read_debug(run.folder)
    statements = read_statements(run.folder)
    against = _contradictions(run, facts, measured, summary, statements, repaired)
    statements = withdrawn(statements, against)
    withdraw_statements(run.folder, statements)
    blind = facts.blind and not any(one.claim is None and one.model == "model" for one in against)
    noise = () if measured.noise is None else measured.noise.notes(evaluator.epsilon)
    facts = replace(facts, blind=blind, notes=(*noise, *facts.notes))
    chosen = None if repaired is None else repaired.chosen
    if repaired is not None and chosen is not None and any(one.model == "repaired" for one in against):
        unproved = replace(chosen, proof=None)  # what was proved of it is contradicted
        repairs = tuple(unproved if one is chosen else one for one in repaired.repairs)
        repaired = replace(repaired, chosen=unproved, repairs=repairs)
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
    checks = note_checks(
        run.folder, round_trip=about.round_trip.figures(), contradictions=[one.document() for one in against]
    )
    gate, gate_of_another = gate_of(run.folder, about.identity.id)
    wording = words_of(run.folder, about)
    direct = sentence(facts, bits, measured.noise) + ("" if wording is None else f" In {wording.sentences()[0]}")
    made, unclaimed = run.manifest, wording is not None and not wording.families[0].found.claimed
    asked: dict[str, Any] = {"debug": debugged, "repair": repaired, "certify": certify_options(run.folder)}
    asked["proxies"] = study if study is not None and "seed" in study else None
    return ReportData(
        about=facts,
        bits=bits,
        sentence=lead(study, facts.blind) + direct,
        direct=direct,
        examined=(*examined(facts, measured, searched, run.schema), *about.asked_lines()),
        not_examined=not_examined(facts, searched, proxies=study is not None),
        near=near,
        measured=measured,
        searched=searched,
        axes=axes_of(evaluator),
        people=(*worst, *found_people(evaluator, run)),
        debugged=debugged,
        repaired=repaired,
        reproduction=Reproduction(
            commands=commands(made, searched.figures, asked, about.options.typed_grants()),
            seed=made["seed"],
            identity=made["identity"]["id"],
            versions=run.versions,
            created=run.created,
            status=run.status,
            budget=budget(made["budget"]),
        ),
        warnings=(
            *run.warnings(),
            *(
                ()
                if run.status == "finished"
                else (f"The search is {run.status}: its figures are those of the cases kept so far.",)
            ),
            # Why the audit could not do stages that nobody has done since.
            *(
                f"{stage.capitalize()} not run: {fault}"
                for stage, fault in checks.get("not_run", {}).items()
                if not (run.folder / f"{stage}.json").is_file()
            ),
        ),
        certified=statements,
        contradictions=against,
        proxies=study,
        opening=Opening(
            # What the first sentence must not leave unsaid where bits of words are not claimed.
            people=people_sentence(measured, facts.people) + (_WORDS_ALONE if unclaimed else ""),
            kind="proved" if facts.blind else measured.kind,
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


def evaluator_of_run(run: Run, subject: Subject, threads: int | None = None) -> Evaluator:
    return evaluator_of(subject, epsilon=run.manifest["epsilon"], partition=run.manifest["partition"], threads=threads)


def about_of(subject: Subject, evaluator: Evaluator) -> About:
    schema = subject.schema
    free = [schema.attributes[i] for i in schema.free_columns]
    return About(
        subject=subject.name,
        protected=schema.protected,
        sizes=tuple(len(schema[name].twin_values()) for name in schema.protected),
        m=evaluator.m_in_table,
        bits_limit=evaluator.limit_in_table,
        epsilon=evaluator.epsilon,
        partition=evaluator.partition,
        rows=len(subject.table),
        domain=inf if any(a.kind == "real" for a in free) else prod(float(a.count) for a in free),
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
        many = "s" * (len(model.widths) > 1)
        return f"a dense network of {len(model.widths)} layer{many} ({shape}), {model.head} head"
    offers = ["gradients"] if isinstance(model, HasGradients) else []
    layers = isinstance(model, HasActivations) and model.activations(subject.encoding.encode(subject.table.codes[:1]))
    hidden = layers[:-1] if layers else ()
    if hidden:
        shape = " – ".join(str(layer.shape[1]) for layer in hidden)
        held = ", whose neurons can be held" if isinstance(model, HasInterventions) else ""
        offers.append(f"the outputs of {len(hidden)} hidden layer{'s' * (len(hidden) > 1)} ({shape}){held}")
    gives = joined(["scores", *offers]) if offers else "scores only"
    return f"a model that gives {gives} ({kind_of(model)})"


def sentence(about: About, bits: float, noise: Noise | None = None) -> str:
    """The report in one sentence; a second one where the model's answers vary by themselves."""
    names = joined([shortened(name, 60) for name in about.protected])
    if not about.protected:
        return "The model takes no protected attribute: direct bits are exactly 0, and nobody has a twin."
    if about.blind:
        return (
            f"This model uses exactly 0 of {about.bits_limit:.2f} bits of {names} directly: by the way it is made, no "
            f"twin can score differently."
        )
    if bits == 0:
        return f"No use of {names} was found: 0.00 of {about.bits_limit:.2f} bits."
    varies = f" Its answers vary: one and the same twin shows up to {noise.null_q_inf_max:.2f} bits." if noise else ""
    return f"This model uses up to {bits:.2f} of {about.bits_limit:.2f} bits of {names}.{varies}"


def people_sentence(measured: Measured, persons: int | None = None) -> str:
    """What happens to people, in one sentence: how many of them would get a different decision."""
    return people_headline(
        tuple(measured.figures["protected"]),
        measured.rows,
        measured.split_rate,
        measured.flip_rate,
        epsilon=measured.figures["epsilon"],
        complete=measured.complete,
        plausible=measured.flip_rate_plausible,
        bounded=measured.bounded,
        persons=persons,
    )


def in_labels(rule: str, schema: Schema) -> str:
    """A rule as people read it: labels in place of codes that stand for them, and groups where they are counted."""
    for one in schema.attributes:
        name = re.escape(rule_name(one.name))
        if one.labels and one.kind != "category":
            for code, label in zip(one.values(), one.labels, strict=False):
                said = f'"{label}"'.replace("\\", r"\\")
                rule = re.sub(rf"(?<!own )({name} [<>=!]+) {code:g}(?![.\d])", rf"\1 {said}", rule)
            rule = re.sub(rf"(own {name} [+-] \d+)(?![.\d])", r"\1 groups", rule).replace(" 1 groups", " 1 group")
    return rule


def examined(about: About, measured: Measured, searched: Searched, schema: Schema) -> tuple[str, ...]:
    rows = f"all {measured.rows:,}" if measured.complete else f"{measured.rows:,} of {measured.rows_total:,}"
    figures, own = searched.figures, measured.figures
    combinations = f"{'at most' if about.open else 'all'} {about.m:,} combinations of protected values"
    each = f", each under {combinations} ({about.factors})"
    found = [f"Examined: {rows} rows of the table{each if about.protected else ' as it is'}."]
    if own.get("twins_removed"):
        why = "cannot exist under the rules" if own["rules"] else "are not in the table"
        found.append(f"Left out: {own['twins_removed']:,} twins of these rows that {why}.")
    if own.get("plausible"):
        rules = "; ".join(shortened(in_labels(rule, schema), 160) for rule in own["plausible"])
        found.append(f"Plausible twins also keep: {rules}.")
    if figures.get("strategy") != "exhaustive":
        seconds = f", {figures['seconds']:.0f} s" if figures.get("seconds") else ""
        how = f"strategy {figures['strategy']}, seed {figures['seed']}{seconds}"
        within = f" within {figures['within']} changed attributes of a real row" if figures.get("within") else ""
        asked = f"{number(figures.get('evaluations'))} people{within} ({how})"
        found.append(f"Searched: {asked}; {figures['cases']:,} distinct ones were kept.")
    elif figures.get("exact") and not about.blind:
        found.append(f"Enumerated: {figures['cases']:,} distinct people on or next to the rows of the table.")
    return tuple(found)


def not_examined(about: About, searched: Searched, *, proxies: bool = False) -> tuple[str, ...]:
    everybody = "" if isinf(about.domain) else f" (the domain has about {power(about.domain)} different people)"
    everyone = (searched.figures.get("evaluations") or 0) >= about.domain or about.blind
    left = "values outside the stated domains" if everyone else f"people that the search did not reach{everybody}"
    stand_ins = "" if proxies else "; attributes that stand in for protected ones"
    return (f"Not examined: {left}{stand_ins}; whether the labels are right.",)


def budget(limits: Mapping[str, Any]) -> str:
    units = {"seconds": "s", "evaluations": "people asked", "cases": "cases"}
    parts = [f"{limits[name]:,.15g} {unit}" for name, unit in units.items() if limits.get(name) is not None]
    return "none" if limits.get("seconds") == 1e9 else " or ".join(parts) or "none"


def measure_rows(
    evaluator: Evaluator,
    subject: Subject,
    seed: int,
    *,
    progress: Progress | None = None,
    max_rows: int | None = None,
) -> dict[str, Any]:
    """Measure all rows, or as many as can be done in a minute."""
    limit = (MAX_SCORES if evaluator.native else MAX_FOREIGN_SCORES) // evaluator.m
    limit = max(1, limit if max_rows is None else min(limit, max_rows))
    rng = np.random.default_rng(seed)
    chosen = sampled_rows(len(subject.table), limit, rng)
    table = subject.table.rows(chosen) if len(chosen) < len(subject.table) else subject.table
    found = measure_table(evaluator, table, rng, noise=noise_of(subject, evaluator), progress=progress)
    hurried = max_rows is not None and not evaluator.native  # then a quarter of them is asked about once more
    people = harmed_people(evaluator, table.codes, generator(seed, "report", "harm"), share=0.25 if hurried else 1.0)
    return {
        "subject": subject.name,
        "identity": subject.identity.document(),
        "seed": seed,
        "rows_total": len(subject.table),
        **_document_of(found),
        "worst_rows": [int(chosen[person.position]) for person in found.worst(PEOPLE)],
        "harms": {"people": len(people), "values": [asdict(harm) for harm in harms_of(evaluator, people)]},
    }


def _document_of(found: Measurement) -> dict[str, Any]:
    return {
        "figures": found.summary(),
        "noise": plain(found.noise),
        "bound": found.bound(),
        "histogram": [{"k": k, "people": people} for k, people in found.histogram().items()],
        "stakes": [asdict(stake) for stake in found.stakes()],
    }


def kept_measurement(folder: Path, subject: Subject, evaluator: Evaluator) -> dict[str, Any] | None:
    """The measurement in a run's folder, if there is one under these settings."""
    path = folder / MEASURED
    document = read_json(path) if path.is_file() else {}
    figures = document.get("figures", {})
    wanted = [evaluator.epsilon, evaluator.partition, [rule.text for rule in subject.schema.plausible]]
    if [figures.get(name) for name in ("epsilon", "partition", "plausible")] != wanted:
        return None
    check_identity(document, subject.identity, what=f"the measurement in {str(path)!r}")
    return document


def measured_now(found: Measurement) -> Measured:
    """The record of a measurement that is at hand, of all rows that were asked for."""
    return measured_of({**_document_of(found), "rows_total": len(found), "harms": {"people": 0, "values": []}})


def measured_of(document: dict[str, Any]) -> Measured:
    figures = document["figures"]
    known = {
        "rows": figures["rows"],
        "rows_total": document["rows_total"],
        "figures": figures,
        "flip_rate": _estimate(figures, "flip_rate"),
        "flip_rate_plausible": _estimate(figures, "flip_rate_plausible"),
        "split_rate": _estimate(figures, "split_rate"),
        "histogram": [(entry["k"], entry["people"]) for entry in document["histogram"]],
        "stakes": document["stakes"],
        "bound": {name: document["bound"][name] for name in ("bits", "rate", "confidence")},
        "noise": document.get("noise"),
        "harms": document["harms"]["values"],
        "harmed_people": document["harms"]["people"],
        "limits": figures.get("limits", ()),
        "tail": figures.get("tail") or None,
    }
    return record_from_json(Measured, known)


def _estimate(figures: dict[str, Any], name: str) -> dict[str, Any] | None:
    ends = {"value": name, "low": f"{name}_low", "high": f"{name}_high"}
    return None if figures.get(name) is None else {end: figures[known] for end, known in ends.items()}


def searched_of(run: Run, summary: dict[str, Any]) -> Searched:
    histogram = tuple((group["k"], group["cases"], group["ids"]) for group in run.query(_HISTOGRAM).to_pylist())
    lowest, highest = (_twin_shares(run, name) for name in ("low_twin", "high_twin"))
    return Searched(summary, histogram, _progress(run), tuple(stakes_of(run.twins, lowest, highest)))


def summary_of_run(run: Run) -> dict[str, Any]:
    """The summary that the search wrote; for a run that has not ended, what follows from its cases."""
    if run.summary is not None:
        return dict(run.summary)
    counted = [record.tally or (record.state or {}).get("tally", {}) for record in run.tasks.values()]
    return {
        **{name: run.manifest.get(name) for name in ("subject", "strategy", "partition", "epsilon", "seed", "within")},
        "m": run.twins.most,
        "seconds": max((record.seconds for record in run.tasks.values()), default=None),
        "evaluations": sum(record.evaluations for record in run.tasks.values()),
        "queries": sum(tally.get("queries", 0) for tally in counted),
        "seeds": sum(tally.get("seeds", 0) for tally in counted),
        "ends": [record.evaluations for record in run.tasks.values()],
        **run.figures(),
        "exact": [],
    }


def near_of(
    summary: dict[str, Any], *, rows_k_max: int, rows_exact: bool, blind: bool = False, limit: int | None = None
) -> tuple[Near, ...]:
    found = []
    for key, people in DISTANCES.items():
        k = max(summary.get(key) or 0, rows_k_max)
        exact = blind or key in summary.get("exact", []) or (key == "k_max_on_data" and rows_exact) or k == limit
        found.append(Near(people, k or None, log2(k) if k else None, exact))
    return tuple(found)


def _progress(run: Run) -> tuple[Moment, ...]:
    last = run.query("SELECT max(seconds)::DOUBLE AS seconds FROM cases")["seconds"][0].as_py()
    if not last:
        return ()
    bucket = f"least(floor(seconds / {last!r} * {MOMENTS}), {MOMENTS - 1})::INTEGER"
    groups = run.query(
        "SELECT bucket, sum(cases) OVER so_far::BIGINT AS cases, sum(ids) OVER so_far::BIGINT AS id_cases, "  # noqa: S608
        "max(k_max) OVER so_far AS k_max FROM ("
        f"SELECT {bucket} AS bucket, count(*) AS cases, count(*) FILTER (flips) AS ids, max(k) AS k_max "
        "FROM cases GROUP BY 1) WINDOW so_far AS (ORDER BY bucket) ORDER BY bucket"
    ).to_pylist()
    ends = [((group.pop("bucket") + 1) * last / MOMENTS, group) for group in groups]
    return (Moment(0.0, 0, 0, 0), *(Moment(seconds, **group) for seconds, group in ends))


def stakes_of(twins: Twins, lowest: dict[int, float], highest: dict[int, float]) -> Iterator[Stake]:
    """Shares per twin, added up per protected value."""
    for position, column in enumerate(twins.columns):
        attribute = twins.schema.attributes[column]
        for code in attribute.twin_values():
            here = (twins.patterns[:, position] == code).nonzero()[0].tolist()
            low, high = (sum(shares.get(twin, 0.0) for twin in here) for shares in (lowest, highest))
            yield Stake(attribute.name, attribute.read_twin(code), low, high)


def _twin_shares(run: Run, name: str) -> dict[int, float]:
    """How often each twin is the lowest, or highest, among the cases with more than one class."""
    groups = run.query(f"SELECT {name} AS twin, count(*) AS found FROM cases WHERE k > 1 GROUP BY 1").to_pylist()  # noqa: S608
    total = sum(group["found"] for group in groups) or 1
    return {group["twin"]: group["found"] / total for group in groups}
