"""A guarded native network as plain arrays: what every file format is written from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.errors import CapabilityError
from fairbits.models import Network
from fairbits.repair.proposals.clip import HAIR, least_size
from fairbits.repair.proposals.guard import Guard
from fairbits.repair.proposals.twin_rules import TwinRules

#: Numbers that the twins' terms may take in a file: beyond that a graph is slower than asking m times.
MAX_TERMS = 20_000_000


@dataclass(frozen=True, slots=True, eq=False)
class GuardArrays:
    """The first layer in two parts: what the other inputs add, and what each twin adds (its bias included)."""

    network: Network
    shared_weights: npt.NDArray[np.float32]  # (inputs, width), protected inputs at 0
    twin_terms: npt.NDArray[np.float32]  # (m, width)
    weights: npt.NDArray[np.float64]  # (m,)
    tau: float
    shift: float
    hair: float  # room for rounding, as a share of the average
    size: float  # and of this, where the average is smaller
    proof: str
    rules: TwinRules | None = None

    @classmethod
    def of(cls, guard: Guard) -> GuardArrays:
        """The arrays of a guard."""
        network = guard.model
        if not isinstance(network, Network):
            raise CapabilityError(
                f"twins can be expanded inside a dense network only, and {type(network).__name__!r} is none."
            )
        if guard.twin_rules is not None:
            guard.twin_rules.check_gaps()
        terms = guard.m * network.widths[0]
        if terms > MAX_TERMS:
            raise CapabilityError(
                f"the {guard.m:,} twins need {terms:,} numbers, more than the {MAX_TERMS:,} of a graph; the Python "
                f"file holds them, and the distilled repair needs one score."
            )
        first = network.weights[0].astype(np.float64)
        added = guard.twin_inputs.astype(np.float64) @ first[guard.protected_inputs]
        shared = network.weights[0].copy()
        shared[guard.protected_inputs] = 0
        return cls(
            network,
            shared,
            (added + network.biases[0]).astype(np.float32),
            guard.weights,
            guard.tau,
            guard.shift,
            HAIR,
            least_size(guard.tau),
            guard.proof,
            guard.twin_rules,
        )
