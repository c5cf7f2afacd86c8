"""All proposers by name: a new one is a file beside this, and its line here."""

from __future__ import annotations

from collections.abc import Iterable

from fairbits.errors import OptionError, choose_from
from fairbits.repair.choice import Proposer
from fairbits.repair.proposals.distil import Averages
from fairbits.repair.proposals.mitigators import (
    Adversarial,
    ExponentiatedGradients,
    PrejudiceRemover,
    Reweighing,
    ThresholdsByGroup,
)
from fairbits.repair.proposals.rivals import Care, FairnessFinetune, NeuFair
from fairbits.repair.proposals.settings import TRIALS, Tuning
from fairbits.repair.proposals.tree import FairTree
from fairbits.repair.proposals.weights import Surgery

#: What every repair tries.
STANDARD: tuple[Proposer, ...] = (Averages(), Surgery())
#: What the literature offers, tried where it is asked for.
MITIGATORS: tuple[Proposer, ...] = (
    Reweighing(),
    PrejudiceRemover(),
    ExponentiatedGradients(),
    Adversarial(),
    ThresholdsByGroup(),
)
#: Other systems' repairs of networks, each by its own search.
RIVALS: tuple[Proposer, ...] = (NeuFair(), Care(), FairnessFinetune())
PROPOSERS: dict[str, Proposer] = {one.name: one for one in (*STANDARD, *MITIGATORS, Tuning(), FairTree(), *RIVALS)}
#: Stands for all mitigators.
ALL = "mitigators"


def proposers_of(wanted: Iterable[str | Proposer], *, trials: int = TRIALS) -> tuple[Proposer, ...]:
    """Proposers by name (``"mitigators"`` stands for all of them), or the objects that were given."""
    found: list[Proposer] = []
    for one in [wanted] if isinstance(wanted, str) else wanted:
        if one == Tuning.name:
            found.append(Tuning(trials=trials))
        elif isinstance(one, str):
            if one != ALL and one not in PROPOSERS:
                raise OptionError(f"there is no proposal {one!r}; {choose_from(one, (ALL, *PROPOSERS))}")
            found += MITIGATORS if one == ALL else (PROPOSERS[one],)
        elif isinstance(one, Proposer) and callable(one.propose) and isinstance(one.name, str):
            found.append(one)
        else:
            raise OptionError(
                f"a proposal is a name or an object with a name and propose(planner), but got {type(one).__name__!r}."
            )
    names = [one.name for one in found]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise OptionError(f"the proposals of {double!r} are asked for twice; give each of them once.")
    return tuple(found)
