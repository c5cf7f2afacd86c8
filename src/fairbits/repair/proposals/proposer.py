"""What a proposer gets and gives: the part of the evidence to learn from in, models to be judged out.

Whoever has a repair of their own hands over an object with a ``name`` and a ``propose(planner)``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from fairbits.models import Model
from fairbits.repair.evidence import Halves
from fairbits.repair.judgement import Setting
from fairbits.repair.records import Proposal as Proposal  # noqa: PLC0414 - proposers take it from here

Watch = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Planner:
    """What proposals are made from: one model and the part of the evidence that may be learned from.

    Attributes
    ----------
    network
        The model to be repaired.
    halves
        ``halves.training`` has the rows to fit to (codes and labels), ``halves.pool`` the found cases. What else is in
        it chooses and judges: whoever learns from that is judged on what it was taught.
    setting
        The subject, and how its twins become classes.
    budget
        The accuracy that may be lost, as a share.
    seed
        Where randomness comes from; ``rng`` gives a generator for each purpose.
    watch
        Progress callback.
    guarantee
        The number of classes that nobody may exceed; None where that was not asked for.
    suspect
        The hidden layer that debugging pointed at; None where it pointed at none.
    retrain
        Whether training is wanted.
    quick
        Whether what takes long is left out: distilling, sets of neurons, training.
    notes
        What could not be tried, and why; proposers may append to it.
    """

    network: Model
    halves: Halves
    setting: Setting
    budget: float
    seed: np.random.SeedSequence
    watch: Watch
    guarantee: int | None = None
    suspect: int | None = None
    retrain: bool = True
    quick: bool = False
    notes: list[str] = field(default_factory=list)

    def rng(self, name: str) -> np.random.Generator:
        """Randomness of a proposer's own: whoever else proposes changes nothing about it.

        Parameters
        ----------
        name
            What the randomness is for.
        """
        key = (*self.seed.spawn_key, zlib.crc32(name.encode()))
        return np.random.default_rng(np.random.SeedSequence(self.seed.entropy, spawn_key=key))


@runtime_checkable
class Proposer(Protocol):
    """A family of repairs: proposes changed models, each with a name and words."""

    @property
    def name(self) -> str:
        """What ``--with`` and the files call it."""

    def propose(self, planner: Planner) -> Iterable[Proposal]:
        """Models that are worth judging.

        Parameters
        ----------
        planner
            The model, the evidence to learn from and the subject.

        Raises
        ------
        CapabilityError, TableError, MissingDependencyError
            If it has nothing for this model, this table or this installation, with the reason.
        """
