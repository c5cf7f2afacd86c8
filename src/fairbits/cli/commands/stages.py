"""`fairbits measure`, `search`, `debug`, `certify` and `proxies`: the stages of an audit, each by itself."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any

import click

from fairbits import audit as audits
from fairbits import certify as certificates
from fairbits import data, engine, report, store
from fairbits import measure as measures
from fairbits import subject as subjects
from fairbits.blocks import Block, Commands, Paragraph
from fairbits.cli import since
from fairbits.cli.flags import EITHER, FORCE, JSON, OUT, RESUME, RUN, audit_of, open_run, subject_argument
from fairbits.cli.output import answer, warn_of_damage
from fairbits.cli.progress import live, progress_bar, working
from fairbits.cli.signals import INTERRUPTED, gentle_stop
from fairbits.errors import ContradictionError, OptionError
from fairbits.options import (
    AcceptOptions,
    CertifyOptions,
    DebugOptions,
    LoadingOptions,
    MeasureOptions,
    ProxiesOptions,
    RegionOptions,
    SearchOptions,
    SubjectOptions,
    TwinsOptions,
    arguments_of,
    option,
)


def measure(
    *,
    subject: str = subject_argument(),
    options: MeasureOptions,
    about: SubjectOptions,
    top: int = option(10, "How many of the worst people to list.", low=0, rare=True),
    as_json: bool = JSON,
    dry_run: bool = option(False, "Print up to three prompts and the number of requests; ask nothing.", rare=True),
    twins: TwinsOptions,
    loading: LoadingOptions,
) -> None:
    """How many bits of protected information the decisions about the people in a table use."""
    if dry_run:
        return _dry_run(subject, loading, as_json=as_json)
    audit = audit_of(subject, about, loading) if twins == TwinsOptions() else _of_twins(subject, about, twins)
    if audit.subject.scores_only or not audit.subject.schema.protected:
        return _without_twins(audit, options.seed, f"next  fairbits audit {subject}{loading.typed}", as_json=as_json)
    with progress_bar("measuring") as progress:
        measurement = audit.measure(progress=progress, **arguments_of(options))
    groups = audit.groups(seed=options.seed)
    of_texts = measures.text_model(audit.subject) is not None
    words = audit.words(epsilon=options.epsilon, seed=options.seed) if of_texts else None
    page = 'next  an audit file with kind = "twins" has a page and a gate, see docs/text.md'
    nearby = f"next  fairbits audit {subject}{loading.typed}" if twins == TwinsOptions() else page
    answer(
        as_json,
        lambda: {
            **figures(audit.subject, measurement, top),
            "groups": measures.documents_of(groups),
            **({} if words is None else {"words": store.plain(words)}),
        },
        lambda: chain(
            () if words is None else report.wording_blocks(words),
            report.measure_look(audit.subject, measurement, groups, top=top),
        ),
        nearby,
    )


def _of_twins(table: str, about: SubjectOptions, twins: TwinsOptions) -> audits.Audit:
    """A table of twins that somebody else made."""
    if twins.person is None or twins.score is None or about.protected is None:
        raise OptionError(
            "a table of twins needs --person, --protected and --score: the columns that say whose twin, of which "
            "protected values, and with which score."
        )
    if about.where is not None or about.repeats is not None:
        raise OptionError(
            "a table of twins takes neither where nor repeats: whom it has, and how often, is in its rows; leave "
            "them out."
        )
    return audits.Audit.from_twins(
        table, person=twins.person, protected=about.protected, score=twins.score, threshold=twins.threshold
    )


def _dry_run(subject: str, loading: LoadingOptions, *, as_json: bool) -> None:
    """What would be asked of a decider about texts."""
    prompts, requests = measures.planned_requests(data.load_subject(subject, **loading.given()))
    blocks: list[Block] = [block for text in prompts for block in (Commands(text.splitlines()), Paragraph(""))]
    blocks.append(Paragraph(f"{requests:,} requests, beyond answers that are kept; nothing was asked."))
    answer(as_json, lambda: {"prompts": prompts, "requests": requests}, lambda: blocks)


def _without_twins(audit: audits.Audit, seed: int, nearby: str, *, as_json: bool) -> None:
    """A model that takes no protected attribute, or that is not at hand: groups and indirect bits only."""
    with working(shown=not as_json) as progress:
        study = audit.proxies(seed=seed, progress=progress).document()
    subject = audit.subject
    document = {
        "subject": subject.name,
        "identity": None if subject.scores_only else subject.identity.id,
        "rows": study["rows"],
        "round_trip": subject.round_trip.figures(),
        **({} if subject.quality is None else subject.quality.figures()),
        "groups": study["groups"],
        "probable": study["probable"],
        "indirect": study["attributes"],
        "notes": [*study["notes"], *subject.notes],
    }
    answer(as_json, lambda: document, lambda: report.study_look(subject, study), nearby)


def figures(subject: subjects.Subject, measurement: measures.Measurement, top: int) -> dict[str, Any]:
    """Everything that the terminal shows, as JSON."""
    limits = () if subject.quality is None else measures.quality_limits(subject.quality.accuracy_on)
    noise = () if measurement.noise is None else measurement.noise.notes(measurement.evaluator.epsilon)
    return {
        "subject": subject.name,
        "identity": subject.identity.id,
        **measurement.summary(),
        **({} if subject.quality is None else subject.quality.figures()),
        "limits": [limit.document() for limit in (*measurement.limits, *limits)],
        "round_trip": subject.round_trip.figures(),
        "bound": measurement.bound(),
        "histogram": [{"k": k, "people": people} for k, people in measurement.histogram().items()],
        "worst": [asdict(person) for person in measurement.worst(top)],
        "stakes": [asdict(stake) for stake in measurement.stakes()],
        "repeats": subject.repeats,
        "noise": store.plain(measurement.noise),
        "notes": [*noise, *subject.notes],
    }


def search(
    *,
    subject: str | None = subject_argument(None),
    options: SearchOptions,
    on_data: bool = option(False, "Only the real rows, all of them: exact."),
    exhaustive: int | None = option(
        None, "1: every change of one attribute of every real row: exact.", metavar="N", rare=True
    ),
    about: SubjectOptions,
    out: Path | None = OUT,
    resume: Path | None = RESUME,
    force: bool = FORCE,
    top: int = option(10, "How many of the worst people to list.", low=0, rare=True),
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """Search for the people whose twins are treated most differently, and keep every case on disk."""
    began = since()
    if on_data or exhaustive is not None:
        if options.strategy is not None or (on_data and exhaustive is not None):
            raise OptionError("--strategy, --on-data and --exhaustive exclude each other; choose one.")
        options = replace(options, strategy="exhaustive", options={"distance": 0 if on_data else exhaustive})
    audit = audit_of(subject, about, loading, resume)
    with live(shown=not as_json) as progress, gentle_stop() as stop:
        run = audit.search(
            out=resume or out,
            resume=resume is not None,
            force=force,
            progress=progress,
            stop=stop,
            began=began,
            **arguments_of(options),
        )
        stopped = stop() and run.status == "interrupted"
    summary = run.summary or {}
    notes = (*audit.subject.notes, *summary.get("notes", ()))
    answer(
        as_json,
        lambda: {"run": str(run.folder), "status": run.status, **summary},
        lambda: report.search_look(run, top=top, lines=audit.subject.asked_lines(), notes=notes),
        f"next  fairbits cases {run.folder}, then fairbits debug, repair and report",
    )
    if stopped:
        raise click.exceptions.Exit(INTERRUPTED)


def debug(*, run: str = RUN, options: DebugOptions, as_json: bool = JSON, loading: LoadingOptions) -> None:
    """Which layer, neurons and attributes the bits come from, and what share of them the data and the training have."""

    # Trainings that were asked for may take minutes: they go to processes of their own, one for each core.
    cores = engine.thread_count(options.threads)
    if not options.many and (options.retrain or options.trainings) and cores > 1:
        options = replace(options, training_workers=min(cores, options.trainings or cores))
    opened = open_run(run, "debug", loading)
    warn_of_damage(opened)
    with working(shown=not as_json) as progress:
        result = opened.debug(progress=progress, **arguments_of(options))
    quality = opened.manifest.get("quality")
    answer(
        as_json,
        lambda: {"run": str(opened.folder), "quality": quality, **store.plain(result.summary())},
        lambda: report.titled(
            f"{result.subject}: where the bits come from", report.quality_lines(quality), report.debug_blocks(result)
        ),
        f"next  fairbits repair {opened.folder}{loading.typed}",
    )


def certify(
    *,
    subject: str = EITHER,
    options: CertifyOptions,
    about: RegionOptions,
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """What can be said about everybody: exact, proved over sets of people, or statistical.

    Ends with the budget or Ctrl-C; what is certain by then is said. In a run's folder it goes to certify.json.
    """
    of_run = (Path(subject) / "run.json").is_file()
    if of_run and (about.protected is not None or about.where is not None):
        raise OptionError("--protected and --where are for an audit file; a run has its own, so leave them out.")
    audit = open_run(subject, "certify", loading) if of_run else audit_of(subject, about, loading)
    loaded = audit.subject
    with working(shown=not as_json) as progress, gentle_stop() as stop:
        certificate = audit.certify(progress=progress, stop=stop, **arguments_of(options))
    title = f"{loaded.name}: what can be said about everybody"
    nearby = f"next  fairbits {'report' if of_run else 'audit'} {subject}{loading.typed}"
    answer(
        as_json,
        lambda: document(loaded, certificate),
        lambda: report.titled(title, loaded.lines(), report.certificate_blocks(certificate)),
        *([] if loaded.table.drawn else [nearby]),  # all else needs a table
    )
    if certificate.contradictions:
        raise ContradictionError(certificate.contradictions[0].said())
    if certificate.stopped:
        raise click.exceptions.Exit(INTERRUPTED)


def document(subject: subjects.Subject, certificate: certificates.Certificate) -> dict[str, Any]:
    """Everything that the terminal shows, as JSON."""
    return {
        "subject": subject.name,
        "identity": subject.identity.id,
        "quality": None if subject.quality is None else subject.quality.figures(),
        "statements": [statement.document() for statement in certificate.statements],
        "rates": [rate.document() for rate in certificate.rates],
        "notes": list(certificate.notes),
        "contradictions": [contradiction.document() for contradiction in certificate.contradictions],
        "stopped": certificate.stopped,
    }


def proxies(
    *,
    subject: str = subject_argument(),
    options: ProxiesOptions,
    filing: bool = option(False, "The tables of New York City's Local Law 144; with --out as filing.html, too."),
    out: Path | None = option(None, "A folder for proxies.json.", metavar="FOLDER"),
    about: AcceptOptions,
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """What the score tells about protected attributes, also those that the model never sees, and through what."""
    audit = audit_of(subject, about, loading)
    with working(shown=not as_json) as progress:
        result = audit.proxies(out=out, progress=progress, **arguments_of(options))
    study, filed = result.document(), result.filing()
    nearby = f"next  fairbits audit {subject}{loading.typed}"
    page = report.filing_page(study, filed["date"]) if filing else None
    if page is not None and out is not None and not as_json:
        store.write_whole(out / "filing.html", report.render_page(page).encode())
        nearby = f"page  {out / 'filing.html'}"
    answer(
        as_json,
        lambda: {**study, "filing": filed},
        lambda: page or report.study_look(result.subject, study),
        nearby,
    )
