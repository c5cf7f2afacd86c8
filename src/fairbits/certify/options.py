"""What a certificate is asked for, and what comes back."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairbits.certify.conflicts import Contradiction
from fairbits.certify.rates import RateStatement
from fairbits.certify.statement import Statement
from fairbits.errors import OptionError

#: Seconds below which no budget makes sense.
SHORTEST = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyOptions:
    """How a model is to be certified.

    Parameters
    ----------
    seconds
        The budget of everything together.
    changes
        How far from real rows the statement about near people goes; 0 leaves it at the rows themselves.
    k
        The number of classes to prove; None asks for the largest k instead, where it can be found.
    seed
        Of the sample.
    epsilon
        The tolerance between scores; None: the subject's own.
    threads
        None: all cores.
    proofs
        Whether to prove anything over sets of people; without, everybody is asked, or some are drawn.
    rates
        Whether to prove intervals for the rates of groups and their ratio, under a population fitted to the table
        (dense ReLU networks); takes a third of the budget.
    """

    seconds: float = 30.0
    changes: int = 1
    k: int | None = None
    seed: int = 0
    epsilon: float | None = None
    threads: int | None = None
    proofs: bool = True
    rates: bool = False

    def __post_init__(self) -> None:
        if not SHORTEST <= self.seconds < math.inf:
            raise OptionError(
                f"the budget is {self.seconds:g} s; a statement takes at least {SHORTEST:g} s, e.g. --budget 30s."
            )
        if self.changes < 0:
            raise OptionError(f"changes is {self.changes}; give 0 (the rows themselves), 1, 2 or more.")
        if self.k is not None and self.k < 1:
            raise OptionError(f"k is {self.k}; everybody has at least one class, so ask for 1 or more.")


@dataclass(frozen=True, slots=True)
class Certificate:
    """Statements about a model, what could not be proved and why, and whether somebody ended it early.

    Parameters
    ----------
    statements
        What is exact, proved or statistical about flips and k.
    notes
        What could not be proved, and why.
    stopped
        Whether a person ended it early.
    rates
        Statements about shares of people, where they were asked for.
    contradictions
        Statements that something else contradicts, which is an error of ours: they are withdrawn.
    """

    statements: tuple[Statement, ...]
    notes: tuple[str, ...] = ()
    stopped: bool = False
    rates: tuple[RateStatement, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()

    def __repr__(self) -> str:
        kinds = ", ".join(dict.fromkeys(one.kind for one in self.statements))
        return f"<Certificate: {len(self.statements) + len(self.rates)} statements{kinds and f' ({kinds})'}>"
