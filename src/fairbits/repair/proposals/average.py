"""Proposals around the average over twins: the plain average, the guards, and a network that has learned it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairbits.domain import Table
from fairbits.errors import FairbitsError
from fairbits.repair.proposals.distil import pupil_of
from fairbits.repair.proposals.guard import Guard
from fairbits.repair.proposals.proposer import Planner, Proposal

#: Bounds on k that are tried beside the plain average.
GUARANTEES = (1, 2, 4, 8)
#: What every guard leaves alone.
DIRECT_ONLY = "ends direct use only"
GUARD_WARNING = (
    "The guard ends the direct use of protected attributes only: attributes that stand in for them (proxies) stay, and "
    "indirect bits with them."
)


@dataclass(frozen=True, slots=True)
class Averages:
    """The average over twins, and scores held within reach of it; and a network that has learned the average."""

    name: str = "guard"
    distil: bool = True

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Guards for every model; the pupil for networks."""
        planner.watch("averaging over twins")
        training, setting = planner.halves.training, planner.setting
        guard = Guard.of(
            setting.subject,
            epsilon=setting.epsilon,
            partition=setting.partition,
            threads=setting.threads,
            rows=Table(training.rows, training.labels),
        )
        words = f"the average over the person's twins in place of their own score; {DIRECT_ONLY}"
        yield Proposal("average", words, guard)
        for k_max in sorted({*GUARANTEES, *(() if planner.guarantee is None else (planner.guarantee,))}):
            # One class: twins may still differ by less than ε.
            one = guard.with_guarantee(k_max) if k_max > 1 else guard.with_guarantee(tau=setting.epsilon / 2)
            if (0 < one.k_max <= k_max or k_max == planner.guarantee) and (
                k_max > 1 or setting.partition == "constrained"
            ):  # a bound that two twins cannot break promises nothing, unless it was asked for
                words = f"scores held within {one.tau:.4g} of the average over the person's twins; {DIRECT_ONLY}"
                yield Proposal(f"guard-{k_max}", words, one)
        if not self.distil or planner.quick:
            return
        planner.watch("distilling the average")
        seed = planner.seed
        rng = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 99)))
        try:
            pupil = pupil_of(guard, training.rows, rng)
        except FairbitsError as error:
            planner.notes.append(f"nothing was distilled: {error}")
            return
        words = f"{pupil.words}; {DIRECT_ONLY}"
        yield Proposal("distilled", words, pupil.model, source=pupil.source, teacher=guard)
