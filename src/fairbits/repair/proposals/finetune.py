"""A fine-tune on labels under a penalty on the widest gap between twins, after ProF (Ma, Wang, Xuan, Wang, ASE 2025).

ProF bounds what a network says about the whole set of a person's twins, and has a solver change weights until that is
consistent. Here is what remains of the idea without bounds and solver, and so without its guarantee: the twins with the
lowest and the highest score, of rows and found cases, are pulled together while the labels are learned, and who those
twins are is looked up anew each round. The last bias keeps the share of favourable decisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic

import numpy as np
import numpy.typing as npt

from fairbits.models import Fitting, Network, refit
from fairbits.repair.proposals.mitigators import TrainingData, needs_weights
from fairbits.repair.proposals.neufair import SECONDS
from fairbits.repair.proposals.proposer import Planner, Proposal
from fairbits.repair.proposals.weights import favourable_share, recentred

#: Weights of the penalty, in the order in which they are tried.
WEIGHTS = (3.0, 10.0, 30.0)
ROUNDS, UPDATES = 4, 250
#: Rows, and as many cases, whose widest pairs are pulled together.
PAIRED = 1_000

Inputs = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class FairnessFinetune:
    """A proposal for each weight of the penalty that is reached within the seconds."""

    name: str = "finetune"
    weights: tuple[float, ...] = WEIGHTS
    seconds: float = SECONDS

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Train, round by round."""
        network, setting, start = planner.network, planner.setting, monotonic()
        if not isinstance(network, Network):
            raise needs_weights(planner, "a fairness fine-tune")
        data = TrainingData.of(planner, "a fairness fine-tune")
        encoding, own = setting.subject.encoding, setting.own.over_values
        inputs = encoding.encode(data.rows)
        share = favourable_share(network, inputs, threshold=own.threshold)
        for weight in self.weights:
            name = f"{self.name}-{weight:g}"
            rng = planner.rng(name)
            planner.watch(f"fine-tuning with a penalty of {weight:g} on the widest gap between twins")
            some = rng.choice(len(data.rows), min(PAIRED, len(data.rows)), replace=False)
            people = np.concatenate([data.rows[some], planner.halves.pool[:PAIRED]])
            found = network
            for _ in range(ROUNDS):
                if monotonic() - start >= self.seconds:
                    return
                ends = setting.evaluator(found).over_values.evaluate(people)
                sides = [people.copy(), people.copy()]
                for side, twin in zip(sides, (ends.low_twin, ends.high_twin), strict=True):
                    side[:, own.twins.columns] = own.twins.values[twin]
                low, high = (encoding.encode(side) for side in sides)

                def drawn(
                    rng: np.random.Generator, count: int, low: Inputs = low, high: Inputs = high
                ) -> tuple[Inputs, Inputs]:
                    mine = rng.integers(0, len(low), count)
                    return low[mine], high[mine]

                fitting = Fitting(UPDATES, consistency=weight, whole=own.by_vector)
                found = refit(found, inputs, data.labels, rng, fitting=fitting, pairs=drawn)
            found = recentred(found, inputs, share, threshold=own.threshold)
            words = f"trained further on labels and on {weight:g} times the gap between the lowest and highest twin"
            yield Proposal(name, words, found, retrained=True)
