"""Prejudice remover: a penalty on what the decision tells about the group (Kamishima et al., ECML PKDD 2012).

The penalty is the mutual information of decision and group, in nats; here between the score's mean in each group and
overall, with any number of groups, as a term of our own trainer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairbits.models import Fitting, Network, refit
from fairbits.repair.proposals.lessons import Lessons, needs_weights
from fairbits.repair.proposals.proposer import Planner, Proposal

UPDATES = 1_500
#: Weights of the penalty that are tried; the paper's experiments end at 30.
WEIGHTS = (1.0, 10.0)


@dataclass(frozen=True, slots=True)
class PrejudiceRemover:
    """A proposal for each weight of the penalty; native networks only."""

    name: str = "prejudice"
    weights: tuple[float, ...] = WEIGHTS
    updates: int = UPDATES

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Train the network further under the penalty."""
        network = planner.network
        if not isinstance(network, Network):
            raise needs_weights(planner, "the prejudice remover")
        lessons = Lessons.of(planner, "the prejudice remover")
        inputs = planner.setting.subject.encoding.encode(lessons.rows)
        for weight in self.weights:
            planner.watch(f"removing prejudice, weight {weight:g}")
            found = refit(
                network,
                inputs,
                lessons.labels,
                planner.rng(f"{self.name}-{weight:g}"),
                fitting=Fitting(self.updates, prejudice=weight),
                groups=lessons.groups,
            )
            words = f"trained further with {weight:g} times the bits of the decision about groups as a penalty"
            yield Proposal(
                f"prejudice-{weight:g}",
                f"{words}; {lessons.coding.words}",
                found,
                retrained=True,
                coding=lessons.coding.words,
            )
