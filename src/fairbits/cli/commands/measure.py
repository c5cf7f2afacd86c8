"""`fairbits measure`: the bits of the people in a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any

from fairbits import audit as audits
from fairbits import data, report, store
from fairbits import measure as measures
from fairbits.blocks import Block, Commands, Paragraph
from fairbits.cli.arguments import JSON, audit_of, subject_argument
from fairbits.cli.output import answer
from fairbits.cli.progress import progress_bar, working
from fairbits.errors import OptionError
from fairbits.options import LoadingOptions, MeasureOptions, SubjectOptions, TwinsOptions, arguments_of, option

if TYPE_CHECKING:
    from fairbits.measure import Measurement
    from fairbits.subject import Subject


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
        return _without_twins(audit, options.seed, f"next  fairbits audit {subject}{loading.typed}", as_json=as_json)
    with progress_bar("measuring") as progress:
        found = audit.measure(progress=progress, **arguments_of(options))
    groups = audit.groups(seed=options.seed)
    of_texts = measures.text_model(audit.subject) is not None
    words = audit.words(epsilon=options.epsilon, seed=options.seed) if of_texts else None
    nearby = f"next  fairbits audit {subject}{loading.typed}"
    if twins != TwinsOptions():
        nearby = 'next  an audit file with kind = "twins" has a page and a gate, see docs/text.md'

    def document() -> dict[str, Any]:
        more = {} if words is None else {"words": store.record_to_json(words)}
        return {**figures(audit.subject, found, top), "groups": measures.documents_of(groups), **more}

    def look() -> Iterable[Block]:
        wording = () if words is None else report.wording_blocks(words)
        return chain(wording, report.measure_look(audit.subject, found, groups, top=top))

    answer(as_json, document, look, nearby)
    return None


def _of_twins(table: str, about: SubjectOptions, twins: TwinsOptions) -> audits.Audit:
    """A table of twins that somebody else made."""
    if twins.person is None or twins.score is None or about.protected is None:
        raise OptionError(
            "a table of twins needs --person, --protected and --score: the columns that say whose twin, of which "
            "protected values, and with which score."
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


def figures(subject: Subject, found: Measurement, top: int) -> dict[str, Any]:
    """Everything that the terminal shows, as JSON."""
    limits = () if subject.quality is None else measures.quality_limits(subject.quality.accuracy_on)
    noise = () if found.noise is None else found.noise.notes(found.evaluator.epsilon)
    return {
        "subject": subject.name,
        "identity": subject.identity.id,
        **found.summary(),
        **({} if subject.quality is None else subject.quality.figures()),
        "limits": [one.document() for one in (*found.limits, *limits)],
        "round_trip": subject.round_trip.figures(),
        "bound": found.bound(),
        "histogram": [{"k": k, "people": people} for k, people in found.histogram().items()],
        "worst": [asdict(person) for person in found.worst(top)],
        "stakes": [asdict(stake) for stake in found.stakes()],
        "repeats": subject.repeats,
        "noise": None if found.noise is None else found.noise.document(),
        "notes": [*noise, *subject.notes],
    }
