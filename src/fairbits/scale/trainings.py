"""Trainings by workers: a shard is one seed, and comes back with the scores of the people's twins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairbits.debug import Trained, TrainOut, train_here
from fairbits.domain import Codes
from fairbits.errors import FairbitsError
from fairbits.scale.coordinator import carry_out
from fairbits.scale.executors.options import ExecutorOptions, open_executor
from fairbits.scale.portable import Portable
from fairbits.scale.tasks import Job, Signals
from fairbits.subject import Subject


@dataclass(frozen=True, slots=True)
class _Shared:
    subject: Subject | Portable
    people: Codes
    epochs: int | None


def train_out_by(executor_options: ExecutorOptions) -> TrainOut | None:
    """Trains with these workers; None where this process does it anyway."""
    if not executor_options.many:
        return None

    def train_out(subject: Subject, people: Codes, seeds: Sequence[int], *, epochs: int | None = None) -> list[Trained]:
        packed = Portable.of(subject) if executor_options.elsewhere else subject
        with open_executor(executor_options, Job(_prepare, _perform, _Shared(packed, people, epochs))) as executor:
            carried = carry_out(executor, enumerate(seeds))
        for number, fault in carried.lost.items():
            raise FairbitsError(f"training {number + 1} was not done: {fault.words}; try with fewer workers.")
        return [carried.results[number] for number in range(len(seeds))]

    return train_out


def _prepare(shared: _Shared) -> _Shared:
    subject = shared.subject.open() if isinstance(shared.subject, Portable) else shared.subject
    return _Shared(subject, shared.people, shared.epochs)


def _perform(shared: _Shared, seed: int, signals: Signals) -> Trained:  # noqa: ARG001 - a training is not cut short
    assert isinstance(shared.subject, Subject)  # noqa: S101 - opened by _prepare
    return train_here(shared.subject, shared.people, [seed], epochs=shared.epochs)[0]
