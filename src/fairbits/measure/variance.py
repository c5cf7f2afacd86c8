"""How good a regression is."""

from fairbits.subject import variance_explained

__all__ = ["variance_explained"]
