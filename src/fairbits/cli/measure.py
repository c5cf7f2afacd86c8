"""`fairbits measure`: the bits of the people in a table."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairbits.cli.options import (
    Epsilon,
    Json,
    PartitionName,
    Protected,
    Repeats,
    Subject,
    Threads,
    Top,
    TrustPickle,
    names_of,
    threads_of,
)

if TYPE_CHECKING:
    from fairbits.data import Subject as LoadedSubject
    from fairbits.measure import Measurement


def measure(
    subject: Subject,
    epsilon: Epsilon = None,
    partition: PartitionName = "constrained",
    protected: Protected = None,
    threads: Threads = 0,
    top: Top = 10,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap intervals.", min=0)] = 0,
    repeats: Repeats = 1,
    trust_pickle: TrustPickle = False,
    as_json: Json = False,
) -> None:
    """How many bits of protected information the decisions about the people in a table use."""
    from fairbits.cli.progress import progress_bar
    from fairbits.data import load_subject

    loaded = load_subject(subject, trust_pickle=trust_pickle)
    if protected is not None:
        loaded = loaded.with_protected(names_of(protected))
    loaded = loaded.with_repeats(repeats)
    from fairbits.audit import Audit  # brings the compiler along: only once the subject is known to be sound

    with progress_bar("measuring") as progress:
        found = Audit.of(loaded).measure(
            epsilon=epsilon, partition=partition, threads=threads_of(threads), seed=seed, progress=progress
        )
    if as_json:
        print(json.dumps(report(loaded, found, top), indent=2, ensure_ascii=False))
    else:
        from fairbits.cli.measure_text import show

        show(loaded, found, top)


def report(subject: LoadedSubject, found: Measurement, top: int) -> dict[str, Any]:
    """Everything that the terminal shows, as JSON."""
    return {
        "subject": subject.name,
        "identity": subject.identity.id,
        **found.summary(),
        "bound": found.bound(),
        "histogram": [{"k": k, "people": people} for k, people in found.histogram().items()],
        "worst": [asdict(person) for person in found.worst(top)],
        "stakes": [asdict(stake) for stake in found.stakes()],
        "repeats": subject.repeats,
        "noise": None if found.noise is None else found.noise.document(),
        "notes": [*noise_notes(found), *subject.notes],
    }


def noise_notes(found: Measurement) -> tuple[str, ...]:
    """What must be said of a model whose answers vary."""
    return () if found.noise is None else found.noise.notes(found.evaluator.epsilon)
