"""`fairbits measure`: the bits of the people in a table."""

from __future__ import annotations

from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any

from fairbits.cli.arguments import JSON, audit_of, subject_argument
from fairbits.cli.output import print_json
from fairbits.errors import OptionError
from fairbits.options import LoadingOptions, MeasureOptions, SubjectOptions, TwinsOptions, arguments_of, option

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
    dry_run: bool = option(False, "Print up to three prompts and the number of requests; ask nothing.", rare=True),
    twins: TwinsOptions,
    loading: LoadingOptions,
) -> None:
    """How many bits of protected information the decisions about the people in a table use."""
    if dry_run:
        return _dry_run(subject, loading, as_json=as_json)
    audit = audit_of(subject, about, loading) if twins == TwinsOptions() else _of_twins(subject, about, twins)
    if audit.subject.scores_only or not audit.subject.schema.protected:
        return _without_twins(audit, options.seed, as_json)
    from fairbits.cli.progress import progress_bar
    from fairbits.measure import (  # brings the compiler along: only once the subject is known to be sound
        documents_of,
        text_model,
    )
    from fairbits.store import record_to_json

    with progress_bar("measuring") as progress:
        found = audit.measure(progress=progress, **arguments_of(options))
    groups = audit.groups(seed=options.seed)
    words = audit.words(epsilon=options.epsilon, seed=options.seed) if text_model(audit.subject) is not None else None
    if as_json:
        more = {} if words is None else {"words": record_to_json(words)}
        print_json({**report(audit.subject, found, top), "groups": documents_of(groups), **more})
    else:
        from fairbits.cli.terminal import show
        from fairbits.report import measure_look, wording_blocks

        nearby = f"next  fairbits audit {subject}{loading.typed}"
        if twins != TwinsOptions():
            nearby = 'next  an audit file with kind = "twins" has a page and a gate, see docs/text.md'
        look = measure_look(audit.subject, found, groups, top=top)
        show(look if words is None else chain(wording_blocks(words), look), nearby)
    return None


def _of_twins(table: str, about: SubjectOptions, twins: TwinsOptions) -> Audit:
    """A table of twins that somebody else made."""
    from fairbits.audit import Audit

    if twins.person is None or twins.score is None or about.protected is None:
        raise OptionError(
            "a table of twins needs --person, --protected and --score: the columns that say whose twin, of which "
            "protected values, and with which score."
        )
    return Audit.from_twins(
        table, person=twins.person, protected=about.protected, score=twins.score, threshold=twins.threshold
    )


def _dry_run(subject: str, loading: LoadingOptions, *, as_json: bool) -> None:
    """What would be asked of a decider about texts."""
    from fairbits.data import load_subject
    from fairbits.measure import planned_requests

    prompts, requests = planned_requests(load_subject(subject, **loading.given()))
    if as_json:
        return print_json({"prompts": prompts, "requests": requests})
    from fairbits.blocks import Commands, Paragraph
    from fairbits.cli.terminal import show

    blocks = [block for text in prompts for block in (Commands(text.splitlines()), Paragraph(""))]
    return show([*blocks, Paragraph(f"{requests:,} requests, beyond answers that are kept; nothing was asked.")])


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
