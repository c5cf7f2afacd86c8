"""Rules that keep people real: a small language over attribute names and labels, parsed and never evaluated as code."""

from fairbits.domain.rules.rule import Rule

__all__ = ["Rule"]
