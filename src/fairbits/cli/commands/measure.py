"""`fairbits measure`: the bits of the people in a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fairbits.cli.arguments import JSON, audit_of, subject_argument
from fairbits.cli.output import print_json
from fairbits.options import LoadingOptions, MeasureOptions, SubjectOptions, arguments_of, option

if TYPE_CHECKING:
    from fairbits.audit import Audit
    from fairbits.domain import Limit
    from fairbits.measure import Measurement
    from fairbits.subject import Subject as LoadedSubject


def measure(
    *,
    subject: str = subject_argument(),
    options: MeasureOptions,
    about: SubjectOptions,
    top: int = option(10, "How many of the worst people to list.", low=0),
    as_json: bool = JSON,
    loading: LoadingOptions,
) -> None:
    """How many bits of protected information the decisions about the people in a table use."""
    audit = audit_of(subject, about, loading)
    if audit.subject.scores_only or not audit.subject.schema.protected:
        return _without_twins(audit, options.seed, as_json)
    from fairbits.cli.progress import progress_bar
    from fairbits.measure import documents_of  # brings the compiler along: only once the subject is known to be sound

    with progress_bar("measuring") as progress:
        found = audit.measure(progress=progress, **arguments_of(options))
    groups = audit.groups(seed=options.seed)
    if as_json:
        print_json({**report(audit.subject, found, top), "groups": documents_of(groups)})
    else:
        from fairbits.cli.terminal import show
        from fairbits.report import measure_look

        show(measure_look(audit.subject, found, groups, top=top), f"next  fairbits audit {subject}")
    return None


def _without_twins(audit: Audit, seed: int, as_json: bool) -> None:
    """A model that takes no protected attribute, or that is not at hand: groups and indirect bits only."""
    from fairbits.cli.progress import working

    with working(shown=not as_json) as progress:
        found = audit.proxies(seed=seed, progress=progress)
    document = found.document()
    if as_json:
        quality = {} if audit.subject.quality is None else audit.subject.quality.figures()
        identity = None if audit.subject.scores_only else audit.subject.identity.id
        indirect = {"groups": document["groups"], "probable": document["probable"], "indirect": document["attributes"]}
        notes = {"notes": [*document["notes"], *audit.subject.notes]}
        about = {"subject": audit.subject.name, "identity": identity, "rows": document["rows"]}
        about["round_trip"] = audit.subject.round_trip.figures()
        print_json({**about, **quality, **indirect, **notes})
        return
    from fairbits.cli.terminal import show
    from fairbits.report import study_look

    show(study_look(audit.subject, document))


def report(subject: LoadedSubject, found: Measurement, top: int) -> dict[str, Any]:
    """Everything that the terminal shows, as JSON."""
    return {
        "subject": subject.name,
        "identity": subject.identity.id,
        **found.summary(),
        **({} if subject.quality is None else subject.quality.figures()),
        "limits": [one.document() for one in (*found.limits, *_quality_limits(subject))],
        "round_trip": subject.round_trip.figures(),
        "bound": found.bound(),
        "histogram": [{"k": k, "people": people} for k, people in found.histogram().items()],
        "worst": [asdict(person) for person in found.worst(top)],
        "stakes": [asdict(stake) for stake in found.stakes()],
        "repeats": subject.repeats,
        "noise": None if found.noise is None else found.noise.document(),
        "notes": [*noise_notes(found), *subject.notes],
    }


def _quality_limits(subject: LoadedSubject) -> tuple[Limit, ...]:
    from fairbits.measure import quality_limits

    return () if subject.quality is None else quality_limits(subject.quality.accuracy_on)


def noise_notes(found: Measurement) -> tuple[str, ...]:
    """Notes on a model whose answers vary."""
    return () if found.noise is None else found.noise.notes(found.evaluator.epsilon)
