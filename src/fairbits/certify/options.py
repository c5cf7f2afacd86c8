"""What a certificate is asked for, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass

from fairbits.certify.conflicts import Contradiction
from fairbits.certify.rates import RateStatement
from fairbits.certify.statement import Statement
from fairbits.options import CertifyOptions as CertifyOptions  # noqa: PLC0414 - exported from here, too


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
